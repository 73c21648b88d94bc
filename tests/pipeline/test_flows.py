"""The table `flows`. None of these tests needs Spark."""

import datetime as dt
import random
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.views import flows
from crossdock.pipeline.views.flows import refresh_flows
from crossdock.pipeline.views.link_graph import components
from tests.pipeline.flow_worlds import FIRST, Row, add, attempt, delete, link, made, reference, slices, table_of, world


@pytest.mark.parametrize("seed", range(12))
def test_grown_equals_computed_at_once_equals_the_reference(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    links, attempts = world(seed, days=draw.randint(1, 9), a_day=draw.choice([4, 12, 30]))
    once = made(tmp_path / "once", links, attempts)
    refresh_flows(once)
    assert table_of(once) == reference(links, attempts)
    assert grown(tmp_path / "grown", draw, links, attempts) == table_of(once)


@pytest.mark.parametrize("seed", range(4))
def test_grown_equals_computed_at_once_with_cycles(seed: int, tmp_path: Path) -> None:
    links, attempts = world(seed, a_day=40, cycles=True)
    once = made(tmp_path / "once", links, attempts)
    refresh_flows(once)
    assert grown(tmp_path / "grown", random.Random(seed), links, attempts) == table_of(once)


def grown(folder: Path, draw: random.Random, links: list[Row], attempts: list[Row]) -> list[Row]:
    tables = made(folder)
    for some, ran in slices(draw, links, attempts):
        for name, rows in (("links", some), ("attempts", ran)):
            if rows:
                add(tables, name, rows)
        refresh_flows(tables)
    return table_of(tables)


@pytest.mark.parametrize("seed", range(8))
def test_rounds_of_few_links_give_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "_ROUND", 10)
    links, attempts = world(seed, days=9, a_day=20)
    tables = made(tmp_path, links, attempts)
    refresh_flows(tables)
    assert table_of(tables) == reference(links, attempts)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("is_readable", [True, False])
def test_deleted_dates_leave_flows_of_the_remaining_links(seed: int, is_readable: bool, tmp_path: Path) -> None:
    links, attempts = world(seed, days=6, a_day=20)
    tables = made(tmp_path, links, attempts)
    refresh_flows(tables)
    for day in range(3):
        gone = (FIRST + dt.timedelta(days=day)).date()
        paths = [
            Path(tables[name].location) / file.path
            for name in ("links", "attempts")
            for file in tables[name].files({gone})
        ]
        for name in ("links", "attempts"):
            delete(tables, name, day)
        if not is_readable:
            for path in paths:
                path.unlink()
        refresh_flows(tables)
        links, attempts = ([row for row in rows if row["date"] > gone] for rows in (links, attempts))
        assert table_of(tables) == reference(links, attempts)


def test_flows_and_their_longest_path(tmp_path: Path) -> None:
    """Jobs 1 and 2 are in a batch whose callback is 3. Job 5 depends on 4, 6 on 4 and 5, and 9 on the job before it.
    Job 10 no longer depends on 5, and stays in the flow."""
    links = [
        link(1, 0, "batch-opened", group_name="outer"),
        link(2, 0, "batch-opened", group_name="inner", parent_group="outer"),
        link(3, 0, number=1, group_name="inner"),
        link(4, 0, number=2, group_name="inner"),
        link(5, 0, number=3, callback_of="inner"),
        link(6, 0, number=5, needs=[4]),
        link(7, 1, number=6, needs=[-2, 5]),
        link(8, 1, number=9, needs=[-1]),
        link(9, 1, number=10, needs=[5]),
        link(10, 1, "dependencies-edited", number=10, needs=[]),
        link(11, 1, "batch-opened", group_name="empty"),
    ]
    ran = [(1, 10.0, "succeeded"), (2, 30.0, "succeeded"), (3, 5.0, "succeeded"), (4, 7.0, "succeeded"),
           (5, 1.0, "lost"), (5, 2.0, "failed"), (8, 3.0, "succeeded")]  # fmt: skip
    attempts = [attempt(20 + seq, 1, number, outcome, run_s) for seq, (number, run_s, outcome) in enumerate(ran)]
    tables = made(tmp_path, links, attempts)
    assert refresh_flows(tables) == {FIRST.date(), FIRST.date() + dt.timedelta(days=1)}
    columns = (
        "name",
        "number",
        "groups",
        "jobs",
        "links",
        "depth",
        "succeeded",
        "failed",
        "open",
        "run_s",
        "critical_s",
    )
    assert [tuple(row[name] for name in columns) for row in table_of(tables)] == [
        ("outer", 1, ["inner", "outer"], 3, 4, 2, 3, 0, 0, 45.0, 35.0),
        ("j4", 5, [], 4, 3, 3, 1, 1, 2, 10.0, 10.0),
        ("j8", 9, [], 2, 1, 2, 1, 0, 1, 3.0, 3.0),
    ]
    assert table_of(tables) == reference(links, attempts)


def test_a_root_is_known_by_its_first_attempt(tmp_path: Path) -> None:
    tables = made(tmp_path, [link(1, 0, number=5, needs=[4])])
    refresh_flows(tables)
    assert [row["name"] for row in table_of(tables)] == ["j5"]
    add(tables, "attempts", [attempt(2, 3, 4, "returned")])
    refresh_flows(tables)
    assert [row["name"] for row in table_of(tables)] == ["j4"]


def test_a_name_that_begins_again_is_another_batch(tmp_path: Path) -> None:
    links = [
        row
        for day in range(3)
        for row in (
            link(10 * day + 1, day, "resqu-batch-opened", group_name="nightly"),
            link(10 * day + 2, day, number=day + 1, group_name="nightly"),
        )
    ]
    tables = made(tmp_path, links)
    refresh_flows(tables)
    assert [(row["name"], row["jobs"]) for row in table_of(tables)] == [("nightly", 1)] * 3


def test_cycles_end(tmp_path: Path) -> None:
    links = [link(1, 0, number=1, needs=[2]), link(2, 0, number=2, needs=[1]), link(3, 0, number=3, needs=[2, 3])]
    tables = made(tmp_path, links)
    refresh_flows(tables)
    [row] = table_of(tables)
    assert (row["jobs"], row["links"], row["depth"], row["open"], row["name"]) == (3, 3, 3, 3, "j1")


def test_a_job_that_depends_on_itself_is_alone(tmp_path: Path) -> None:
    tables = made(tmp_path, [link(1, 0, number=1, needs=[1])])
    refresh_flows(tables)
    [row] = table_of(tables)
    assert (row["jobs"], row["links"], row["depth"]) == (1, 0, 1)


def test_a_chain_of_100_000_jobs_over_two_days(tmp_path: Path) -> None:
    """Every second link is on the second day, so the search goes back and forth."""
    numbers = range(2, 100_001)
    links = [link(n, n % 2, number=n, needs=[n - 1]) for n in numbers]
    tables = made(tmp_path, [row for row in links if row["seq"] % 2 == 0])
    refresh_flows(tables)
    assert len(table_of(tables)) == 50_000
    add(tables, "links", [row for row in links if row["seq"] % 2])
    refresh_flows(tables)
    add(tables, "attempts", [attempt(200_000, 5, 77_777, run_s=3.0)])
    assert refresh_flows(tables) == {FIRST.date()}
    [row] = table_of(tables)
    assert (row["jobs"], row["links"], row["depth"], row["critical_s"]) == (100_000, 99_999, 100_000, 3.0)


def test_only_dates_that_matter_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A month of chains of two jobs, one of which is continued after 20 days, and a batch that was opened a day ago."""
    links = [link(day * 10 + n, day, number=day * 10 + n, needs=[-1]) for day in range(30) for n in (2, 4)]
    links.append(link(299, 28, "batch-opened", group_name="b"))
    tables = made(tmp_path, links)
    refresh_flows(tables)
    before = {file.path for file in tables["flows"].files()}
    read: list[list[int]] = []
    load = flows._Sources.load_links

    def reading(self: flows._Sources, dates: Collection[dt.date]) -> pa.Table:
        read.append(sorted((date - FIRST.date()).days for date in dates))
        return load(self, dates)

    monkeypatch.setattr(flows._Sources, "load_links", reading)
    add(tables, "links", [link(310, 30, number=310, needs=[104]), link(311, 30, number=311, group_name="b")])
    refresh_flows(tables)
    assert sorted(read) == [[10], [28], [29], [30]]
    after = {file.path for file in tables["flows"].files()}
    assert len(before - after) == 1 and len(after - before) == 2
    assert [row["jobs"] for row in table_of(tables) if row["number"] in (104, 311)] == [3, 1]


def test_without_links_nothing_is_read_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = made(tmp_path, attempts=[attempt(1, 0, 1)])
    monkeypatch.setattr(flows, "QueryBuilder", None)
    assert refresh_flows(tables) == set()
    assert tables["flows"].handle().version() == 0


def test_an_unchanged_table_is_not_written(tmp_path: Path) -> None:
    tables = made(tmp_path, [link(1, 0, number=2, needs=[1])], [attempt(2, 0, 1)])
    assert refresh_flows(tables)
    version = tables["flows"].handle().version()
    assert refresh_flows(tables) == set()
    assert tables["flows"].handle().version() == version
    add(tables, "attempts", [attempt(3, 1, 77)])
    files = tables["flows"].files()
    assert refresh_flows(tables) == set()
    assert tables["flows"].files() == files


def test_too_many_links_name_the_setting(tmp_path: Path) -> None:
    tables = made(tmp_path, [link(n, 0, number=n, needs=[1]) for n in range(2, 8)])
    with pytest.raises(PipelineError, match=r"6 links.*pipeline.flow_links"):
        refresh_flows(tables, limit=5)
    assert refresh_flows(tables, limit=0) == set()


def test_another_server_has_the_same_numbers(tmp_path: Path) -> None:
    tables = made(tmp_path, [link(1, 0, number=2, needs=[1]), link(1, 0, number=2, needs=[1], server="t")])
    refresh_flows(tables)
    add(tables, "attempts", [attempt(9, 1, 1, server="t")])
    refresh_flows(tables)
    assert [(row["server"], row["succeeded"]) for row in table_of(tables)] == [("s", 0), ("t", 1)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_components_contain_all_connected_nodes(edges: list[tuple[int, int]]) -> None:
    parts = {node: {node} for node in range(31)}
    for one, other in edges:
        both = parts[one] | parts[other]
        parts.update(dict.fromkeys(both, both))
    ends = np.array(edges, np.int64).reshape(-1, 2)
    assert components(31, ends[:, 0], ends[:, 1]).tolist() == [min(parts[node]) for node in range(31)]
