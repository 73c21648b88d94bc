"""Measures one library: pushes, the drain of a full queue by one worker process, and push to start when idle."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench.figures import rank
from bench.process import Process, clean_environment
from bench.worker.peers import Mode, Peer
from bench.worker.services import Service

PROGRAMS: Final = Path(__file__).resolve().parent / "programs"
_PROGRAM_S: Final = 120.0
_POLL_S: Final = 0.005
_GAP_MS: Final = 20


class Failed(Exception):
    """A program of a library ended with an error, or never ended."""


class Sizes(msgspec.Struct, frozen=True):
    jobs: int
    latencies: int

    def shared(self, share: int) -> "Sizes":
        """Fewer jobs, for a slow library. Bulk pushes are of 1,000."""
        return Sizes(max(1_000, self.jobs // share), self.latencies)


class Result(msgspec.Struct):
    """Jobs per second, and seconds. None: the library has no such thing."""

    push_one: float | None = None
    push_sixteen: float | None = None
    push_bulk: float | None = None
    drain: dict[Mode, float] = {}
    start_p50: float | None = None
    start_p99: float | None = None


class _Numbers(msgspec.Struct):
    """What a worker reports, in nanoseconds."""

    first: int = 0  #: start of its first job
    last: int = 0
    waits: list[int] = []  #: from push to start


class Measured:
    """One library with its environment and its server."""

    def __init__(self, peer: Peer, programs: Path, service: Service, folder: Path) -> None:
        """`programs` is the `bin` folder of the library's environment."""
        self._peer, self._bin, self._service, self._folder = peer, programs, service, folder
        self._workers = 0

    def all(self, sizes: Sizes) -> Result:
        sizes = sizes.shared(self._peer.share)
        result = Result()
        if self._peer.has_setup:
            self._call("set-up")
        result.push_one = self._rate("push", sizes.jobs, 1)
        result.push_sixteen = self._rate("push", sizes.jobs, 16)
        if self._peer.has_bulk:
            result.push_bulk = self._rate("bulk", max(10_000, sizes.jobs))
        for mode in self._peer.workers:
            result.drain[mode] = self._drain(mode, sizes.jobs)
        waits = self._start(next(iter(self._peer.workers)), sizes.latencies)
        result.start_p50, result.start_p99 = rank(waits, 0.5), rank(waits, 0.99)
        return result

    def _rate(self, what: str, count: int, *lanes: int) -> float:
        self._service.clear()
        return count / self._call(what, count, *lanes)

    def _drain(self, mode: Mode, count: int) -> float:
        """Jobs per second from the start of the first job to that of the last, or until the server says that all are
        done, if it can."""
        self._service.clear()
        self._fill(count)
        with self._worker(mode, count) as report:
            found = report.wait()
            end = found.last
            if self._service.done() is not None:
                while (self._service.done() or 0) < count:
                    report.check()
                end = time.monotonic_ns()
        return (count - 1) / (end - found.first) * 1e9

    def _fill(self, count: int) -> None:
        if self._peer.has_bulk and count % 1_000 == 0:
            self._call("bulk", count)
        else:
            self._call("push", count, 16)

    def _start(self, mode: Mode, count: int) -> list[float]:
        """Seconds between a push and the start of its task, sorted. A few jobs before them warm everything up."""
        warm = 20
        self._service.clear()
        with self._worker(mode, count + warm) as report:
            self._call("latency", count + warm, _GAP_MS, mode=mode)
            waits = report.wait().waits
        return sorted(each / 1e9 for each in waits[warm:])

    def _call(self, *words: object, mode: Mode = "threads") -> float:
        """Run a program of the library and return the seconds that it printed."""
        command = [self._path("python"), f"{self._peer.program}.py", *map(str, words)]
        try:
            ran = subprocess.run(
                command,
                cwd=PROGRAMS,
                env=self._environment(mode=mode),
                check=False,
                capture_output=True,
                text=True,
                timeout=_PROGRAM_S,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{' '.join(command)} took longer than {_PROGRAM_S:.0f} s") from error
        if ran.returncode:
            raise Failed(f"{' '.join(command)} ended with exit code {ran.returncode}\n{ran.stderr[-2_000:]}")
        return float(json.loads(ran.stdout.splitlines()[-1])["seconds"]) if ran.stdout else 0.0

    def _path(self, program: str) -> str:
        return str(self._bin / program)

    def _environment(self, *, mode: Mode, count: int = 0, report: Path | None = None) -> Mapping[str, str]:
        return clean_environment() | {
            "PATH": f"{self._bin}{os.pathsep}{os.environ.get('PATH', '')}",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(PROGRAMS), os.environ.get("PYTHONPATH")])),
            "PYTHONDONTWRITEBYTECODE": "1",
            "BENCH_URL": self._service.url,
            "BENCH_MODE": mode,
            "BENCH_COUNT": str(count),
            "BENCH_REPORT": str(report or ""),
            **({self._peer.url_variable: self._service.url} if self._peer.url_variable else {}),
        }

    @contextmanager
    def _worker(self, mode: Mode, count: int) -> "Iterator[_Report]":
        self._workers += 1
        folder = self._folder / f"worker-{self._workers}"
        folder.mkdir(parents=True)
        program, *words = self._peer.workers[mode]
        words = [str(PROGRAMS / word) if word.endswith(".py") else word for word in words]
        path = folder / "report"
        with Process(
            [self._path(program), *words], folder, self._environment(mode=mode, count=count, report=path)
        ) as worker:
            yield _Report(path, count, worker)


class _Report:
    """What a worker writes after its last job."""

    def __init__(self, path: Path, count: int, worker: Process) -> None:
        self._path, self._count, self._worker = path, count, worker
        self._numbers = Path(f"{path}.numbers")

    def check(self) -> None:
        self._worker.check()
        time.sleep(_POLL_S)

    def wait(self) -> _Numbers:
        self._worker.wait_until(self._is_whole, f"report of {self._count} jobs", _PROGRAM_S)
        if self._path.exists():
            return msgspec.json.decode(self._path.read_bytes(), type=_Numbers)
        data = self._numbers.read_bytes()
        numbers = [int.from_bytes(data[at : at + 8], "little") for at in range(0, 8 * self._count, 8)]
        return _Numbers(min(numbers), max(numbers), numbers)

    def _is_whole(self) -> bool:
        return self._path.exists() or (self._numbers.exists() and self._numbers.stat().st_size >= 8 * self._count)
