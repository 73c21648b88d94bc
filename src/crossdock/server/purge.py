"""Removes old journal entries for good, when an operator has erased data.

An entry is in the journal's database and its log, and what it did is in up to two snapshots. So two new snapshots are
written, the lake's exporter is hurried, since the journal holds what the lake lacks, the old entries are trimmed, and
the files are rewritten. Each step is a look once a second. A server that is killed in the middle has lost nothing; the
operator asks again.
"""

import logging
from typing import Final

from crossdock import logs
from crossdock.journal.port import Journal
from crossdock.model.commands.admin import ForgetProgress
from crossdock.protocols.admin.journal_requests import Exported, Purged
from crossdock.server.compactor import Compactor
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter
from crossdock.server.lake_keeper import LakeKeeper

log = logging.getLogger("crossdock.erase")

#: Seconds for which the exporter is hurried after a request. The client repeats the request.
_HURRIED_S: Final = 10


class Purge:
    def __init__(
        self,
        commit: GroupCommit,
        journal: Journal,
        journal_writer: JournalWriter,
        compactor: Compactor,
        lake: LakeKeeper | None,
    ) -> None:
        self._commit = commit
        self._journal = journal
        self._journal_writer = journal_writer
        self._compactor = compactor
        self._lake = lake
        self._upto = 0  #: remove entries up to this one
        self._done = 0
        self._waits_for = ""
        self._hurried = 0  #: seconds left

    def export(self) -> Exported:
        self._hurried = _HURRIED_S
        return Exported(self._journal.last, None if self._lake is None else self._lake.last)

    def purge(self, upto: int | None) -> Purged:
        if upto is None:
            upto = self._upto = max(self._upto, self._journal.last)
            # The exporter keeps the newest entry that is in the lake, so there must be a later one.
            self._commit.do(ForgetProgress(()))
            self._waits_for = "a snapshot"
        elif upto > max(self._upto, self._done):  # this server was started meanwhile
            self._upto = min(upto, self._journal.last)
        return Purged(upto, self._done >= upto, "" if self._done >= upto else self._waits_for)

    def check(self) -> None:
        """Called every second."""
        if self._lake is not None and (self._hurried or self._upto > self._done):
            self._lake.hurry()
        self._hurried = max(0, self._hurried - 1)
        if self._upto <= self._done:
            return
        upto, journal = self._upto, self._journal
        if journal.previous < upto:
            self._waits_for = "a snapshot"
            newest = journal.snapshot()
            if newest is not None and newest.seq >= journal.last:
                self._commit.do(ForgetProgress(()))  # so that the next snapshot is another one
            else:
                self._compactor.compact_now()
            return
        if journal.trimmable < upto:
            self._waits_for = "a reader of the journal: the lake, or a backup"
            return
        self._waits_for = "the journal to be trimmed"
        self._journal_writer.trim_now()
        if 0 < journal.first <= upto:
            return
        self._waits_for = "the journal to be rewritten"
        if self._journal_writer.scrub():
            self._done = upto
            text = f"journal entries up to {upto} were removed from the files"
            logs.event(log, logging.INFO, "journal-purged", text, entry=upto)
