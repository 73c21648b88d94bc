"""An SQLite file system with a quota: a write beyond it fails with the error number of a real one.

SQLite's default file system returns SQLITE_IOERR_WRITE for EDQUOT, and SQLITE_FULL only for ENOSPC.
"""

import errno
from pathlib import Path
from typing import Final

import apsw

NAME: Final = "quota"


class Quota:
    """Total bytes that all files may have; None for no limit."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.refused = 0  #: number of refused writes
        self.error = errno.EDQUOT  #: error number of a refused write
        self.sync_fails = False

    def take(self, path: str, data: bytes, offset: int) -> int:
        """Number of bytes of this write that fit. As in the kernel, those are written and then the write fails."""
        grows = max(0, offset + len(data) - Path(path).stat().st_size)
        if self.left is None:
            return len(data)
        if grows <= self.left:
            self.left -= grows
            return len(data)
        fits = len(data) - grows + self.left
        self.left = 0
        self.refused += 1
        return max(0, fits)


class QuotaVFS(apsw.VFS):
    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        super().__init__(NAME, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return QuotaFile(self.quota, name, flags)

    def xGetLastError(self) -> tuple[int, str]:  # noqa: N802
        return self.quota.error, "Disk quota exceeded"


class QuotaFile(apsw.VFSFile):
    def __init__(self, quota: Quota, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._quota = quota
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        fits = self._quota.take(self._path, data, offset)
        if fits:
            super().xWrite(data[:fits], offset)
        if fits < len(data):
            raise _failure(apsw.SQLITE_IOERR_WRITE)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._quota.sync_fails:
            raise _failure(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)


def _failure(code: int) -> apsw.IOError:
    error = apsw.IOError("disk I/O error")
    error.extendedresult = code  # type: ignore[attr-defined]
    return error
