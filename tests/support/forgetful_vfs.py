"""An SQLite file system that simulates a power cut: unsynced writes are lost.

Files are written as usual. In addition the last synced content of each file and the writes since then are kept. A cut
writes the synced contents to another folder, with a random part of the later writes applied, because a disk may have
completed some of them.
"""

from pathlib import Path
from random import Random
from typing import Final

import apsw

NAME: Final = "forgetful"


class Disk:
    """The synced content and the unsynced writes of each file, by path."""

    def __init__(self) -> None:
        self.synced: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[int, bytes]]] = {}
        self.syncs = 0

    def opened(self, path: str) -> None:
        if path not in self.synced:
            file = Path(path)
            self.synced[path] = bytearray(file.read_bytes() if file.exists() else b"")
            self.pending[path] = []

    def sync(self, path: str) -> None:
        self.syncs += 1
        for at, data in self.pending[path]:
            _put(self.synced[path], at, data)
        self.pending[path].clear()

    def truncate(self, path: str, size: int) -> None:
        """Apply a truncation immediately.

        SQLite syncs around it, and a file that is longer again after a cut is the easier case.
        """
        self.sync(path)
        del self.synced[path][size:]

    def cut(self, folder: Path, random: Random) -> None:
        """Write the files that a restart would find to `folder`."""
        keep = random.random()
        for path, content in self.synced.items():
            image = bytearray(content)
            for at, data in self.pending[path]:
                if random.random() < keep:
                    _put(image, at, data)
            if image or content:
                (folder / Path(path).name).write_bytes(image)


def _put(image: bytearray, at: int, data: bytes) -> None:
    if len(image) < at:
        image += bytes(at - len(image))
    image[at : at + len(data)] = data


class ForgetfulVFS(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__(NAME, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return ForgetfulFile(self.disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self.disk.synced.pop(filename, None)


class ForgetfulFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        disk.opened(self._path)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._disk.pending[self._path].append((offset, bytes(data)))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._disk.sync(self._path)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._disk.truncate(self._path, newsize)
