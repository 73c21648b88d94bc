"""Admission: whether new jobs are accepted. `limits.jobs` bounds the memory, a watermark bounds the disk.

Records that clients create beside their jobs count too. At the limit every new job is refused, also to a known queue,
because it takes as much memory as one to a new queue. The refusal names the kind of record that is most numerous: a
client may have created thousands of queues by mistake.
"""

from pathlib import Path
from typing import Final

from crossdock.engine.state import EngineState
from crossdock.journal.files import free_bytes, total_bytes

#: How to reduce each kind of record.
_CURES: Final = {
    "queues": "forget some (QUEUE REMOVE, queue.forget)",
    "tags": "untag jobs",
    "tracked jobs": "untrack some",
    "qless settings": "config.unset some",
    "recurring jobs": "unrecur some",
    "Resqu buffers": "empty some",
    "Faktory batches": "let some finish",
    "TRACK states": "they expire half an hour after their last change",
}

#: Records beside the jobs (queues, tags and the like) that do not count. Each one more takes the place of a job.
RECORDS_FREE: Final = 10_000

#: Jobs that are admitted before jobs and records are counted again.
_COUNTED_ROOM: Final = 1_000


class Admission:
    __slots__ = ("_most", "_room", "_state", "disk_refusal")

    def __init__(self, state: EngineState, most: int) -> None:
        self._state = state
        self._most = most
        self._room = 0  #: jobs that are admitted without counting
        self.disk_refusal: str | None = None  #: set while the free disk space is below its watermark

    def no_room(self, jobs: int) -> str | None:
        """Why this many more jobs are refused. None: they are admitted."""
        if self.disk_refusal is not None:
            return self.disk_refusal
        self._room -= jobs
        return None if self._room >= 0 else self._count_room(jobs)

    def _count_room(self, jobs: int) -> str | None:
        """Count jobs and records. The result serves the next thousand jobs."""
        free = self.free_places() - jobs
        self._room = min(free, _COUNTED_ROOM) if free > 0 else 0
        return _refusal(self._state, self._most) if free < 0 else None

    def free_places(self) -> int:
        """How many more jobs the memory limit allows."""
        return self._most - len(self._state.jobs) - _counted_records(self._state)

    def unasked(self) -> int:
        """How many more jobs may be created that no client pushes, such as recurring ones."""
        return self.free_places() if self.disk_refusal is None else 0


def _refusal(state: EngineState, most: int) -> str:
    records = _counted_records(state)
    if not records:
        return f"the server holds {most} jobs, its limit; complete or delete some, or raise limits.jobs"
    kinds = {**_named(state), **_temporary(state)}
    kind = max(kinds, key=kinds.__getitem__)
    return (
        f"the server holds {len(state.jobs)} jobs and {records} other records, mostly {kind}, and its limit is {most}; "
        f"complete or delete jobs, {_CURES[kind]}, or raise limits.jobs"
    )


def _counted_records(state: EngineState) -> int:
    """Records that count as jobs: a queue costs as much memory as a job, and it stays."""
    return sum(_temporary(state).values()) + max(0, sum(_named(state).values()) - RECORDS_FREE)


def _named(state: EngineState) -> dict[str, int]:
    return {
        "queues": len(state.queues),
        "tags": len(state.tags.uses) - len(state.tags.unused),
        "tracked jobs": len(state.qless.watched),
        "qless settings": len(state.qless.config),
        "recurring jobs": len(state.qless.intervals),
        "Resqu buffers": len(state.resqu.buffers),
    }


def _temporary(state: EngineState) -> dict[str, int]:
    """Records that end by themselves. All of them count."""
    return {"Faktory batches": len(state.batches), "TRACK states": len(state.progress)}


# Disk space: new jobs are refused before the disk is full, so that workers can still acknowledge their jobs.


MIB: Final = 1024 * 1024

#: The reserve is for acknowledgements; new jobs must not use it up.
RESERVE_USED: Final = "the disk is full and the reserve is in use; free some space and push again"


def watermark(folder: Path, min_free_mib: int) -> int:
    """Bytes that must stay free: the setting, or a tenth of the volume if that is less."""
    return min(min_free_mib * MIB, total_bytes(folder) // 10)


def refusal(folder: Path, min_free_mib: int) -> str | None:
    """Why pushes are refused now. None: they are accepted."""
    free, least = free_bytes(folder), watermark(folder, min_free_mib)
    if free >= least:
        return None
    return f"the disk is nearly full ({free // MIB} MiB free, {least // MIB} MiB kept); free some space and push again"
