"""Access to the files of a lake: on a local disk, where everything is synced here, or in an object store.

delta-rs writes the entries of the log and never syncs. The journal is trimmed up to the lake's position. So on a local
disk a data file, its folder, the log entry and the log's folder are synced before a position is reported. An object
store acknowledges only what it has stored.
"""

import grp
import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.fs as pa_fs
from deltalake.fs import DeltaStorageHandler

from crossdock.journal.files import copy_file, sync_dir, write_whole
from crossdock.lake.location import absolute, folder
from crossdock.lake.log import LOG, Names, entry_name, names_in


class Store(Protocol):
    uri: str  #: for deltalake
    root: Path | None  #: the folder, on a local disk

    def names(self) -> Names:
        """The files of the log. Empty if there is no lake."""

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError, OSError."""

    def size(self, name: str) -> int | None:
        """Bytes of a file; None if it does not exist."""

    def open(self, name: str) -> Any:
        """The file, as pyarrow reads it. The caller closes it."""

    def path(self, name: str) -> tuple[str, pa_fs.FileSystem]:
        """The file's path in a file system of pyarrow."""

    def log_files(self) -> Iterable[tuple[str, float]]:
        """All files of the log, and when they were written."""

    def listed(self) -> Iterable[tuple[str, float]]:
        """All files outside of the log whose names do not begin with `_` or a dot, and when they were written."""

    def put(self, draft: Path, name: str) -> None:
        """Move a complete and synced file from the data folder into the lake, durably."""

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, durably."""

    def delete(self, name: str) -> None: ...

    def sync_log(self, versions: Iterable[int]) -> None:
        """Make these entries of the log durable."""

    def sync_file(self, name: str) -> None:
        """Make a file durable that delta-rs wrote."""


def store_of(location: str | Path, group: str = "") -> Store:
    root = folder(location)
    return ObjectStore(absolute(location)) if root is None else Disk(root, group)


class Disk:
    """A folder. Only its owner may read it, and the members of `group` if that is set."""

    def __init__(self, root: Path, group: str = "") -> None:
        self.root: Path | None = root
        self.uri = str(root)
        self._path = root
        self._gid = grp.getgrnam(group).gr_gid if group else -1
        self._synced: set[Path] = set()  #: folders whose names are durable

    def create(self) -> None:
        """Create the folder, and those above it."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._allow(self._path, 0o750)
        sync_dir(self._path.parent)

    def names(self) -> Names:
        try:
            return names_in(os.listdir(self._path / LOG))
        except (FileNotFoundError, NotADirectoryError):
            return names_in(())

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def size(self, name: str) -> int | None:
        try:
            return (self._path / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, name: str) -> Any:
        return pa.OSFile(str(self._path / name))

    def path(self, name: str) -> tuple[str, pa_fs.FileSystem]:
        return str(self._path / name), pa_fs.LocalFileSystem()

    def log_files(self) -> Iterable[tuple[str, float]]:
        for entry in os.scandir(self._path / LOG):
            yield f"{LOG}/{entry.name}", entry.stat().st_mtime

    def listed(self) -> Iterable[tuple[str, float]]:
        for folder_, folders, files in os.walk(self._path):
            folders[:] = [each for each in folders if each[0] not in "_."]
            for each in files:
                if each[0] not in "_.":
                    path = Path(folder_, each)
                    yield str(path.relative_to(self._path)), path.stat().st_mtime

    def put(self, draft: Path, name: str) -> None:
        path = self._path / name
        if path.parent not in self._synced:
            # An earlier writer may have created the folder and died before the sync, so it is synced in any case.
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._allow(path.parent, 0o750)
            sync_dir(path.parent.parent)
            self._synced.add(path.parent)
        if draft.stat().st_dev != path.parent.stat().st_dev:
            beside = path.with_name(f".{uuid.uuid4().hex}.tmp")
            copy_file(draft, beside, lambda what, done, of: None)
            draft.unlink()
            draft = beside
        self._allow(draft, 0o640)
        os.rename(draft, path)
        sync_dir(path.parent)

    def write(self, name: str, data: bytes) -> None:
        write_whole(self._path / name, [data])
        self._allow(self._path / name, 0o640)

    def delete(self, name: str) -> None:
        path = self._path / name
        path.unlink(missing_ok=True)
        if path.parent != self._path and path.parent.name != LOG and not any(path.parent.iterdir()):
            self._synced.discard(path.parent)
            path.parent.rmdir()

    def sync_log(self, versions: Iterable[int]) -> None:
        for version in versions:
            self._sync(self._path / entry_name(version))
        self._allow(self._path / LOG, 0o750)
        sync_dir(self._path / LOG)
        if self._path / LOG not in self._synced:
            self._allow(self._path, 0o750)
            sync_dir(self._path)
            self._synced.add(self._path / LOG)

    def sync_file(self, name: str) -> None:
        self._sync(self._path / name)
        sync_dir((self._path / name).parent)

    def _sync(self, path: Path) -> None:
        self._allow(path, 0o640)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _allow(self, path: Path, mode: int) -> None:
        """Set who may read it. delta-rs creates files by the umask."""
        os.chmod(path, mode if self._gid >= 0 else mode & 0o700)
        if self._gid >= 0:
            os.chown(path, -1, self._gid)


class _Upload:
    """A stream of delta-rs, which takes `bytes` only, while pyarrow passes buffers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.closed = False

    def write(self, data: Any) -> int:
        whole = bytes(data)
        self._stream.write(whole)
        return len(whole)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """The object exists when this returns."""
        if not self.closed:
            self.closed = True
            self._stream.close()


class _Handler(DeltaStorageHandler):
    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        return pa.PythonFile(_Upload(self._handler.open_output_stream(path, metadata)), mode="w")


#: Bytes of an upload at a time.
_CHUNK: Final = 8 * 1024 * 1024


class ObjectStore:
    """A bucket, accessed by delta-rs with the credentials and endpoints of the environment."""

    def __init__(self, uri: str) -> None:
        self.root: Path | None = None
        self.uri = uri
        self._fs = pa_fs.PyFileSystem(_Handler(uri))

    def names(self) -> Names:
        selector = pa_fs.FileSelector(LOG, allow_not_found=True)
        return names_in(info.base_name for info in self._fs.get_file_info(selector))

    def read(self, name: str) -> bytes:
        with self._fs.open_input_file(name) as file:
            data: bytes = file.read()
            return data

    def size(self, name: str) -> int | None:
        info = self._fs.get_file_info(name)
        return info.size if info.type == pa_fs.FileType.File else None

    def open(self, name: str) -> Any:
        return self._fs.open_input_file(name)

    def path(self, name: str) -> tuple[str, pa_fs.FileSystem]:
        return name, self._fs

    def log_files(self) -> Iterable[tuple[str, float]]:
        for info in self._fs.get_file_info(pa_fs.FileSelector(LOG, allow_not_found=True)):
            yield f"{LOG}/{info.base_name}", info.mtime_ns / 1e9

    def listed(self) -> Iterable[tuple[str, float]]:
        for info in self._fs.get_file_info(pa_fs.FileSelector("", recursive=True, allow_not_found=True)):
            if info.type == pa_fs.FileType.File and not any(part[0] in "_." for part in info.path.split("/")):
                yield info.path, info.mtime_ns / 1e9

    def put(self, draft: Path, name: str) -> None:
        with draft.open("rb") as source, self._fs.open_output_stream(name) as dest:
            shutil.copyfileobj(source, dest, _CHUNK)
        draft.unlink()

    def write(self, name: str, data: bytes) -> None:
        with self._fs.open_output_stream(name) as dest:
            dest.write(data)

    def delete(self, name: str) -> None:
        if self.size(name) is not None:
            self._fs.delete_file(name)

    def sync_log(self, versions: Iterable[int]) -> None:
        pass

    def sync_file(self, name: str) -> None:
        pass
