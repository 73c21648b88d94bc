"""Errors of the journal and of the data directory.

CrossdockError
├── JournalFailed      an entry may or may not be on disk
│   └── DiskFull       nothing was written
├── NoJournal          there is nothing to read
├── DataDirInUse       another server has the data directory open
└── NotADirectory      a file is where the data directory should be
"""

from crossdock.model.errors import CrossdockError


class JournalFailed(CrossdockError):
    """An entry may or may not be on disk. No reply of it may leave: the process stops and recovers from disk."""


class DiskFull(JournalFailed):
    """The disk is full or the quota is used up. Nothing was changed; the call can be repeated when there is room."""


class NoJournal(CrossdockError):
    """There is nothing to read. The message says where, and what to do."""


class DataDirInUse(CrossdockError):
    """Another server has this data directory open."""


class NotADirectory(CrossdockError):
    """A file is where the data directory, or a directory above it, should be."""
