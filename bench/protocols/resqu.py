"""The load of a Resqu client on the Redis listener: jobs, one large batch, and plans that are all due in one second."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from bench.faktory import job_text
from bench.figures import Run, figures
from bench.lane import Lane, Phase
from bench.protocols.phases import PAYLOAD
from bench.replies import Unexpected, exactly, wrong

_INIT: Final = b"05d3317f882a369c1e0e4fb5c8c4c9a36aa05565"
_COMMIT: Final = b"989a65da06a228c7cf82f6856b13a9db90ddcbc8"
_INSERT: Final = b"1277edc1645a391ac7c09501f12242426da7fda4"
_P: Final = b"resqu-v4:"

#: Seconds before the due time in which plans are made, and seconds after it in which delays are measured.
_AHEAD_S: Final = 4.0
_AFTER_S: Final = 2.0

#: If making them takes longer, the next try has twice the time, up to this.
_AHEAD_AT_MOST_S: Final = 240.0

#: Limit until all of them are enqueued.
_LATE_S: Final = 120.0


def request(*parts: bytes) -> bytes:
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def a_number(data: bytes) -> bool:
    """`:n`, more than 0."""
    if data[:1] != b":" or data[1:2] == b"0":
        raise wrong(data)
    return data.endswith(b"\r\n")


def a_length(data: bytes) -> bool:
    if data[:1] != b":":
        raise wrong(data)
    return data.endswith(b"\r\n")


class ResquLoad:
    def __init__(self, lanes: Sequence[Lane], queue: str, beside: Lane | None = None) -> None:
        self._lanes = lanes
        self._beside = beside  #: a connection to the same server's Faktory listener
        self._source = queue.encode()
        self._numbers = count(1)

    def _job(self, name: bytes = b"Bench") -> bytes:
        ident = b"%b%016x" % (self._source, next(self._numbers))
        return b'{"class":"Bench\\\\Job","sourceId":"%b","name":"%b","args":{"x":"%b"},"id":"%b","queue_time":%.6f}' % (
            self._source,
            name,
            PAYLOAD,
            ident,
            time.time(),
        )

    async def step(self, name: str, size: int) -> Run:
        if name == "enqueue":
            return await self._enqueue(size)
        if name == "batch":
            return await self._batch(size)
        if name == "plans":
            return await self._plans(size)
        raise ValueError(f"no such step: {name}")

    def enqueues(self, size: int) -> list[bytes]:
        return [request(b"LPUSH", _P + b"unassigned", self._job()) for _ in range(size)]

    def batch(self, size: int) -> tuple[list[bytes], list[bytes], bytes, bytes]:
        """The requests that open a batch, fill it with `size` jobs, commit it and read its length."""
        batch = b"%b:Import:%08x" % (self._source, next(self._numbers))
        open_, done = b"%buncommitted:%b" % (_P, batch), b"%bcommitted:%b" % (_P, batch)
        opening = [
            request(b"EVALSHA", _INIT, b"1", open_, self._job(b"Import")),
            request(b"EXPIRE", open_, b"600"),
        ]
        pushes = [request(b"LPUSHX", open_, self._job(b"Import")) for _ in range(size - 1)]
        commit = request(b"EVALSHA", _COMMIT, b"3", _P + b"committed", done, open_, batch)
        return opening, pushes, commit, request(b"LLEN", done)

    def plans(self, size: int, at: int, first: int = 0) -> list[bytes]:
        return [self._plan(self._name(first, number), at) for number in range(size)]

    async def _enqueue(self, size: int) -> Run:
        phase = Phase(self.enqueues(size), a_number)
        return {"enqueue": figures(size, await phase.run(self._lanes), phase.took)}

    async def _batch(self, size: int) -> Run:
        """One batch, pushed to by all connections, then committed by one."""
        one = self._lanes[:1]
        opening, pushes, commit, length = self.batch(size)
        await Phase(opening, exactly(b":1\r\n")).run(one)
        pushing = Phase(pushes, a_number)
        pushed_s = await pushing.run(self._lanes)
        committing = Phase([commit], a_number)
        commit_s = await committing.run(one)
        await Phase([length], exactly(b":%d\r\n" % size)).run(one)
        return {
            "batch push": figures(size - 1, pushed_s, pushing.took),
            "batch commit": figures(size, commit_s, committing.took),
        }

    async def _plans(self, size: int) -> Run:
        """All plans are due in the same second. Meanwhile one connection enqueues and another pushes through
        Faktory."""
        faktory = self._beside
        if faktory is None:
            raise ValueError("plans are measured beside a Faktory connection")
        at, before, made, made_s = await self._make(size)
        await asyncio.sleep(max(0.0, at - 0.5 - time.time()))
        beside = Phase(self._until(at + _AFTER_S), a_number)
        pushes = Phase(self._pushes_until(at + _AFTER_S), exactly(b"+OK\r\n"))
        beside_s, push_s = await asyncio.gather(beside.run(self._lanes[:1]), pushes.run([faktory]))
        while (there := await self._length() - before - len(beside.took)) < size:
            if time.time() > at + _LATE_S:
                raise Unexpected(f"of {size} plans only {there} had been enqueued {_LATE_S:.0f} s later")
            await asyncio.sleep(0.1)
        return {
            "plan create": figures(size, made_s, made.took),
            "enqueue while due": figures(len(beside.took), beside_s, beside.took),
            "Faktory PUSH while due": figures(len(pushes.took), push_s, pushes.took),
        }

    async def _make(self, size: int) -> tuple[int, int, Phase, float]:
        """Make plans that become due after all of them exist. Returns the due time, the jobs before it, the phase that
        made them, and its seconds."""
        ahead = _AHEAD_S
        while ahead <= _AHEAD_AT_MOST_S:
            first, before = next(self._numbers), await self._length()
            at = int(time.time() + ahead + size / 1_000)
            made = Phase(self.plans(size, at, first), exactly(b":1\r\n"))
            made_s = await made.run(self._lanes)
            if time.time() < at:
                return at, before, made, made_s
            gone = [request(b"DEL", b"%bplan:%b" % (_P, self._name(first, number))) for number in range(size)]
            await Phase(gone, exactly(b":1\r\n")).run(self._lanes)
            ahead *= 2
        raise Unexpected(f"it took longer than {_AHEAD_AT_MOST_S:.0f} s to make {size} plans")

    async def _length(self) -> int:
        look = Phase([request(b"LLEN", _P + b"unassigned")], a_length, keep=True)
        await look.run(self._lanes[:1])
        return int(look.replies[0][1:])

    def _name(self, first: int, number: int) -> bytes:
        return b"%b_%d_%d" % (self._source, first, number)

    def _plan(self, plan: bytes, at: int) -> bytes:
        text = (
            b'{"class":"Bench\\\\Job","sourceId":"%b","name":"Plan","args":{"x":"%b"},"id":"%b","nextRun":%d,'
            b'"recurrenceInterval":"P0Y0M1DT0H0M0S"}' % (self._source, PAYLOAD, plan, at)
        )
        keys = (_P + b"plan:" + plan, _P + b"plan_schedule", b"%bplan_schedule:%d" % (_P, at))
        return request(b"EVALSHA", _INSERT, b"4", *keys, _P + b"plan_list:" + self._source, text, b"%d" % at, plan)

    def _pushes_until(self, end: float) -> Iterator[bytes]:
        job = job_text(self._source)
        over = False
        while not over:  # at least one, however late it is
            yield b"PUSH %b\r\n" % (job % (b"%032x" % next(self._numbers)))
            over = time.time() >= end

    def _until(self, end: float) -> Iterator[bytes]:
        over = False
        while not over:
            yield request(b"LPUSH", _P + b"unassigned", self._job())
            over = time.time() >= end
