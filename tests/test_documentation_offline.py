"""The documentation is built as `make docs` builds it, and its pages ask for nothing from another host."""

import html.parser
import subprocess
import sys

import pytest

from browser import Visit, chromium
from page_code import DOCS

# What a browser loads by itself; a link that a reader may click is not among them.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages, with the tutorials not executed: tests/test_tutorials.py does that."""
    pytest.importorskip("myst_nb")
    pytest.importorskip("furo")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [
            *command,
            "-D",
            "nb_execution_mode=off",
            "-d",
            str(folder / "doctrees"),
            str(DOCS),
            str(folder / "html"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Requests(html.parser.HTMLParser):
    """Everything that a page makes a browser load."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "link" and values.get("rel") in ("canonical", "license", "author"):
            return
        if tag in LOADED and values.get(LOADED[tag]):
            self.found.append(values[LOADED[tag]])


@pytest.mark.long
def test_no_page_loads_anything_from_another_host(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        parser = Requests()
        parser.feed(page.read_text(encoding="utf-8"))
        assert parser.found
        assert [url for url in parser.found if "//" in url] == [], page.name
    for sheet in site.rglob("*.css"):
        assert "url(http" not in sheet.read_text(encoding="utf-8").replace('"', "").replace("'", ""), (
            sheet.name
        )


@pytest.mark.long
def test_formulas_are_mathml(site):
    text = (site / "scaling.html").read_text(encoding="utf-8")
    assert text.count("<math") >= 5
    assert "<mfrac>" in text
    assert "MathJax" not in text


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "name", ["index", "start", "gallery", "policies", "api/policies", "tutorials/compare"]
)
def test_a_browser_is_content(site, name, width):
    with chromium() as browser, Visit(browser, site / f"{name}.html", width=width) as visit:
        visit.page.wait_for_load_state("load")
        assert visit.complaints == []
        assert {url for url in visit.requests if not url.startswith(("file:", "data:"))} == set()
        visit.check_fits()
