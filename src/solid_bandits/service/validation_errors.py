"""Validation errors in the wording of this package: the argument, the allowed values, the value received."""

from collections.abc import Mapping, Sequence
from typing import Any

from solid_bandits._internal import checks
from solid_bandits.service.schemas import NAME, NAME_PATTERN

OUTSIDE = ("body", "query", "path", "one", "many")
"""Parts of a request, which its sender did not name."""
KINDS = ("bool", "int", "float", "str")
"""Names of allowed values' types, which pydantic puts among the argument's names."""
OBJECT = "a JSON object"
WANTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": OBJECT,
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "> {gt}",
    "greater_than_equal": ">= {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_type": "a whole number",
    "less_than": "< {lt}",
    "less_than_equal": "<= {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": OBJECT,
    "model_type": OBJECT,
    "none_required": "null",
    "string_too_long": "text of at most {max_length} characters",
    "string_too_short": "text of at least {min_length} characters",
    "string_type": "text",
    "string_unicode": "text",
    "too_long": "a list of at most {max_length}",
    "too_short": "a list of at least {min_length}",
}
"""Kind of pydantic's error -> allowed values."""


def sentence(errors: Sequence[Mapping[str, Any]], of_decision: bool = False) -> str:
    """Return one sentence about the first wrong argument; one of a decision may be a value that belongs elsewhere."""
    first = errors[0]
    place = _place(first["loc"])
    name = place or "the body"
    kind = first["type"]
    if kind == "missing":
        return f"{name} must be given"
    if kind == "extra_forbidden":
        elsewhere = ", or put it into context, where values by names belong"
        hint = elsewhere if of_decision or "decisions" in first["loc"] else ""
        return f"{name} is not an argument here; leave it out{hint}"
    if kind == "json_invalid":
        return f"the body must be JSON ({first.get('ctx', {}).get('error', 'it is not')})"
    if kind == "value_error":  # from one of our validators, which has its own message
        words = str(first["ctx"]["error"])
        return f"{name} {words}" if words.startswith("must") else words
    # A value with several allowed types has an error for each.
    same = [one for one in errors if _place(one["loc"]) == place]
    wanted = " or ".join(dict.fromkeys(map(_wanted, same)))
    return f"{name} must be {wanted}, got {_got(first)}"


def _place(location: Sequence[str | int]) -> str:
    """Return the argument as its sender would find it, such as `decisions[3].event_id`."""
    parts = list(location)
    while parts and parts[0] in OUTSIDE:
        parts.pop(0)
    found = ""
    for part in parts:
        if isinstance(part, int):
            found += f"[{part}]"
        elif not found:
            found = part
        elif part.isidentifier() and part not in KINDS:
            found += f".{part}"
    return found


def _wanted(error: Mapping[str, Any]) -> str:
    context = error.get("ctx", {})
    if error["type"] == "string_pattern_mismatch":
        return NAME if context["pattern"] == NAME_PATTERN else f"like {context['pattern']}"
    words = WANTED.get(error["type"])
    return (
        f"otherwise ({error['msg']})"
        if words is None
        else words.format(**{one: _plain(context[one]) for one in context})
    )


def _plain(value: Any) -> Any:
    """Return a bound as a person would write it."""
    if isinstance(value, float):
        value = int(value) if value.is_integer() and abs(value) < 1e6 else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else value


def _got(error: Mapping[str, Any]) -> str:
    long = (
        error["type"] in ("too_long", "too_short") and error.get("ctx", {}).get("actual_length") is not None
    )
    return f"{error['ctx']['actual_length']:,}" if long else checks.short(error["input"])
