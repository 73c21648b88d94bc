"""An SQLite file system that forgets at a power cut what was not synced: the next best thing to pulling the plug.

Files are written through as ever. Beside that each file's last synced content is kept, and the writes since then. A cut
writes the synced contents into another folder, with any part of the later writes on top: a disk may have got to some.
"""

from pathlib import Path
from random import Random
from typing import Final

import apsw

NAME: Final = "forgetful"


class Disk:
    """What the disk holds of each file, by path."""

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
        """Done at once: SQLite syncs around it, and a shorter file that came back longer would be the kinder case."""
        self.sync(path)
        del self.synced[path][size:]

    def cut(self, folder: Path, random: Random) -> None:
        """Write what a restart would find into `folder`."""
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
