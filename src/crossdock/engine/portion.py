"""How much one pop hands out. Jobs have any size, and its reply is one text: it gets fewer than it asked for, rather
than more than the server can carry."""

from collections.abc import Iterable
from typing import Final

from crossdock.model.job import Job

#: Of jobs as they are shown, most of which are their payloads. A larger one is handed out by itself.
PORTION_BYTES: Final = 64 * 1024 * 1024

#: Entries of a history whose texts are not worth a look.
_FEW: Final = 3


def size(job: Job) -> int:
    extra = job.extra
    if extra is None or len(extra.history) <= _FEW:
        return len(job.payload)
    return len(job.payload) + sum(len(line.name) + len(line.data) for line in extra.history)


def portion(jobs: Iterable[Job], room: int = PORTION_BYTES) -> list[Job]:
    """The first of them that fit, one at least."""
    taken: list[Job] = []
    for job in jobs:
        room -= size(job)
        if room < 0 and taken:
            break
        taken.append(job)
    return taken
