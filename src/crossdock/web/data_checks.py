"""Doctor's checks of the journal and the lake, for the status page. They run in the history's child process, because
they read the disk and need Arrow, and their result is kept for a while."""

import asyncio
import time
from typing import Final

import msgspec

from crossdock.web.history_reader import History

#: Seconds for which a result is shown before the checks run again.
KEEP_S: Final = 300.0


class Checked(msgspec.Struct, frozen=True):
    warnings: list[str]
    at: float  #: wall
    steady: float

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.steady


class DataChecks:
    def __init__(self, history: History) -> None:
        self._history = history
        self._turn = asyncio.Lock()
        self._last: Checked | None = None

    @property
    def known(self) -> Checked | None:
        """The last result, unless it is too old."""
        return self._last if self._last is not None and self._last.age_s < KEEP_S else None

    async def run(self) -> Checked:
        """A result that is at most `KEEP_S` old. Raises Refused or ServerUnavailable."""
        async with self._turn:  # requests at the same time share one run
            known = self.known
            if known is None:
                warnings = await self._history.checks()
                known = self._last = Checked(warnings, time.time(), time.monotonic())
            return known
