"""What one call may ask for, and what callers may leave behind: each has a bound, told in words."""

import time
from typing import Final

import pytest

from crossdock.wire.redis.qless import cjson
from tests.qless.replay import QlessDesk

#: What these took before they were bounded was ten times as much, or grew with the square of a larger request.
SOON_S: Final = 5.0


def put(desk: QlessDesk, jid: str, *more: str, data: str = "{}") -> None:
    desk.call("put", "1", "w", "q", jid, "klass", data, "0", *more)


def test_a_number_without_an_end_is_passed_over_once() -> None:
    begun = time.perf_counter()
    with pytest.raises(cjson.Malformed, match="found invalid token at character 400005"):
        cjson.read(f"[0x1{'f' * 400_000}z]")
    assert time.perf_counter() - begun < SOON_S


@pytest.mark.parametrize("part", ["0,", "[],", r'"\n\n",'])
def test_what_is_not_strict_json_may_have_so_many_parts(part: str) -> None:
    few, many = (f"[0x1,{part * count}0]" for count in (10_000, 100_000))
    assert len(cjson.read(few)) == 10_002
    with pytest.raises(cjson.Malformed, match="more than 50000 parts in a text that is not strict JSON"):
        cjson.read(many)
    assert len(cjson.read(many.replace("0x1", "1"))) == 100_002
