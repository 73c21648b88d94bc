"""The lake's process and its server are killed repeatedly under load.

Every row is in the lake once, and no journal entry is trimmed before it is in the lake.
"""

import os
import shutil
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

from crossdock.journal.data_dir import in_use_by
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.reader import SqliteReader
from crossdock.lake.event_rows.tables import Tables
from crossdock.lake.table import Lake
from crossdock.lake.writer import LOCK
from tests.lake.ledger import booked, same_pages
from tests.lake.source import ListSource, Row, rows_in, story, write_all
from tests.support.lake_load import LakeLoad, position, wait_for
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]

KILLS: Final = 10
SETTINGS: Final = {"lake.segment_s": 0.15, "lake.segment_mib": 1}


def first(data: Path) -> int:
    """The oldest entry in the journal."""
    reader = SqliteReader(data)
    try:
        return reader.first
    finally:
        reader.close()


def left_in_the_journal(data: Path) -> dict[int, Row]:
    found: dict[int, Row] = {}
    tables = Tables(lambda _, table: found.update({row["seq"]: row for row in table.to_pylist()}))
    reader = SqliteReader(data)
    for seq, entry in reader.read(reader.first - 1):
        tables.add(seq, entry)
    reader.close()
    tables.cut()
    return found


@pytest.mark.alone
def test_every_row_is_there_once_whichever_process_is_killed(tmp_path: Path) -> None:
    data, lake, random = tmp_path / "data", tmp_path / "data" / "lake", Random(11)
    server = Server(data, SETTINGS, fault="frequent-compaction").start()
    killed: Counter[str] = Counter()
    with LakeLoad(server) as load:
        for kill in range(KILLS):
            before = position(lake)
            wait_for(lambda before=before: position(lake) > before, "the lake grows")  # type: ignore[misc]
            time.sleep(random.random() * 0.4)
            if kill % 3 == 2:
                server.restart()
                killed["server"] += 1
            elif pid := in_use_by(lake, lock=LOCK):
                with suppress(ProcessLookupError):  # it had already ended
                    os.kill(int(pid), signal.SIGKILL)
                    killed["lake"] += 1
        wait_for(lambda: first(data) > 1, "the journal is trimmed")
        last = position(lake)
        wait_for(lambda: position(lake) > last, "the lake grows after the last kill")
    reader = SqliteReader(data)
    until = reader.newest
    reader.close()
    wait_for(lambda: position(lake) >= until, "the lake has the whole journal")
    assert server.stop() == 0
    server.close()
    assert killed["lake"] >= 5 and killed["server"] >= 3
    rows = rows_in(lake)
    assert (Lake.open(lake).first, Lake.open(lake).gaps) == (1, 0)
    left = left_in_the_journal(data)
    assert min(left) >> 22 > 1, "the journal must be trimmed"
    assert {seq: {**row, "flush_epoch": 0, "server": None} for seq, row in rows.items() if seq in left} == {
        seq: row for seq, row in left.items() if seq in rows
    }
    events = Counter((row["event"], row["jid"]) for row in rows.values())
    assert [jid for jid in load.pushed if events["pushed", jid] != 1] == []
    assert [jid for jid in load.settled if events["succeeded", jid] != 1] == []
    assert len(load.settled) > 300
    live = recover(SqliteReader(data)).state.stats
    assert same_pages(live, booked(row for _, row in sorted(rows.items())))


def test_the_journal_is_not_trimmed_while_the_lake_cannot_be_written(tmp_path: Path) -> None:
    """Its log is damaged. Nothing is trimmed until it is repaired, and then all rows are exported."""
    data, lake = tmp_path / "data", tmp_path / "data" / "lake"
    write_all(lake, ListSource(story()))
    damaged = lake / "_delta_log" / f"{1:020d}.json"
    damaged.write_bytes(b"not JSON")
    with Server(data, SETTINGS, fault="frequent-compaction") as server:
        with LakeLoad(server) as load:
            wait_for(lambda: len(list(data.glob("snapshot-*[0-9]"))) == 2, "two snapshots")
            before = len(load.pushed)
            wait_for(lambda: len(load.pushed) > before + 500, "the server accepts jobs")
            wait_for(lambda: f"{damaged} is damaged" in server.log(), "the damage is logged")
        reader = SqliteReader(data)
        assert (reader.first, dict(reader.holds())) == (1, {"lake": 0})
        reader.close()
        shutil.rmtree(lake)
        server.restart()
        wait_for(lambda: position(lake) > 0, "the lake has a segment")
        assert server.stop() == 0
    assert (Lake.open(lake).first, Lake.open(lake).gaps) == (1, 0)


def test_a_lake_that_was_disabled_reports_a_gap(tmp_path: Path) -> None:
    """While the lake is disabled the journal is trimmed as without a lake. The rows missed are reported as a gap."""
    data, lake = tmp_path / "data", tmp_path / "data" / "lake"
    server = Server(data, SETTINGS).start()
    with LakeLoad(server):
        wait_for(lambda: position(lake) > 5, "the lake grows")
    server.stop()
    server.close()
    until = position(lake)
    server = Server(data, {**SETTINGS, "lake.on": "false"}, fault="frequent-compaction").start()
    with LakeLoad(server):
        wait_for(lambda: first(data) > until + 10, "the journal is trimmed")
    server.stop()
    server.close()
    server = Server(data, SETTINGS).start()
    wait_for(lambda: position(lake) > until, "the lake grows")
    server.stop()
    server.close()
    assert Lake.open(lake).gaps == 1
    (gap,) = [row["detail"] for row in rows_in(lake).values() if row["event"] == "gap"]
    begins, ends = (int(word) for word in gap.split() if word.isdigit())
    assert begins > until - 1 and ends >= until + 10
