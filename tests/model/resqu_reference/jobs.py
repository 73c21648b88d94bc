"""The reference's job, batch, buffer and plan, and the Resqu fields of a spec."""

from dataclasses import dataclass, field
from math import inf
from typing import Final

from msgspec.structs import replace

from crossdock.model.commands import resqu as r
from crossdock.model.job import ResquData, Spec

TRIES: Final = 2  #: failures after which another one ends the job


@dataclass
class Job:
    number: int
    jid: str
    text: bytes
    stamped: bool
    uid: str
    source: str
    name: str
    queue: str
    state: str  #: ready, scheduled, leased, held, dead
    sort_key: tuple[float, int] = (0.0, 0)
    due: float = 0.0
    dead_until: float = 0.0  #: steady
    failures: int = 0
    attempts: int = 0
    token: int = 0
    batch: str = ""
    end: float = inf  #: steady end of its lease


@dataclass
class Batch:
    source: str
    name: str
    end: float
    numbers: list[int] = field(default_factory=list)  #: jobs that were not leased yet
    phase: str = "open"  #: open, committed, backlog, active
    queue: str = ""
    by_hand: bool = False
    since: float = 0.0


@dataclass
class Buffer:
    number: int
    token: int
    text: bytes
    said: str = ""
    by: int = 0
    over: bool = False  #: the job was buried while an allocator had it


@dataclass
class Plan:
    interval: str
    next: float
    spec: Spec
    source: str


def protocol_data(spec: Spec) -> ResquData:
    assert spec.extra is not None
    assert isinstance(spec.extra.protocol_data, ResquData)
    return spec.extra.protocol_data


def uid_of(spec: Spec) -> str:
    lock = spec.extra.links.lock if spec.extra is not None and spec.extra.links is not None else None
    return r.uid_of(lock.name) if lock is not None else ""


def due_at(spec: Spec, due: float) -> Spec:
    return replace(spec, due=due)
