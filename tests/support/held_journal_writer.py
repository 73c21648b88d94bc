"""A journal writer whose disk takes as long as the test wants."""

from collections.abc import Callable


class HeldJournalWriter:
    """A scribe whose disk takes as long as the test wants."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self._waiting: list[Callable[[], None]] = []

    def append(self, batch: bytes, durable: Callable[[], None]) -> None:
        self.batches.append(batch)
        self._waiting.append(durable)

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def synced(self) -> None:
        """The oldest batch is on disk."""
        self._waiting.pop(0)()
