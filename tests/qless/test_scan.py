"""SCAN of the qless view returns every key once, also while jobs change between the calls."""

from collections.abc import Callable
from typing import Any

from crossdock.model.commands.core import DrawNumbers
from tests.support.qless_connection import QlessConnection, T
from tests.support.resp_values import read


def value(reply: bytes) -> Any:
    """Parse a RESP2 reply of strings and arrays."""
    (found,) = read(reply)
    return _text(found)


def _text(found: Any) -> Any:
    return [_text(each) for each in found] if isinstance(found, list) else found.decode()


def scanned(qless: QlessConnection, *options: str, between: Callable[[], None] = lambda: None) -> list[str]:
    """All keys of a complete scan."""
    found: list[str] = []
    cursor = "0"
    while True:
        cursor, keys = value(qless.ask("SCAN", cursor, *options))
        found += keys
        if cursor == "0":
            return found
        between()


def test_a_scan_returns_every_key_once() -> None:
    qless = QlessConnection()
    assert scanned(qless) == []
    for n in range(60):
        qless.put(f"job-{n:03d}", "tags", f'["tag-{n % 7}"]')
        qless.ask("SET", f"plain-{n}", "1")
    qless.call("recur", T, "q", "every", "klass", "{}", "interval", "60", "30")
    qless.pop(20)
    qless.call("fail", T, "job-059", "w", "group", "message")
    qless.call("config.set", T, "heartbeat", "90")
    qless.ask("FCALL", "reqless", "0", "throttle.set", T, "few", "3", "0")
    everything = sorted(value(qless.ask("KEYS", "*")))
    assert len(everything) > 130
    for count in ("1", "7", "1000"):
        assert sorted(scanned(qless, "COUNT", count)) == everything
    assert sorted(scanned(qless, "MATCH", "ql:j:*1")) == [f"ql:j:job-{n:03d}" for n in range(1, 60, 10)]
    for kind in ("hash", "zset", "list", "set", "string"):
        named = [key for key in everything if qless.ask("TYPE", key) == f"+{kind}\r\n".encode()]
        assert named and sorted(scanned(qless, "TYPE", kind)) == named


def test_a_scan_returns_every_key_that_exists_throughout() -> None:
    """Jobs are added, removed and changed between the calls."""
    qless = QlessConnection()
    for n in range(200):
        qless.put(f"stays-{n:03d}")
        qless.put(f"goes-{n:03d}")
    step = iter(range(200))

    def change() -> None:
        n = next(step)
        qless.call("cancel", T, f"goes-{199 - n:03d}")
        qless.put(f"comes-{n:03d}")
        qless.call("priority", T, f"stays-{n:03d}", "5")

    found = scanned(qless, "COUNT", "9", "MATCH", "ql:j:*", between=change)
    assert len(found) == len(set(found))
    assert {f"ql:j:stays-{n:03d}" for n in range(200)} <= set(found)


def test_a_scan_skips_unused_numbers() -> None:
    qless = QlessConnection()
    qless.put("old")
    qless.dispatcher.do(DrawNumbers(10_000_000))
    qless.put("new")
    qless.dispatcher.do(DrawNumbers(10_000_000))
    assert scanned(qless, "COUNT", "1", "MATCH", "ql:j:*") == ["ql:j:old", "ql:j:new"]


def test_a_cursor_past_the_end_ends_the_scan() -> None:
    qless = QlessConnection()
    qless.put("a")
    for cursor in (2**32, 2**55, 2**56 + 2**54, 2**56 + 2**55 + 2**48 + 1, 2**57, 2**62):
        assert value(qless.ask("SCAN", str(cursor)))[0] == "0"
