"""An archive of the Java classes that Spark loads (AppCDS). It saves a quarter of the CPU time of a small run.

Making it takes 11 to 17 CPU seconds and 180 MB. So the archive in the cache folder is made by the tenth start, when the
starts without it have cost as much. Programs that start Spark once never pay for it. Java ignores an archive of another
version of itself or of Spark, and one that is cut off or damaged.
"""

import hashlib
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyspark

from crossdock.pipeline.environment import java

#: The start that makes the archive. If it fails, the one after as many again tries.
_MAKING_START: Final = 10
#: An archive that nothing used for so long is deleted.
_UNUSED_S: Final = 30 * 86_400.0
#: An unfinished archive is deleted after this time.
_UNFINISHED_S: Final = 3_600.0

#: Java must not mention the archive, and must check it before use: it maps the file into its memory.
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off -XX:+VerifySharedSpaces"


class ClassArchive:
    """A file that Java uses if it exists. `making`: this start creates it if it does not."""

    def __init__(self, path: Path, *, making: bool = True) -> None:
        self.path = path.absolute()
        self.making = making and not self.path.exists()
        self._unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")

    @property
    def options(self) -> str:
        """The options of the JVM."""
        if self.making:
            return f'"-XX:ArchiveClassesAtExit={self._unfinished}" {_QUIET}'
        return f'"-XX:SharedArchiveFile={self.path}" {_QUIET}' if self.path.exists() else ""

    def finish(self) -> bool:
        """The JVM has ended and has written the archive. Returns whether it is complete."""
        try:
            self._unfinished.rename(self.path)
        except OSError:
            return False
        return True

    def discard(self) -> None:
        for path in (self.path, self._unfinished):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def automatic(*, making: bool) -> ClassArchive | None:
    """The archive in the cache folder. `making`: this start may create it. None: there is no such folder."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "crossdock")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:  # others could change the classes
            return None
        stem = f"spark-{_key()}"
        starts = _count(folder / f"{stem}.starts")
        archive = ClassArchive(folder / f"{stem}.jsa", making=making and starts % _MAKING_START == 0)
        if archive.path.exists():
            os.utime(archive.path)
        _clean(folder)
    except (OSError, RuntimeError):  # no home, or it is not writable
        return None
    room = not archive.making or shutil.disk_usage(folder).free > 1 << 30
    return archive if room else None


def _key() -> str:
    """Differs between versions of Java and of Spark."""
    program = java()
    version = subprocess.run([program, "-version"], capture_output=True, check=False, timeout=60).stderr
    found = hashlib.sha256(os.path.realpath(program).encode() + version + pyspark.__version__.encode())
    for jar in sorted(Path(pyspark.__file__).parent.joinpath("jars").glob("*.jar")):
        status = jar.stat()
        found.update(f"{jar}\n{status.st_size}\n{status.st_mtime_ns}\n".encode())
    return found.hexdigest()[:16]


def _count(path: Path) -> int:
    """Count one more start: one byte each."""
    with path.open("ab") as file:
        file.write(b".")
    return path.stat().st_size


def _clean(folder: Path) -> None:
    now = time.time()
    for pattern, age_s in (("spark-*.jsa", _UNUSED_S), ("spark-*.starts", _UNUSED_S), ("spark-*.new", _UNFINISHED_S)):
        for path in folder.glob(pattern):
            with suppress(OSError):
                if path.stat().st_mtime < now - age_s:
                    path.unlink()
