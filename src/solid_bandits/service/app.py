"""The endpoints: who may call them, what they hand to the writer, what they answer."""

import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import from_json
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse

from solid_bandits import __version__
from solid_bandits.live.store import ModelRow, Nodes, Store, StoreError
from solid_bandits.service import page
from solid_bandits.service.budgets import table
from solid_bandits.service.errors import RefusedError, error_response
from solid_bandits.service.keys import Role
from solid_bandits.service.limits import BodyLimit
from solid_bandits.service.middleware import Middleware
from solid_bandits.service.model import DELETED_AT_ONCE
from solid_bandits.service.named_calls import add_named_calls
from solid_bandits.service.parameters import check_words
from solid_bandits.service.parsing import KINDS, SMALL
from solid_bandits.service.routes import PERSONALIZER_KEY, STATUS_OF, Named, as_json, errors, needs
from solid_bandits.service.runtime import Service, Settings, facts
from solid_bandits.service.schemas import (
    DecisionBody,
    DecisionMade,
    DecisionsAsked,
    DecisionsMade,
    Deleted,
    DeletionAsked,
    EvaluationAnswer,
    Failed,
    Health,
    ModelFacts,
    Models,
    ModelSpec,
    RewardBody,
    RewardReceipt,
    RewardReceipts,
    RewardsGiven,
)
from solid_bandits.service.validation_errors import sentence
from solid_bandits.service.writer import GONE

After = Annotated[int | None, Query(ge=0, le=2**62, description="Decisions after this sequence number.")]
Until = Annotated[int | None, Query(ge=0, le=2**62, description="And until this one; null is the last.")]
PolicyWords = Annotated[
    list[Annotated[str, Query(min_length=1, max_length=200)]],
    Query(
        max_length=8, description="uniform, always:ARM, or a policy such as greedy or 'randucb(ridge=0.1)'."
    ),
]


def make_app(store: Store, nodes: Nodes, settings: Settings | None = None) -> FastAPI:
    """The service as an ASGI application; it starts and ends with its lifespan."""
    service = Service(store, nodes, settings or Settings())

    @asynccontextmanager
    async def lifespan(running: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()
            if hasattr(running.state, "forwarding"):
                await running.state.forwarding.aclose()

    app = FastAPI(
        title="solid-bandits",
        version=__version__,
        summary="Decisions by contextual linear bandits, with a log that is the truth.",
        description="What callers may take of the service:\n\n" + table(service.settings),
        docs_url=None,  # these pages load scripts from other hosts
        redoc_url=None,
        lifespan=lifespan,
    )
    app.router.route_class = _guarded(service)
    _add_errors(app)
    _add_open(app, service)
    _add_models(app, service)
    _add_calls(app, service)
    _add_reports(app, service)
    app.add_middleware(BodyLimit, most=service.settings.largest_body)
    app.add_middleware(Middleware, metrics=service.metrics)
    return app


class _Parsed(Request):
    """A request whose JSON is read by pydantic's parser: features are many numbers, and it is four times as fast.

    It has few values (`budgets`), and a large one is read by another process.
    """

    def __init__(self, request: Request, service: Service, key: str) -> None:
        super().__init__(request.scope, request.receive)
        self.state.key = key
        self._service = service
        self._read: BaseModel | None = None

    async def read(self) -> None:
        """Have a large body read, before anything else is done; a refusal where it is not as it must be."""
        body = await self.body()
        kind = self.scope["path"].rpartition("/")[2]
        if len(body) > SMALL and kind in KINDS:
            self._read = await self._service.parser.parse(kind, body)

    async def json(self) -> Any:
        """Return the body."""
        if self._read is not None:
            return self._read
        try:
            return from_json(await self.body())
        except ValueError as error:
            raise JSONDecodeError(str(error), "", 0) from None


def _guarded(service: Service) -> type[APIRoute]:
    """Return routes that check the key before anything of the request is read."""

    class Guarded(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            answer = super().get_route_handler()
            role: Role | None = (self.openapi_extra or {}).get("x-role")
            if role is None:
                return answer

            async def guarded(request: Request) -> Response:
                kind, _, key = request.headers.get("authorization", "").partition(" ")
                bearer = kind.lower() == "bearer"
                given = key.strip() if bearer else request.headers.get(PERSONALIZER_KEY)
                row = await service.admitted(given, role)
                said = request.headers.get("content-length", "0")
                if "transfer-encoding" in request.headers or not said.isdecimal():
                    said = str(service.settings.largest_body)
                try:
                    with service.admission.call(row.id, int(said)) as held:
                        parsed = _Parsed(request, service, row.id)
                        try:
                            held.body(await parsed.body(), service.settings.body_values)
                        except ClientDisconnect:  # nobody is there to take the answer
                            return error_response(
                                400, "the connection was closed before the body was complete"
                            )
                        await parsed.read()
                        return await answer(parsed)
                except RefusedError as error:
                    if error.status == 429 and int(said) > SMALL:
                        error.close = True  # the body is not read for nothing
                        await service.admission.pause(row.id)
                    raise

            return guarded

    return Guarded


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> Response:
        answer = error_response(error.status, error.message, error.retry_after)
        if error.close:
            answer.headers["connection"] = "close"
        return answer

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        answer = error_response(error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return error_response(422, sentence(error.errors(), request.url.path.endswith("/decisions")))

    @app.exception_handler(StoreError)
    async def unreadable(_: Request, error: StoreError) -> Response:
        return error_response(503, "the log cannot be read now; try again", retry_after=1)

    @app.exception_handler(Exception)
    async def fault(_: Request, error: Exception) -> Response:
        return error_response(500, "this is a fault of the service; its log says more")


def _add_open(app: FastAPI, service: Service) -> None:
    """What takes no key."""

    @app.get(
        "/health", tags=["service"],
        responses={503: {"model": Failed, "description": "it must be started again, or no write succeeds"}},
    )  # fmt: skip
    async def health() -> Health:
        """Whether the service can decide and learn: 503 where it must be started again, or no write succeeds.

        How many models this node leads and follows, how many cannot be used (`GET /metrics` names them), and the
        seconds since something was last committed.
        """
        writer = service.writer
        if not writer.alive:
            raise RefusedError(503, GONE)
        if writer.unwritten is not None:
            raise RefusedError(503, f"no write succeeds: {writer.unwritten}", retry_after=1)
        return Health(
            status="ok",
            version=__version__,
            leading=service.leading,
            following=len(service.models) - service.leading,
            failed=len(writer.loading.failures),
            commit_age=round(time.monotonic() - writer.committed, 3),
        )

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return _file("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        return _file(name)


def _file(name: str) -> Response:
    if name not in page.FILES:
        return error_response(404, "there is no such page")
    kind, content = page.FILES[name]
    return Response(content, media_type=kind, headers=page.HEADERS)


def _add_models(app: FastAPI, service: Service) -> None:
    @app.post(
        "/v1/models", status_code=201, tags=["models"], **needs("admin"),
        responses=errors(400, 409, 413, 507),
    )  # fmt: skip
    async def create(spec: ModelSpec) -> ModelFacts:
        """Make a model: of features that have names, or with `dim` of matrices."""
        return facts(await service.create(spec))

    @app.get("/v1/models", tags=["models"], **needs("reader"), responses=errors())
    async def models() -> Models:
        """All models."""
        return Models(models=[facts(row) for row in await service.rows()])

    @app.get("/v1/models/{name}", tags=["models"], **needs("reader"), responses=errors(404))
    async def model(name: Named) -> ModelFacts:
        """One model, as it was asked for."""
        return facts(await service.row(name))


def _add_calls(app: FastAPI, service: Service) -> None:
    """Add the calls that change a model, which the node that leads it executes."""

    async def here(request: Request, row: ModelRow, work: Callable[[], Awaitable[Response]]) -> Response:
        address = service.nodes.leader(row.id)
        if address is None:
            return await work()
        from solid_bandits.service.forwarding import forward

        return await forward(request, address, lambda: service.nodes.leader(row.id))

    @app.post(
        "/v1/models/{name}/decisions", tags=["decisions"], **needs("writer"),
        response_model=DecisionMade | DecisionsMade, responses=errors(400, 404, 409, 413, 507),
    )  # fmt: skip
    async def decide(request: Request, name: Named, asked: DecisionBody) -> Response:
        """Decide, once or many times in one call. A known `event_id` gets what was decided then.

        Where features have names, `context` has values by names, and `arms` those on offer.
        """
        row = await service.row(name)
        many = isinstance(asked, DecisionsAsked)
        offers = asked.decisions if isinstance(asked, DecisionsAsked) else [asked]

        async def work() -> Response:
            made = await service.writer.do(
                row, lambda model, moment: model.decide(offers, moment), key=request.state.key
            )
            return as_json(DecisionsMade.model_construct(decisions=made) if many else made[0])

        return await here(request, row, work)

    @app.post(
        "/v1/models/{name}/rewards", tags=["decisions"], **needs("writer"),
        response_model=RewardReceipt | RewardReceipts, responses=errors(400, 404, 409, 413, 507),
    )  # fmt: skip
    async def learn(request: Request, name: Named, given: RewardBody) -> Response:
        """Give the reward of a decision, or of many in one call. The same again changes nothing."""
        row = await service.row(name)
        many = isinstance(given, RewardsGiven)
        rewards = given.rewards if isinstance(given, RewardsGiven) else [given]

        async def work() -> Response:
            receipts = await service.writer.do(
                row, lambda model, moment: model.learn(rewards, moment), key=request.state.key
            )
            if many:
                return as_json(RewardReceipts.model_construct(rewards=receipts))
            status = STATUS_OF[receipts[0].status]
            return as_json(receipts[0]) if status == 200 else error_response(status, receipts[0].message)

        return await here(request, row, work)

    add_named_calls(app, service, here)

    @app.post(
        "/v1/models/{name}/deletions", tags=["decisions"], **needs("admin"),
        response_model=Deleted, responses=errors(400, 404, 413, 507),
    )  # fmt: skip
    async def delete(request: Request, name: Named, asked: DeletionAsked) -> Response:
        """Erase events from memory, log and files. What was learnt from them stays."""
        row = await service.row(name)

        async def work() -> Response:
            count, more = 0, True
            while more:  # a part at a time, so that calls are served in between
                gone = await service.writer.do(row, lambda model, moment: model.delete(asked, moment))
                count, more = count + gone, gone == DELETED_AT_ONCE
            found = Deleted(decisions=count, still_in_files=await service.erased())
            return Response(found.model_dump_json(exclude_none=True), media_type="application/json")

        return await here(request, row, work)


def _add_reports(app: FastAPI, service: Service) -> None:
    """What reads: any node may answer."""

    @app.get(
        "/v1/models/{name}/stats", tags=["reports"], **needs("reader"),
        response_model=dict[str, Any], responses=errors(404),
    )  # fmt: skip
    async def stats(name: Named) -> Response:
        """Rates, arms with their shares and mean rewards, values beside uniform and Greedy, open decisions."""
        row = await service.row(name)
        return Response(await service.stats(row), media_type="application/json")

    async def read(row: ModelRow, after: int | None, until: int | None, **asked: Any) -> str:
        """Return the result of another process for a part of the log."""
        request = {"model": row.id, "policy": facts(row).policy, "after": after, "until": until}
        return await service.reports.ask(request | {"policies": None} | asked)

    @app.get(
        "/v1/models/{name}/log", tags=["reports"], **needs("reader"),
        response_class=Response, responses=errors(404) | {200: {"content": {
            "application/vnd.apache.parquet": {}, "application/x-ndjson": {}}}},
    )  # fmt: skip
    async def log(
        name: Named,
        format: Literal["parquet", "dsjson"] = "parquet",
        after: After = None,
        until: Until = None,
    ) -> Response:
        """Decisions with their rewards as a file; those of the newest 100,000 events unless told otherwise,
        from 1,000,000 at most.
        """
        row = await service.row(name)
        folder = tempfile.TemporaryDirectory(prefix="solid-bandits-", ignore_cleanup_errors=True)
        try:
            path = Path(folder.name) / f"{name}.{format}"
            await read(row, after, until, format=format, path=str(path))
        except BaseException:
            folder.cleanup()
            raise
        kind = "application/vnd.apache.parquet" if format == "parquet" else "application/x-ndjson"
        return FileResponse(
            path, media_type=kind, filename=path.name, background=BackgroundTask(folder.cleanup)
        )

    @app.get(
        "/v1/models/{name}/evaluate", tags=["reports"], **needs("reader"),
        responses=errors(404),
    )  # fmt: skip
    async def evaluate(
        name: Named,
        policy: PolicyWords = ["uniform"],  # noqa: B006
        after: After = None,
        until: Until = None,
    ) -> EvaluationAnswer:
        """What other policies would have earned, from the newest 100,000 events or those told; ours learn from the
        first half of them. From 1,000,000 events at most.
        """
        row = await service.row(name)
        check_words(policy)
        content = await read(row, after, until, policies=policy)
        return EvaluationAnswer.model_validate_json(content)

    @app.get(
        "/metrics", tags=["service"], **needs("reader"), response_class=Response,
        responses=errors() | {200: {"content": {"text/plain": {}}}},
    )  # fmt: skip
    async def metrics() -> Response:
        """Counters and durations, in Prometheus's text format."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
