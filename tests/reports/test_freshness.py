"""How fresh the tables are: the newest event, and what of the lakes is not in them."""

import datetime as dt

import pytest

from crossdock.cli.main import main
from crossdock.lake.table import Lake as OpenLake
from crossdock.pipeline.lakes import add_lake
from crossdock.pipeline.schemas.appended import ROLLUPS, ROW_LEVEL
from crossdock.pipeline.tables import Position
from tests.pipeline.lakes import Lake
from tests.reports.tables import LAST, Tables, at
from tests.support.all_protocols import AllProtocols


def note_position(tables: Tables, lake: OpenLake) -> None:
    """As if a batch up to the lake's newest version had been ingested."""
    for schema in (*ROW_LEVEL, *ROLLUPS):
        table = tables.catalog[schema.name]
        table.commit(table.handle(), [], positions={lake.id: Position(lake.version, lake.last)})


def test_the_lag_of_the_tables_is_shown(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    tables.job("mail").push(at(0, 5)).lease(at(0, 5, 1)).succeed(at(0, 5, 2))
    tables.finish()
    folder = tables.folder.parent / "lake"
    report = ["report", "queue", "--data", str(tables.folder.parent), "--until", str(LAST)]
    assert main(report) == 0
    assert "there is no lake here, so the tables' lag is not known\n" in capsys.readouterr().out
    floor, lake = AllProtocols(), Lake(folder)
    floor.faktory().push("mail", [1])
    lake.add(floor.dispatcher.events)
    note_position(tables, add_lake(tables.catalog["lakes"], str(folder))[0])
    assert main(report) == 0
    assert "tables up to 2026-11-16 05:02:00 UTC; everything is ingested\n" in capsys.readouterr().out
    before = len(floor.dispatcher.events)
    floor.faktory().push("mail", [2])
    lake.add(floor.dispatcher.events[before:])
    assert main(report) == 0
    behind = len(floor.dispatcher.events) - before
    assert f"{behind} event" in (said := capsys.readouterr().out)
    assert "not ingested yet: run crossdock pipeline run\n" in said
    newest = max((folder / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:-9])
    assert main(report) == 0
    assert f"{newest} is damaged" in capsys.readouterr().out
    lake.close()


def test_a_server_without_a_lake_here_is_no_trouble(shop: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", "queue", "--tables", str(shop.folder), "--until", str(LAST), "--server", "alpha"])
    said = capsys.readouterr().out
    assert "\nserver alpha\n" in said and "beta" not in said
    assert dt.date.fromisoformat(said.splitlines()[1][:10]) == LAST - dt.timedelta(days=6)
