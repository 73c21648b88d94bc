"""Pages of the dashboard in Debian's Chromium."""

import os
from pathlib import Path
from typing import Any, Final, Self

from tests.support.server import Server

PATIENCE_MS: Final = 15_000


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
