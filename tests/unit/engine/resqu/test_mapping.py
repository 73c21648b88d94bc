"""The mapping of source and name to pools: how it is configured, what is refused, and which entry counts."""

from pathlib import Path

import pytest

from crossdock.engine.resqu.state import Mapping
from crossdock.model.commands import core as c
from crossdock.server.static_config import InvalidEntry, mapping
from crossdock.settings.loading import load
from crossdock.settings.schema import PoolMapping, Settings
from tests.model.bench import spec
from tests.model.resqu_bench import ResquBench

FILE = """
[mapping.static.default]
default = "static_1"
MailJob = "mail"
[mapping.static.acc2]
MailJob = "slow"
[mapping.batch.default]
default = "batch_1"
"""


@pytest.mark.parametrize(
    ("source", "name", "pool"),
    [
        ("acc2", "MailJob", "slow"),
        ("acc1", "MailJob", "mail"),
        ("acc2", "Other", "static_1"),
        ("acc1", "Other", "static_1"),
        ("default", "default", "static_1"),
    ],
)
def test_the_settings_file_maps_jobs_to_pools(tmp_path: Path, source: str, name: str, pool: str) -> None:
    file = tmp_path / "crossdock.toml"
    file.write_text(FILE)
    order = mapping(load({}, {}, file).settings)
    found = Mapping({key: dict(names) for key, names in order.static.items()})
    assert found.pool(source, name) == pool
    assert order.batch == {"default": {"default": "batch_1"}}


def test_without_a_mapping_there_is_no_pool() -> None:
    assert Mapping().pool("a", "b") == "unassigned"
    assert Mapping().batch_pool("a", "b") == ""
    assert mapping(Settings()).static == {}


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        (PoolMapping(static={"acc": {"Mail": "mail"}}), r"mapping\.static has no pool for the jobs"),
        (PoolMapping(batch={"default": {"Mail": "mail"}}), r"mapping\.batch has no pool"),
        (PoolMapping(static={"default": {"default": "a", "x": ""}}), "is not a pool name"),
        (PoolMapping(static={"default": {"default": "ä" * 200}}), "1 to 255 bytes"),
        (PoolMapping({"default": {"default": "a"}}, {"default": {"default": "a"}}), 'the pool "a" is both'),
        (PoolMapping(static={"default": {"default": "unassigned"}}), "a pool cannot be named"),
    ],
)
def test_an_invalid_mapping_is_refused(configured: PoolMapping, message: str) -> None:
    with pytest.raises(InvalidEntry, match=message):
        mapping(Settings(mapping=configured))


def test_setting_the_same_mapping_again_makes_no_event() -> None:
    bench = ResquBench()
    bench.mapped()
    so_far = len(bench.events)
    bench.mapped()
    assert len(bench.events) == so_far


def test_unassigned_jobs_move_to_their_pool_in_slices_and_in_order() -> None:
    bench = ResquBench()
    for number in range(7):
        bench.enqueue(f"j{number}")
    bench.mapped()
    assert bench.tick(3).more
    bench.sound()
    while bench.engine.due_in(bench.now) == 0.0:
        bench.tick(3)
    assert bench.jids("static") == [f"j{number}" for number in range(7)]
    assert bench.engine.due_in(bench.now) is None
    bench.sound()


def test_a_job_of_another_protocol_stays_where_it_was_pushed() -> None:
    bench = ResquBench()
    bench.do(c.Enqueue("faktory", [spec("f", "unassigned")]))
    bench.mapped()
    assert bench.engine.due_in(bench.now) is None
    bench.tick()
    assert bench.jids("unassigned") == ["f"]
