"""SCAN of the keys that qless' scripts would keep: all of them, each once, whatever happens between the calls."""

from collections.abc import Callable
from typing import Any

from crossdock.model.commands.core import DrawNumbers
from tests.support.qless_connection import QlessConnection, T
from tests.support.resp_values import read


def value(reply: bytes) -> Any:
    """Of texts and lists of them."""
    (found,) = read(reply)
    return _text(found)


def _text(found: Any) -> Any:
    return [_text(each) for each in found] if isinstance(found, list) else found.decode()


def scanned(house: QlessConnection, *options: str, between: Callable[[], None] = lambda: None) -> list[str]:
    """All keys of a scan, call after call."""
    found: list[str] = []
    cursor = "0"
    while True:
        cursor, keys = value(house.ask("SCAN", cursor, *options))
        found += keys
        if cursor == "0":
            return found
        between()


def test_a_scan_returns_every_key_once() -> None:
    house = QlessConnection()
    assert scanned(house) == []
    for n in range(60):
        house.put(f"job-{n:03d}", "tags", f'["tag-{n % 7}"]')
        house.ask("SET", f"plain-{n}", "1")
    house.call("recur", T, "q", "every", "klass", "{}", "interval", "60", "30")
    house.pop(20)
    house.call("fail", T, "job-059", "w", "group", "message")
    house.call("config.set", T, "heartbeat", "90")
    house.ask("FCALL", "reqless", "0", "throttle.set", T, "few", "3", "0")
    everything = sorted(value(house.ask("KEYS", "*")))
    assert len(everything) > 130
    for count in ("1", "7", "1000"):
        assert sorted(scanned(house, "COUNT", count)) == everything
    assert sorted(scanned(house, "MATCH", "ql:j:*1")) == [f"ql:j:job-{n:03d}" for n in range(1, 60, 10)]
    for kind in ("hash", "zset", "list", "set", "string"):
        named = [key for key in everything if house.ask("TYPE", key) == f"+{kind}\r\n".encode()]
        assert named and sorted(scanned(house, "TYPE", kind)) == named


def test_a_scan_misses_nothing_that_stays() -> None:
    """Jobs come, go and change their state between its calls."""
    house = QlessConnection()
    for n in range(200):
        house.put(f"stays-{n:03d}")
        house.put(f"goes-{n:03d}")
    step = iter(range(200))

    def change() -> None:
        n = next(step)
        house.call("cancel", T, f"goes-{199 - n:03d}")
        house.put(f"comes-{n:03d}")
        house.call("priority", T, f"stays-{n:03d}", "5")

    found = scanned(house, "COUNT", "9", "MATCH", "ql:j:*", between=change)
    assert len(found) == len(set(found))
    assert {f"ql:j:stays-{n:03d}" for n in range(200)} <= set(found)


def test_a_scan_goes_over_numbers_that_are_nobody_s() -> None:
    house = QlessConnection()
    house.put("old")
    house.dispatcher.do(DrawNumbers(10_000_000))
    house.put("new")
    house.dispatcher.do(DrawNumbers(10_000_000))
    assert scanned(house, "COUNT", "1", "MATCH", "ql:j:*") == ["ql:j:old", "ql:j:new"]


def test_a_cursor_of_nowhere_is_the_end() -> None:
    house = QlessConnection()
    house.put("a")
    for cursor in (2**32, 2**55, 2**56 + 2**54, 2**56 + 2**55 + 2**48 + 1, 2**57, 2**62):
        assert value(house.ask("SCAN", str(cursor)))[0] == "0"
