"""Chromium, once for each module."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium("THE DASHBOARD") as found:
        yield found
