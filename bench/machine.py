"""Describes the machine. Figures depend on it, and those of a busy machine are not reliable."""

import os
import platform
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from crossdock.server.diagnosis import IN_MEMORY, MOUNTS, file_system

_SYNCS: Final = 200
_BUSY: Final = 0.5


def describe(folder: Path) -> None:
    kind = file_system(folder.resolve(), MOUNTS.read_text("utf-8"))
    load, *_ = os.getloadavg()
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} processors {_processor()}, "
        f"Linux {platform.release()}, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}\n"
        f"journals on {kind}, where a sync of 4 KiB takes {_sync_ms(folder):.2f} ms; load average {load:.2f}"
    )
    if kind in IN_MEMORY:
        print("note: this folder is in memory, where a sync costs nothing; name one on a disk with --folder")
    if load > _BUSY:
        print("note: the machine is busy; the figures are too low, and the ratios are not reliable")


class Theft:
    """The share of processor time that the host gave to other machines since creation."""

    def __init__(self) -> None:
        self._before = _ticks()

    def share(self) -> float:
        (stolen, passed), (stolen_before, passed_before) = _ticks(), self._before
        return (stolen - stolen_before) / max(1, passed - passed_before)


def _ticks() -> tuple[int, int]:
    """Stolen ticks and all ticks, over all processors (proc(5))."""
    ticks = [int(each) for each in Path("/proc/stat").read_text("utf-8").split("\n", 1)[0].split()[1:9]]
    return ticks[7], sum(ticks)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _sync_ms(folder: Path) -> float:
    took = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_SYNCS):
            began = time.perf_counter()
            os.write(file.fileno(), bytes(4_096))
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e3
