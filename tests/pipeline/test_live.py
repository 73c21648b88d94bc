"""Spark reads live jobs through the Redis listener, as executors on other machines do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In

from crossdock.client.bulk import Where
from crossdock.pipeline.source.live import Live
from crossdock.pipeline.source.options import BadOption, reading, writing
from crossdock.pipeline.source.source import register
from tests.support.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"redis.password": "secret"}
    with Server(tmp_path_factory.mktemp("live"), settings, protocols=("faktory", "redis")) as running:
        with running.client() as client:
            client.push_many([{"jid": f"ready-{n:04d}", "jobtype": "k", "args": [n]} for n in range(450)])
            client.push("later-0001", "mail", at="2099-01-01T00:00:00Z", priority=9)
        yield running


def where(server: Server) -> str:
    return f"redis://:secret@127.0.0.1:{server.ports['redis']}"


def found(reader: Live) -> list[list[str]]:
    """The jids that each task reads."""
    return [
        [jid for batch in reader.read(part) for jid in batch.column("jid").to_pylist()] for part in reader.partitions()
    ]


def test_spark_reads_live_jobs_from_a_host(spark: SparkSession, server: Server) -> None:
    register(spark)
    frame = spark.read.format("crossdock").options(what="jobs", host=where(server)).load()
    assert {row["state"]: row["count"] for row in frame.groupBy("state").count().collect()} == {
        "ready": 450,
        "scheduled": 1,
    }
    [later] = frame.where("queue = 'mail' and state in ('scheduled', 'dead')").collect()
    assert (later["jid"], later["priority"], later["due"].year) == ("later-0001", 4.0, 2099)


@pytest.mark.parametrize(
    ("filters", "left", "tasks", "jobs"),
    [
        ([], 0, 9, 451),
        ([EqualTo(("state",), "ready")], 0, 1, 450),
        ([In(("queue",), ("mail", "default", "mail")), EqualTo(("state",), "scheduled")], 0, 2, 1),
        ([EqualTo(("kind",), "k"), In(("state",), ("ready", "dead"))], 0, 2, 450),
        ([EqualTo(("state",), "ready"), EqualTo(("state",), "dead")], 0, 1, 0),
        ([EqualTo(("state",), "none such")], 0, 1, 0),
        ([GreaterThan(("number",), 1), EqualTo(("jid",), "later-0001")], 2, 9, 451),
    ],
)
def test_filters_reach_the_server(server: Server, filters: list[Filter], left: int, tasks: int, jobs: int) -> None:
    reader = Live(reading({"what": "jobs", "host": where(server)}))
    assert len(list(reader.pushFilters(filters))) == left
    read = found(reader)
    assert (len(read), sum(map(len, read))) == (tasks, jobs)


def test_the_listener_and_the_admin_socket_return_the_same_jobs(server: Server) -> None:
    by_socket = found(Live(reading({"what": "jobs", "data": str(server.data), "kind": "k"})))
    assert by_socket == found(Live(reading({"what": "jobs", "host": where(server), "kind": "k"})))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Where("127.0.0.1", 7379)),
        ({"host": "db", "port": "1"}, Where("db", 1)),
        ({"host": "redis://db"}, Where("db", 7379)),
        ({"host": "redis://:p%40ss@[::1]:99/0"}, Where("::1", 99, "", "p@ss")),
        ({"host": "redis://:a@db:1", "password": "b", "port": "2"}, Where("db", 2, "", "b")),
        ({"socket": "/run/redis.sock"}, Where("127.0.0.1", 7379, "/run/redis.sock")),
    ],
)
def test_the_address_is_read_from_the_options(options: dict[str, str], expected: Where) -> None:
    assert writing(options).where == expected


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"what": "jobs", "host": "faktory://db"}, "option host must be a name, or the address of the Redis listener"),
        ({"what": "jobs", "host": "redis://db:seven"}, "option host is not an address"),
        ({"what": "jobs", "host": "redis://db/3"}, "option host must be"),
        ({"what": "jobs", "host": "db", "data": "jobs"}, "name the running server: its folder"),
    ],
)
def test_an_invalid_address_is_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(BadOption, match=why):
        reading(options)


def test_a_missing_password_is_reported(server: Server, tmp_path: Path) -> None:
    options: dict[str, Any] = {"what": "jobs", "host": "127.0.0.1", "port": str(server.ports["redis"])}
    with pytest.raises(Exception, match="the Redis listener requires a password"):
        found(Live(reading(options)))
