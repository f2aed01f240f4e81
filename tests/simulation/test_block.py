"""Blocks of runs."""

import solid_bandits as sb
from solid_bandits.simulation import block


def test_the_time_of_the_policies_is_theirs_alone(monkeypatch):
    """What is compiled or loaded comes with the first step, which is played before the clock starts."""
    told = []
    monkeypatch.setattr(block, "play", lambda problem, policy, horizon, *rest: told.append(horizon))
    monkeypatch.setattr(block.time, "thread_time", lambda: told.append("clock") or 0.0)
    block.play_block(block.Job(sb.problems.toy(), sb.Greedy(), 300, 0), 4, 2)
    assert told == [1, "clock", 300, 300, "clock"]
