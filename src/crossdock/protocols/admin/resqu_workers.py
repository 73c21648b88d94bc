"""Resqu's workers and allocators that have a job in hand, as the operator sees them and lets go of their jobs.

Such a lease has no end: it is over when the worker empties its buffer, or its host says that it is gone. A host that
never comes back says nothing, so somebody has to say it (MODEL section 10).
"""

from typing import Final

from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.commands.keyspace import ChangeMembers, Kind
from crossdock.model.commands.resqu import EmptyBuffer
from crossdock.model.job import Job
from crossdock.protocols.admin.views import View
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.timestamps import stamp

_WORKER: Final = "worker:"
_ALLOCATOR: Final = "allocator:"


def names(state: EngineState) -> list[str]:
    """A worker by its id, an allocator by the key of its buffer."""
    keys = [key for key in queries.buffers(state) if queries.in_hand(state, key) is not None]
    return [name(key) for key in keys]


def name(key: str) -> str:
    """The owner of that buffer."""
    return key.removeprefix(_WORKER)


def _key(name: str) -> str:
    return name if name.startswith(_ALLOCATOR) else _WORKER + name


def shown(dispatcher: Dispatcher, name: str) -> View | None:
    """As a worker of another door; None: it has nothing any more."""
    job = queries.in_hand(dispatcher.state, _key(name))
    return None if job is None else _view(name, job, dispatcher.now.wall)


def _view(name: str, job: Job, wall: float) -> View:
    """Heard of last when it was given the job; of an allocator nobody noted when that was."""
    host, _, rest = name.removeprefix(_ALLOCATOR).replace(":", "~").partition("~")
    pid = rest.rpartition("~")[2].rpartition("-")[2]
    lease = job.lease
    return {
        "worker": name,
        "hostname": host,
        "pid": int(pid) if pid.isdecimal() else 0,
        "labels": ("resqu",),
        "state": "running",
        "connections": 0,
        "leases": int(lease is not None),
        "rss_kib": 0,
        "beat_s": None if lease is None else max(0.0, wall - lease.at),
        "started": None if lease is None else stamp(lease.at),
    }


def let_go(dispatcher: Dispatcher, via: str, name: str) -> bool:
    """It is gone: its job goes back by its rules, and it leaves its process set. False: it had none."""
    key = _key(name)
    if queries.in_hand(dispatcher.state, key) is None:
        return False
    with dispatcher.together():
        dispatcher.do(EmptyBuffer(via, key, lost=True))
        if key != name:
            dispatcher.do(ChangeMembers(queries.worker_set(name.encode()), Kind.SET, drop=[name.encode()]))
    return True
