"""Chromium, once for each module."""

import shutil
from collections.abc import Iterator
from typing import Any, Final

import pytest

CHROMIUM: Final = shutil.which("chromium") or ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM:
        pytest.skip("THE DASHBOARD WAS NOT TESTED IN A BROWSER: chromium is missing")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()
