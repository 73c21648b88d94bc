"""Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


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
