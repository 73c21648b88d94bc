"""Commands of Resqu's words: unique ids, deferral, plans, and where a job goes (MODEL sections 7 and 10).

A Resqu job is a `Spec` with a `ResquFace`. Its queue is the pool that the configured mapping gives for the face's
source and name; without a mapping it is `UNASSIGNED`. The engine looks that up: whoever makes the spec names
`UNASSIGNED`. A job with a unique id carries `unique(uid)` as its lock.

`by` is the connection that speaks, a number that no other connection of this run of the server has."""

from collections.abc import Mapping as Dict
from enum import IntEnum
from math import inf
from typing import Final

import msgspec

from crossdock.model.commands.core import Claim, Command, LeaseTerms, Verdict
from crossdock.model.events.resqu import Said
from crossdock.model.job import Job, LeaseBinding, LeaseRef, LockRelease, LockTerms, Number, Spec

#: The queue of Resqu jobs while no pool is known for them.
UNASSIGNED: Final = "unassigned"

#: A lease into a worker's buffer lasts until the buffer is emptied, or the worker is known to be gone.
BUFFER_TERMS: Final = LeaseTerms(inf, inf, inf, LeaseBinding.WORKER)

_SPACE: Final = "uid:"

#: The unique id under which a job that has none of its own is shown to Resqu's workers: this, then its number.
SHOWN_AS: Final = "crossdock:"


def unique(uid: str) -> LockTerms:
    """The lock of a unique id: held until its holder is gone, by whatever door, and kept over retries."""
    return LockTerms(_SPACE + uid, inf, LockRelease.END)


def uid_of(lock: str) -> str:
    """The unique id whose lock that is."""
    return lock.removeprefix(_SPACE)


class Reserve(Command[bool], frozen=True, gc=False):
    """`SETNX unique:<uid>:state`: take a unique id for a job that this connection is about to push. Outcome: False
    when a job or another connection has it. One who reserves again what he has is told True; so is the child that said
    the end of the job which holds it (`Unlock`): it is about to push that job's next try."""

    uid: str
    by: int


class Release(Command[None], frozen=True, gc=False):
    """A connection ended: what it had reserved and not used is free. A deferred job that it was handed by `Finalise`
    and did not push is enqueued. Cheap when there is nothing."""

    by: int


class Pushing(IntEnum):
    """What became of a push."""

    PUSHED = 0
    REPEATED = 1  #: the same job was pushed before: answered as it was then, and nothing is added
    CONTINUED = 2  #: it is the next try, or the next run, of the job in a worker's buffer that has its unique id
    NOT_UNIQUE = 3  #: somebody else has its unique id; nothing was done
    DUPLICATE = 4  #: a job of that id, pushed through another door, is alive; nothing was done


class PushJob(Command[Pushing], frozen=True, gc=False):
    """`LPUSH unassigned`, `RPUSH delayed:<ts>` (then `spec.due` is set).

    A repeat is known by `spec.jid`, for an hour after that job is gone; where the text brought no id (`face.stamped` is
    False) and there is a unique id, by the text of its holder. If the job in a worker's buffer holds the unique id, or
    is named by it (`SHOWN_AS`), and this connection said before that it is over (`Unlock`, `Mark`), this is its next
    try: it goes on under its number with this spec's jid, text, payload, due time and failures. On another connection,
    as after a restart, that is who pushes the same class and args. A foreign job keeps its payload, and after `Unlock`
    it fails by its own rules.
    """

    via: str
    by: int
    spec: Spec


class Defer(Command[bool | None], frozen=True, gc=False):
    """`DEFER_ADD`: push this job when the one that has its unique id is done, `face.defer` seconds after. Outcome:
    None when none is running; False when another one is deferred already, which stays; True: it is kept."""

    via: str
    spec: Spec  #: with its lock; `jid` is the id it will have


class Mark(Command[bool], frozen=True, gc=False):
    """`SET unique:<uid>:state … XX`. Outcome: False when nobody has it."""

    uid: str
    by: int
    running: bool  #: False, of a job in a worker's buffer: this connection is about to push its next run


class Unlock(Command[int], frozen=True, gc=False):
    """`DEL unique:<uid>:state unique:<uid>:deferred`, or one of them. Outcome: how many of these keys were there.

    Of a job in a worker's buffer: it failed. That counts when the buffer is emptied, unless this connection pushes its
    next try before; what is deferred stays, and is pushed when the job is done. Of another job: it goes on without
    its lock, or what is deferred is dropped. A job held through another door is not touched."""

    uid: str
    by: int
    state: bool
    deferred: bool


class Finalised(msgspec.Struct, frozen=True, gc=False):
    running: bool  #: False: the job was not running, and nothing was done
    deferred: bytes = b""  #: the text of the deferred job, handed to this connection; empty: there was none


class Finalise(Command[Finalised], frozen=True, gc=False):
    """`UNIQUE_FINALIZE`: the job in a worker's buffer that has this unique id succeeded. What is deferred is handed to
    this connection, which reserves the id and pushes it; if it ends before, the engine does (`Release`)."""

    via: str
    uid: str
    by: int


class Reschedule(Command[Verdict], frozen=True, gc=False):
    """A worker is done with its job, and it comes again, or another one does.

    The same: it goes on under its number with this spec's jid, text, payload and due time, its lock and what is
    deferred; as a failure it counts one. Another: the job ends, as a success or a final failure, and the spec is
    pushed; if the two have one unique id it goes over, with what is deferred."""

    jid: str
    claim: Claim
    spec: Spec
    failed: bool = False
    same: bool = True


class SetPlan(Command[bool], frozen=True, gc=False):
    """`PLAN_INSERT`, and `SET plan:<id>` with `anew`. Outcome: False when it exists already (with `anew`: when it does
    not), and nothing was done. The interval is one that `engine.resqu.interval.parse` takes: ask it first."""

    plan: str  #: `<source>_<id>`
    source: str
    interval: str  #: as in `recurrenceInterval`
    next: float  #: wall
    spec: Spec  #: of each run, with its lock; `jid` is not read
    text: bytes  #: as given; the door shows it with the true `nextRun`
    anew: bool = False


class MovePlan(Command[bool], frozen=True, gc=False):
    """`PLAN_MOVE`: give it another next run. Outcome: False when there is no such plan."""

    plan: str
    next: float


class ClearPlan(Command[bool], frozen=True, gc=False):
    """Outcome: False when there was none."""

    plan: str


#: source (or `default`) → name (or `default`) → pool
Pools = Dict[str, Dict[str, str]]


class SetMapping(Command[None], frozen=True, gc=False):
    """The mapping of the configuration. Empty: none. What waits unassigned is given its pool, in slices."""

    static: Pools
    batch: Pools


# Commands of Resqu's batches and of its worker's lists (MODEL section 10): what is popped, and pushed on.
#
# A batch is a `Stage`: its jobs wait in a list of its own, unseen until it is committed. Then it is a lane of its pool
# or
# waits in its source's backlog there. A buffer is a list of at most one element, `worker:<id>` or
# `allocator:<node>:<code>`: a job that was popped into it, and its text, which outlives the job until it is popped.


class OpenResquBatch(Command[bool], frozen=True, gc=False):
    """`BATCH_INIT`: a batch and its first job. Outcome: False when the name is in use, unless it is in use by this
    very job (a repeat). It ends after a day unless `KeepResquBatch` says otherwise."""

    via: str
    name: str
    source: str
    job_name: str  #: with the source it gives the pool
    spec: Spec


class PushToResquBatch(Command[int], frozen=True, gc=False):
    """`LPUSHX uncommitted:<id>`. Outcome: how many jobs it has then; 0: there is none uncommitted of that name, or its
    time is over. A job that is in it already is not added again."""

    via: str
    name: str
    spec: Spec


class KeepResquBatch(Command[bool], frozen=True, gc=False):
    """`EXPIRE uncommitted:<id>`. Outcome: False when there is none. An end that has come is the end of it."""

    name: str
    end: float  #: steady


class CommitResquBatch(Command[int], frozen=True, gc=False):
    """`BATCH_COMMIT`: all of it becomes visible. Outcome: how many jobs it has; 0: there is none uncommitted.

    With a batch mapping it is given to its pool at once. Without (`memory.resqu.mapping.batch` is empty) it waits for
    `AssignResquBatch`, and its name belongs into the list `committed`, a plain key: the door's affair."""

    name: str


class AssignResquBatch(Command[int | None], frozen=True, gc=False):
    """`BATCH_ASSIGN`: give a committed batch to a pool. Outcome: None when it is worked on from now on; else how long
    the backlog of its source is there, itself included; 0: there is no such batch that waits for a pool."""

    name: str
    queue: str


class FinishResquBatch(Command[str | None], frozen=True, gc=False):
    """`BATCH_REMOVE` of a batch that an allocator gave to a pool: it is gone (a job it still has goes to the queue
    itself). Outcome: the next one of its source's backlog, which waits for `AssignResquBatch` again, or None."""

    name: str


class LeaseFromResquBatch(Command[Job | None], frozen=True, gc=False):
    """`RPOPLPUSH committed:<id> worker:<id>`: lease the next job of a batch that a pool works on."""

    via: str
    name: str
    worker: str
    terms: LeaseTerms


class TakeNext(Command[Job | None], frozen=True, gc=False):
    """`BRPOPLPUSH unassigned allocator:…`: take the first job of a queue, to give it to another one. It is no lease:
    nothing is counted, and the job is `held` until `PutOn`. `FillBuffer` follows."""

    via: str
    queue: str


class FillBuffer(Command[None], frozen=True, gc=False):
    """What was leased (`LeaseNext`, `LeaseFromResquBatch`) or taken (`TakeNext`) just now stands in this buffer."""

    key: str  #: without the prefix: `worker:…`, `allocator:…`
    number: Number
    token: int  #: of its lease; 0: it was taken, not leased
    text: bytes  #: as it was answered


class PutOn(Command[bytes | None], frozen=True, gc=False):
    """`RPOPLPUSH allocator:… <queue>`: to the tail of that queue. Outcome: its text; None when the buffer is empty."""

    via: str
    key: str
    queue: str


class EmptyBuffer(Command[bytes | None], frozen=True, gc=False):
    """`RPOP worker:<id>`. Outcome: the text in it, also when its lease is over; None when it is empty.

    A job that is still leased to it is settled: a final failure if that was said (`Unlock`), else a success. If its
    worker is gone (`lost`) its lease was lost, and the job goes back by its rules."""

    via: str
    key: str
    lost: bool = False


class DiscardBuffer(Command[bool], frozen=True, gc=False):
    """`LREM allocator:… 1 <text>`: the allocator cannot use this job. Outcome: False when that text is not in it.
    The job is removed."""

    via: str
    key: str
    text: bytes


class LoseBuffer(Command[None], frozen=True, gc=False):
    """`SREM process:<node>:pool:<pool>`: the worker is gone. A job leased to its buffer goes back by its rules; the
    text stays until it is popped."""

    via: str
    key: str


class Buffer(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What stands in a buffer. The job may be over, or somebody else's by now: then `token` is not its lease."""

    number: Number
    token: int
    text: bytes
    said: Said = Said.NOTHING
    by: int = 0  #: the connection that said it

    @property
    def held(self) -> LeaseRef:
        return self.number, self.token
