"""The load on the Faktory listener: PUSH, FETCH and ACK in phases, and PUSHB beside another connection's PUSH."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from bench.figures import Run, figures
from bench.lane import Lane, Phase
from bench.replies import Unexpected, a_bulk, exactly

BULK_JOBS: Final = 1_000

_ARGS: Final = b'[1,"string",3]'
_CUSTOM: Final = b'{"a":"%b"}' % (b"x" * 60)
#: Bytes of the payload, which are not overhead of the server.
PAYLOAD_BYTES: Final = len(_ARGS) + len(_CUSTOM)

_OK: Final = exactly(b"+OK\r\n")
_NONE_REFUSED: Final = exactly(b"$2\r\n{}\r\n")


class _Fetched(msgspec.Struct):
    """The fields that a FETCH must return as they were pushed. Upstream drops the priority."""

    jid: str
    jobtype: str
    queue: str
    args: msgspec.Raw
    custom: msgspec.Raw
    retry: int
    reserve_for: int
    priority: int | None = None


_decode = msgspec.json.Decoder(_Fetched).decode


def job_text(queue: bytes) -> bytes:
    """A PUSH line with a placeholder for the jid."""
    return (
        b'{"jid":"%%b","jobtype":"SomeJob","queue":"%b","args":%b,"priority":5,"retry":25,"reserve_for":1800,'
        b'"custom":%b}' % (queue, _ARGS, _CUSTOM)
    )


class FaktoryLoad:
    def __init__(self, lanes: Sequence[Lane], queue: str) -> None:
        self._lanes = lanes
        self._queue = queue
        self._job = job_text(queue.encode())
        self._waiting: set[str] = set()  #: jids that were pushed and not fetched

    async def step(self, name: str, size: int) -> Run:
        match name:
            case "push":
                return await self._push(size)
            case "phases":
                return await self._push(size, ahead=True) | await self._work(size)
            case "bulk":
                return await self._bulk(size)
            case "clear":
                return await self._clear()
        raise ValueError(f"no such step: {name}")

    async def _push(self, jobs: int, *, ahead: bool = False) -> Run:
        """`ahead`: make all requests before the clock starts. For a million requests this takes too much memory."""
        jids = _jids(jobs)
        requests = map(self._push_line, jids)
        phase = Phase(list(requests) if ahead else requests, _OK)
        seconds = await phase.run(self._lanes)
        self._waiting.update(jids)
        return {"PUSH": figures(jobs, seconds, phase.took)}

    async def _work(self, jobs: int) -> Run:
        fetch = Phase([b"FETCH %b\r\n" % self._queue.encode()] * jobs, a_bulk, keep=True)
        fetch_s = await fetch.run(self._lanes)
        # Newest first, as the load program of the yardstick does.
        jids = [self._fetched(reply) for reply in reversed(fetch.replies)]
        ack = Phase([b'ACK {"jid":"%b"}\r\n' % jid.encode() for jid in jids], _OK)
        ack_s = await ack.run(self._lanes)
        return {"FETCH": figures(jobs, fetch_s, fetch.took), "ACK": figures(jobs, ack_s, ack.took)}

    def _fetched(self, reply: bytes) -> str:
        """The jid of a fetched job. Checks that it was pushed, is unchanged, and was not fetched before."""
        try:
            job = _decode(reply[reply.index(b"\n") + 1 : -2])
        except msgspec.DecodeError as error:
            raise Unexpected(f"{error} in {reply[:160]!r}") from error
        same = (
            job.jobtype == "SomeJob"
            and job.queue == self._queue
            and bytes(job.args) == _ARGS
            and bytes(job.custom) == _CUSTOM
            and (job.retry, job.reserve_for) == (25, 1_800)
            and job.priority in (None, 5)
        )
        if not same:
            raise Unexpected(f"not the job that was pushed: {reply!r}")
        if job.jid not in self._waiting:
            raise Unexpected(f"a job that was not pushed, or was fetched before: {reply!r}")
        self._waiting.remove(job.jid)
        return job.jid

    async def _bulk(self, calls: int) -> Run:
        """PUSHB of 1,000 jobs on one connection, while another connection measures the wait of a single PUSH."""
        bulk = Phase([self._bulk_line() for _ in range(calls)], _NONE_REFUSED)
        beside = Phase(self._until_over(bulk), _OK)
        bulk_s, beside_s = await asyncio.gather(bulk.run(self._lanes[:1]), beside.run(self._lanes[1:2]))
        return {
            "PUSHB": figures(calls * BULK_JOBS, bulk_s, bulk.took),
            "PUSH beside": figures(len(beside.took), beside_s, beside.took),
        }

    def _until_over(self, other: Phase) -> Iterator[bytes]:
        while not other.over:
            yield from map(self._push_line, _jids(1))

    def _push_line(self, jid: str) -> bytes:
        return b"PUSH " + self._job % jid.encode() + b"\r\n"

    def _bulk_line(self) -> bytes:
        return b"PUSHB [" + b",".join([self._job % jid.encode() for jid in _jids(BULK_JOBS)]) + b"]\r\n"

    async def _clear(self) -> Run:
        """Remove all jobs of this load from an external server."""
        await Phase([b"QUEUE REMOVE %b\r\n" % self._queue.encode()], _OK).run(self._lanes[:1])
        self._waiting.clear()
        return {}


def _jids(count: int) -> list[str]:
    """Random jids, as clients make them. Ordered jids would need less memory in the server."""
    digits = os.urandom(16 * count).hex()
    return [digits[at : at + 32] for at in range(0, len(digits), 32)]
