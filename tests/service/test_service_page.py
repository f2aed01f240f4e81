"""The page of the service, as a reader would open it: in Chromium, at two widths, light and dark."""

import re
import time
from contextlib import contextmanager

import numpy as np
import pytest

from browser import PHONE, WIDE, chromium
from served import PATIENCE, stored
from solid_bandits._internal import wording
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service import keys, page
from solid_bandits.service.open_store import FILE

HOSTILE = "<img src=x onerror=document.title='broken'>"
OFFER = [[1.0, 0.0], [0.0, 1.0]]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Address, a reader's key, and an admin's client; models with traffic, without a floor, and without anything."""
    directory = tmp_path_factory.mktemp("service")
    with stored(directory) as http:
        for name, floor in (("clicks", 0.2), ("no-floor", 0.0), ("new", 0.1)):
            spec = {"name": name, "policy": "greedy", "dim": 2, "floor": floor, "seed": 1}
            http.post("/v1/models", json=spec).raise_for_status()
        rng = np.random.default_rng(0)
        for name in ("clicks", "no-floor"):
            for part in range(12):  # what was learnt from one part shows in the next
                asked = [
                    {"features": OFFER, "arms": ["red", HOSTILE], "event_id": f"{name}-{part}-{n}"}
                    for n in range(100)
                ]
                answer = http.post(f"/v1/models/{name}/decisions", json={"decisions": asked})
                chances = {"red": 0.3, HOSTILE: 0.7}
                rewards = [
                    {"event_id": one["event_id"], "reward": float(rng.random() < chances[one["arm"]])}
                    for one in answer.json()["decisions"][: 80 if part == 11 else 100]
                ]
                http.post(f"/v1/models/{name}/rewards", json={"rewards": rewards}).raise_for_status()
        other = SqliteStore(directory / FILE)
        key, _ = keys.create(other, "reader", "page")
        other.close()
        yield str(http.base_url).rstrip("/"), key, http


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@contextmanager
def opened(browser, url, width=WIDE, scheme="light", key=None, address=""):
    """The page, what it complained about, and what it asked for."""
    phone = width == PHONE
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=phone, is_mobile=phone
    )
    context.set_default_timeout(1000 * PATIENCE)
    visit = context.new_page()
    visit.complaints, visit.requests = [], []
    visit.on("console", lambda message: visit.complaints.append(f"{message.type}: {message.text}"))
    visit.on("pageerror", lambda error: visit.complaints.append(str(error)))
    visit.on("request", lambda request: visit.requests.append(request.url))
    visit.goto(url + "/" + address)
    if key is not None:
        visit.fill("#key", key)
        visit.press("#key", "Enter")
    try:
        yield visit
    finally:
        context.close()


def until(visit, condition):
    """Wait for a condition, asked from outside: a page under a strict policy evaluates no text."""
    deadline = time.monotonic() + PATIENCE
    while not visit.evaluate(condition):
        assert time.monotonic() < deadline, f"{condition} does not come true"
        visit.wait_for_timeout(20)


def text(visit, selector):
    return " ".join(visit.text_content(selector).split())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, WIDE])
def test_the_numbers_are_there_and_fit(service, browser, width, scheme):
    url, key, http = service
    with opened(browser, url, width, scheme, key) as visit:
        visit.wait_for_selector("#arms table")
        stats = http.get("/v1/models/clicks/stats").json()
        tiles = text(visit, "#tiles")
        assert "Decisions1,200among 2 arms" in tiles
        assert "Rewards1,180" in tiles
        assert "Open decisions20" in tiles
        values = stats["values"]
        for name in ("policy", "uniform", "greedy"):
            one = values[name]
            half = (one["high"] - one["low"]) / 2
            assert f"{wording.measured(one['value'], half)} {wording.ends(one['low'], one['high'])}" in text(
                visit, "#values"
            ).replace("\u00a0", " ")
        assert "This policy is ahead of uniform choices by" in text(visit, "#verdict")
        assert "Still open, and in no mean" not in text(visit, "#value-note")
        rows = visit.locator("#arms tbody tr")
        assert rows.count() == 2
        assert rows.locator("th").all_text_contents() == [HOSTILE, "red"]  # text, not markup
        assert visit.title() == "clicks – decision service"
        assert visit.locator("#rates svg path.rate").count() == 2
        across, window = visit.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert across <= window
        paper = visit.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (max(map(int, re.findall(r"\d+", paper))) < 60) == (scheme == "dark")
        assert visit.complaints == []
        assert all(one.startswith(url + "/") for one in visit.requests)
        assert not any(key in one for one in visit.requests)


def test_a_key_is_asked_for_kept_in_the_tab_and_forgotten(service, browser):
    url, key, _ = service
    with opened(browser, url, key="sb_000000000000_wrong") as visit:
        until(visit, "document.getElementById('refused').textContent !== ''")
        assert visit.is_visible("#key")
        assert not visit.is_visible("#model")
        assert visit.evaluate("sessionStorage.length") == 0
        visit.fill("#key", key)
        visit.click("button[type=submit]")
        visit.wait_for_selector("#arms table")
        assert text(visit, "#refused") == ""
        assert visit.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        visit.reload()
        visit.wait_for_selector("#arms table")  # not asked again
        visit.click("#forget")
        assert visit.is_visible("#key")
        assert visit.evaluate("sessionStorage.length") == 0
        visit.reload()
        assert visit.is_visible("#key")
        assert key not in visit.content()


def test_models_are_chosen_by_button_and_address(service, browser):
    url, key, _ = service
    with opened(browser, url, key=key, address="#no-floor") as visit:
        visit.wait_for_selector("nav button[data-model='no-floor'][aria-current=true]")
        assert "the log cannot say" in text(visit, "#values")
        assert "Make the model with a floor" in text(visit, "#value-note")
        assert visit.evaluate("document.title") == "no-floor – decision service"
        visit.click("nav button[data-model=new]")
        visit.wait_for_selector("nav button[data-model=new][aria-current=true]")
        assert visit.url.endswith("#new")
        assert "No rewards have come yet." in text(visit, "#verdict")
        assert "No decisions have been asked for yet." in text(visit, "#arms")
        assert visit.complaints == []


@pytest.mark.parametrize("address", ["#%", "#%E0%A4%A", "#nobody"])
def test_an_address_of_no_model_shows_the_first(service, browser, address):
    url, key, _ = service
    with opened(browser, url, key=key, address=address) as visit:
        visit.wait_for_selector("nav button[aria-current=true]")
        assert visit.complaints == []


def test_it_says_when_there_is_no_answer_and_goes_on(service, browser):
    url, key, _ = service
    with opened(browser, url, key=key) as visit:
        visit.wait_for_selector("#arms table")
        visit.context.set_offline(True)
        visit.evaluate("dispatchEvent(new Event('hashchange'))")
        until(visit, "document.getElementById('status').textContent.startsWith('No answer')")
        assert visit.is_visible("#arms table")
        visit.context.set_offline(False)
        visit.evaluate("dispatchEvent(new Event('hashchange'))")
        until(visit, "document.getElementById('status').textContent.startsWith('Up to date')")


def test_a_minute_can_be_read_by_pointer_and_as_a_table(service, browser):
    url, key, _ = service
    with opened(browser, url, key=key) as visit:
        visit.wait_for_selector("#rates svg")
        deadline = time.monotonic() + PATIENCE
        while not re.fullmatch(
            r"\d\d:\d\d: \d+, \d+", text(visit, "#reading")
        ):  # numbers are asked for again
            assert time.monotonic() < deadline
            visit.hover("#rates svg", position={"x": 200, "y": 80})
        visit.click("summary")
        visit.wait_for_selector("#rates-table table")
        cells = visit.locator("#rates-table td").all_text_contents()
        assert sum(int(one.replace(",", "")) for one in cells[::2]) == 1200
        assert visit.complaints == []


def test_readers_who_do_not_see_it(service, browser):
    url, key, _ = service
    with opened(browser, url, key=key) as visit:
        visit.wait_for_selector("#arms table")
        assert visit.evaluate("document.documentElement.lang") == "en"
        assert visit.locator("th:not([scope])").count() == 0
        unnamed = "svg:not([role=img][aria-label]):not([aria-hidden=true])"
        assert visit.locator(unnamed).count() == 0
        titles = visit.locator("section").evaluate_all(
            "all => all.map(one => one.getAttribute('aria-labelledby'))"
        )
        assert all(visit.locator(f"#{title}").count() == 1 for title in titles)
        visit.click("#forget")
        assert visit.evaluate("document.activeElement.id") == "key"
        assert visit.evaluate("document.getElementById('key').labels.length") == 1
        assert visit.complaints == []


def test_numbers_are_written_as_everywhere_else(service, browser):
    url, *_ = service
    rng = np.random.default_rng(0)
    values = [0.0, 1.0, -0.5, *(rng.normal(size=60) * 10.0 ** rng.integers(-6, 10, size=60)).tolist()]
    halves = (np.abs(rng.normal(size=63)) * 10.0 ** rng.integers(-5, 4, size=63)).tolist()
    script = """async ([values, halves]) => {
        const words = await import("/page/words.js");
        return values.map((value, place) => {
            const estimate = { value, low: value - halves[place], high: value + halves[place] };
            return [words.number(value), words.mean(estimate), words.interval(estimate)];
        });
    }"""
    with opened(browser, url) as visit:
        found = visit.evaluate(script, [values, halves])
    for value, half, (number, mean, interval) in zip(values, halves, found, strict=True):
        half = ((value + half) - (value - half)) / 2  # as the page has it
        assert number == wording.number(value)
        assert interval.replace("\u00a0", " ") == wording.ends(value - half, value + half)
        assert mean == wording.measured(value, half)


def test_nothing_in_the_files_needs_another_host_or_an_inline_script():
    for name, (_, content) in page.FILES.items():
        words = content.decode()
        others = set(re.findall(r"https?://[^\"'\s)]*", words))
        assert others <= {"http://www.w3.org/2000/svg"}, name
        assert "innerHTML" not in words
        assert "eval(" not in words
    html = page.FILES["index.html"][1].decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)", html) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", html) == []


def test_every_file_is_served_with_the_strict_policy(service):
    *_, http = service
    for name, (media, content) in page.FILES.items():
        answer = http.get("/" if name == "index.html" else f"/page/{name}", headers={"authorization": ""})
        assert answer.status_code == 200
        assert answer.content == content
        assert answer.headers["content-type"] == media
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert http.get("/page/__init__.py").status_code == 404


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(scheme):
    """WCAG 2.2, success criterion 1.4.3: a contrast of 4.5 to 1."""
    css = page.FILES["page.css"][1].decode()
    blocks = re.findall(r":root \{(.*?)\}", css, flags=re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w+)", blocks[0]))
    if scheme == "dark":
        colours |= dict(re.findall(r"--(\w+): (#\w+)", blocks[1]))
    for ink in ("ink", "soft", "bad", "accent", "greedy", "uniform"):
        for paper in ("page", "card", "chip"):
            assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)


def contrast(one, other):
    def luminance(colour):
        digits = colour.lstrip("#")
        digits = "".join(2 * one for one in digits) if len(digits) == 3 else digits
        parts = np.array([int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
