"""Commands of Resqu's batches and of its worker's lists (MODEL section 10): what is popped, and pushed on.

A batch is a `Stage`: its jobs wait in a list of its own, unseen until it is committed. Then it is a lane of its pool or
waits in its source's backlog there. A buffer is a list of at most one element, `worker:<id>` or
`allocator:<node>:<code>`: a job that was popped into it, and its text, which outlives the job until it is popped.
"""

import msgspec

from crossdock.model.commands import Command, LeaseNext, Terms
from crossdock.model.event_resqu import Said
from crossdock.model.job import Held, Job, Number, Spec


class OpenStage(Command[bool], frozen=True, gc=False):
    """`BATCH_INIT`: a batch and its first job. Outcome: False when the name is in use, unless it is in use by this
    very job (a repeat). It ends after a day unless `KeepStage` says otherwise."""

    via: str
    name: str
    source: str
    job_name: str  #: with the source it gives the pool
    spec: Spec


class PushStage(Command[int], frozen=True, gc=False):
    """`LPUSHX uncommitted:<id>`. Outcome: how many jobs it has then; 0: there is none uncommitted of that name, or its
    time is over. A job that is in it already is not added again."""

    via: str
    name: str
    spec: Spec


class KeepStage(Command[bool], frozen=True, gc=False):
    """`EXPIRE uncommitted:<id>`. Outcome: False when there is none. An end that has come is the end of it."""

    name: str
    end: float  #: steady


class CommitStage(Command[int], frozen=True, gc=False):
    """`BATCH_COMMIT`: all of it becomes visible. Outcome: how many jobs it has; 0: there is none uncommitted.

    With a batch mapping it is given to its pool at once. Without (`memory.resqu.mapping.batch` is empty) it waits for
    `AssignStage`, and its name belongs into the list `committed`, a plain key: the door's affair."""

    name: str


class AssignStage(Command[int | None], frozen=True, gc=False):
    """`BATCH_ASSIGN`: give a committed batch to a pool. Outcome: None when it is worked on from now on; else how long
    the backlog of its source is there, itself included; 0: there is no such batch that waits for a pool."""

    name: str
    queue: str


class FinishStage(Command[str | None], frozen=True, gc=False):
    """`BATCH_REMOVE` of a batch that an allocator gave to a pool: it is gone (a job it still has goes to the queue
    itself). Outcome: the next one of its source's backlog, which waits for `AssignStage` again; None: there is none."""

    name: str


class LeaseStaged(Command[Job | None], frozen=True, gc=False):
    """`RPOPLPUSH committed:<id> worker:<id>`: lease the next job of a batch that a pool works on."""

    via: str
    name: str
    worker: str
    terms: Terms


class LeaseLane(LeaseNext, frozen=True, gc=False):
    """A `LeaseStaged` in its queue: of this batch alone."""

    lane: str = ""


class TakeNext(Command[Job | None], frozen=True, gc=False):
    """`BRPOPLPUSH unassigned allocator:…`: take the first job of a queue, to give it to another one. It is no lease:
    nothing is counted, and the job is `held` until `PutOn`. `FillBuffer` follows."""

    via: str
    queue: str


class FillBuffer(Command[None], frozen=True, gc=False):
    """What was leased (`LeaseNext`, `LeaseStaged`) or taken (`TakeNext`) just now stands in this buffer."""

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
    def held(self) -> Held:
        return self.number, self.token
