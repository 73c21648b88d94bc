"""Data folders of a stopped or running server: journal entries of a story, snapshots, and changes to their files."""

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
    """Writes a data folder and its story, as a running server does while another process reads the folder."""

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
        for entry in self.story.batches[self._written :]:
            self.journal.append(entry)
        self._written = len(self.story.batches)

    def compact(self) -> int:
        """Write and install a snapshot of the state, and trim the journal as far as allowed."""
        made = compaction.compact(self.path, self.journal.last)
        self.journal.install(Snapshot(made.seq, self.path / made.file))
        while self.journal.trim(100):
            pass
        return made.seq

    def close(self) -> None:
        self.journal.close()
        self.folder.unlock()


def at_rest(path: Path, *, snapshots: int = 0) -> Story:
    """The folder of a stopped server, with this number of snapshots and a tail after them."""
    writer = Writer(path)
    writer.tell(eventful())
    for n in range(snapshots):
        writer.compact()
        writer.push(f"behind-{n}-1", f"behind-{n}-2")
    writer.push("the-last-one")
    writer.close()
    return writer.story


def state(path: Path) -> Any:
    """The state that a server would recover from this folder."""
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
    """Change one byte of the file. A negative position counts from the end."""
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    file.write_bytes(data)


def fingerprint(path: Path) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in path.iterdir() if each.is_file()}
