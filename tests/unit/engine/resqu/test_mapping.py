"""The mapping of (source, name) to pools: how it is written, what is refused, and whose entry counts."""

from pathlib import Path

import pytest

from crossdock.engine.resqu.state import Mapping
from crossdock.model.commands import core as c
from crossdock.server.static_config import BadOrder, mapping
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
def test_the_file_says_where_jobs_go(tmp_path: Path, source: str, name: str, pool: str) -> None:
    file = tmp_path / "crossdock.toml"
    file.write_text(FILE)
    order = mapping(load({}, {}, file).settings)
    found = Mapping({key: dict(names) for key, names in order.static.items()})
    assert found.pool(source, name) == pool
    assert order.batch == {"default": {"default": "batch_1"}}


def test_without_one_there_is_no_pool() -> None:
    assert Mapping().pool("a", "b") == "unassigned"
    assert Mapping().batch_pool("a", "b") == ""
    assert mapping(Settings()).static == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (PoolMapping(static={"acc": {"Mail": "mail"}}), r"mapping\.static says nothing of the jobs it does not name"),
        (PoolMapping(batch={"default": {"Mail": "mail"}}), r"mapping\.batch says nothing"),
        (PoolMapping(static={"default": {"default": "a", "x": ""}}), "is no name of a pool"),
        (PoolMapping(static={"default": {"default": "ä" * 200}}), "1 to 255 bytes"),
        (PoolMapping({"default": {"default": "a"}}, {"default": {"default": "a"}}), 'the pool "a" is both'),
        (PoolMapping(static={"default": {"default": "unassigned"}}), "no pool can be called"),
    ],
)
def test_what_is_wrong_is_said(given: PoolMapping, words: str) -> None:
    with pytest.raises(BadOrder, match=words):
        mapping(Settings(mapping=given))


def test_the_same_mapping_again_is_no_event() -> None:
    bench = ResquBench()
    bench.mapped()
    so_far = len(bench.events)
    bench.mapped()
    assert len(bench.events) == so_far


def test_what_waited_unassigned_moves_in_slices_and_keeps_its_order() -> None:
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
