"""The lake's process and its server killed again and again under load: every row is there once, and nothing is trimmed
that is not in the lake."""

import os
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
from crossdock.lake import manifest
from crossdock.lake.event_rows.tables import Tables
from tests.lake.ledger import booked, same_pages
from tests.lake.source import Row, rows_in
from tests.support.lake_load import LakeLoad, position, wait_for
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]

KILLS: Final = 10
SETTINGS: Final = {"lake.segment_s": 0.15, "lake.segment_mib": 1}


def first(data: Path) -> int:
    """The oldest batch that the journal still has."""
    reader = SqliteReader(data)
    try:
        return reader.first
    finally:
        reader.close()


def left_in_the_journal(data: Path) -> dict[int, Row]:
    found: dict[int, Row] = {}
    tables = Tables(lambda _, table: found.update({row["seq"]: row for row in table.to_pylist()}))
    reader = SqliteReader(data)
    for seq, batch in reader.read(reader.first - 1):
        tables.add(seq, batch)
    reader.close()
    tables.cut()
    return found


@pytest.mark.alone
def test_every_row_is_there_once_whichever_process_is_killed(tmp_path: Path) -> None:
    data, lake, random = tmp_path / "data", tmp_path / "data" / "lake", Random(11)
    server = Server(data, SETTINGS, fault="short-tail").start()
    killed: Counter[str] = Counter()
    with LakeLoad(server) as load:
        for kill in range(KILLS):
            before = position(lake)
            wait_for(lambda before=before: position(lake) > before, "the lake goes on")  # type: ignore[misc]
            time.sleep(random.random() * 0.4)
            if kill % 3 == 2:
                server.restart()
                killed["server"] += 1
            elif pid := in_use_by(lake):
                with suppress(ProcessLookupError):  # it had ended by itself
                    os.kill(int(pid), signal.SIGKILL)
                    killed["lake"] += 1
        wait_for(lambda: first(data) > 1, "the journal is trimmed")
        last = position(lake)
        wait_for(lambda: position(lake) > last, "the lake goes on after the last kill")
    reader = SqliteReader(data)
    until = reader.newest
    reader.close()
    wait_for(lambda: position(lake) >= until, "the lake has all that was written")
    assert server.stop() == 0
    server.close()
    assert killed["lake"] >= 5 and killed["server"] >= 3
    rows = rows_in(lake)
    done = manifest.read_done(lake)
    assert done is not None and (done.first, done.gaps) == (1, [])
    left = left_in_the_journal(data)
    assert min(left) >> 22 > 1, "the journal was trimmed"
    assert {seq: {**row, "flush_epoch": 0} for seq, row in rows.items() if seq in left} == {
        seq: row for seq, row in left.items() if seq in rows
    }
    events = Counter((row["event"], row["jid"]) for row in rows.values())
    assert [jid for jid in load.pushed if events["pushed", jid] != 1] == []
    assert [jid for jid in load.settled if events["succeeded", jid] != 1] == []
    assert len(load.settled) > 300
    live = recover(SqliteReader(data)).state.stats
    assert same_pages(live, booked(row for _, row in sorted(rows.items())))


def test_the_journal_waits_for_a_lake_that_cannot_be_written(tmp_path: Path) -> None:
    """Its manifest is damaged. Nothing is trimmed until that is cured, and then all of it comes."""
    data, lake = tmp_path / "data", tmp_path / "data" / "lake"
    lake.mkdir(parents=True)
    (lake / manifest.DONE).write_bytes(b"not JSON")
    server = Server(data, SETTINGS, fault="short-tail").start()
    with LakeLoad(server) as load:
        wait_for(lambda: len(list(data.glob("snapshot-*[0-9]"))) == 2, "two snapshots")
        before = len(load.pushed)
        wait_for(lambda: len(load.pushed) > before + 500, "the server works on")
    reader = SqliteReader(data)
    assert (reader.first, dict(reader.holds())) == (1, {"lake": 0})
    reader.close()
    assert "the lake cannot be written to" in server.log()
    (lake / manifest.DONE).unlink()
    server.restart()
    wait_for(lambda: position(lake) > 0, "the lake begins")
    assert server.stop() == 0
    server.close()
    done = manifest.read_done(lake)
    assert done is not None and (done.first, done.gaps) == (1, [])


def test_off_and_on_again(tmp_path: Path) -> None:
    """While it is off the journal is trimmed as if there were no lake; what is lost to it so is named as a gap."""
    data, lake = tmp_path / "data", tmp_path / "data" / "lake"
    server = Server(data, SETTINGS).start()
    with LakeLoad(server):
        wait_for(lambda: position(lake) > 5, "the lake goes on")
    server.stop()
    server.close()
    until = position(lake)
    server = Server(data, {**SETTINGS, "lake.on": "false"}, fault="short-tail").start()
    with LakeLoad(server):
        wait_for(lambda: first(data) > until + 10, "the journal is trimmed")
    server.stop()
    server.close()
    server = Server(data, SETTINGS).start()
    wait_for(lambda: position(lake) > until, "the lake goes on")
    server.stop()
    server.close()
    done = manifest.read_done(lake)
    assert done is not None
    ((gap),) = done.gaps
    assert gap.first > until - 1 and gap.last >= until + 10
    rows_in(lake)
