"""The record of every job as the journal describes it, and the holders of locks."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.job import Callback, LockRelease, LockTerms, Number, Spec, Token
from crossdock.model.records import Per
from crossdock.model.states import State

GONE: Final = State.GONE


@dataclass
class Life:
    number: int
    spec: Spec
    state: State
    due: float  #: wall
    attempt: int = 0
    failures: int = 0
    lease: e.Leased | None = None
    end: float = 0.0  #: steady; of the lease, renewals included
    freed: list[str] = field(default_factory=list)  #: how each lease of it ended
    executed: bool = False  #: whether it failed, ended or was buried at least once
    succeeded: bool = False
    ended: str = ""  #: how it ended; empty while it exists
    acknowledged_success: bool = False
    cannot_succeed: bool = False  #: unless it is requeued
    queue: str = ""
    depends_on: set[int] = field(default_factory=set)
    lost: bool = False  #: a dependency ended without success, and this job fails later
    age: float = 0.0  #: steady end of its time to live; 0: none
    waits: float = 0.0  #: steady end of a retry delay or of the time as a dead job

    @property
    def lock(self) -> LockTerms | None:
        extra = self.spec.extra
        return extra.links.lock if extra and extra.links else None

    def has_expired(self, now: Now) -> bool:
        links = self.spec.extra.links if self.spec.extra else None
        by_wall = bool(links and 0 < links.expires <= now.wall)
        expired = by_wall and bool(links and links.expires_steady <= now.steady)
        return self.lease is None and (expired or 0 < self.age <= now.steady)

    @property
    def group(self) -> str:
        extra = self.spec.extra
        return extra.links.batch if extra and extra.links else ""


class Records:
    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        self.live: dict[int, Life] = {}
        self.leased: dict[int, Life] = {}
        self.members: dict[str, list[Life]] = {}  #: by group
        self.leases: dict[Token, Number] = {}
        self.closed: dict[Token, str] = {}
        self.attempted: dict[bytes, str] = {}  #: jid by payload, of every push that a client attempted
        self.born: dict[bytes, int] = {}  #: number by payload
        self.bulks: list[list[bytes]] = []  #: payloads of each bulk push, whether it was committed or not
        self.acknowledged: set[bytes] = set()
        self.locks: dict[str, tuple[int, float]] = {}
        self.throttles: dict[str, tuple[int, Per, float]] = {}
        self.paused: set[str] = set()
        self.calls: set[tuple[str, Callback]] = set()
        self.number = self.token = self.epoch = self.unused = 0
        self.at = 0.0
        self.pushed_to: Counter[str] = Counter()  #: by queue
        self.ended_in: Counter[str] = Counter()

    def _live(self, number: Number) -> Life:
        life = self.lives[number]
        assert not life.ended, f"job {number} has an event after its end ({life.ended})"
        return life

    def _end_lease(self, life: Life, how: str) -> None:
        life.lease = None
        life.freed.append(how)
        del self.leased[life.number]

    def _release_if_final(self, life: Life) -> None:
        """Releases the lock of a dead or failed job, if it is held until the end of the tries."""
        if life.state in (State.DEAD, State.FAILED) and life.lock is not None and life.lock.freed is LockRelease.END:
            self._release_lock(life)

    def _ended(self, life: Life, how: str) -> None:
        life.state, life.ended, life.executed = GONE, how, True
        del self.live[life.number]
        self.ended_in[life.queue] += 1
        self._release_lock(life)

    def _release_lock(self, life: Life) -> None:
        if life.lock is not None and self.locks.get(life.lock.name, (0, 0.0))[0] == life.number:
            del self.locks[life.lock.name]
