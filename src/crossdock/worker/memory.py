"""The memory that a process uses."""

import os
import subprocess
import sys
from pathlib import Path


def rss_bytes(pid: int) -> int | None:
    """Resident memory of a process; None: it has ended, or this system does not tell."""
    if sys.platform.startswith("linux"):
        try:
            return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return None
    if os.name == "posix":
        try:
            shown = subprocess.run(
                ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False, timeout=5
            ).stdout
            return int(shown) * 1024
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
    return None
