"""A further word that callers may say with a decision is one name in `core.decision.SAID`."""

import subprocess
import sys

SCRIPT = """
import sys
from pathlib import Path
import solid_bandits.core.decision as decision

decision.SAID = ("channel",)
decision.OFFER += decision.SAID
import solid_bandits as sb

folder = Path(sys.argv[1])
offers = [{"features": [[1.0], [2.0]], "event_id": f"e{number}"} for number in range(3)]
offers[0]["channel"], offers[2]["channel"] = "app", "wéb"
said = ["app", None, "wéb"]
settings = {"dim": 1, "noise_std": 1.0}
held = sb.Bandit(sb.Greedy(), **settings)
kept = sb.Bandit(sb.Greedy(), **settings, store=folder / "shop.db")
for one in (held, kept):
    one.decide_many(offers, time=1)
    one.learn("e0", 1.0, time=2)
    try:
        one.decide_many([offers[0] | {"channel": 3}])
    except ValueError as error:
        assert "channel must be text of 1 to 200 printable characters, got 3" in str(error)
    else:
        raise AssertionError("3 is no text")
log = held.log()
assert log["channel"].to_list() == said
assert kept.log().equals(log)
kept._history.source.store.close()  # as a kill leaves it: the log is replayed
with sb.Bandit.open(folder / "shop.db") as again:
    assert again.log().equals(log)
    assert again.recall("e2").said == {"channel": "wéb"}
held.save(folder / "bandit.json")
assert sb.Bandit.load(folder / "bandit.json").recall("e2").said == {"channel": "wéb"}
assert sb.Bandit.from_log(log, sb.Greedy(), noise_std=1.0).log()["channel"].to_list() == said
sb.logs.write(log, folder / "log.parquet")
assert sb.logs.read(folder / "log.parquet").equals(log)
sb.logs.write_dsjson(log, folder / "log.dsjson")
assert sb.logs.read(folder / "log.dsjson").equals(log)
"""


def test_it_is_kept_in_memory_store_files_and_what_learns_from_a_log(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
