"""The content of a snapshot: JSON under a seal, so that a damaged one is not believed."""

import hashlib
import json

from solid_bandits._types import Plain


def sealed(plain: Plain) -> bytes:
    """Plain data with a digest before it."""
    text = json.dumps(plain, separators=(",", ":"), allow_nan=False).encode()
    return _digest(text) + b"\n" + text


def opened(content: bytes) -> Plain:
    """What was sealed; a ValueError where it is not what was written."""
    digest, _, text = content.partition(b"\n")
    if digest != _digest(text):
        raise ValueError("the snapshot is not what was written: its digest differs")
    found: Plain = json.loads(text)
    return found


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=16).hexdigest().encode()
