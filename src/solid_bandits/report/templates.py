"""Jinja2 templates for pages and documents, stored next to the modules that fill them; HTML values are escaped."""

import json
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from solid_bandits._internal import wording

HERE = "solid_bandits.report"


def render(template: str, package: str = HERE, /, **values: Any) -> str:
    """Fill a template of a package, which may extend templates of this one."""
    return environment(package).get_template(template).render(values)


@cache
def environment(package: str) -> Environment:
    """Return the Jinja2 environment for the templates of a package and of this one.

    Templates can also use `wording`, and `file(name)`, which returns a style or script unchanged.
    """
    loader = ChoiceLoader([PackageLoader(one, "") for one in dict.fromkeys((package, HERE))])
    made = Environment(
        loader=loader,
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"wording": wording, "file": lambda name: Markup(loader.get_source(made, name)[0])}
    made.filters["plain"] = plain
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def plain(value: Any) -> str:
    """Format a manifest's value: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
