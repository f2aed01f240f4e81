"""The endpoints of models whose features have names: their arms, and calls in the shape of Azure Personalizer's."""

import json
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import FastAPI, Request, Response
from fastapi import Path as InPath

from solid_bandits.live.store import ModelRow
from solid_bandits.service.errors import error_response, invalid
from solid_bandits.service.personalizer import RankAsked, RankMade, RewardValue, as_offer, as_ranking
from solid_bandits.service.routes import STATUS_OF, Named, as_json, errors, needs
from solid_bandits.service.runtime import Service
from solid_bandits.service.schemas import LONGEST_ID, ArmsChanged, ArmsNow, RewardGiven

Here = Callable[[Request, ModelRow, Callable[[], Awaitable[Response]]], Awaitable[Response]]
"""Answers a request on the node that leads its model."""
Version = Annotated[
    str, InPath(description="Of Personalizer's interface.", pattern=r"^v1\.[0-9a-z.-]{1,20}$")
]
Id = Annotated[str, InPath(description="Of the event.", min_length=1, max_length=LONGEST_ID)]


def add_named_calls(app: FastAPI, service: Service, here: Here) -> None:
    """Add them to the application."""
    _add_arms(app, service, here)
    _add_personalizer(app, service, here)


def _add_arms(app: FastAPI, service: Service, here: Here) -> None:
    @app.get("/v1/models/{name}/arms", tags=["models"], **needs("reader"), responses=errors(404))
    async def arms(name: Named) -> ArmsNow:
        """The arms that are on offer where a decision does not say which; an empty list where each decision does."""
        row = await service.row(name)
        return await service.writer.do(row, lambda model, moment: model.arms(), reading=True)

    @app.post(
        "/v1/models/{name}/arms", tags=["models"], **needs("writer"),
        response_model=ArmsNow, responses=errors(400, 404, 413, 507),
    )  # fmt: skip
    async def change(request: Request, name: Named, asked: ArmsChanged) -> Response:
        """Add an arm by name, or remove one. A new arm starts from the prior, or with what `like` knows.

        A removed arm keeps its estimate for its return, and late rewards are learnt. The same again changes nothing.
        """
        row = await service.row(name)

        async def work() -> Response:
            return as_json(
                await service.writer.do(
                    row, lambda model, moment: model.change_arms(asked, moment), key=request.state.key
                )
            )

        return await here(request, row, work)


def _add_personalizer(app: FastAPI, service: Service, here: Here) -> None:
    @app.post(
        "/v1/models/{name}/personalizer/{version}/rank", status_code=201, tags=["personalizer"], **needs("writer"),
        response_model=RankMade, responses=errors(400, 404, 409, 413, 507),
    )  # fmt: skip
    async def rank(request: Request, name: Named, version: Version, asked: RankAsked) -> Response:
        """Decide as Azure Personalizer's Rank call did: a client of it needs `.../v1/models/NAME` as its endpoint.

        The names of features are those that the model was made with; nested ones are named with dots, `user.age`.
        """
        row = await service.row(name)
        spec = json.loads(row.spec)
        if spec["dim"] is not None:
            raise invalid(
                f"model {name!r} must have features with names to rank by them; it was made with dim"
            )
        offer = as_offer(asked, bool(spec["arm_features"]))

        async def work() -> Response:
            made = await service.writer.do(
                row, lambda model, moment: model.decide([offer], moment), key=request.state.key
            )
            return as_json(as_ranking(asked, made[0]), 201)

        return await here(request, row, work)

    @app.post(
        "/v1/models/{name}/personalizer/{version}/events/{event_id}/reward",
        status_code=204, tags=["personalizer"], **needs("writer"),
        response_class=Response, responses=errors(400, 404, 409, 413, 507),
    )  # fmt: skip
    async def reward(
        request: Request, name: Named, version: Version, event_id: Id, given: RewardValue
    ) -> Response:
        """Give the reward of an event. The same again changes nothing."""
        row = await service.row(name)
        rewards = [RewardGiven.model_construct(event_id=event_id, reward=given.value)]

        async def work() -> Response:
            (receipt,) = await service.writer.do(
                row, lambda model, moment: model.learn(rewards, moment), key=request.state.key
            )
            status = STATUS_OF[receipt.status]
            return Response(status_code=204) if status == 200 else error_response(status, receipt.message)

        return await here(request, row, work)
