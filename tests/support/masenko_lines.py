"""Hypothesis strategies for the input of a Masenko client: valid lines, corrupted lines and random bytes."""

import json
from typing import Any

from hypothesis import strategies as st

_anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_queue = st.sampled_from(["default", "q", "", "é<", "!"])
_id = st.integers(1, 8)
_time = st.sampled_from(["2026-11-15T17:55:46Z", "2000-01-01T00:00:00+01:00", "9999-12-31T23:59:59.9Z", "now", ""])

_BODIES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "PUSH": {
        "name": st.sampled_from(["a", "b", "n<&>", "", "a" * 256]),
        "queue": _queue,
        "deadqueue": _queue,
        "payload": _anything,
        "retry": st.integers(-1, 2) | st.just(255),
        "execute_at": _time,
        "blocked_by": st.lists(st.integers(-3, 8), max_size=3),
    },
    "FETCH": {
        "queues": st.lists(_queue, max_size=3),
        "timeout": st.sampled_from([1, 0, "1s", "300ms", "45s", "46s", ".5s", "x"]),
    },
    "ACK": {"id": _id},
    "NACK": {"id": _id},
}


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


@st.composite
def _body(draw: st.DrawFn, verb: str) -> bytes:
    fields = _BODIES[verb]
    body: dict[str, Any] = draw(st.fixed_dictionaries({}, optional=fields))
    first = next(iter(fields))
    body.setdefault(first, draw(fields[first]))
    spoil = draw(st.integers(0, 9))
    if spoil == 0:
        body[draw(st.sampled_from([*fields, "extra"]))] = draw(_anything)
    elif spoil == 1:
        body = {key.upper(): value for key, value in body.items()}
    return _text(body if spoil != 2 else draw(_anything))


def _with_body(verb: str) -> st.SearchStrategy[bytes]:
    spelled = st.sampled_from([verb, verb, verb.lower()])
    return st.builds(lambda spelling, body: spelling.encode() + b" " + body, spelled, _body(verb))


@st.composite
def _corrupted(draw: st.DrawFn, line: bytes) -> bytes:
    at = draw(st.integers(0, len(line)))
    return line[:at] + draw(st.binary(max_size=3)) + line[at + draw(st.integers(0, 4)) :]


_words = st.sampled_from([b"PING", b"INFO", b"FETCH", b"ATOMIC", b"DONE", b"ATOMIC ", b"DONE {}", b"", b"PUSH", b"ACK"])
_sound = st.one_of(*(_with_body(verb) for verb in _BODIES), _with_body("PUSH"), _with_body("FETCH"), _words)

#: Any line. QUIT occurs only among the random bytes.
lines = st.one_of(
    _sound, _sound, _sound.flatmap(_corrupted), st.binary(max_size=12).filter(lambda line: b"\n" not in line)
).filter(lambda line: b"\n" not in line)
