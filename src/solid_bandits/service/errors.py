"""Refusals of requests: a status and one sentence, as an exception and as a response."""

from starlette.responses import JSONResponse


class RefusedError(Exception):
    """Raised for a request that is not served; nothing has changed."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after
        """Seconds after which the same request may be repeated."""
        self.close = False
        """Whether the connection ends with this answer."""


def invalid(message: str) -> RefusedError:
    """Return the refusal of an invalid request (422)."""
    return RefusedError(422, message)


def unavailable(message: str) -> RefusedError:
    """Return a temporary refusal (503); a retry with the same event id does no harm."""
    return RefusedError(503, message, retry_after=1)


def error_response(status: int, message: str, retry_after: int | None = None) -> JSONResponse:
    """Return a response with one sentence and, if a retry helps, the seconds to wait."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse({"error": message}, status_code=status, headers=headers)
