"""Replay by Spark chooses what replay without it chooses, and calls the jobs by the same names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from crossdock.cli.commands.replay import _row
from crossdock.client.admin import AdminClient
from crossdock.client.bulk import Loader, Told, Where
from crossdock.lake.query import OUTCOMES, Filter, choose, jobs
from crossdock.model.commands import core as c
from crossdock.model.commands import qless as m
from crossdock.model.job import Extra, Form, Spec
from crossdock.pipeline.replay import find, frame, send
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.support.command_line import Operator
from tests.support.server import Server
from tests.support.states import RULES


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A mixed load, jobs that bring all a job can have, and events of jobs that were pushed before it."""
    folder, load = tmp_path_factory.mktemp("replay") / "lake", MixedLoad(11)
    load.go(120)
    early = len(load.events)
    extra = Extra(b'{"c":1}', tags=("red", "blue"))
    load.all_protocols.dispatcher.do(
        c.Enqueue("faktory", [Spec("whole", "mail", "k", b"[1]", Form.JSON, 3, RULES, 0.0, extra)])
    )
    raw, secret = b"\xff\x00", b'["[redacted]"]'
    for jid, payload, form in (("raw", raw, Form.RAW), ("none", b"", Form.NONE), ("secret", secret, Form.JSON)):
        load.all_protocols.dispatcher.do(c.Enqueue("workq", [Spec(jid, "mail", "k", payload, form, 0.5, RULES)]))
    load.go(200)
    load.all_protocols.dispatcher.do(m.Put("qless", 2.0, "w", "none", "mail", "k", b'{"n":0x1f}', Form.RAW))
    found = Lake(folder)
    found.cut(load.events[early // 2 :], 150)
    yield folder
    found.close()


FILTERS = [
    *(Filter(outcome=outcome) for outcome in OUTCOMES),
    Filter(queue="mail", kind="k"),
    Filter(tag="red"),
    Filter(outcome="failed", group="group-1"),
    Filter(jid="none such"),
]


def test_the_same_jobs_by_the_same_names(spark: SparkSession, lake: Path) -> None:
    middle = choose(lake, Filter()).at - 40_000
    counts = []
    for which in (*FILTERS, Filter(since=middle), Filter(until=middle, outcome="succeeded")):
        chosen = choose(lake, which)
        with find(spark, lake, which, 3) as found:
            assert (found.good, found.unknown, found.bare) == (len(chosen.numbers), chosen.unknown, chosen.bare), which
            assert found.named == chosen.named, which
            assert found.sample == list(jobs(chosen, 3)), which
            counts.append(found.good)
            if which in (Filter(), Filter(queue="mail", kind="k")):
                rows = [_sent(tuple(row)) for row in frame(found, "run", "").collect()]
                assert rows == [_row(past, f"run\0{chosen.lake}\0", "") for past in jobs(chosen)]
    assert sum(map(bool, counts)) > 6, "some of the filters choose something"


def _sent(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """As the sink's own code would send it."""
    jid, queue, kind, args, form, priority, retry, reserve_for, custom, tags, replayed_from = row
    shown = bytes(args or b"") if form == "raw" else bytes(args or b"[]").decode()
    return jid, queue, kind, shown, priority, None, retry, reserve_for, custom or "", tags, replayed_from


def test_jobs_go_in_once_however_often_they_are_sent(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    which = Filter(queue="mail", kind="k")
    count = len(choose(lake, which).numbers)
    with Server(tmp_path / "data", protocols=("redis",)) as server:
        protocol = Where("127.0.0.1", server.ports["redis"])
        with find(spark, lake, which, 0) as found, Loader(protocol, "again") as load:
            assert found.good == count >= 3
            send(spark, frame(found, "again", "there"), protocol, "again")
            assert load.loaded() == Told("closed", 0, 0, count, 0)
        with AdminClient(server.data) as client:
            shown = {row["jid"]: client.job(row["number"])["job"] for row in client.rows("jobs", queue="there")}
    names = [_row(past, f"again\0{found.lake}\0", "")[0] for past in jobs(choose(lake, which))]
    assert sorted(shown) == sorted(names)
    by_first = {job["replayed_from"]: job for job in shown.values()}
    assert (by_first["whole"]["tags"], by_first["whole"]["priority"]) == (["red", "blue"], 3)
    assert bytes(by_first["raw"]["payload"]) != b"[]"


def test_a_master_without_java_is_reported(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "lake").symlink_to(lake)
    operator = Operator(tmp_path, server_data=".")
    operator.environment |= {"JAVA_HOME": str(tmp_path)}
    ended = operator.run("job", "replay", "--kind", "k", "--dry", "--master", "local[1]")
    assert ended.code == 1
    assert "which needs Java" in ended.err
