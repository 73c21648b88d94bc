"""What the programs of all libraries share. Only Python's own modules: each program runs in its library's venv.

A program is called as `program.py push COUNT LANES`, `bulk COUNT` or `latency COUNT GAP_MS`, and prints one line of
JSON. Its tasks are `noop` and `stamp`. The worker counts them with a Tally and writes a report after the last one.
"""

import asyncio
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

URL = os.environ.get("BENCH_URL", "")
IS_ASYNC = os.environ.get("BENCH_MODE", "asyncio") == "asyncio"
REPORT = os.environ.get("BENCH_REPORT", "")
COUNT = int(os.environ.get("BENCH_COUNT", "0"))

#: Jobs in one call of a bulk push.
CHUNK = 1_000


class Tally:
    """Counts the jobs of one worker process."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)  # next() is atomic, so threads need no lock
        self._first = 0
        self._waits: list[int] = []

    def job(self) -> None:
        now = time.monotonic_ns()
        number = next(self._numbers)
        if number == 1:
            self._first = now
        if number == COUNT:
            _write({"first": self._first, "last": now})

    def started(self, pushed_ns: int) -> None:
        """A job that was pushed at that time has started. The clock is the same in all processes."""
        self._waits.append(time.monotonic_ns() - pushed_ns)
        if len(self._waits) == COUNT:
            _write({"waits": self._waits})


class SharedTally:
    """Counts the jobs of several processes: each appends a number to one file, which the bench reads."""

    def job(self) -> None:
        self._append(time.monotonic_ns())

    def started(self, pushed_ns: int) -> None:
        self._append(time.monotonic_ns() - pushed_ns)

    def _append(self, number: int) -> None:
        file = os.open(f"{REPORT}.numbers", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, number.to_bytes(8, "little"))
        os.close(file)


def _write(report: dict[str, object]) -> None:
    draft = Path(f"{REPORT}.draft")
    draft.write_text(json.dumps(report), "utf-8")
    draft.rename(REPORT)


def _print(seconds: float) -> None:
    print(json.dumps({"seconds": seconds}), flush=True)


def lanes(count: int, of: int) -> list[int]:
    """How many of `count` jobs each lane pushes."""
    return [count // of + (lane < count % of) for lane in range(of)]


# Libraries that block: lanes are threads.


def main(
    push: Callable[[], object],
    stamp: Callable[[int], object],
    bulk: Callable[[int], object] | None = None,
    work: Callable[[], object] | None = None,
) -> None:
    match sys.argv[1:]:
        case ["push", count, threads]:
            push()  # opens connections, and is not measured
            _print(_in_threads(push, lanes(int(count) - 1, int(threads))))
        case ["bulk", count] if bulk is not None:
            began = time.perf_counter()
            for _ in range(int(count) // CHUNK):
                bulk(CHUNK)
            _print(time.perf_counter() - began)
        case ["latency", count, gap_ms]:
            for _ in range(int(count)):
                time.sleep(int(gap_ms) / 1e3)
                stamp(time.monotonic_ns())
            _print(0.0)
        case ["work"] if work is not None:
            work()


def _in_threads(push: Callable[[], object], counts: list[int]) -> float:
    def lane(count: int) -> None:
        for _ in range(count):
            push()

    threads = [threading.Thread(target=lane, args=(count,)) for count in counts]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


# Libraries of asyncio: lanes are tasks of one loop.


def main_async(
    opened: Callable[[], Awaitable[object]],
    push: Callable[[], Awaitable[object]],
    stamp: Callable[[int], Awaitable[object]],
    bulk: Callable[[int], Awaitable[object]] | None = None,
    closed: Callable[[], Awaitable[object]] | None = None,
) -> None:
    async def run() -> None:
        await opened()
        match sys.argv[1:]:
            case ["push", count, tasks]:
                await push()
                began = time.perf_counter()
                await asyncio.gather(*(lane(each) for each in lanes(int(count) - 1, int(tasks))))
                _print(time.perf_counter() - began)
            case ["bulk", count] if bulk is not None:
                began = time.perf_counter()
                for _ in range(int(count) // CHUNK):
                    await bulk(CHUNK)
                _print(time.perf_counter() - began)
            case ["latency", count, gap_ms]:
                for _ in range(int(count)):
                    await asyncio.sleep(int(gap_ms) / 1e3)
                    await stamp(time.monotonic_ns())
                _print(0.0)
        if closed is not None:
            await closed()

    async def lane(count: int) -> None:
        for _ in range(count):
            await push()

    asyncio.run(run())
