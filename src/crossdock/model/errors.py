"""Errors that Crossdock raises. The message of each says what is wrong.

CrossdockError
├── UsageError         our own caller broke a rule: a bug
│   └── IllegalMove
├── BadSetting         what the operator configured is not allowed; nothing was started
├── HalfDone           a change failed in the middle: the state does not match the journal
└── Damaged            stored data fails a check; the server stops and repairs nothing
    └── Newer          a newer Crossdock wrote it
"""

from crossdock import __version__


class CrossdockError(Exception):
    """Anything Crossdock itself raises."""


class UsageError(CrossdockError):
    """The caller broke a rule of the model."""


class IllegalMove(UsageError):
    def __init__(self, before: object, after: object) -> None:
        super().__init__(f"a job cannot move from {before!r} to {after!r}")


class BadSetting(CrossdockError):
    """The text says which setting, where it was set and what is allowed."""


class HalfDone(CrossdockError):
    """Applying a change failed. Only a recovery from disk knows the true state."""


class Damaged(CrossdockError):
    """Stored data failed a check. Nothing was changed; restore a backup or run `crossdock doctor`."""


class Newer(Damaged):
    """A newer Crossdock wrote this data, and this one would misread it."""

    def __init__(self, what: str, found: int, known: int, by: str = "") -> None:
        writer = f"Crossdock {by}" if by else "a newer Crossdock"
        super().__init__(
            f"{what} {found} was written by {writer}; this is Crossdock {__version__}, which reads up to {known}; "
            "nothing was changed: start the newer Crossdock again, or restore a backup that was made before the upgrade"
        )
