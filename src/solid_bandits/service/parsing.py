"""Large bodies, read by another process: one of 4 MiB would keep all others waiting for a tenth of a second.

`python -m solid_bandits.service.parsing` takes bodies one after the other: a letter for what they are, their length and
they themselves; it answers with a length and what was read, in which features are arrays already.
"""

import asyncio
import pickle
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, Any

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from solid_bandits.service.errors import invalid, unavailable
from solid_bandits.service.helpers import begin, environment
from solid_bandits.service.personalizer import RankAsked, RankedAsked
from solid_bandits.service.schemas import (
    DecisionAsked,
    DecisionBody,
    DecisionsAsked,
    RewardBody,
    RewardGiven,
    RewardsGiven,
)
from solid_bandits.service.validation_errors import sentence

SMALL = 64 << 10
"""Bytes of a body that the event loop reads itself."""
LONGEST = 30.0
"""Seconds for one body, those that it waits for included."""
KINDS: dict[str, bytes] = {"decisions": b"d", "rewards": b"r", "rank": b"k"}
"""By the last part of the path."""
ASKED = struct.Struct("<cQ")
ANSWERED = struct.Struct("<Q")
Row = tuple[Any, ...]


class Parser:
    """Asks the process, which is started when it is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._one = asyncio.Lock()
        self._lock = threading.Lock()
        self._ended = False

    async def parse(self, kind: str, body: bytes) -> BaseModel:
        """Return what a body says, as the endpoints take it; a refusal where it is not as it must be."""
        try:
            async with asyncio.timeout(LONGEST):
                async with self._one:
                    content = await asyncio.to_thread(self._asked, KINDS[kind], body)
        except TimeoutError:
            self.end()  # it may be amid an answer that nobody takes
            raise unavailable("too many large calls are waiting; try again") from None
        if content is None:
            raise unavailable("the body could not be read now; try again")
        words, many, rows = pickle.loads(content)  # of our own process
        if words is not None:
            raise invalid(words)
        return _built(kind, many, rows)

    def _asked(self, kind: bytes, body: bytes) -> bytes | None:
        with self._lock:
            if self._ended:
                return None
            if self._process is None or self._process.poll() is not None:
                command = [sys.executable, "-m", "solid_bandits.service.parsing"]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
                )
            process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError, ValueError):  # it was ended
            process.stdin.write(ASKED.pack(kind, len(body)) + body)
            process.stdin.flush()
            return _read(process.stdout)
        return None

    def end(self) -> None:
        """End the process."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(OSError):
                    pipe.close()

    def stop(self) -> None:
        """End it for good."""
        self._ended = True
        self.end()


def _read(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(ANSWERED.size)
    if len(head) < ANSWERED.size:
        return None
    (size,) = ANSWERED.unpack(head)
    content = pipe.read(size)
    return content if len(content) == size else None


def _built(kind: str, many: bool, rows: list[Row]) -> BaseModel:
    """What was read, without reading it again."""
    if kind == "decisions":
        names = ("features", "context", "arms", "available", "event_id", "subject")
        offers = [DecisionAsked.model_construct(**dict(zip(names, row, strict=True))) for row in rows]
        return DecisionsAsked.model_construct(decisions=offers) if many else offers[0]
    if kind == "rank":
        context, actions, *others = rows[0]
        given = [RankedAsked.model_construct(id=name, features=values) for name, values in actions]
        said = zip(("excludedActions", "eventId", "deferActivation"), others, strict=True)
        return RankAsked.model_construct(contextFeatures=context, actions=given, **dict(said))
    rewards = [RewardGiven.model_construct(event_id=row[0], reward=row[1]) for row in rows]
    return RewardsGiven.model_construct(rewards=rewards) if many else rewards[0]


def _parsed(adapter: "TypeAdapter[Any]", body: bytes) -> tuple[str | None, bool, list[Row]]:
    try:
        found = adapter.validate_json(body)
    except ValidationError as error:
        errors = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        return sentence(errors), False, []
    if isinstance(found, DecisionAsked | DecisionsAsked):
        many = isinstance(found, DecisionsAsked)
        offers = found.decisions if isinstance(found, DecisionsAsked) else [found]
        return (
            None,
            many,
            [
                (_numbers(one.features), one.context, one.arms, one.available, one.event_id, one.subject)
                for one in offers
            ],
        )
    if isinstance(found, RankAsked):
        actions = [(one.id, one.features) for one in found.actions]
        rest = (found.excludedActions, found.eventId, found.deferActivation)
        return None, False, [(found.contextFeatures, actions, *rest)]
    rewards = found.rewards if isinstance(found, RewardsGiven) else [found]
    return None, isinstance(found, RewardsGiven), [(one.event_id, one.reward) for one in rewards]


def _numbers(features: list[list[float]] | None) -> Any:
    """An array where all rows are of one length; else whoever decides says what is wrong."""
    return np.array(features) if len({len(row) for row in features or ()}) == 1 else features


def main() -> None:
    """Read bodies until there are none."""
    begin(nice=5)
    bodies: dict[bytes, Any] = {b"d": DecisionBody, b"r": RewardBody, b"k": RankAsked}
    adapters: dict[bytes, TypeAdapter[Any]] = {kind: TypeAdapter(body) for kind, body in bodies.items()}
    pipe, out = sys.stdin.buffer, sys.stdout.buffer
    while len(head := pipe.read(ASKED.size)) == ASKED.size:
        kind, size = ASKED.unpack(head)
        content = pickle.dumps(_parsed(adapters[kind], pipe.read(size)), protocol=5)
        out.write(ANSWERED.pack(len(content)) + content)
        out.flush()


if __name__ == "__main__":
    main()
