"""File systems for a test: an ext4 image on a loop device, or a small tmpfs. Both need root."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def missing() -> str | None:
    """Why no file system can be mounted here; None if one can."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("mount", "umount", "losetup", "mkfs.ext4"):
        if shutil.which(tool) is None:
            return f"no {tool}"
    if _run("losetup", "-f").returncode != 0:
        return "no loop device"
    return None


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _must(*command: str) -> None:
    done = _run(*command)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def make_ext4(image: Path, mib: int) -> None:
    with image.open("wb") as file:
        file.truncate(mib * 1024 * 1024)
    _must("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    """Mount the image's file system. After a cut this replays its journal."""
    at.mkdir(exist_ok=True)
    _must("mount", "-o", "loop", str(image), str(at))
    try:
        yield at
    finally:
        _must("umount", str(at))


def cut(image: Path, copy: Path) -> None:
    """Copy the image as a power cut would leave it.

    Copying takes time. A copy during which the file system wrote would mix two states that the disk never held
    together, so it is repeated.
    """
    written = -1
    while written != image.stat().st_mtime_ns:
        written = image.stat().st_mtime_ns
        shutil.copyfile(image, copy)


@contextmanager
def tmpfs(at: Path, mib: int) -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    _must("mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0700", "tmpfs", str(at))
    try:
        yield at
    finally:
        _must("umount", str(at))
