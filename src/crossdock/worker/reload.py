"""Watches source files for `--reload`, by their times."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

_FILES_AT_MOST: Final = 20_000
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "venv", "site-packages"})


class SourceWatcher:
    """Watches files, and the Python files of the folders that they are in, so that new modules are seen, too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: set[str] = set()
        self._seen = self._stamps()

    def watch(self, files: Iterable[str]) -> None:
        """Watch these files from now on, as well as those that were watched before."""
        self._files.update(files)
        for path, stamp in self._stamps().items():
            self._seen.setdefault(path, stamp)

    def changed(self) -> str | None:
        """A file that was changed, added or removed since the last call; None: nothing has changed."""
        now = self._stamps()
        before, self._seen = self._seen, now
        if now == before:
            return None
        return next(iter(sorted(path for path in now.keys() | before.keys() if now.get(path) != before.get(path))))

    def _stamps(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        folders = {str(Path(file).parent) for file in self._files} | {str(self._folder)}
        for folder in folders:
            if _SKIPPED.intersection(Path(folder).parts):
                continue
            for path in Path(folder).glob("*.py"):
                _stamp(found, str(path))
        for file in self._files:
            _stamp(found, file)
        return found


def _stamp(found: dict[str, tuple[int, int]], path: str) -> None:
    if path in found or len(found) >= _FILES_AT_MOST:
        return
    try:
        stat = Path(path).stat()
    except OSError:
        return
    found[path] = (stat.st_mtime_ns, stat.st_size)
