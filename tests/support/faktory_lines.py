"""Hypothesis strategies for the input of a Faktory client: valid lines, corrupted lines and random bytes."""

import json
from typing import Any

from hypothesis import strategies as st

JIDS = ("12345678", "abcdefgh", "ääää")
QUEUES = ("default", "q", "")
WIDS = ("w1", "w2")
BIDS = ("b-00000000000001", "b-00000000000002", "b-\r\n+x")

_anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*JIDS, *QUEUES, *WIDS, "quiet", "2026-11-15T17:55:46Z", "2027-01-01T00:00:00Z", "kill", "dead"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)

_jid, _queue, _wid = st.sampled_from(JIDS), st.sampled_from(QUEUES[:2]), st.sampled_from(WIDS)
_time = st.sampled_from(["", "2026-11-15T17:55:46Z", "2000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "now"])

#: Keys of `custom` that the server reads.
_custom = st.fixed_dictionaries(
    {},
    optional={
        "bid": st.sampled_from(BIDS),
        "track": st.sampled_from([0, 1, True, "1"]),
        "unique_for": st.floats(-1, 100) | st.integers(0, 10),
        "unique_until": st.sampled_from(["start", "success", "never"]),
        "expires_in": st.floats(-1, 100),
        "expires_at": _time,
    },
)


def _callback(jid: str | None, queue: str) -> dict[str, Any]:
    return {"jobtype": "C", "args": [], "queue": queue} | ({"jid": jid} if jid else {})


#: Fields of each command's body with valid values. Every field except the first is optional.
BODIES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "HELLO": {"v": st.just(2), "wid": _wid, "hostname": st.just("h"), "pid": st.just(1), "labels": st.just(["l"])},
    "PUSH": {
        "jid": _jid,
        "jobtype": st.just("T"),
        "args": st.lists(_anything, max_size=2),
        "queue": _queue,
        "priority": st.integers(-1, 11),
        "retry": st.integers(-1, 2),
        "reserve_for": st.integers(-1, 86_401),
        "at": _time,
        "created_at": _time,
        "backtrace": st.integers(0, 3),
        "custom": st.dictionaries(st.text(max_size=2), _anything, max_size=2) | _custom,
        "failure": st.fixed_dictionaries(
            {}, optional={"failed_at": _time, "next_at": _time, "retry_count": st.integers(-1, 2**62)}
        ),
    },
    "ACK": {"jid": _jid},
    "FAIL": {"jid": _jid, "message": st.text(), "errtype": st.text(), "backtrace": st.lists(st.text(), max_size=2)},
    "BEAT": {"wid": _wid, "rss_kb": st.integers(0, 9), "current_state": st.sampled_from(["quiet", "terminate", "x"])},
    "TRACK SET": {"jid": _jid, "percent": st.integers(-1, 101), "desc": st.text(max_size=3), "reserve_until": _time},
    "BATCH NEW": {
        "success": st.builds(_callback, _jid | st.none(), _queue),
        "complete": st.builds(_callback, _jid | st.none(), _queue),
        "description": st.text(max_size=3),
        "parent_bid": st.sampled_from(BIDS),
    },
    "MUTATE": {
        "cmd": st.sampled_from(["clear", "kill", "discard", "requeue"]),
        "target": st.sampled_from(["retries", "scheduled", "dead"]),
        "filter": st.fixed_dictionaries(
            {},
            optional={
                "jids": st.lists(_jid, max_size=3),
                "regexp": st.text("*?[a]^-\\T", max_size=6),
                "jobtype": st.just("T"),
            },
        ),
    },
}


def _text(value: Any) -> bytes:
    """JSON as Python writes it: it may contain NaN and lone surrogates, as a client's may."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


@st.composite
def _valid(draw: st.DrawFn, verb: str) -> dict[str, Any]:
    fields = BODIES[verb]
    body: dict[str, Any] = draw(st.fixed_dictionaries({}, optional=fields))
    # Identifying fields are always present, so that most lines reach the engine.
    for name in list(fields)[:3] if verb == "PUSH" else list(fields)[:2] if verb == "MUTATE" else list(fields)[:1]:
        body.setdefault(name, draw(fields[name]))
    return body


@st.composite
def _invalid(draw: st.DrawFn, verb: str) -> Any:
    """A valid body with one field of another type, or a different body."""
    body = draw(_valid(verb))
    name = draw(st.sampled_from([*BODIES[verb], "extra"]))
    return draw(st.just(body | {name: draw(_anything)}) | _anything)


def _body(verb: str) -> st.SearchStrategy[bytes]:
    return (_valid(verb) | _valid(verb) | _invalid(verb)).map(_text)


@st.composite
def _corrupted(draw: st.DrawFn, line: bytes) -> bytes:
    """The line with a part replaced by other bytes."""
    at = draw(st.integers(0, len(line)))
    return line[:at] + draw(st.binary(max_size=3)) + line[at + draw(st.integers(0, 4)) :]


def _with_body(verb: str) -> st.SearchStrategy[bytes]:
    return _body(verb).map(lambda body: verb.encode() + b" " + body)


_bulk = st.lists(_body("PUSH"), max_size=3).map(lambda jobs: b"PUSHB [" + b",".join(jobs) + b"]")
_names = st.lists(st.sampled_from(QUEUES), max_size=3).map(lambda names: "".join(" " + name for name in names).encode())
_words = st.sampled_from(
    [b"INFO", b"FLUSH", b"TRACK GET 12345678", b"FETCH", b"PUSH", b"ACK", b"QUEUE", b"", b"HELLO {}"]
)
_batch = st.builds(
    lambda sub, bid: b"BATCH " + sub + b" " + bid.encode(),
    st.sampled_from([b"OPEN", b"COMMIT", b"COMMIT", b"STATUS", b"X"]),
    st.sampled_from(BIDS[:2]),
)
_queues = st.builds(
    lambda sub, names: b"QUEUE " + sub + names,
    st.sampled_from([b"PAUSE", b"RESUME", b"REMOVE", b"latency", b"X"]),
    _names | st.just(b" *"),
)
_fetch = _names.map(lambda names: b"FETCH" + names)

#: Lines that a client may send on purpose.
sound_lines = st.one_of(
    *(_with_body(verb) for verb in BODIES if verb != "HELLO"),
    _with_body("PUSH"),
    _fetch,
    _fetch,
    _bulk,
    _queues,
    _batch,
    _words,
)
hellos = _with_body("HELLO")
#: Any line. END occurs only among the random bytes.
lines = st.one_of(
    sound_lines,
    sound_lines,
    sound_lines.flatmap(_corrupted),
    st.binary(max_size=12).filter(lambda line: b"\n" not in line),
)
