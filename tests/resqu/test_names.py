"""Parsing of Resqu's keys. Names may contain colons, so kinds are recognised by their known start and end."""

import pytest

from crossdock.engine.resqu.queries import worker_set
from crossdock.protocols.redis.resqu.keys import KeyKind, KeyName, read_key

P = b"resqu-v4:"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (b"unassigned", KeyName(KeyKind.UNASSIGNED)),
        (b"static:queue:a:b", KeyName(KeyKind.POOL, b"a:b")),
        (b"static:queue:", KeyName(KeyKind.UNKNOWN)),
        (b"static:other", KeyName(KeyKind.UNKNOWN)),
        (b"committed", KeyName(KeyKind.PLAIN)),
        (b"committed:s:Import:54e3f968", KeyName(KeyKind.COMMITTED_BATCH, b"s:Import:54e3f968")),
        (b"uncommitted:s:Import:54e3f968", KeyName(KeyKind.UNCOMMITTED_BATCH, b"s:Import:54e3f968")),
        (b"uncommitted", KeyName(KeyKind.UNKNOWN)),
        (b"unique:a:state:state", KeyName(KeyKind.STATE, b"a:state")),
        (b"unique:a:deferred", KeyName(KeyKind.DEFERRED, b"a")),
        (b"unique:a", KeyName(KeyKind.UNKNOWN)),
        (b"unique::state", KeyName(KeyKind.UNKNOWN)),
        (b"delayed:17", KeyName(KeyKind.DELAYED, b"17")),
        (b"delayed_queue_schedule", KeyName(KeyKind.DELAYED_TIMES)),
        (b"plan:s_1", KeyName(KeyKind.PLAN, b"s_1")),
        (b"plan_schedule", KeyName(KeyKind.PLAN_TIMES)),
        (b"plan_schedule:17", KeyName(KeyKind.PLANS_AT, b"17")),
        (b"plan_list:s", KeyName(KeyKind.PLANS_OF, b"s")),
        (b"allocator:n:job-1", KeyName(KeyKind.ALLOCATOR, b"n:job-1")),
        (b"worker:n~p~s~1", KeyName(KeyKind.WORKER, b"n~p~s~1")),
        (b"worker:n~p~s~1:runtime", KeyName(KeyKind.PLAIN, b"n~p~s~1")),
        (b"job:1:status", KeyName(KeyKind.STATUS, b"1")),
        (b"process:n:pool:p", KeyName(KeyKind.PROCESSES, b"n:pool:p")),
        (b"pool:p:unit_queues", KeyName(KeyKind.PLAIN, b"p:unit_queues")),
        (b"nothing", KeyName(KeyKind.UNKNOWN)),
        (b"", KeyName(KeyKind.UNKNOWN)),
    ],
)
def test_a_key_has_a_kind_and_a_name(key: bytes, name: KeyName) -> None:
    assert read_key(P + key) == name


def test_a_key_without_the_prefix_is_unknown() -> None:
    assert read_key(b"123456789unassigned") == read_key(b"") == KeyName(KeyKind.UNKNOWN)


def test_the_process_set_of_a_worker_follows_from_its_id() -> None:
    assert worker_set(b"nodeA~a~b~s~4835") == b"resqu-v4:process:nodeA:pool:a~b"
