"""Which kind of file system a path is on, and whether a journal may live there."""

import re
from pathlib import Path
from typing import Final

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
