"""A strict reader of RESP2 and RESP3 replies. Returns Python values; raises AssertionError if malformed."""

from typing import Any


def read(data: bytes) -> list[Any]:
    """All replies in the data."""
    found = []
    at = 0
    while at < len(data):
        value, at = _one(data, at)
        found.append(value)
    return found


def _one(data: bytes, at: int) -> tuple[Any, int]:
    end = data.find(b"\r\n", at)
    assert end >= 0, f"a line without CRLF: {data[at:]!r}"
    kind, rest = data[at : at + 1], data[at + 1 : end]
    assert b"\r" not in rest and b"\n" not in rest, f"a stray CR or LF: {rest!r}"
    at = end + 2
    match kind:
        case b"+":
            return ("simple", rest), at
        case b"-":
            assert rest.partition(b" ")[0].isupper(), f"an error begins with its code: {rest!r}"
            return ("error", rest), at
        case b":":
            return int(rest), at
        case b",":
            return float(rest), at
        case b"#":
            return {b"t": True, b"f": False}[rest], at
        case b"_":
            assert not rest
            return None, at
        case b"$" | b"=":
            if rest == b"-1":
                return None, at
            stop = at + int(rest)
            assert data[stop : stop + 2] == b"\r\n", f"not {rest!r} bytes and CRLF: {data[at:]!r}"
            return data[at:stop], stop + 2
        case b"*" | b">" | b"~":
            if rest == b"-1":
                return None, at
            return _several(data, at, int(rest))
        case b"%":
            items, at = _several(data, at, 2 * int(rest))
            return dict(zip(items[::2], items[1::2], strict=True)), at
    raise AssertionError(f"not a RESP type: {data[at:]!r}")


def _several(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(count):
        item, at = _one(data, at)
        items.append(item)
    return items, at
