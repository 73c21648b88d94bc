"""Debian's Chromium, driven by Playwright, and pages of the dashboard in it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.support.server import Server

PATIENCE_MS: Final = 15_000


@contextmanager
def chromium(what: str) -> Iterator[Any]:
    """Skips the test, with a message that names what was not tested, where there is no Chromium."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip(f"{what} WAS NOT TESTED IN A BROWSER: chromium is missing")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield found
        finally:
            found.close()


class Tab:
    """A page that remembers what went wrong in it."""

    def __init__(self, browser: Any, server: Server, **options: Any) -> None:
        self.context = browser.new_context(
            base_url=f"http://127.0.0.1:{server.ports['http']}", timezone_id="Asia/Tokyo", **options
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._note)
        self.page.on("dialog", self._dismiss)

    def _note(self, said: Any) -> None:
        if said.type == "error":
            self.problems.append(said.text)

    def _dismiss(self, dialog: Any) -> None:
        self.problems.append("a script of a job ran")
        dialog.dismiss()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def open(self, path: str) -> Any:
        self.page.goto(path, wait_until="load")
        return self.page


def screenshot(page: Any, name: str) -> None:
    folder = os.environ.get("CROSSDOCK_SCREENSHOTS", "")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
