"""The clock of a test. It stands still until the test moves it."""

from collections.abc import Callable
from datetime import UTC, datetime

from crossdock.client.durations import Duration, seconds
from crossdock.testing.errors import TestingError
from crossdock.testing.server import LocalServer


class Clock:
    """The time of the server in a test. It starts at the real time and then stands still."""

    def __init__(self, server: LocalServer, begins: Callable[[], None], passed: Callable[[], None]) -> None:
        """`begins` is called before time passes, and `passed` after each moment at which something was due."""
        self._server = server
        self._begins = begins
        self._passed = passed

    def time(self) -> float:
        """Seconds since 1970."""
        return self._server.now.wall

    def now(self) -> datetime:
        """The time in UTC."""
        return datetime.fromtimestamp(self.time(), UTC)

    def advance(self, duration: Duration) -> None:
        """Let time pass: `"2h"`, a number of seconds or a timedelta.

        Everything that becomes due happens at its own time and in order: scheduled jobs and retries become ready, cron
        schedules push jobs, leases expire, kept results and unique locks end. Jobs that become ready wait for
        `drain`, or run at once in inline mode.
        """
        passing = seconds(duration)
        self._begins()
        goal = self._server.now.steady + passing
        while self._server.reach_deadline(goal):
            self._passed()

    def advance_to(self, when: datetime) -> None:
        """Let time pass until this moment, which needs a time zone and must not be in the past."""
        if when.tzinfo is None:
            raise TestingError(f"{when!r} has no time zone; write for example datetime(2027, 1, 1, tzinfo=UTC)")
        wait = when.timestamp() - self.time()
        if wait < 0:
            raise TestingError(f"{when} is in the past: the clock of the test shows {self.now()}")
        self.advance(wait)

    def __repr__(self) -> str:
        return f"<Clock {self.now()}>"
