"""Data folders as a server leaves them, or has them open: batches of a story, snapshots, and a hand in their files."""

import hashlib
from pathlib import Path
from typing import Any

import apsw

from crossdock.journal import compaction
from crossdock.journal.data_dir import DATABASE, DataDir
from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from tests.support.picture import picture
from tests.support.states import Story, eventful


class Writer:
    """The writer of a data folder, with its story: what a running server is to somebody who reads beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = DataDir(path)
        self.folder.lock()
        self.journal = SqliteJournal(self.folder)
        self.story = Story()
        self._written = 0

    def tell(self, story: Story) -> None:
        self.story = story
        self.write()

    def push(self, *jids: str) -> None:
        self.story.push(*jids)
        self.write()

    def write(self) -> None:
        for batch in self.story.batches[self._written :]:
            self.journal.append(batch)
        self._written = len(self.story.batches)

    def compact(self) -> int:
        """A snapshot of all there is, installed, and the journal trimmed as far as it may be."""
        made = compaction.compact(self.path, self.journal.last)
        self.journal.install(Snapshot(made.seq, self.path / made.file))
        while self.journal.trim(100):
            pass
        return made.seq

    def close(self) -> None:
        self.journal.close()
        self.folder.unlock()


def at_rest(path: Path, *, snapshots: int = 0) -> Story:
    """A folder whose server has stopped, with so many snapshots and a tail behind them."""
    writer = Writer(path)
    writer.tell(eventful())
    for n in range(snapshots):
        writer.compact()
        writer.push(f"behind-{n}-1", f"behind-{n}-2")
    writer.push("the-last-one")
    writer.close()
    return writer.story


def state(path: Path) -> Any:
    """What a server would recover from this folder."""
    journal = SqliteJournal(DataDir(path))
    try:
        return picture(recover(journal).state)
    finally:
        journal.close()


def change(path: Path, sql: str) -> None:
    db = apsw.Connection(str(path / DATABASE))
    try:
        db.execute(sql)
    finally:
        db.close()


def flip(file: Path, at: int) -> None:
    """One byte of the file is another; counted from the end if below 0."""
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    file.write_bytes(data)


def fingerprint(path: Path) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in path.iterdir() if each.is_file()}
