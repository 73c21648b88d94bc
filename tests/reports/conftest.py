"""Empty tables, and those of a small shop."""

from pathlib import Path

import pytest

from tests.reports.shop import OBJECTIVES, fill_shop
from tests.reports.tables import Tables


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path / "data" / "tables")


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Tests do not write to it."""
    return fill_shop(Tables(tmp_path_factory.mktemp("shop") / "data" / "tables")).finish(*OBJECTIVES, price=0.36)
