"""Why a request is not served: a status and one sentence."""


class RefusedError(Exception):
    """A request that is not served; nothing has changed."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after
        """Seconds after which the same request may be."""


def wrong(message: str) -> RefusedError:
    """It asks for what cannot be."""
    return RefusedError(422, message)


def unavailable(message: str) -> RefusedError:
    """Not now; a retry with the same event id does no harm."""
    return RefusedError(503, message, retry_after=1)
