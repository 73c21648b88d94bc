"""Where a lake is: a folder, or the URL of an object store. This module needs neither pyarrow nor deltalake."""

import os
import re
from pathlib import Path
from typing import Final

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def is_url(location: str | Path) -> bool:
    """Whether this names an object store."""
    return isinstance(location, str) and _URL.match(location) is not None


def absolute(location: str | Path) -> str:
    """The location as text that does not depend on the current directory, without a slash at its end."""
    if isinstance(location, str) and is_url(location):
        return location.rstrip("/")
    return os.path.abspath(location)


def folder(location: str | Path) -> Path | None:
    """The folder of a lake on a local disk. None: it is in an object store."""
    return None if is_url(location) else Path(os.path.abspath(location))
