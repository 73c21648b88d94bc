"""From a frame to jobs: checks before anything is sent, and the requests."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from crossdock.pipeline.source.options import BadOption, writing
from crossdock.pipeline.source.rows import BadFrame, chunks, plan
from crossdock.pipeline.source.sink import RunClosed, _refuse_ended
from crossdock.protocols.redis.bulk.jobs import specs

WHOLE = {"jid": "string", "kind": "string"}


@pytest.mark.parametrize(
    ("columns", "options", "why"),
    [
        ({"kind": "string"}, {}, 'add a column jid, or name the columns.*option..key"'),
        ({"jid": "string"}, {}, "the frame has no column kind"),
        (WHOLE, {"key": "order"}, "key column order is not in the frame; it has jid, kind"),
        (WHOLE | {"order": "int"}, {"key": "order"}, "leave one of the two out"),
        (WHOLE | {"order": "int"}, {}, "column order is none of a job's"),
        (WHOLE | {"queue": "int"}, {}, "column queue is of type int; it must be string"),
        (WHOLE | {"at": "string"}, {}, "column at is of type string; it must be a timestamp, or seconds"),
        (WHOLE | {"tags": "string"}, {}, "column tags is of type string; it must be array<string>"),
        (WHOLE | {"priority": "string"}, {}, "column priority is of type string; it must be a number"),
        (WHOLE | {"retry": "double"}, {}, "column retry is of type double; it must be a whole number"),
        (WHOLE | {"custom": "int"}, {}, "column custom is of type int"),
        (WHOLE, {"retry": "often"}, "option retry = 'often' is not allowed"),
    ],
)
def test_a_frame_that_cannot_be_enqueued_is_refused(columns: dict[str, str], options: dict[str, str], why: str) -> None:
    with pytest.raises(BadFrame, match=why):
        plan(list(columns.items()), writing(options))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"port": "70000"}, "option port = 70000 is not allowed; it must be at most 65535"),
        ({"port": "redis"}, "option port = 'redis' is not allowed; it must be a whole number, at least 1"),
        ({"closed": "maybe"}, "option closed = 'maybe' is not allowed; it must be fail or skip"),
        ({"hots": "x"}, "option hots is unknown to write; the options are chunk, closed, host"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(BadOption, match=why):
        writing(options)


def sent(batch: pa.RecordBatch, columns: dict[str, str], run: str = "run", **options: str) -> list[Any]:
    given = writing(options)
    made = plan(list(columns.items()), given)
    return [spec for _, jobs in chunks(batch, made, run, given.chunk) for spec in specs(jobs)]


def test_every_column_becomes_a_field_of_the_job() -> None:
    columns = WHOLE | {
        "queue": "string", "args": "struct<a:int>", "priority": "int", "at": "timestamp", "retry": "int",
        "reserve_for": "bigint", "custom": "map<string,int>", "tags": "array<string>", "replayed_from": "string",
    }  # fmt: skip
    at = datetime(2030, 1, 1, tzinfo=UTC)
    kinds = {"at": pa.timestamp("us", "UTC"), "custom": pa.map_(pa.string(), pa.int32())}
    full = {
        "jid": "j", "kind": "k", "queue": "mail", "args": {"a": 1}, "priority": 3, "at": at, "retry": 0,
        "reserve_for": 60, "custom": [("x", 1)], "tags": ["red"], "replayed_from": "old",
    }  # fmt: skip
    nulls = dict.fromkeys(full) | {"jid": "n", "kind": "k"}
    arrays = {name: pa.array([full[name], nulls[name]], kinds.get(name)) for name in full}
    one, two = sent(pa.RecordBatch.from_pydict(arrays), columns)
    assert (one.jid, one.kind, one.queue, one.payload, one.priority, one.due) == (
        "j", "k", "mail", b'{"a":1}', 3, at.timestamp(),
    )  # fmt: skip
    assert (one.policy.max_failures, one.policy.lease_s) == (0, 60)
    assert (one.extra.custom, one.extra.tags, one.extra.replayed_from) == (b'{"x":1}', ("red",), "old")
    assert (two.jid, two.queue, two.payload, two.priority, two.due, two.extra) == ("n", "default", b"[]", 0, 0.0, None)
    assert two.policy.max_failures == 25


def test_args_of_all_types_become_json() -> None:
    for values, kind, payload in (
        (["[1]"], "string", b"[1]"),
        ([b"\xff"], "binary", b"\xff"),
        ([[1, 2]], "array<int>", b"[1,2]"),
        ([7], "int", b"7"),
        ([{"a": {"b": 1.5}}], "struct<a:struct<b:double>>", b'{"a":{"b":1.5}}'),
    ):
        batch = pa.RecordBatch.from_pydict({"jid": ["j"], "kind": ["k"], "args": values})
        [spec] = sent(batch, WHOLE | {"args": kind})
        assert spec.payload == payload


def test_constants_replace_missing_columns_and_nulls() -> None:
    batch = pa.RecordBatch.from_pydict({"jid": ["a", "b"]})
    found = sent(batch, {"jid": "string"}, kind="k", queue="mail", priority="4")
    assert [(each.kind, each.queue, each.priority) for each in found] == [("k", "mail", 4)] * 2


def test_ids_depend_only_on_the_run_and_the_key() -> None:
    columns = {"a": "int", "b": "string", "kind": "string"}
    whole = pa.RecordBatch.from_pydict({"a": [1, 1, 2], "b": ["x", "y", "x"], "kind": ["k"] * 3})
    ids = [each.jid for each in sent(whole, columns, key="a, b")]
    assert len(set(ids)) == 3
    assert all(len(each) == 32 for each in ids)
    assert [each.jid for each in sent(whole.slice(1), columns, key="a,b", chunk="1")] == ids[1:]
    assert not set(ids) & {each.jid for each in sent(whole, columns, run="other", key="a,b")}


@pytest.mark.parametrize(("column", "key"), [("jid", ""), ("kind", ""), ("order", "order")])
def test_a_null_in_a_required_column_is_refused(column: str, key: str) -> None:
    columns = ({"order": "string"} if key else {"jid": "string"}) | {"kind": "string"}
    batch = pa.RecordBatch.from_pydict({name: pa.array([None if name == column else "x"]) for name in columns})
    with pytest.raises(BadFrame, match=f"{column} is null"):
        sent(batch.cast(pa.schema([(name, pa.string()) for name in columns])), columns, key=key)


def test_requests_are_small() -> None:
    batch = pa.RecordBatch.from_pydict({"jid": ["j"], "kind": ["k"]})
    [(_, jobs)] = chunks(batch, plan(list(WHOLE.items()), writing({})), "run", 10)
    assert msgspec.msgpack.decode(jobs) == [["j", "default", "k"]]


def test_an_expired_run_is_not_treated_as_complete() -> None:
    with pytest.raises(RunClosed, match="idle for a week"):
        _refuse_ended("lapsed", "run", writing({"closed": "skip"}))
