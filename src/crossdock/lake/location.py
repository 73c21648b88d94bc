"""Where a lake is, a folder or the URL of an object store, and up to where the journal is in it.

The file `lake.position` in the data folder has the second. The server reads it at its start, because it imports neither
pyarrow nor deltalake. The exporter writes it after a commit of the lake is on disk, so it may be behind the lake and is
never ahead of it. It is a sealed JSON object: without the checksum, a flipped digit in `last` would trim entries that
the lake does not have.
"""

import os
import re
from pathlib import Path
from typing import Final

import msgspec

from crossdock.journal.files import write_whole
from crossdock.lake.checksums import BadSum, seal, unseal
from crossdock.model.errors import Damaged, Newer

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


# The position.


POSITION: Final = "lake.position"

#: The format of the lake: the property `crossdock.format` of its table.
FORMAT: Final = 3


class Reported(msgspec.Struct, frozen=True):
    format: int
    lake: str  #: the lake's id
    location: str  #: relative to the data folder if it is inside
    version: int  #: of the lake's table
    last: int  #: journal entry


class _Format(msgspec.Struct):
    format: int


def name_of(location: str | Path, data: Path) -> str:
    """A location as the file names it. The data folder may be moved together with a lake inside."""
    lake, data = folder(location), data.absolute()
    return str(lake.relative_to(data)) if lake is not None and lake.is_relative_to(data) else absolute(location)


def read_position(data: Path, location: str | Path) -> Reported | None:
    """What was reported for the lake at this location. None: nothing. Raises Damaged, Newer."""
    path = data / POSITION
    try:
        body = unseal(path.read_bytes())
        if body is None:
            raise BadSum("its checksum is missing")
        said = msgspec.json.decode(body, type=_Format).format
        if said > FORMAT:
            raise Newer(f"the lake in {location}, of format", said, FORMAT)
        found = msgspec.json.decode(body, type=Reported)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, BadSum, msgspec.MsgspecError) as error:
        raise Damaged(f"{path} cannot be read: {error}; the server writes it again with its next segment") from error
    return found if found.location == name_of(location, data) else None


def write_position(data: Path, reported: Reported) -> None:
    write_whole(data / POSITION, [seal(msgspec.json.encode(reported))])
