"""The calls of workers: to lease jobs, to settle them, and to renew leases."""

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from crossdock.client.call import (
    MANY,
    WAIT_S,
    Call,
    fixed,
    json_line,
    needing,
    plain_word,
    read_json,
    read_true,
    unexpected,
)
from crossdock.client.errors import Broken, Unsupported
from crossdock.client.jobs import FetchedJob
from crossdock.client.wire import OK, Features, Reply

#: Seconds that a FETCH of a plain server waits.
PLAIN_WAIT_S: Final = 2.0
#: Bytes of the results in one ACKB.
ACK_BYTES: Final = 4 * 1024 * 1024

_fetched_one: Final = msgspec.json.Decoder(FetchedJob).decode
_fetched: Final = msgspec.json.Decoder(list[FetchedJob]).decode


def fetch(
    queues: Sequence[str], count: int, wait_s: float, lease_s: float | None, order: Literal["ordered", "random"]
) -> Call[list[FetchedJob]]:
    """On a plain server one job at a time, which waits for up to 2 s."""
    if not queues:
        raise ValueError("fetch needs the name of a queue")
    wait_s = min(wait_s, WAIT_S)

    def line(features: Features) -> bytes:
        if "fetch-many" in features.extensions:
            body: dict[str, Any] = {
                "queues": queues, "count": min(count, features.fetch_many), "wait_s": wait_s, "order": order
            }  # fmt: skip
            if lease_s is not None:
                body["lease_s"] = lease_s
            return json_line(b"FETCHB", body)
        if lease_s is not None:
            raise Unsupported("leases", "fetch with lease_s")
        words = [plain_word("queue", each) for each in queues]
        if order == "random":
            random.shuffle(words)
        return b"FETCH %b\r\n" % b" ".join(words)

    return Call(line, _jobs, max(wait_s, PLAIN_WAIT_S))


def _jobs(reply: Reply, repeated: bool) -> list[FetchedJob]:
    if reply.mark != "$":
        raise unexpected(reply)
    body = reply.body
    if body is None:
        return []
    try:
        if body.startswith(b"["):
            return _fetched(body)
        job = _fetched_one(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(f"invalid reply from the server: {error}") from error
    if job.failure is not None:  # a plain server does not count leases
        job = msgspec.structs.replace(job, attempt=job.failure.retry_count + 2)
    return [job]


class _Ack(msgspec.Struct, omit_defaults=True):
    jid: str
    result: msgspec.Raw | None = None


class _Acked(msgspec.Struct):
    refused: dict[str, str] = {}


def ack_portions(
    jobs: Sequence[tuple[str, bytes | None]], features: Features
) -> Iterator[list[tuple[str, bytes | None]]]:
    """The jobs of each request: one on a plain server, otherwise as many as fit."""
    most = MANY if "settle-many" in features.extensions else 1
    some: list[tuple[str, bytes | None]] = []
    size = 0
    for job in jobs:
        more = len(job[1] or b"")
        if some and (len(some) == most or size + more > ACK_BYTES):
            yield some
            some, size = [], 0
        some.append(job)
        size += more
    if some:
        yield some


def ack(jobs: Sequence[tuple[str, bytes | None]]) -> Call[dict[str, str]]:
    """At most 1,000 jobs; one on a plain server. A repeated call cannot tell whether its first try was executed, and
    returns no refusals."""
    body = [_Ack(jid, None if result is None else msgspec.Raw(result)) for jid, result in jobs]

    def line(features: Features) -> bytes:
        if "settle-many" in features.extensions:
            return json_line(b"ACKB", body)
        if len(body) > 1:
            raise Unsupported("settle-many", "ack of many jobs")
        return json_line(b"ACK", {"jid": body[0].jid})

    def read(reply: Reply, repeated: bool) -> dict[str, str]:
        if reply is OK:
            return {}
        refused: dict[str, str] = read_json(reply, _Acked).refused
        return {} if repeated else refused

    return Call(line, read)


def fail(jid: str, kind: str, message: str, backtrace: Sequence[str], final: bool, delay_s: float | None) -> Call[bool]:
    body: dict[str, Any] = {"jid": jid, "errtype": kind, "message": message}
    if backtrace:
        body["backtrace"] = backtrace
    if final:
        body["final"] = True
    if delay_s is not None:
        body["delay_s"] = delay_s
    line = json_line(b"FAIL", body)
    how = needing("settle-many", "fail with final or delay_s", line) if final or delay_s is not None else fixed(line)
    return Call(how, read_true, no_lease=bool)


def snooze(jid: str, delay_s: float, reason: str) -> Call[bool]:
    line = json_line(b"SNOOZE", {"jid": jid, "delay_s": delay_s, "reason": reason})
    return Call(needing("leases", "snooze", line), read_true, no_lease=bool)


class _Extended(msgspec.Struct):
    lost: list[str] = []


def extend(wid: str, jids: Sequence[str], lease_s: float) -> Call[list[str]]:
    """Without a wid only the connection that has fetched a job could renew its lease."""
    if not wid:
        raise ValueError("extend is for workers; give the client a wid")
    line = json_line(b"EXTEND", {"jids": jids, "lease_s": lease_s})
    return Call(needing("leases", "extend", line), lambda reply, _: read_json(reply, _Extended).lost)


class _State(msgspec.Struct):
    state: str = ""


def beat(wid: str, state: str, rss_kb: int) -> Call[str]:
    if not wid:
        raise ValueError("beat is for workers; give the client a wid")
    body: dict[str, Any] = {"wid": wid}
    if state:
        body["current_state"] = state
    if rss_kb:
        body["rss_kb"] = rss_kb

    def read(reply: Reply, repeated: bool) -> str:
        return "" if reply is OK else read_json(reply, _State).state

    return Call(fixed(json_line(b"BEAT", body)), read)
