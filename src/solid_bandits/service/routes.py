"""What routes share: who may call them, what they answer, and what errors are in the schema."""

from typing import Annotated, Any

from fastapi import Depends, Response
from fastapi import Path as InPath
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from solid_bandits.service.keys import Role
from solid_bandits.service.schemas import NAME_PATTERN, Failed

STATUS_OF = {"learned": 200, "again": 200, "conflict": 409, "late": 409, "unknown": 404}
REASONS = {
    400: "the body is not UTF-8",
    401: "no key, or a wrong one",
    403: "insufficient role",
    404: "no such model or event",
    409: "it contradicts what is there",
    413: "the body is too large, or has too many values",
    422: "invalid request",
    429: "too many requests, too much or too many at once with this key",
    500: "a fault of the service",
    503: "not now; try again",
    507: "the disk is full, or there is no room for another model",
}
Named = Annotated[str, InPath(description="Of the model.", pattern=NAME_PATTERN)]
PERSONALIZER_KEY = "ocp-apim-subscription-key"
"""The header in which clients of Azure Personalizer send their key: it is taken, too."""
BEARER = HTTPBearer(auto_error=False, description="A key of `solid-bandits keys create`.")


def needs(role: Role) -> dict[str, Any]:
    """A key with this role, also in the schema."""
    return {"dependencies": [Depends(BEARER)], "openapi_extra": {"x-role": role}}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a call, for the schema."""
    return {
        status: {"model": Failed, "description": REASONS[status]}
        for status in (401, 403, 422, 429, 500, 503, *statuses)
    }


def as_json(content: BaseModel, status: int = 200) -> Response:
    """An answer."""
    return Response(content.model_dump_json(), status, media_type="application/json")
