"""What `crossdock doctor` looks at. Each check only looks: nothing is created, changed or held."""

import os
import re
import resource
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from crossdock.journal.completeness import begins_empty, lost_journal
from crossdock.journal.data_dir import existing, in_use_by, not_a_directory
from crossdock.journal.errors import NoJournal
from crossdock.journal.files import Progress, free_bytes
from crossdock.journal.open import open_reader, unusable_store
from crossdock.lake.segments import look, verify
from crossdock.lake.status import status
from crossdock.model.errors import BadSetting, CrossdockError, Damaged, Newer
from crossdock.server import admission, static_config
from crossdock.server.endpoints import addresses
from crossdock.server.lake_keeper import BEHIND_BYTES, folder_of, last_batch
from crossdock.settings.loading import Loaded
from crossdock.settings.schema import Settings
from crossdock.settings.table import TABLE

#: Less is worth a word even where the watermark allows it: a compaction writes a second copy of all jobs.
_LITTLE_DISK_MIB: Final = 1_024

#: What the server needs beside its connections: journal, snapshots, doors, the compactor's pipes.
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
    """Worth knowing, and nothing wrong."""
    data = settings.server.data
    holder = in_use_by(data)
    if holder:
        return [f"the data folder is in use by process {holder}: a server is running"]
    if data.exists() or data.is_symlink():
        empty = begins_empty(data)
        return [empty] if empty else []
    return [f"the data folder {data} does not exist yet; crossdock up creates it"]


def bad_settings(settings: Settings) -> list[str]:
    """What `crossdock up` refuses in settings that are well written each by itself."""
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
        yield f"{file} holds {', '.join(held)} and is readable by everybody on this machine; chmod 600 {file}"


def _durability(settings: Settings) -> Iterator[str]:
    if settings.journal.durability == "everysec":
        yield "journal.durability = everysec: a power cut loses up to a second of answered requests; always loses none"


def _unusable(settings: Settings) -> str:
    data = settings.server.data
    try:
        if gone := lost_journal(data):
            return gone
        with closing(open_reader(data)) as reader:
            reader.refuse_newer()
            reader.refuse_incomplete(last_batch(settings))
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
        yield f"the server will not start: {there} may not be written to by this user"
    elif gone := _unusable(settings):
        yield f"the server will not start: {gone}"
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
        yield f"only {free} MiB of disk are free for the data folder; {_LITTLE_DISK_MIB} MiB or more are comfortable"


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


# What `crossdock doctor` and `crossdock check` say about the lake. Both only look.


#: Faults that doctor tells one by one.
_TOLD: Final = 5

LAKE_CURE: Final = (
    "the server and its jobs are not affected. Put what is damaged or missing in the lake back from a copy of it, and "
    "take out what does not belong there; until then reports are made without it"
)


class VerifiedLake(msgspec.Struct):
    segments: int = 0
    rows: int = 0
    faults: list[str] = []


def lake_warnings(settings: Settings) -> Iterator[str]:
    if not settings.lake.on:
        return
    folder = folder_of(settings)
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        if folder.parent != settings.server.data:  # else the data folder's own warning says it
            yield f"the lake cannot be written: {there} is no folder this user may write to; set lake.dir to another"
        return
    try:
        told = status(look(folder), settings.server.data, on=True)
    except Newer as error:
        yield f"the server will not start: {error}"
        return
    except (CrossdockError, OSError) as error:
        yield f"the lake cannot be written: {error}"
        return
    if told.lag is not None and told.lag.bytes > BEHIND_BYTES:
        yield (
            f"the lake is {told.lag.bytes // admission.MIB} MiB behind the journal, which cannot be trimmed until it "
            "has caught up; the server's log says what keeps it"
        )
    yield from told.faults[:_TOLD]
    if len(told.faults) > _TOLD:
        yield f"{len(told.faults) - _TOLD} faults more in the lake; crossdock lake status names them all"


def verify_lake(settings: Settings, progress: Progress) -> VerifiedLake:
    """Of whatever lake is in the folder, whether it is written to now or not."""
    folder = folder_of(settings)
    try:
        found = look(folder)
    except (Damaged, OSError) as error:
        return VerifiedLake(faults=[str(error)])
    rows = sum(segment.rows for segment in found.segments)
    return VerifiedLake(len(found.segments), rows, [*found.faults, *verify(found, progress)])


# Which kind of file system a path is on, and whether a journal may live there.


MOUNTS: Final = Path("/proc/self/mountinfo")

#: Gone with the power.
IN_MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})

#: SQLite's write-ahead log needs shared memory and locks that such file systems do not give; neither do all of them
#: pass a sync on to a disk.
NETWORK: Final = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.cifs",
        "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.juicefs", "fuse.rclone", "fuse.s3fs",
        "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb2", "smb3", "smbfs",
        "vboxsf",
    }
)  # fmt: skip


def file_system(path: Path, mountinfo: str) -> str:
    """The type of the file system that holds this absolute path, as /proc/self/mountinfo tells it."""
    found, depth = "", -1
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        point = Path(_unescape(fields.split(" ")[4]))
        # Of two mounts on the same point the later one covers the earlier.
        if len(point.parts) >= depth and path.is_relative_to(point):
            found, depth = rest.split(" ")[0], len(point.parts)
    return found


def _unescape(text: str) -> str:
    """The kernel writes blanks and backslashes in a path as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
