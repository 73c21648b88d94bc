"""The checks of `crossdock doctor`. They read only: nothing is created, changed or locked."""

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from crossdock.journal.completeness import begins_empty, lost_journal
from crossdock.journal.data_dir import existing, in_use_by, not_a_directory
from crossdock.journal.files import Progress
from crossdock.journal.open import open_reader
from crossdock.journal.port import NoJournal
from crossdock.lake.location import folder
from crossdock.lake.status import status
from crossdock.lake.verify import Verified, verify
from crossdock.model.errors import CrossdockError, Damaged, Newer
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
from crossdock.server.lake_keeper import BEHIND_BYTES, LakeKeeper, last_entry, location_of
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
        *lake_warnings(settings),
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


def _unusable(settings: Settings) -> str:
    data = settings.server.data
    try:
        if lost := lost_journal(data):
            return lost
        with closing(open_reader(data)) as reader:
            reader.refuse_newer()
            reader.refuse_incomplete(last_entry(settings))
    except NoJournal:
        pass
    except Damaged as error:
        return str(error)
    return ""


def _folder(settings: Settings) -> Iterator[str]:
    data = settings.server.data
    there = existing(data)
    if wrong := not_a_directory(data):
        yield f"the server will not start: {wrong}"
    elif not os.access(there, os.W_OK | os.X_OK):
        yield f"the server will not start: this user cannot write to {there}"
    elif unusable := _unusable(settings):
        yield f"the server will not start: {unusable}"
    yield from volatile_folder(settings)


def _disk(settings: Settings) -> Iterator[str]:
    refusal = admission.refusal(existing(settings.server.data), settings.journal.min_free_mib)
    if refusal is not None:
        yield f"new jobs will be refused: {refusal}"
    else:
        yield from little_disk(settings)


# The lake, for `crossdock doctor` and `crossdock check`.


#: Faults that doctor lists one by one.
_LISTED: Final = 5

LAKE_CURE: Final = (
    "the server and its jobs are not affected. Put what is damaged or missing in the lake back from a copy of it, and "
    "take out what does not belong there; until then reports are made without it"
)


def lake_warnings(settings: Settings) -> Iterator[str]:
    if not settings.lake.on:
        return
    location = location_of(settings)
    local = folder(location)
    if local is not None:
        there = next(each for each in (local, *local.parents) if each.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            if local.parent != settings.server.data.absolute():  # else the data folder's own warning says it
                yield f"the lake cannot be written: this user cannot write to {there}; set lake.dir to another"
            return
    try:
        LakeKeeper.refuse_newer(settings)
        found = status(location, settings.server.data, on=True)
    except Newer as error:
        yield f"the server will not start: {error}"
        return
    except (CrossdockError, OSError) as error:
        yield f"the lake cannot be written: {error}"
        return
    if found.lag is not None and found.lag.bytes > BEHIND_BYTES:
        yield (
            f"the lake is {found.lag.bytes // admission.MIB} MiB behind the journal, which cannot be trimmed until the "
            "lake has caught up; see the server's log for the cause"
        )
    yield from found.faults[:_LISTED]
    if len(found.faults) > _LISTED:
        yield f"{len(found.faults) - _LISTED} more faults in the lake; crossdock lake status lists all"


def verify_lake(settings: Settings, progress: Progress) -> Verified:
    """Verify the lake, whether or not lake.on is set."""
    try:
        return verify(location_of(settings), settings.server.data, progress)
    except (CrossdockError, OSError) as error:
        return Verified(faults=[str(error)])
