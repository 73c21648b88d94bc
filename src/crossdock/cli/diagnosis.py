"""The checks of `crossdock doctor`. They read only: nothing is created, changed or locked."""

import os
import re
import resource
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from crossdock.journal.completeness import begins_empty, lost_journal
from crossdock.journal.data_dir import existing, in_use_by, not_a_directory
from crossdock.journal.files import Progress, free_bytes
from crossdock.journal.open import open_reader, unusable_store
from crossdock.journal.port import NoJournal
from crossdock.lake.location import folder
from crossdock.lake.status import status
from crossdock.lake.verify import Verified, verify
from crossdock.model.errors import BadSetting, CrossdockError, Damaged, Newer
from crossdock.server import admission, static_config
from crossdock.server.endpoints import addresses
from crossdock.server.lake_keeper import BEHIND_BYTES, LakeKeeper, last_entry, location_of
from crossdock.settings.loading import Loaded
from crossdock.settings.schema import Settings
from crossdock.settings.table import TABLE

#: Less free space is worth a warning above the watermark too, because a compaction writes a second copy of all jobs.
_LITTLE_DISK_MIB: Final = 1_024

#: Descriptors that the server needs besides connections: journal, snapshots, listeners, pipes to child processes.
_OWN_DESCRIPTORS: Final = 100


def warnings(loaded: Loaded) -> list[str]:
    """Everything that endangers jobs or keeps the server from starting."""
    settings = loaded.settings
    return [
        *loaded.warnings,
        *bad_settings(settings),
        *_secret_file(loaded),
        *_folder(settings),
        *_disk(settings),
        *_descriptors(settings),
        *_store(),
        *_durability(settings),
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


def bad_settings(settings: Settings) -> list[str]:
    """Settings that are each valid but that `crossdock up` refuses."""
    found = []
    for read in (addresses, static_config.throttles, static_config.schedules, static_config.mapping):
        try:
            read(settings)
        except BadSetting as error:
            found.append(f"the server will not start: {error}")
    return found


def _secret_file(loaded: Loaded) -> Iterator[str]:
    file = loaded.file
    if file is None or not file.stat().st_mode & 0o004:
        return
    held = [name for name, setting in TABLE.items() if setting.is_secret and loaded.sources[name] == f"file {file}"]
    if held:
        yield f"{file} holds {', '.join(held)} and every user of this machine can read it; run chmod 600 {file}"


def _durability(settings: Settings) -> Iterator[str]:
    if settings.journal.durability == "everysec":
        yield "journal.durability = everysec: a power cut can lose the last second of requests; always loses none"


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
    kind = file_system(there, MOUNTS.read_text("utf-8", "replace"))
    if kind in IN_MEMORY:
        yield f"the data folder is on {kind}, in memory: a reboot loses every job; set server.data to a disk"
    if kind in NETWORK:
        yield f"the data folder is on {kind}, a network file system: the journal may break; set server.data to a disk"


def _disk(settings: Settings) -> Iterator[str]:
    there = existing(settings.server.data)
    refusal = admission.refusal(there, settings.journal.min_free_mib)
    free = free_bytes(there) // admission.MIB
    if refusal is not None:
        yield f"new jobs will be refused: {refusal}"
    elif free < _LITTLE_DISK_MIB:
        yield f"only {free} MiB of disk are free for the data folder; {_LITTLE_DISK_MIB} MiB or more are recommended"


def _descriptors(settings: Settings) -> Iterator[str]:
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)  # the server raises its soft limit to the hard one
    wanted = settings.limits.connections + _OWN_DESCRIPTORS
    if limit != resource.RLIM_INFINITY and limit < wanted:
        yield (
            f"{limit} file descriptors are too few for limits.connections = {settings.limits.connections}; "
            f"raise the limit to {wanted} (ulimit -Hn, systemd: LimitNOFILE), or lower limits.connections"
        )


def _store() -> Iterator[str]:
    if unusable := unusable_store():
        yield f"the server will not start: {unusable}"


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


# File systems that a journal can or cannot be on.


MOUNTS: Final = Path("/proc/self/mountinfo")

#: Lost at a reboot.
IN_MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})

#: SQLite's write-ahead log needs shared memory and locks that these file systems lack. Not all of them sync to a disk.
NETWORK: Final = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.cifs",
        "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.juicefs", "fuse.rclone", "fuse.s3fs",
        "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb2", "smb3", "smbfs",
        "vboxsf",
    }
)  # fmt: skip


def file_system(path: Path, mountinfo: str) -> str:
    """The type of the file system that holds this absolute path, by /proc/self/mountinfo."""
    found, depth = "", -1
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        point = Path(_unescape(fields.split(" ")[4]))
        # Of two mounts on the same point the later one covers the earlier.
        if len(point.parts) >= depth and path.is_relative_to(point):
            found, depth = rest.split(" ")[0], len(point.parts)
    return found


def _unescape(text: str) -> str:
    """Decode the octal escapes that the kernel writes for spaces and backslashes in a path."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
