"""A journal writer whose entries become durable when the test calls `synced`."""

from collections.abc import Callable


class HeldJournalWriter:
    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self._waiting: list[Callable[[], None]] = []

    def append(self, entry: bytes, durable: Callable[[], None]) -> None:
        self.entries.append(entry)
        self._waiting.append(durable)

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def synced(self) -> None:
        """Report the oldest entry as durable."""
        self._waiting.pop(0)()
