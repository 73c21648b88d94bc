"""Checks of the settings and the machine that a running server and `crossdock doctor` share. They read only."""

import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crossdock.auth.tls import read_certificate
from crossdock.journal.data_dir import existing
from crossdock.journal.files import free_bytes
from crossdock.journal.open import unusable_store
from crossdock.model.errors import BadSetting
from crossdock.server import admission, static_config
from crossdock.server.endpoints import addresses
from crossdock.settings.loading import Loaded
from crossdock.settings.schema import Settings
from crossdock.settings.table import TABLE

#: Less free space is worth a warning above the watermark too, because a compaction writes a second copy of all jobs.
_LITTLE_DISK_MIB: Final = 1_024

#: Descriptors that the server needs besides connections: journal, snapshots, listeners, pipes to child processes.
_OWN_DESCRIPTORS: Final = 100

#: A certificate that expires within this time is worth a warning.
_EXPIRES_SOON_S: Final = 14 * 86_400


def running_warnings(loaded: Loaded) -> list[str]:
    """What endangers the jobs of a running server. Its journal and lake are open, so they are not examined here."""
    settings = loaded.settings
    return [
        *loaded.warnings,
        *secret_file(loaded),
        *volatile_folder(settings),
        *little_disk(settings),
        *few_descriptors(settings),
        *weak_durability(settings),
        *expiring_certificate(settings),
    ]


def bad_settings(settings: Settings) -> list[str]:
    """Settings that are each valid but that `crossdock up` refuses."""
    found = []
    reads = (static_config.throttles, static_config.rates, static_config.schedules, static_config.mapping)
    for read in (addresses, *reads):
        try:
            read(settings)
        except BadSetting as error:
            found.append(f"the server will not start: {error}")
    return found


def secret_file(loaded: Loaded) -> Iterator[str]:
    file = loaded.file
    if file is None or not file.stat().st_mode & 0o004:
        return
    held = [name for name, setting in TABLE.items() if setting.is_secret and loaded.sources[name] == f"file {file}"]
    if held:
        yield f"{file} holds {', '.join(held)} and every user of this machine can read it; run chmod 600 {file}"


def expiring_certificate(settings: Settings) -> Iterator[str]:
    where = settings.tls.cert
    if not where:
        return
    try:
        left = read_certificate(where).expires - time.time()
    except BadSetting as error:
        yield str(error)
        return
    if left < _EXPIRES_SOON_S:
        when = "has expired" if left <= 0 else f"expires in {int(left // 86_400)} days"
        yield f"tls.cert = {where} {when}; replace the file, then run crossdock reload"


def weak_durability(settings: Settings) -> Iterator[str]:
    if settings.journal.durability == "everysec":
        yield "journal.durability = everysec: a power cut can lose the last second of requests; always loses none"


def volatile_folder(settings: Settings) -> Iterator[str]:
    kind = file_system(existing(settings.server.data), MOUNTS.read_text("utf-8", "replace"))
    if kind in IN_MEMORY:
        yield f"the data folder is on {kind}, in memory: a reboot loses every job; set server.data to a disk"
    if kind in NETWORK:
        yield f"the data folder is on {kind}, a network file system: the journal may break; set server.data to a disk"


def little_disk(settings: Settings) -> Iterator[str]:
    free = free_bytes(existing(settings.server.data)) // admission.MIB
    if free < _LITTLE_DISK_MIB:
        yield f"only {free} MiB of disk are free for the data folder; {_LITTLE_DISK_MIB} MiB or more are recommended"


def few_descriptors(settings: Settings) -> Iterator[str]:
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)  # the server raises its soft limit to the hard one
    wanted = settings.limits.connections + _OWN_DESCRIPTORS
    if limit != resource.RLIM_INFINITY and limit < wanted:
        yield (
            f"{limit} file descriptors are too few for limits.connections = {settings.limits.connections}; "
            f"raise the limit to {wanted} (ulimit -Hn, systemd: LimitNOFILE), or lower limits.connections"
        )


def missing_store() -> Iterator[str]:
    if unusable := unusable_store():
        yield f"the server will not start: {unusable}"


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
