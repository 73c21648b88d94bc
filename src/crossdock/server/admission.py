"""How much more may be held: `limits.jobs` is what bounds memory, so whatever clients leave beside their jobs counts.

A job that finds no room is refused, to a queue that is known as well: it takes as much memory as one to a new queue.
So the refusal says of what there is too much. It may be jobs, or queues that somebody names at random."""

from pathlib import Path
from typing import Final

from crossdock.engine.state import EngineState
from crossdock.journal.files import free_bytes, total_bytes
from crossdock.server.limits import RECORDS_FREE

#: What is said of each kind of record, and how they become fewer.
_CURES: Final = {
    "queues": "forget some (QUEUE REMOVE, queue.forget)",
    "tags": "untag jobs",
    "tracked jobs": "untrack some",
    "settings of qless": "config.unset some",
    "recurring jobs": "unrecur some",
    "buffers of Resqu": "empty some",
    "batches of Faktory": "let some end",
    "states of TRACK": "they go half an hour after their last change",
}


#: Jobs that are let in before they are counted again.
_COUNTED_ROOM: Final = 1_000


class Admission:
    __slots__ = ("_most", "_room", "_state", "disk_refusal")

    def __init__(self, state: EngineState, most: int) -> None:
        self._state = state
        self._most = most
        self._room = 0  #: jobs that may come before it is counted again how many there are
        self.disk_refusal: str | None = None  #: set while the disk is below its watermark

    def no_room(self, jobs: int) -> str | None:
        """Why so many jobs more are not taken in."""
        if self.disk_refusal is not None:
            return self.disk_refusal
        self._room -= jobs
        return None if self._room >= 0 else self._count_room(jobs)

    def _count_room(self, jobs: int) -> str | None:
        """Not at every push: what was counted serves the next thousand."""
        free = self.free_places() - jobs
        self._room = min(free, _COUNTED_ROOM) if free > 0 else 0
        return _refusal(self._state, self._most) if free < 0 else None

    def free_places(self) -> int:
        """So many jobs more may be held."""
        return self._most - len(self._state.jobs) - _beside(self._state)

    def unasked(self) -> int:
        """So many may come in that no client pushes."""
        return self.free_places() if self.disk_refusal is None else 0


def _refusal(state: EngineState, most: int) -> str:
    beside = _beside(state)
    if not beside:
        return f"the server holds {most} jobs, its limit; work some off, or raise limits.jobs"
    kinds = {**_named(state), **_temporary(state)}
    kind = max(kinds, key=kinds.__getitem__)
    return (
        f"the server holds {len(state.jobs)} jobs and {beside} records beside them, most of these {kind}, and {most} "
        f"is its limit; work jobs off, {_CURES[kind]}, or raise limits.jobs"
    )


def _beside(state: EngineState) -> int:
    """Records that count: a queue costs as much as a job, and stays."""
    return sum(_temporary(state).values()) + max(0, sum(_named(state).values()) - RECORDS_FREE)


def _named(state: EngineState) -> dict[str, int]:
    return {
        "queues": len(state.queues),
        "tags": len(state.tags.uses) - len(state.tags.unused),
        "tracked jobs": len(state.qless.watched),
        "settings of qless": len(state.qless.config),
        "recurring jobs": len(state.qless.intervals),
        "buffers of Resqu": len(state.resqu.buffers),
    }


def _temporary(state: EngineState) -> dict[str, int]:
    """They end by themselves, and none of them is free."""
    return {"batches of Faktory": len(state.batches), "states of TRACK": len(state.progress)}


# Disk space: new jobs are refused in good time, so that what is there can still be worked off.


MIB: Final = 1024 * 1024

#: The room that was reserved for settling is in use; new jobs must not eat it up.
RESERVE_USED: Final = "the disk is full and the reserve is in use; free some space and push again"


def watermark(folder: Path, min_free_mib: int) -> int:
    """Bytes that must stay free: the setting, or a tenth of the volume if that is less."""
    return min(min_free_mib * MIB, total_bytes(folder) // 10)


def refusal(folder: Path, min_free_mib: int) -> str | None:
    """Why a push is refused now, None if it is not."""
    free, least = free_bytes(folder), watermark(folder, min_free_mib)
    if free >= least:
        return None
    return f"the disk is nearly full ({free // MIB} MiB free, {least // MIB} MiB kept); free some space and push again"
