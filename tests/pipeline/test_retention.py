"""Retention and merging of the tables. None of these tests needs Spark."""

import datetime as dt
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from crossdock.pipeline import retention
from crossdock.pipeline.catalog import Tables, no_progress
from crossdock.pipeline.objectives import Objective
from crossdock.pipeline.retention import expire_hours, expire_rows, merge_files
from crossdock.pipeline.schemas.appended import ROLLUPS
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.schemas.views import VIEWS
from crossdock.pipeline.tables import File, Table
from crossdock.pipeline.views.capacity import refresh_capacity
from crossdock.pipeline.views.depths import refresh_depths
from crossdock.pipeline.views.flows import refresh_flows
from crossdock.pipeline.views.refresh import refresh
from crossdock.pipeline.views.slo import refresh_slo
from tests.pipeline.flow_worlds import FIRST, add, attempt, link, reference, table_of, world

Row = dict[str, Any]
_OBJECTIVES = [Objective("q", 60.0, 0.9, 5.0)]
DAY = FIRST.date()


def day(number: int) -> dt.date:
    return DAY + dt.timedelta(days=number)


def rollup(draw: random.Random, schema: TableSchema, date: dt.date, server: str = "s") -> list[Row]:
    """Rows of one batch: each key once, and few different keys, so that batches have keys in common."""
    values: dict[str, Any] = {
        "flush_epoch": [0], "queue": ["q", "r"], "kind": ["k"], "protocol": ["faktory"], "to_queue": [None],
        "event": ["pushed", "succeeded", "failed"], "state": [None, "dead"], "over": [False], "lost": [None, True],
        "again": [False], "outcome": [None, "succeeded"], "error_group": [None, "E"], "cause": ["c"], "worker": ["w"],
        "what": ["wait", "run", "total", "count"], "fine": [1, 2], "log": [3, 9],
    }  # fmt: skip
    rows: dict[tuple[Any, ...], Row] = {}
    for _ in range(draw.randint(1, 6)):
        row = {name: draw.choice(values[name]) if name in values else None for name in schema.names}
        hour = dt.datetime.combine(date, dt.time(draw.choice([3, 4])), dt.UTC)
        at = hour.timestamp() + draw.random() * 3_000
        is_count = row.get("what") == "count"
        numbers = {
            "date": date, "server": server, "hour": hour, "n": 0 if is_count else draw.randint(1, 5), "first_at": at,
            "last_at": at + 9, "run_s": draw.random(), "busy_s": draw.random(), "mean": draw.random(),
            "m2": draw.random(), "max": draw.random(), "failures": draw.randint(0, 3), "failed": 0, "retries": 1,
            "deaths": draw.randint(0, 1), "seq": draw.randrange(1 << 40), "jid": f"j{draw.random()}", "message": "m",
        }  # fmt: skip
        row |= {name: value for name, value in numbers.items() if name in schema.names}
        if is_count:
            row |= dict.fromkeys(("fine", "log", "mean", "m2", "max"))
        rows[tuple(row[name] for name in schema.key)] = row
    return list(rows.values())


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    made = Tables(str(tmp_path / "tables"))
    made.create()
    return made


def shown(tables: Tables) -> dict[str, list[Any]]:
    """The rows of all views. Sums of the same numbers in another order differ in their last digits."""
    found = {}
    for schema in VIEWS:
        rows = pa.table(tables[schema.name].handle().to_pyarrow_table()).to_pylist()
        rows = [
            {name: pytest.approx(value, rel=1e-9) if type(value) is float else value for name, value in row.items()}
            for row in sorted(rows, key=lambda row: [str(row[name]) for name in schema.key])
        ]
        found[schema.name] = rows
    return found


def refresh_all(tables: Tables) -> set[dt.date]:
    made = refresh(tables, no_progress) | refresh_depths(tables) | refresh_flows(tables)
    return made | refresh_slo(tables, _OBJECTIVES) | refresh_capacity(tables, _OBJECTIVES)


def computed_again(tables: Tables, folder: Path) -> dict[str, list[Any]]:
    """The views of a copy that has none."""
    shutil.copytree(tables.location, folder)
    for schema in VIEWS:
        shutil.rmtree(folder / schema.name)
    other = Tables(str(folder))
    other.create()
    refresh_all(other)
    return shown(other)


def test_merged_tables_give_the_same_views(tables: Tables, tmp_path: Path) -> None:
    draw = random.Random(1)
    links, attempts = world(3, days=1, a_day=400)
    for _ in range(20):
        for schema in ROLLUPS:
            add(tables, schema.name, [*rollup(draw, schema, day(0)), *rollup(draw, schema, day(0), "t")])
    for schema in ROLLUPS:
        add(tables, schema.name, rollup(draw, schema, day(1)))
    for name, rows in (("links", links), ("attempts", attempts)):
        for part in range(20):
            if rows[part::20]:
                add(tables, name, rows[part::20])
    refresh_all(tables)
    before, rows_before = shown(tables), {name: table_of(tables, name) for name in ("links", "attempts")}
    assert before["daily"] and before["failures"] and before["flows"]
    old = {table.name: table.handle().version() for table in tables}
    counts = {schema.name: len(tables[schema.name].files({day(0)})) for schema in ROLLUPS}
    assert set(counts.values()) == {20}
    kept = {schema.name: tables[schema.name].files({day(1)}) for schema in ROLLUPS}

    assert merge_files(tables) >= len(ROLLUPS) + 2
    for schema in ROLLUPS:
        table = tables[schema.name]
        assert len(table.files({day(0)})) == 1
        assert table.files({day(1)}) == kept[schema.name], "a date with few files stays"
        rows = pa.table(table.handle().to_pyarrow_table()).to_pylist()
        assert len({tuple(row[name] for name in schema.key) for row in rows}) == len(rows), "one row per key"
    assert [len(tables[name].files()) for name in ("links", "attempts")] == [1, 1]
    assert {name: table_of(tables, name) for name in ("links", "attempts")} == rows_before
    assert refresh_all(tables) == set(), "merging changes no rows"
    assert shown(tables) == before
    assert computed_again(tables, tmp_path / "again") == before
    assert merge_files(tables) == 0

    for table in tables:
        table.tidy()
    for schema in ROLLUPS:
        reader = DeltaTable(tables[schema.name].location, version=old[schema.name])
        assert pa.table(reader.to_pyarrow_table()).num_rows, "readers of the version before still find its files"


def test_moments_of_close_values_keep_their_digits(tables: Tables) -> None:
    """Values of about 11 days that differ by a second: sums of squares would lose the spread."""
    values = [1e6 + each / 16 for each in range(17)]
    row = {
        "date": DAY, "server": "s", "flush_epoch": 0, "queue": "q", "kind": "k", "what": "run", "fine": 1, "log": 1,
        "n": 1, "m2": 0.0, "failures": 0, "failed": 0, "retries": 0,
    }  # fmt: skip
    for value in values:
        add(tables, "hist_day", [{**row, "mean": value, "max": value}])
    merge_files(tables)
    [found] = pa.table(tables["hist_day"].handle().to_pyarrow_table()).to_pylist()
    assert (found["n"], found["mean"], found["max"]) == (17, pytest.approx(1e6 + 0.5, rel=1e-15), max(values))
    assert found["m2"] == pytest.approx(sum((value - 1e6 - 0.5) ** 2 for value in values), rel=1e-9)


def test_large_files_are_left_alone(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tables, "attempts", [attempt(seq, 0, seq) for seq in range(1, 5_000)])
    [large] = tables["attempts"].files()
    monkeypatch.setattr(retention, "_SMALL_BYTES", large.bytes)
    monkeypatch.setattr(retention, "_JOINED_BYTES", 3 * large.bytes // 2)
    for seq in range(20):
        add(tables, "attempts", [attempt(10_000 + seq, 0, 10_000 + seq)])
    merge_files(tables)
    files = tables["attempts"].files()
    assert large in files and len(files) == 2
    assert sum(file.rows for file in files) == 4_999 + 20
    assert {(file.lowest, file.highest) for file in files} == {(1, 4_999), (10_000, 10_019)}


def test_an_older_file_without_a_newer_column_is_joined(tables: Tables) -> None:
    table = tables["links"]
    for number in range(2, 20):
        add(tables, "links", [link(number, 0, number=number, needs=[1])])
    first = Path(table.location) / table.files()[0].path
    pa.parquet.write_table(pa.parquet.read_table(first, partitioning=None).drop_columns(["lowest"]), first)
    merge_files(tables)
    [file] = table.files()
    assert (file.rows, file.highest) == (18, 19)


def test_hours_are_kept_for_as_long_as_the_operator_says(tables: Tables) -> None:
    draw = random.Random(2)
    for number in range(4):
        for schema in ROLLUPS:
            add(tables, schema.name, rollup(draw, schema, day(number)))
    refresh_all(tables)
    before = shown(tables)
    assert expire_hours(tables, day(300), 365) == 0
    assert expire_hours(tables, day(3), 0) == 0
    assert expire_hours(tables, day(3), 2) == 1
    refresh_all(tables)
    after = shown(tables)
    for name in ("hourly", "forecast", "workers"):
        assert after[name] == [row for row in before[name] if row["date"] >= day(1)], name
    for name in ("daily", "histogram", "failures", "depths", "slo", "capacity"):
        assert after[name] == before[name], name
    for schema in ROLLUPS:
        dates = {file.date for file in tables[schema.name].files()}
        assert (day(0) in dates) == (schema.name not in ("counts_hour", "work")), schema.name
    assert expire_hours(tables, day(3), 2) == 0


def test_a_new_day_after_retention_counts_on_from_the_depths_before(tables: Tables) -> None:
    def pushed(number: int) -> Row:
        hour = dt.datetime.combine(day(number), dt.time(1), dt.UTC)
        return {"date": day(number), "server": "s", "hour": hour, "flush_epoch": 0, "queue": "q", "protocol": "faktory",
                "event": "pushed", "state": "ready", "over": False, "n": 5, "first_at": hour.timestamp(),
                "last_at": hour.timestamp()}  # fmt: skip

    for number in range(3):
        add(tables, "counts_hour", [pushed(number)])
        refresh_all(tables)
        expire_hours(tables, day(number), 1)
        refresh_all(tables)
    assert [row["depth"] for row in shown(tables)["depths"]] == [5, 10, 15]


def test_rows_of_a_server_expire_with_its_lake(tables: Tables) -> None:
    links, attempts = world(5, days=5, a_day=40)
    add(tables, "links", links)
    add(tables, "attempts", attempts)
    refresh_flows(tables)
    count = sum(row["server"] == "s" and row["date"] <= day(1) for row in [*links, *attempts])
    flows = sum(row["server"] == "s" and row["date"] <= day(1) for row in table_of(tables))
    assert expire_rows(tables, {"s": day(1), "it's": day(3)}) == count + flows
    refresh_flows(tables)
    left = [[row for row in rows if row["server"] == "t" or row["date"] > day(1)] for rows in (links, attempts)]
    assert [table_of(tables, name) for name in ("links", "attempts")] == [
        sorted(rows, key=lambda row: (row["server"], row["number"] or 0, row["seq"])) for rows in left
    ]
    assert table_of(tables) == reference(*left)
    versions = [table.handle().version() for table in tables]
    assert expire_rows(tables, {"s": day(1)}) == 0
    assert [table.handle().version() for table in tables] == versions
    expire_rows(tables, {"s": day(2), "t": day(2)})
    refresh_flows(tables)
    assert min(file.date for name in ("links", "attempts") for file in tables[name].files()) == day(3)
    assert table_of(tables) == reference(*([row for row in rows if row["date"] > day(2)] for rows in left))


def test_a_date_with_rows_of_other_servers_is_read_once(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tables, "attempts", [attempt(number, number, number, server="t") for number in range(1, 9)])
    read: list[dt.date] = []
    load = Table.read

    def reading(self: Table, file: File, columns: Sequence[str] | None = None) -> pa.Table:
        read.append(file.date)
        return load(self, file, columns)

    monkeypatch.setattr(Table, "read", reading)
    expire_rows(tables, {"s": day(4)})
    assert sorted(read) == [day(number) for number in range(1, 5)]
    read.clear()
    expire_rows(tables, {"s": day(5)})
    assert read == [day(5)]
