"""The checks of `crossdock doctor`. They read only: nothing is created, changed or locked."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crossdock.journal.completeness import begins_empty
from crossdock.journal.data_dir import existing, in_use_by, not_a_directory
from crossdock.journal.files import Progress
from crossdock.lake.diagnosis import journal_warnings, lake_warnings
from crossdock.lake.verify import Verified, verify
from crossdock.model.errors import CrossdockError
from crossdock.server import admission
from crossdock.server.diagnosis import (
    bad_settings,
    expiring_certificate,
    few_descriptors,
    little_disk,
    missing_store,
    secret_file,
    volatile_folder,
    weak_durability,
)
from crossdock.server.lake_keeper import location_of
from crossdock.settings.loading import Loaded
from crossdock.settings.schema import Settings


def warnings(loaded: Loaded) -> list[str]:
    """Everything that endangers jobs or keeps the server from starting."""
    settings = loaded.settings
    return [
        *loaded.warnings,
        *bad_settings(settings),
        *secret_file(loaded),
        *_folder(settings),
        *_disk(settings),
        *few_descriptors(settings),
        *missing_store(),
        *weak_durability(settings),
        *expiring_certificate(settings),
        *lake_warnings(settings.server.data, _lake(settings)),
    ]


def notes(settings: Settings) -> list[str]:
    """Facts that are not problems."""
    data = settings.server.data
    holder = in_use_by(data)
    if holder:
        return [f"the data folder is in use by process {holder}: a server is running"]
    if data.exists() or data.is_symlink():
        empty = begins_empty(data)
        return [empty] if empty else []
    return [f"the data folder {data} does not exist yet; crossdock up creates it"]


def _folder(settings: Settings) -> Iterator[str]:
    data = settings.server.data
    there = existing(data)
    if wrong := not_a_directory(data):
        yield f"the server will not start: {wrong}"
    elif not os.access(there, os.W_OK | os.X_OK):
        yield f"the server will not start: this user cannot write to {there}"
    else:
        yield from journal_warnings(data, _lake(settings))
    yield from volatile_folder(settings)


def _lake(settings: Settings) -> str | Path | None:
    return location_of(settings) if settings.lake.on else None


def _disk(settings: Settings) -> Iterator[str]:
    refusal = admission.refusal(existing(settings.server.data), settings.journal.min_free_mib)
    if refusal is not None:
        yield f"new jobs will be refused: {refusal}"
    else:
        yield from little_disk(settings)


# The lake, for `crossdock check`.


LAKE_CURE: Final = (
    "the server and its jobs are not affected. Put what is damaged or missing in the lake back from a copy of it, and "
    "take out what does not belong there; until then reports are made without it"
)


def verify_lake(settings: Settings, progress: Progress) -> Verified:
    """Verify the lake, whether or not lake.on is set."""
    try:
        return verify(location_of(settings), settings.server.data, progress)
    except (CrossdockError, OSError) as error:
        return Verified(faults=[str(error)])
