"""Answers that say why not."""

from starlette.responses import JSONResponse


def failed(status: int, message: str, retry_after: int | None = None) -> JSONResponse:
    """One sentence; where a retry helps, after how many seconds."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse({"error": message}, status_code=status, headers=headers)
