"""A writer of the lake that is killed at a system call or around a commit."""

import os
from collections.abc import Callable
from typing import Any, Final

import pytest
from deltalake import DeltaTable

#: System calls that write a segment.
CALLS: Final = ("open", "fsync", "fdatasync", "rename", "mkdir", "write", "chmod")


class Crash(BaseException):
    """The process is killed: nothing happens after it."""


class Mortal:
    """Counts system calls and commits, and kills the writer at the n-th. A commit dies before or after it is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.calls = 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))
        for name in ("create", "create_write_transaction"):
            monkeypatch.setattr(DeltaTable, name, self._counted(self._counted(getattr(DeltaTable, name), after=True)))

    def _counted(self, call: Callable[..., Any], *, after: bool = False) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs) if after else None
            self.calls += 1
            self.left -= 1
            if self.left == 0:
                raise Crash
            return result if after else call(*args, **kwargs)

        return counted
