"""Keys under the prefix: names may hold colons, so they are told from their known ends."""

import pytest

from crossdock.engine.resqu.queries import worker_set
from crossdock.protocols.redis.resqu.keys import Kind, Name, read

P = b"resqu-v4:"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (b"unassigned", Name(Kind.UNASSIGNED)),
        (b"static:queue:a:b", Name(Kind.POOL, b"a:b")),
        (b"static:queue:", Name(Kind.UNKNOWN)),
        (b"static:other", Name(Kind.UNKNOWN)),
        (b"committed", Name(Kind.PLAIN)),
        (b"committed:s:Import:54e3f968", Name(Kind.BATCH, b"s:Import:54e3f968")),
        (b"uncommitted:s:Import:54e3f968", Name(Kind.STAGE, b"s:Import:54e3f968")),
        (b"uncommitted", Name(Kind.UNKNOWN)),
        (b"unique:a:state:state", Name(Kind.STATE, b"a:state")),
        (b"unique:a:deferred", Name(Kind.DEFERRED, b"a")),
        (b"unique:a", Name(Kind.UNKNOWN)),
        (b"unique::state", Name(Kind.UNKNOWN)),
        (b"delayed:17", Name(Kind.DELAYED, b"17")),
        (b"delayed_queue_schedule", Name(Kind.DELAYED_TIMES)),
        (b"plan:s_1", Name(Kind.PLAN, b"s_1")),
        (b"plan_schedule", Name(Kind.PLAN_TIMES)),
        (b"plan_schedule:17", Name(Kind.PLANS_AT, b"17")),
        (b"plan_list:s", Name(Kind.PLANS_OF, b"s")),
        (b"allocator:n:job-1", Name(Kind.ALLOCATOR, b"n:job-1")),
        (b"worker:n~p~s~1", Name(Kind.WORKER, b"n~p~s~1")),
        (b"worker:n~p~s~1:runtime", Name(Kind.PLAIN, b"n~p~s~1")),
        (b"job:1:status", Name(Kind.STATUS, b"1")),
        (b"process:n:pool:p", Name(Kind.PROCESSES, b"n:pool:p")),
        (b"pool:p:unit_queues", Name(Kind.PLAIN, b"p:unit_queues")),
        (b"nothing", Name(Kind.UNKNOWN)),
        (b"", Name(Kind.UNKNOWN)),
    ],
)
def test_each_kind_of_key(key: bytes, name: Name) -> None:
    assert read(P + key) == name


def test_a_key_of_somebody_else() -> None:
    assert read(b"123456789unassigned") == read(b"") == Name(Kind.UNKNOWN)


def test_the_set_a_worker_is_in() -> None:
    assert worker_set(b"nodeA~a~b~s~4835") == b"resqu-v4:process:nodeA:pool:a~b"
