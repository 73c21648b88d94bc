"""The lake's writer: batches of the journal become segments, each exactly once, whenever it is killed.

Rows go into drafts as batches are read. To publish them: the drafts are synced; `_next.json` names the range; they get
their names; `_done.json` says so. A writer that dies before `_next` has done nothing; one that dies after it does the
same range again, under the same names, before anything else.
"""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from crossdock.journal.files import sync_dir
from crossdock.lake import manifest
from crossdock.lake.drafts import Drafts
from crossdock.lake.event_rows.tables import Tables, date_named
from crossdock.lake.journal_tail import OF_ANOTHER, Source, is_of
from crossdock.lake.manifest import Done, Gap, Next
from crossdock.lake.redaction import Payloads
from crossdock.model.clock import DAY
from crossdock.model.errors import CrossdockError, Damaged
from crossdock.model.events.codec import entry_checksum


class LakeInUse(CrossdockError):
    """Another writer has this lake open."""


class OtherJournal(CrossdockError):
    """The lake is not of this journal, and nothing may be added to it."""


class Writer:
    def __init__(self, folder: Path, source: Source, payloads: Payloads | None = None, patience_s: float = 0.0) -> None:
        """A writer that was told to end gets `patience_s` to do so."""
        self._folder = folder
        self._source = source
        self._payloads = payloads or Payloads()
        self.steady: float | None = None  #: of the newest batch that this writer has read
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(folder, patience_s)
        try:
            found = manifest.read_done(folder)
            # What the last writer renamed and did not sync before it was killed; of a new lake its own name.
            sync_dir(folder if found else folder.parent)
            first = source.first if found is None else found.last + 1
            done = found or Done(manifest.FORMAT, secrets.token_hex(8), first, first - 1, 0)
            self.done = replace(done, format=manifest.FORMAT, sealed_from=done.sealed_from or first)
            (folder / manifest.EVENTS_FOLDER).mkdir(mode=0o700, exist_ok=True)
            self._drafts = Drafts(folder)
            self._begin()
            self._go_on()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._tables = Tables(self._drafts.take, self.done.flush_epoch, self._payloads)
        self._tables.at = self.done.at
        self.read = self.done.last  #: the last batch that is in the drafts
        self._newest = b""  #: that batch
        self.bytes = 0  #: of the journal, in the drafts
        self._since = 0.0  #: when the first batch in the drafts was written

    def _go_on(self) -> None:
        """After whatever the last writer left."""
        done = self.done
        if not is_of(done, self._source):
            raise OtherJournal(f"{self._folder} {OF_ANOTHER}")
        if done.last < self._source.first - 1:
            gap = Gap(done.last + 1, self._source.first - 1)
            self.done = replace(done, gaps=[*done.gaps, gap], last=gap.last)
            self._begin()
        planned = manifest.read_next(self._folder)
        if planned is not None and planned.last > self.done.last:
            if planned.first != self.done.last + 1:
                raise Damaged(f"{self._folder / manifest.NEXT} does not follow {manifest.DONE}; name another lake.dir")
            for _ in self.take(lambda: self.read == planned.last):
                pass
            if self.read != planned.last:
                raise OtherJournal(f"{self._folder} {OF_ANOTHER}")
            self.publish()

    def take(self, enough: Callable[[], bool]) -> Iterator[int]:
        """Read on, until there is nothing more or it is enough; yields after each batch."""
        for seq, batch in self._source.read(self.read):
            self._tables.add(seq, batch)
            self._since = self._since if self.bytes else self._tables.wall
            self.read, self._newest, self.steady = seq, batch, self._tables.steady
            self.bytes += len(batch)
            yield seq
            if enough():
                return

    @property
    def span_s(self) -> float:
        """Seconds from the first batch in the drafts to the last, by the server's clock."""
        return self._tables.wall - self._since

    def publish(self) -> Done:
        """Make all that was taken a part of the lake."""
        done = self.done
        if self.read == done.last:
            return done
        self._tables.cut()
        drafts = self._drafts.finish(done.lake, done.last + 1, self.read)
        self._source.sync()
        manifest.write(self._folder, Next(done.last + 1, self.read))
        for draft, file in drafts:
            self._name(draft, self._folder / file.path, new=manifest.date_of(file.path) not in done.dates)
        files = [file for _, file in drafts]
        newest = {date_named(day).isoformat(): steady for day, steady in self._tables.newest.items()}
        self.done = replace(
            done,
            last=self.read,
            crc=entry_checksum(self.read, self._newest),
            flush_epoch=self._tables.flush_epoch,
            at=self._tables.at,
            newest=files,
            dates=manifest.added(done.dates, files, newest),
            set_back=manifest.both(done.set_back, self._tables.set_back),
        )
        manifest.write(self._folder, self.done)
        self._begin()
        return self.done

    def _name(self, draft: Path, path: Path, *, new: bool) -> None:
        """`new`: no segment of that date counts yet. A writer that died before it synced may have made its folder."""
        if new:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            sync_dir(path.parent.parent)
        os.rename(draft, path)
        sync_dir(path.parent)

    def expire(self, keep_days: int, steady: float) -> list[str]:
        """Let go of whole dates that are older by now, which is `steady`: a wall clock may be wrong. First the manifest
        forgets them: readers never see half a date. Dates of an older lake count from now on."""
        dates = {day: replace(total, steady=total.steady or steady) for day, total in self.done.dates.items()}
        over = sorted(day for day, total in dates.items() if steady - total.steady > keep_days * DAY)
        kept = {day: total for day, total in dates.items() if day not in over}
        if kept != self.done.dates:
            self.done = replace(self.done, dates=kept, expired=max([self.done.expired, *over]))
            manifest.write(self._folder, self.done)
        self._remove_expired()
        return over

    def _remove_expired(self) -> None:
        for path in (self._folder / manifest.EVENTS_FOLDER).glob("date=*"):
            if path.name.removeprefix("date=") <= self.done.expired and path.name.removeprefix("date=") not in (
                self.done.dates
            ):
                shutil.rmtree(path)

    def close(self) -> None:
        os.close(self._lock)


def _locked(folder: Path, patience_s: float) -> int:
    fd = os.open(folder / manifest.LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    give_up = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError as error:
            if time.monotonic() >= give_up:
                os.close(fd)
                raise LakeInUse(
                    f"{folder} is being written to by another server; give this one its own lake.dir"
                ) from error
        time.sleep(0.05)
