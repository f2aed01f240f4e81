"""A page that was written: what it embeds, and what it is without the library of its charts."""

import json
import re

from plotly.offline import get_plotlyjs

LOADS = re.compile(r"https?:|//cdn|\bsrc=|\bhref=\"(?!#)|@import|url\(|<link|<iframe")
"""What would ask the network for something."""


def embedded_text(page: str) -> str:
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1]


def embedded(page: str):
    return json.loads(embedded_text(page))


def without_library(page: str) -> str:
    return page.replace(get_plotlyjs(), "")
