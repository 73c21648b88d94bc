"""Folders that Spark's side sees without the driver's files, and what a run must then say."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from crossdock.lake.table import Lake
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.lakes import known_lakes
from crossdock.pipeline.planning import positions
from crossdock.pipeline.tables import Position
from tests.pipeline.clusters import can_hide
from tests.pipeline.conftest import Grown


class Hidden(NamedTuple):
    lake: Path
    tables: Path

    @classmethod
    def beside(cls, grown: Grown, folder: Path) -> Self:
        """A copy of the lake, and an empty folder for tables."""
        (folder / "tables").mkdir()
        return cls(shutil.copytree(grown.lake, folder / "lake"), folder / "tables")

    def expect_possible(self) -> None:
        if not can_hide(self.tables):
            pytest.skip("NOT TESTED: Spark without the driver's folders, because the system refuses unshare or mount")


def assert_the_tables_are_not_seen(code: int, err: str, tables: Tables) -> None:
    sentence = (
        r"crossdock: Spark wrote ([\d,]+) rows to \S+, and 0 of them are visible here: the folder must be the same "
        r"storage on this machine and on Spark's executors; nothing was committed\n"
    )
    found = re.search(sentence, err)
    assert code == 1 and found is not None and found[1] != "0", err
    _assert_nothing(err, tables)


def assert_the_lake_is_not_seen(code: int, err: str, tables: Tables) -> None:
    sentence = (
        r"crossdock: on Spark's side, \S+\.parquet cannot be read: No such file or directory\. The file is sound on "
        r"this machine, so the lake is not the same storage on both; nothing was committed\n"
    )
    assert code == 1 and re.search(sentence, err) is not None, err
    _assert_nothing(err, tables)


def _assert_nothing(err: str, tables: Tables) -> None:
    assert "Traceback" not in err
    [lake] = [Lake.open(each.location) for each in known_lakes(tables["lakes"])]
    assert set(positions(tables, lake.id).values()) == {Position()}
    assert not tables["attempts"].files()
