"""A journal port without a disk: it keeps its entries and snapshots in memory."""

from collections.abc import Iterator
from pathlib import Path

from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import Recovered, recover
from crossdock.journal.snapshot import file


class Store:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[int, bytes] = {}
        self._snapshots: list[Snapshot] = []
        self.last = 0

    @property
    def first(self) -> int:
        return min(self._entries, default=0)

    def size_behind(self, seq: int) -> int:
        return sum(len(entry) for each, entry in self._entries.items() if each > seq)

    def append(self, entry: bytes) -> int:
        self.last += 1
        self._entries[self.last] = entry
        return self.last

    def sync(self) -> None:
        """Does nothing: every append is durable at once."""

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        for seq in range(after + 1, self.last + 1):
            yield seq, self._entries[seq]

    def snapshot(self) -> Snapshot | None:
        return self._snapshots[-1] if self._snapshots else None

    def install(self, new: Snapshot) -> None:
        self._snapshots.append(new)

    def hold(self, name: str, seq: int) -> None:
        """Does nothing: no lake reads this journal."""

    def release(self, name: str) -> None:
        """Does nothing, like `hold`."""

    def trim(self, most: int) -> int:
        """Removes entries that the snapshot before the newest contains."""
        until = self._snapshots[-2].seq if len(self._snapshots) > 1 else 0
        old = [seq for seq in self._entries if seq <= until][:most]
        for seq in old:
            del self._entries[seq]
        return len(old)

    def close(self) -> None:
        """Does nothing."""

    def compact(self) -> Recovered:
        """Does what the compactor's child process does: replay the tail, write and install a snapshot, trim."""
        found = recover(self)
        path = self._folder / f"snapshot-{found.seq}"
        file.write(path, found.state, found.seq, found.wall, found.steady)
        self.install(Snapshot(found.seq, path))
        self.trim(1_000_000)
        return found
