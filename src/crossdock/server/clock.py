"""The clocks of the server: wall time, and a steady time that continues over restarts.

Within one boot of the machine steady time is CLOCK_BOOTTIME plus a constant. It cannot be set, and it counts while the
machine is suspended. The journal stores the constant with the boot id. After a reboot only the wall clock shows how
long the server was down, and it may have been set meanwhile. So only the time after the newest time in the journal
counts, and at most a week of it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from crossdock import logs
from crossdock.journal.recovery import Recovered
from crossdock.model.clock import COUNTED_AT_MOST_S, DAY, DOUBT_S, Now
from crossdock.model.commands.core import Start

log = logging.getLogger("crossdock")

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

#: Two readings of the clocks at the same moment differ by microseconds.
_SLACK_S: Final = 1.0


def boot_id() -> str:
    """The boot id of the running kernel. "" if it cannot be read; that never counts as the same boot."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


class Clock:
    def __init__(self, offset: float | None = None) -> None:
        """`offset`: steady time minus CLOCK_BOOTTIME. None: steady time starts at 0."""
        self.offset = -time.clock_gettime(time.CLOCK_BOOTTIME) if offset is None else offset

    def now(self) -> Now:
        return Now(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME) + self.offset)


class LoopClock:
    """The event loop, with one reading of the clocks per pass.

    The server schedules all its callbacks here, and the callbacks of a connection's transport call `enter`. So the
    clocks are read before anything else in a pass, and everything in a pass happens at one instant.
    """

    __slots__ = ("_begin_pass", "_loop", "entered", "source")

    def __init__(self, source: Clock, loop: asyncio.AbstractEventLoop, begin_pass: Callable[[Now], None]) -> None:
        """`begin_pass` is called with the time of each pass in which something happens."""
        self.source = source
        self._loop = loop
        self._begin_pass = begin_pass
        self.entered = False  #: the clocks were read in this pass

    def enter(self) -> None:
        """Read the clocks, unless they were read in this pass. Only needed in code that the event loop calls without
        `call_soon` or `call_later`: coroutines, and callbacks of a transport."""
        if not self.entered:
            self.entered = True
            self._loop.call_soon(self._end_pass)
            self._begin_pass(self.source.now())

    def _end_pass(self) -> None:
        self.entered = False

    def call_soon(self, run: Callable[..., object], *args: Any) -> None:
        self._loop.call_soon(self._run, run, args)

    def call_later(self, seconds: float, run: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        return self._loop.call_later(seconds, self._run, run, args)

    def _run(self, run: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.enter()
        run(*args)

    def time(self) -> float:
        """The event loop's own clock, which its timers use."""
        return self._loop.time()


class Resumed(msgspec.Struct, frozen=True):
    """How the clocks continue after a recovery."""

    offset: float  #: steady time minus CLOCK_BOOTTIME
    uncounted: float = 0.0  #: seconds of wall time that do not count, because they exceed the most that may
    ahead: float = 0.0  #: seconds by which the wall clock is ahead of what the journal expects

    @property
    def doubtful(self) -> bool:
        return abs(self.ahead) > DOUBT_S

    def warnings(self) -> list[str]:
        """For the log."""
        found = []
        if self.uncounted:
            found.append(
                f"the machine was rebooted and the wall clock is {_days(self.uncounted + COUNTED_AT_MOST_S)} past the "
                f"newest entry of the journal; leases and retries count {_days(COUNTED_AT_MOST_S)} of it"
            )
        if self.doubtful:
            where = "ahead of" if self.ahead > 0 else "behind"
            found.append(
                f"the wall clock is {_days(abs(self.ahead))} {where} what the journal expects; nothing is purged for "
                "an hour. Check the system time. If it is wrong, stop the server and correct it"
            )
        return found


def resume(found: Recovered) -> tuple[Clock, Start]:
    """The clocks after a recovery, and the command that records them. Logs a warning if a clock is doubtful."""
    boot = boot_id()
    resumed = resumed_from(found, boot, time.clock_gettime(time.CLOCK_BOOTTIME), time.time())
    for warning in resumed.warnings():
        logs.event(log, logging.WARNING, "clock-doubtful", warning)
    return Clock(resumed.offset), Start(boot, resumed.offset, found.steady if resumed.doubtful else None)


def resumed_from(found: Recovered, boot: str, boottime: float, wall: float) -> Resumed:
    """Continue from the newest entry. Steady time never goes back."""
    if not found.wall:  # the journal is empty
        return Resumed(-boottime)
    counters = found.state.counters
    passed = boottime + counters.offset - found.steady
    if boot and boot == counters.boot and passed > -_SLACK_S:
        passed = max(0.0, passed)
        return Resumed(max(counters.offset, found.steady - boottime), ahead=wall - found.wall - passed)
    passed = max(0.0, wall - max(found.wall, counters.at))
    counted = min(passed, COUNTED_AT_MOST_S)
    return Resumed(found.steady + counted - boottime, passed - counted, wall - found.wall)


def _days(seconds: float) -> str:
    days = seconds / DAY
    return f"{days:.0f} days" if days >= 10 or days == int(days) else f"{days:.1f} days"
