"""Decisions over the network: a client of the decision service, and the same for asynchronous programs."""

from __future__ import annotations

import asyncio
import json
import time as clock
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from solid_bandits._internal import checks
from solid_bandits.client import calls
from solid_bandits.client.calls import BUSY, Call, Patience, Plain, ServiceError
from solid_bandits.core.decision import Arm, Decision, Receipt

try:
    import httpx

    from solid_bandits.client.deadline import Deadline
except ModuleNotFoundError:
    raise ImportError(
        "sb.client.Client needs httpx, which is not installed; run: pip install 'solid-bandits[client]'"
    ) from None

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike

P = ParamSpec("P")
T = TypeVar("T")


class _Settings:
    """What both clients are told, checked."""

    def __init__(self, url: str, key: str, timeout: float, patience: float) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise ValueError(f"url must begin with http:// or https://, got {checks.short(url)}")
        if not isinstance(key, str) or not key or not key.isascii() or not key.isprintable():
            raise ValueError("key must be what `solid-bandits keys create` printed")  # and is not shown
        try:
            self.url = str(httpx.URL(url)).rstrip("/")
        except httpx.InvalidURL as error:
            raise ValueError(f"url must be an address, got {checks.short(url)} ({error})") from None
        self.patience = checks.number("patience", patience, least=0)
        self.longest = max(self.patience, checks.positive("timeout", timeout))
        """Seconds of one attempt, in all."""
        self.options: dict[str, Any] = {
            "base_url": self.url,
            "headers": {"authorization": f"Bearer {key}", "content-type": "application/json"},
            "timeout": checks.positive("timeout", timeout),
        }

    def judged(self, call: Call[T], answer: httpx.Response, repeated: bool) -> T:
        """What the caller gets for an answer that is the last one."""
        if answer.status_code >= 300:
            raise calls.refusal(answer.status_code, answer.content, self.url, call.event_ids)
        try:
            return call.read(answer.content, repeated)
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ServiceError(
                f"the service at {self.url} answered something else than decisions ({error!r}); is it one?",
                answer.status_code,
                call.event_ids,
            ) from None

    def given_up(self, call: Call[T], reason: str, status: int | None) -> ServiceError:
        """What is raised when patience is at its end."""
        again = "; the same event_id again changes nothing that was done" if call.event_ids else ""
        return ServiceError(
            f"the service at {self.url} gave no answer within {self.patience:g} s ({reason}){again}",
            status,
            call.event_ids,
        )


def _outcome(answer: httpx.Response | httpx.RequestError) -> tuple[str, int | None, float] | None:
    """Why a call is to be repeated: the reason, the status and the seconds asked for; None where it is not."""
    if isinstance(answer, httpx.RequestError):
        return str(answer) or type(answer).__name__, None, 0.0
    if answer.status_code in BUSY:
        asked = calls.seconds_asked(answer.headers.get("retry-after"))
        refused = calls.refusal(answer.status_code, answer.content, "it")
        return str(refused).removeprefix("the service at it "), answer.status_code, asked
    return None


class Client:
    """A client of the service that `solid-bandits serve` starts. It may be shared by threads.

    Every decision has an event id, made here where none is given. A call whose answer is lost, or that the service has
    no time for, is repeated with the same ids until it is answered or patience ends: nothing is decided or learnt
    twice.

    Args:
        url: of the service, such as "http://127.0.0.1:8080".
        key: of role writer, or reader for `stats`, `log` and `evaluate`, or admin for `create` and `delete`.
        timeout: seconds that one attempt may wait for the service: to be connected, to send, to hear from it.
        patience: seconds after which a call is given up, with a `ServiceError`, repeated or not: also where an answer
            has begun and does not come to its end; 0 repeats nothing, and lasts for `timeout`.

    Example:
        >>> import solid_bandits as sb
        >>> client = sb.client.Client("http://127.0.0.1:8080", key)  # doctest: +SKIP
        >>> decision = client.decide("news", [[1, 0], [0, 1]], arms=["red", "blue"])  # doctest: +SKIP
        >>> client.learn("news", decision.event_id, reward=1.0).counted  # doctest: +SKIP
        True
    """

    def __init__(self, url: str, key: str, *, timeout: float = 5.0, patience: float = 30.0) -> None:
        self._settings = _Settings(url, key, timeout, patience)
        self._http = httpx.Client(**self._settings.options)
        self._deadline = Deadline()
        self._deadline.keep(self._http)

    def decide(
        self,
        model: str,
        context: Mapping[str, Any] | ArrayLike | None = None,
        arms: Sequence[Arm] | Mapping[str, Mapping[str, Any]] | None = None,
        event_id: str | None = None,
        *,
        subject: str | None = None,
        available: Sequence[bool] | None = None,
    ) -> Decision:
        """Choose one of the arms on offer.

        Args:
            model: its name.
            context: values by names, such as `{"age": 34}`; or, of a model with `dim`, the features of the arms on
                offer, shape (arms, dim).
            arms: names of those on offer; None is all, or 0, 1, ... for the rows of a matrix. Where arms bring
                features, a table of their values: `{"tea": {"price": 3.0}}`.
            event_id: of this decision; None makes one. If it is known, the decision of then is returned.
            subject: whom the decision is about, so that a person's events can be found and deleted.
            available: which of the arms may be chosen; None is all.
        """
        named = context is None or isinstance(context, Mapping)
        offer = {"context" if named else "features": context, "arms": arms, "event_id": event_id}
        return self._play(calls.decide(model, offer | {"subject": subject, "available": available}))

    def decide_many(self, model: str, offers: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Decide many offers, in this order, in one call or, of more than 1,000 or 3 MiB, in several.

        Each is a table with `context` (or `features`, a matrix) and, where wanted, `arms`, `event_id`, `subject` and
        `available`.
        """
        return self._play_all(calls.decide_many(model, offers))

    def learn(self, model: str, event_id: str, reward: float) -> Receipt:
        """Give the reward of a decision; if it has one, nothing changes and the receipt says so.

        An unknown id is a ValueError.
        """
        return self._play(calls.learn(model, event_id, reward))

    def learn_many(
        self, model: str, rewards: Mapping[str, float] | Iterable[tuple[str, float]]
    ) -> list[Receipt]:
        """Give many rewards, (id, reward) each, in this order, and get a receipt for each.

        An unknown id has one with `counted` False and `reward` None, where `learn` raises: the service has taken in
        the others by then, which an error would hide.
        """
        return self._play_all(calls.learn_many(model, rewards))

    def create(self, /, name: str, **settings: Any) -> Plain:
        """Make a model: `context` and `arms` or `arm_features`, or `dim`; `policy` by name, `floor`, `default_reward`,
        `wait` and more (docs/service.md).
        """
        return self._play(calls.plain("POST", "/v1/models", {"name": name, **settings}))

    def arms(self, model: str) -> list[str]:
        """The arms that are there, of a model with named ones."""
        return self._play(calls.plain("GET", calls.model_path(model, "arms"), field="arms"))

    def add_arm(self, model: str, arm: str, like: str | None = None) -> list[str]:
        """Add an arm by name, which knows what `like` knows, or starts from the prior; returns the arms then."""
        return self._play(calls.change_arms(model, {"add": arm, "like": like}))

    def remove_arm(self, model: str, arm: str) -> list[str]:
        """Take an arm off all offers to come; returns the arms then. Its estimate is kept for its return."""
        return self._play(calls.change_arms(model, {"remove": arm}))

    def models(self) -> list[Plain]:
        """All models."""
        return self._play(calls.plain("GET", "/v1/models", field="models"))

    def stats(self, model: str) -> Plain:
        """What the page shows of a model."""
        return self._play(calls.plain("GET", calls.model_path(model, "stats")))

    def evaluate(
        self,
        model: str,
        policies: Sequence[str] = ("uniform", "greedy"),
        after: int | None = None,
        until: int | None = None,
    ) -> Plain:
        """What other policies would have earned: `uniform`, `always:ARM`, or one of ours by name.

        From the decisions after one sequence number and until another; else from the newest 100,000 events.
        More than 1,000,000 are refused.
        """
        return self._play(calls.evaluate(model, policies, after, until))

    def log(self, model: str, after: int | None = None, until: int | None = None) -> pl.DataFrame:
        """The log as a table (`sb.logs`), of the same decisions as `evaluate`."""
        return self._play(calls.log(model, after, until))

    def delete(
        self,
        model: str,
        *,
        subject: str | None = None,
        event_ids: Sequence[str] | None = None,
        before: float | None = None,
    ) -> int:
        """Erase all events about someone, some, or those before a time in Unix seconds; returns how many decisions."""
        return self._play(calls.delete(model, subject, event_ids, before))

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._settings.url!r})"

    def _play(self, call: Call[T]) -> T:
        patience = Patience(self._settings.patience)
        while True:
            begun = clock.monotonic()
            answer: httpx.Response | httpx.RequestError
            try:
                with self._deadline.within(patience.left(self._settings.longest)):
                    answer = self._http.request(call.method, call.path, content=call.body)
            except httpx.RequestError as error:
                answer = error
            busy = _outcome(answer)
            if busy is None:
                assert isinstance(answer, httpx.Response)
                return self._settings.judged(call, answer, patience.repeated)
            reason, status, asked = busy
            wait = patience.wait(clock.monotonic() - begun, asked)
            if wait is None:
                raise self._settings.given_up(call, reason, status)
            clock.sleep(wait)

    def _play_all(self, several: list[Call[list[T]]]) -> list[T]:
        return [one for call in several for one in self._play(call)]


def _awaited(method: Callable[Concatenate[Client, P], T]) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    """A method of `Client` for `AsyncClient`: what `_play` returns there is to be awaited."""
    return cast("Callable[Concatenate[Any, P], Awaitable[T]]", method)


class AsyncClient:
    """`Client` for asynchronous programs: the same methods, to be awaited.

    Example:
        >>> import solid_bandits as sb
        >>> client = sb.client.AsyncClient("http://127.0.0.1:8080", key)  # doctest: +SKIP
        >>> decision = await client.decide("news", [[1, 0], [0, 1]], arms=["red", "blue"])  # doctest: +SKIP
    """

    def __init__(self, url: str, key: str, *, timeout: float = 5.0, patience: float = 30.0) -> None:
        self._settings = _Settings(url, key, timeout, patience)
        self._http = httpx.AsyncClient(**self._settings.options)

    decide = _awaited(Client.decide)
    decide_many = _awaited(Client.decide_many)
    learn = _awaited(Client.learn)
    learn_many = _awaited(Client.learn_many)
    create = _awaited(Client.create)
    arms = _awaited(Client.arms)
    add_arm = _awaited(Client.add_arm)
    remove_arm = _awaited(Client.remove_arm)
    models = _awaited(Client.models)
    stats = _awaited(Client.stats)
    evaluate = _awaited(Client.evaluate)
    log = _awaited(Client.log)
    delete = _awaited(Client.delete)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._settings.url!r})"

    async def _play(self, call: Call[T]) -> T:
        patience = Patience(self._settings.patience)
        while True:
            begun = clock.monotonic()
            answer: httpx.Response | httpx.RequestError
            try:
                async with asyncio.timeout(patience.left(self._settings.longest)):
                    answer = await self._http.request(call.method, call.path, content=call.body)
            except httpx.RequestError as error:
                answer = error
            except TimeoutError:
                answer = httpx.ReadTimeout("the answer did not end in time")
            busy = _outcome(answer)
            if busy is None:
                assert isinstance(answer, httpx.Response)
                return self._settings.judged(call, answer, patience.repeated)
            reason, status, asked = busy
            wait = patience.wait(clock.monotonic() - begun, asked)
            if wait is None:
                raise self._settings.given_up(call, reason, status)
            await asyncio.sleep(wait)

    async def _play_all(self, several: list[Call[list[T]]]) -> list[T]:
        return [one for call in several for one in await self._play(call)]
