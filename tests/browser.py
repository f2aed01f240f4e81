"""Chromium, where the machine has one: a page opened as a reader would, and all that it complains about or asks for."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)
PHONE, WIDE = 400, 1600
PATIENCE = 400.0
"""Seconds for anything: the machine may be busy."""


@contextmanager
def chromium() -> Iterator:
    """A headless browser; the test is skipped where playwright or Chromium is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no Chromium on this machine: looked for {', '.join(NAMES)}")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page of a file on disk.

    Args:
        browser: what `chromium` gave.
        path: the html file.
        address: what follows the file's name, such as "#toy".
        width: of the window, in pixels.
        scheme: "light" or "dark".

    """

    def __init__(self, browser, path: Path, address: str = "", width: int = WIDE, scheme: str = "light"):
        phone = width == PHONE
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=phone, is_mobile=phone
        )
        self.context.set_default_timeout(1000 * PATIENCE)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.file = path.as_uri()
        self.page.goto(self.file + address)

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *_) -> None:
        self.context.close()

    def until(self, condition: str, seconds: float = PATIENCE) -> None:
        """Wait for a condition in JavaScript, asked from outside: a page under a strict policy evaluates no text."""
        deadline = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, f"{condition} does not come true"
            self.page.wait_for_timeout(20)

    def check_quiet(self) -> None:
        """Nothing on the console, no error, and no request but for the file itself."""
        assert self.complaints == []
        assert {url.split("#")[0] for url in self.requests} == {self.file}

    def check_fits(self) -> None:
        """Nothing is wider than the window."""
        width, window = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= window
