"""Tokens of programs: `NAME TOKEN` lines of a file that only its owner may read. A changed file is read again."""

import hashlib
import hmac
import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from crossdock import logs

log = logging.getLogger("crossdock.web")

#: Longest time until a change of the file is seen.
_LOOK_EVERY_S: Final = 1.0
_FILE_BYTES: Final = 1024 * 1024
_TOKENS: Final = 1_000

#: A shorter one could be guessed.
TOKEN_CHARACTERS: Final = 16


class Tokens:
    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = Path(path) if path else None
        self._clock = clock
        self._looked = -_LOOK_EVERY_S
        self._version: tuple[int, int, int, int] | None = None
        self._names: dict[bytes, str] = {}  #: by the hash of the token

    def name_of(self, token: str) -> str | None:
        """The name that the file has for this token. Compares with every token, in constant time each."""
        self._refresh()
        digest = _digest(token)
        found = None
        for known, name in self._names.items():
            if hmac.compare_digest(known, digest):
                found = name
        return found

    def _refresh(self) -> None:
        now = self._clock()
        if self._path is None or now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        try:
            found = self._path.stat()
            version = (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode)
            if version != self._version:
                self._version = version
                self._names = read(self._path)
        except (OSError, ValueError) as error:
            if self._names or self._version is not None:
                logs.event(log, logging.ERROR, "tokens-unreadable", f"http.token_file: no token is accepted: {error}")
            self._names, self._version = {}, None


def read(path: Path) -> dict[bytes, str]:
    """Names by the hash of their token. Raises OSError, or ValueError, which says what to change."""
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise ValueError(f"other users can read {path}; run chmod 600 {path}")
        text = file.read(_FILE_BYTES + 1)
    if len(text) > _FILE_BYTES:
        raise ValueError(f"{path} is larger than 1 MiB")
    names: dict[bytes, str] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or len(words[1]) < TOKEN_CHARACTERS or len(words[0]) > 255:
            raise ValueError(
                f"{path} line {number} is not NAME TOKEN, with a token of at least {TOKEN_CHARACTERS} characters"
            )
        names[_digest(words[1])] = words[0]
    if len(names) > _TOKENS:
        raise ValueError(f"{path} has more than {_TOKENS} tokens")
    return names


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
