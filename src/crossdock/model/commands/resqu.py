"""Commands of Resqu: unique ids, deferred jobs, plans, batches and buffers (model.md sections 7 and 10).

A Resqu job is a `Spec` with `ResquData`. Its queue is the pool that the configured mapping gives for its source and
name. Without a mapping it is `UNASSIGNED`. The engine looks up the pool, so the spec names `UNASSIGNED`. A job with a
unique id has `unique(uid)` as its lock.

`by` is the connection that sends the command. Its number is unique while the server runs.
"""

from collections.abc import Mapping as Dict
from enum import IntEnum
from math import inf
from typing import ClassVar, Final

import msgspec

from crossdock.model.commands.core import Claim, Command, LeaseTerms, Verdict
from crossdock.model.events.resqu import Said
from crossdock.model.job import Job, LeaseBinding, LeaseRef, LockRelease, LockTerms, Number, Spec

#: The queue of Resqu jobs whose pool is not known.
UNASSIGNED: Final = "unassigned"

#: A lease into a worker's buffer lasts until the buffer is emptied, or the worker is known to be gone.
BUFFER_TERMS: Final = LeaseTerms(inf, inf, inf, LeaseBinding.WORKER)

_SPACE: Final = "uid:"

#: Resqu workers see this prefix and the job's number as the unique id of a job that has none.
SHOWN_AS: Final = "crossdock:"


def unique(uid: str) -> LockTerms:
    """The lock of a unique id. It is held until its holder is removed, whatever protocol does that, and is kept over
    retries.
    """
    return LockTerms(_SPACE + uid, inf, LockRelease.END)


def uid_of(lock: str) -> str:
    """The unique id of that lock."""
    return lock.removeprefix(_SPACE)


class Reserve(Command[bool], frozen=True, gc=False):
    """`SETNX unique:<uid>:state`: reserve a unique id for a job that this connection is about to push. Outcome: False
    if a job or another connection holds it. It is True for a connection that already reserved it, and for the
    connection that reported the end of the holder (`Unlock`), because that is about to push the holder's next try.
    """

    uid: str
    by: int


class Release(Command[None], frozen=True, gc=False):
    """A connection closed: its unused reservations are freed. A deferred job that `Finalise` gave to it and that it did
    not push is enqueued. Cheap if there is nothing to do.
    """

    by: int


class Pushing(IntEnum):
    """The result of a push."""

    PUSHED = 0
    REPEATED = 1  #: the same job was pushed before: the reply is the same, and nothing is added
    CONTINUED = 2  #: it is the next try or run of the job in a worker's buffer that holds its unique id
    NOT_UNIQUE = 3  #: another job holds its unique id; nothing was done
    DUPLICATE = 4  #: a job of that id that another protocol pushed is alive; nothing was done


class PushJob(Command[Pushing], frozen=True, gc=False):
    """`LPUSH unassigned`, `RPUSH delayed:<ts>` (then `spec.due` is set).

    A repeat is recognised by `spec.jid` until an hour after that job is removed. If the text has no id
    (`ResquData.stamped` is False) and there is a unique id, it is recognised by the text of the holder.

    The push is the next try of the job in a worker's buffer if that job holds the unique id, or is named by it
    (`SHOWN_AS`), and this connection reported its end before (`Unlock`, `Mark`). After a restart another connection may
    push it, with the same class and args. The job keeps its number and gets this spec's jid, text, payload, due time
    and failures. A job of another protocol keeps its payload, and after `Unlock` it fails by its own policy.
    """

    via: str
    by: int
    spec: Spec


class Defer(Command[bool | None], frozen=True, gc=False):
    """`DEFER_ADD`: push this job `ResquData.defer` seconds after the holder of its unique id is done. Outcome: None if
    none is running. False if another job is deferred already, which stays. True if it is deferred.
    """

    via: str
    spec: Spec  #: with its lock; `jid` is the id it will have


class Mark(Command[bool], frozen=True, gc=False):
    """`SET unique:<uid>:state … XX`. Outcome: False if nothing holds it."""

    uid: str
    by: int
    running: bool  #: False for a job in a worker's buffer: this connection is about to push its next run


class Unlock(Command[int], frozen=True, gc=False):
    """`DEL unique:<uid>:state unique:<uid>:deferred`, or one of them. Outcome: how many of these keys existed.

    For a job in a worker's buffer it means that the job failed. The failure counts when the buffer is emptied, unless
    this connection pushes the next try first. A deferred job stays and is pushed when the job is done. Any other job
    continues without its lock, or its deferred job is dropped. A job that another protocol leased is not changed.
    """

    uid: str
    by: int
    state: bool
    deferred: bool


class Finalised(msgspec.Struct, frozen=True, gc=False):
    running: bool  #: False: the job was not running, and nothing was done
    deferred: bytes = b""  #: the text of the deferred job, for this connection to push; empty: there was none


class Finalise(Command[Finalised], frozen=True, gc=False):
    """`UNIQUE_FINALIZE`: the job in a worker's buffer that holds this unique id succeeded. This connection gets the
    deferred job, reserves the id and pushes the job. If it closes first, the engine pushes it (`Release`).
    """

    via: str
    uid: str
    by: int


class Reschedule(Command[Verdict], frozen=True, gc=False):
    """A worker is done with its job, and the same job or another one follows.

    The same job keeps its number, its lock and its deferred job, and gets this spec's jid, text, payload and due time.
    If it failed, the failure counts. With another job, the first one ends as a success or a final failure, and the spec
    is pushed. If both have the same unique id, the lock and the deferred job pass to the new one.
    """

    jid: str
    claim: Claim
    spec: Spec
    failed: bool = False
    same: bool = True


class SetPlan(Command[bool], frozen=True, gc=False):
    """`PLAN_INSERT`, and `SET plan:<id>` with `replaces`. Outcome: False, and nothing is done, if the plan exists (with
    `replaces`: if it does not). The interval must be valid for `engine.resqu.plans`: check it first.
    """

    plan: str  #: `<source>_<id>`
    source: str
    interval: str  #: as in `recurrenceInterval`
    next: float  #: wall
    spec: Spec  #: of each run, with its lock; `jid` is not read
    text: bytes  #: as the client sent it; replies show it with the current `nextRun`
    replaces: bool = False


class MovePlan(Command[bool], frozen=True, gc=False):
    """`PLAN_MOVE`: set the next run. Outcome: False if the plan does not exist."""

    plan: str
    next: float


class ClearPlan(Command[bool], frozen=True, gc=False):
    """Outcome: False if the plan did not exist."""

    plan: str


#: source (or `default`) → name (or `default`) → pool
Pools = Dict[str, Dict[str, str]]


class SetMapping(Command[None], frozen=True, gc=False):
    """Set the configured mapping. Empty: none. Jobs that wait unassigned get their pools, in slices."""

    static: Pools
    batch: Pools


# Commands of Resqu batches and of the lists of its workers (model.md section 10).
#
# The jobs of a batch wait in its own list, invisible until it is committed. Then the batch is a lane of its pool, or
# waits in the backlog of its source there. A buffer is a list of at most one element, `worker:<id>` or
# `allocator:<node>:<code>`: a job that was popped into it, and its text. The text stays until it is popped, even if the
# job is gone.


class OpenResquBatch(Command[bool], frozen=True, gc=False):
    """`BATCH_INIT`: a batch and its first job. Outcome: False if the name is in use, unless this very job is in it (a
    repeat). It ends after a day unless `KeepResquBatch` extends it.
    """

    via: str
    name: str
    source: str
    job_name: str  #: its pool is chosen by this and the source
    spec: Spec


class PushToResquBatch(Command[int], frozen=True, gc=False):
    """`LPUSHX uncommitted:<id>`. Outcome: how many jobs the batch has. 0: no uncommitted batch has that name, or its
    time is over. A job that is already in it is not added again.
    """

    via: str
    name: str
    spec: Spec


class KeepResquBatch(Command[bool], frozen=True, gc=False):
    """`EXPIRE uncommitted:<id>`. Outcome: False if there is none. A past end ends the batch."""

    name: str
    end: float  #: steady


class CommitResquBatch(Command[int], frozen=True, gc=False):
    """`BATCH_COMMIT`: all jobs of the batch become visible. Outcome: how many jobs it has. 0: there is no such
    uncommitted batch.

    With a batch mapping it is assigned to its pool at once. Without (`state.resqu.mapping.batch` is empty) it waits for
    `AssignResquBatch`, and the protocol adds its name to the list `committed`, a plain key.
    """

    name: str


class AssignResquBatch(Command[int | None], frozen=True, gc=False):
    """`BATCH_ASSIGN`: assign a committed batch to a pool. Outcome: None if it is active now. Otherwise the length of
    the backlog of its source with it. 0: no such batch waits for a pool.
    """

    name: str
    queue: str


class FinishResquBatch(Command[str | None], frozen=True, gc=False):
    """`BATCH_REMOVE` of a batch that an allocator assigned: it is removed, and jobs that are left join the queue
    itself. Outcome: the next batch of its source's backlog, which waits for `AssignResquBatch` again, or None.
    """

    name: str


class LeaseFromResquBatch(Command[Job | None], frozen=True, gc=False):
    """`RPOPLPUSH committed:<id> worker:<id>`: lease the next job of a batch that is active in a pool."""

    via: str
    name: str
    worker: str
    terms: LeaseTerms


class TakeNext(Command[Job | None], frozen=True, gc=False):
    """`BRPOPLPUSH unassigned allocator:…`: take the first job of a queue, to put it into another one. It is not a
    lease: nothing is counted, and the job is `held` until `PutOn`. `FillBuffer` follows.
    """

    via: str
    queue: str
    worker: ClassVar[str] = ""  #: it does not say which worker asks

    @property
    def queues(self) -> tuple[str, ...]:
        return (self.queue,)


class FillBuffer(Command[None], frozen=True, gc=False):
    """Put a job that was just leased (`LeaseNext`, `LeaseFromResquBatch`) or taken (`TakeNext`) into this buffer."""

    key: str  #: without the prefix: `worker:…`, `allocator:…`
    number: Number
    token: int  #: of its lease; 0: it was taken, not leased
    text: bytes  #: as it was in the reply


class PutOn(Command[bytes | None], frozen=True, gc=False):
    """`RPOPLPUSH allocator:… <queue>`: put the job to the tail of that queue. Outcome: its text. None if the buffer is
    empty.
    """

    via: str
    key: str
    queue: str


class EmptyBuffer(Command[bytes | None], frozen=True, gc=False):
    """`RPOP worker:<id>`. Outcome: the text in the buffer, also if its lease has ended. None if it is empty.

    A job that is still leased to the buffer is settled: as a final failure after `Unlock`, otherwise as a success. If
    its worker is gone (`lost`), its lease expires and its policy decides.
    """

    via: str
    key: str
    lost: bool = False


class DiscardBuffer(Command[bool], frozen=True, gc=False):
    """`LREM allocator:… 1 <text>`: the allocator cannot use this job. Outcome: False if that text is not in the buffer.
    The job is removed.
    """

    via: str
    key: str
    text: bytes


class LoseBuffer(Command[None], frozen=True, gc=False):
    """`SREM process:<node>:pool:<pool>`: the worker is gone. The lease of a job in its buffer expires, and its policy
    decides. The text stays until it is popped.
    """

    via: str
    key: str


class Buffer(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The element of a buffer. The job may have ended or be leased by another worker: then `token` is not its lease."""

    number: Number
    token: int
    text: bytes
    said: Said = Said.NOTHING
    by: int = 0  #: the connection that reported it

    @property
    def held(self) -> LeaseRef:
        return self.number, self.token
