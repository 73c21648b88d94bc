"""Steps of Resqu's clients, allocators, workers and their child processes, drawn by weight from one table.

A step passes its commands to `do`. All randomness comes from the scene's own source and nothing depends on the order of
a set or on a hash, so a seed always gives the same commands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import floor
from random import Random
from typing import Any, Final, TypeVar

from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as b
from crossdock.model.commands import resqu as r
from crossdock.model.job import Job, LeaseRef, Number, Spec
from crossdock.model.records import Phase
from crossdock.model.states import State
from tests.model.resqu_bench import job_spec, text_of
from tests.model.rig import FakeClock

T = TypeVar("T")

UIDS: Final = ("u1", "u2", "u3")
SOURCES: Final = ("a", "b")
WORKERS: Final = ("w1", "w2", "w3")
POOLS: Final = ("static", "batch", "elsewhere", r.UNASSIGNED)
PLANS: Final = ("a_p", "a_q", "b_p")
TERMS: Final = c.LeaseTerms(60.0, 1.0, 3_600.0)
MAPPING: Final[r.Pools] = {"default": {"default": "static"}}
BATCHES: Final[r.Pools] = {"default": {"default": "batch"}}

#: Nothing is pushed while more jobs or batches than this exist.
JOBS_AT_MOST: Final = 60
BATCHES_AT_MOST: Final = 8

Do = Callable[[c.Command[Any]], Any]


@dataclass
class Scene:
    random: Random
    clock: FakeClock
    state: EngineState
    made: int = 0
    batch_count: int = 0

    def one_of(self, of: Sequence[T]) -> T:
        return of[int(self.random.random() * len(of))]

    def chance(self, of_one: float) -> bool:
        return self.random.random() < of_one

    def act(self, do: Do) -> None:
        self.random.choices(_FUNCTIONS, cum_weights=_WEIGHTS)[0](self, do)

    @property
    def full(self) -> bool:
        return len(self.state.jobs) > JOBS_AT_MOST

    def spec(self, uid: str = "", **rest: Any) -> Spec:
        """A spec with a payload of its own and sometimes a used jid."""
        self.made += 1
        again = self.made > 5 and self.chance(0.05)
        jid = f"r{self.made - 1 - int(self.random.random() * 4)}" if again else f"r{self.made}"
        return job_spec(jid, uid, source=self.one_of(SOURCES), args=f"r{self.made}", **rest)

    def leased(self) -> list[Job]:
        return [self.state.jobs[number] for _, number in self.state.by_state[State.LEASED]]


def connection(scene: Scene) -> int:
    return scene.one_of((1, 2, 3))


def push(scene: Scene, do: Do) -> None:
    if scene.full:
        return
    uid, by = scene.one_of(("", "", *UIDS)), connection(scene)
    due = scene.clock.wall + scene.one_of((-5.0, 0.5, 20.0)) if scene.chance(0.3) else 0.0
    if not uid or scene.chance(0.2) or do(r.Reserve(uid, by)):
        command = r.PushJob("resqu", by, scene.spec(uid, due=due, stamped=not due))
        do(command)
        if scene.chance(0.1):
            do(command)  # the reply was lost, so the client repeats the push


def reserve(scene: Scene, do: Do) -> None:
    do(r.Reserve(scene.one_of(UIDS), connection(scene)))


def release(scene: Scene, do: Do) -> None:
    do(r.Release(connection(scene)))


def defer(scene: Scene, do: Do) -> None:
    if not scene.full:
        do(r.Defer("resqu", scene.spec(scene.one_of(UIDS), defer=scene.one_of((0.0, 3.0)), stamped=False)))


def mark(scene: Scene, do: Do) -> None:
    do(r.Mark(scene.one_of(UIDS), connection(scene), scene.chance(0.6)))


def unlock(scene: Scene, do: Do) -> None:
    state, deferred = scene.one_of(((True, True), (True, True), (True, False), (False, True)))
    do(r.Unlock(scene.one_of(UIDS), connection(scene), state, deferred))


def finalise(scene: Scene, do: Do) -> None:
    do(r.Finalise("resqu", scene.one_of(UIDS), connection(scene)))


def finalise_with_deferred(scene: Scene, do: Do) -> None:
    """A child finalises a job with a deferred one and most often pushes that."""
    leased = [uid for uid in UIDS if (job := scene.state.jobs.get(queries.named(scene.state, uid))) and job.lease]
    if not leased or scene.full:
        return
    uid, by = scene.one_of(leased), connection(scene)
    do(r.Defer("resqu", scene.spec(uid, defer=scene.one_of((0.0, 3.0)), stamped=False)))
    done = do(r.Finalise("resqu", uid, by))
    if done.deferred and scene.chance(0.6) and do(r.Reserve(uid, by)):
        do(r.PushJob("resqu", by, scene.spec(uid)))


def fail_or_retry(scene: Scene, do: Do) -> None:
    """A child reports a failure or a reschedule and most often pushes the next try."""
    uid, by = scene.one_of(UIDS), connection(scene)
    do(r.Unlock(uid, by, True, True) if scene.chance(0.6) else r.Mark(uid, by, False))
    if not scene.full and do(r.Reserve(uid, by)) | scene.chance(0.6):
        due = scene.clock.wall + 2.0 if scene.chance(0.3) else 0.0
        do(r.PushJob("resqu", by, scene.spec(uid, due=due, stamped=not due, failures=scene.one_of((0, 1)))))


def pop(scene: Scene, do: Do) -> None:
    worker = scene.one_of(WORKERS)
    _fill(scene, do, f"worker:{worker}", do(c.LeaseNext("resqu", (scene.one_of(POOLS),), worker, r.BUFFER_TERMS)))


def pop_from_batch(scene: Scene, do: Do) -> None:
    names = list(scene.state.resqu.batches)
    if names:
        worker = scene.one_of(WORKERS)
        command = b.LeaseFromResquBatch("resqu", scene.one_of(names), worker, r.BUFFER_TERMS)
        _fill(scene, do, f"worker:{worker}", do(command))


def _fill(scene: Scene, do: Do, key: str, leased: LeaseRef | Job | Number | None) -> None:
    if leased is not None:
        number = leased.number if isinstance(leased, Job) else leased[0] if isinstance(leased, tuple) else leased
        job = scene.state.jobs[number]
        do(b.FillBuffer(key, number, job.lease.token if job.lease is not None else 0, text_of(job)))


def empty(scene: Scene, do: Do) -> None:
    do(b.EmptyBuffer("resqu", f"worker:{scene.one_of(WORKERS)}", scene.chance(0.2)))


def lose(scene: Scene, do: Do) -> None:
    do(b.LoseBuffer("resqu", f"worker:{scene.one_of(WORKERS)}"))


def take(scene: Scene, do: Do) -> None:
    key = f"allocator:n:{scene.one_of((1, 2))}"
    if queries.buffer(scene.state, key) is None:
        _fill(scene, do, key, do(b.TakeNext("resqu", scene.one_of((r.UNASSIGNED, "static")))))


def put_on(scene: Scene, do: Do) -> None:
    key = f"allocator:n:{scene.one_of((1, 2))}"
    buffer = queries.buffer(scene.state, key)
    if scene.chance(0.1):
        do(b.EmptyBuffer("resqu", key))
    elif buffer is not None and scene.chance(0.1):
        do(b.DiscardBuffer("resqu", key, buffer.text if scene.chance(0.8) else b"another"))
    else:
        do(b.PutOn("resqu", key, scene.one_of(("static", r.UNASSIGNED))))


def lease(scene: Scene, do: Do) -> None:
    do(c.LeaseNext("faktory", (scene.one_of(POOLS), "static"), "f", TERMS))


def settle(scene: Scene, do: Do) -> None:
    """Settles through another protocol, with a current or an older lease."""
    held = [(job, job.lease.token) for job in scene.leased() if job.lease is not None and job.lease.via == "faktory"]
    if not held:
        return
    job, token = scene.one_of(held)
    claim = c.Claim("faktory", "f", (job.number, token - scene.one_of((0, 0, 0, 0, 1))))
    how = scene.random.random()
    if how < 0.5:
        do(c.Succeed(job.jid, claim))
    elif how < 0.75:
        do(c.Fail(job.jid, claim, "Group", "message"))
    elif how < 0.85 or scene.full:
        do(c.GiveBack("faktory", [(job.number, token)]))
    else:
        uid = scene.one_of(("", *UIDS))
        lock = job.extra.links.lock if job.extra is not None and job.extra.links is not None else None
        same = scene.chance(0.5)
        spec = scene.spec(r.uid_of(lock.name) if same and lock is not None else "" if same else uid)
        do(r.Reschedule(job.jid, claim, spec, scene.chance(0.5), same))


def open_batch(scene: Scene, do: Do) -> None:
    if scene.full or len(scene.state.resqu.batches) > BATCHES_AT_MOST:
        return
    scene.batch_count += 1
    name, source = f"s{scene.batch_count}", scene.one_of(SOURCES)
    do(b.OpenResquBatch("resqu", name, source, "Mail", scene.spec(scene.one_of(("", "u1")))))
    for _ in range(scene.one_of((0, 1, 3))):
        do(b.PushToResquBatch("resqu", name, scene.spec()))
    if scene.chance(0.6):
        do(b.CommitResquBatch(name))


def change_batch(scene: Scene, do: Do) -> None:
    names = [*scene.state.resqu.batches, "unknown"]
    name, how = scene.one_of(names), scene.random.random()
    if how < 0.2:
        do(b.KeepResquBatch(name, scene.clock.steady + scene.one_of((-1.0, 5.0, 500.0))))
    elif how < 0.4 and not scene.full:
        do(b.PushToResquBatch("resqu", name, scene.spec()))
    elif how < 0.6:
        do(b.CommitResquBatch(name))
    elif how < 0.9:
        waiting = [batch.name for batch in scene.state.resqu.batches.values() if batch.phase is Phase.COMMITTED]
        do(b.AssignResquBatch(scene.one_of(waiting or names), scene.one_of(("batch", "static"))))
    else:
        by_hand = [batch.name for batch in scene.state.resqu.batches.values() if batch.by_hand]
        do(b.FinishResquBatch(scene.one_of(by_hand or names)))


def move(scene: Scene, do: Do) -> None:
    """Moves jobs in any state, also those in batches, and a number that was never used."""
    few = [scene.one_of(list(scene.state.jobs)) for _ in range(scene.one_of((1, 3)))] if scene.state.jobs else []
    do(
        admin.Reroute(
            "control", scene.one_of(("static", "batch", "elsewhere")), [*few, scene.state.counters.number + 1]
        )
    )


def bury(scene: Scene, do: Do) -> None:
    """Buries waiting jobs, also in batches and in allocators' buffers, or requeues dead ones."""
    dead = [number for _, number in scene.state.by_state[State.DEAD]]
    if dead and scene.chance(0.6):
        do(admin.Requeue("control", [*dead[-4:], scene.state.counters.number + 1]))
    elif scene.state.jobs:
        do(admin.Bury("control", [scene.one_of(list(scene.state.jobs)) for _ in range(scene.one_of((1, 3)))]))


def plan(scene: Scene, do: Do) -> None:
    name, how = scene.one_of(PLANS), scene.random.random()
    later = floor(scene.clock.wall) + scene.one_of((1.0, 10.0))  # whole seconds, as in the protocol
    if how < 0.6:
        uid = scene.one_of(("", *UIDS))
        spec = job_spec("", uid, source=name[0], stamped=False, defer=scene.one_of((None, 0.0, 2.0)) if uid else None)
        interval = scene.one_of(("PT30S", "P1M", "PT2H"))
        do(r.SetPlan(name, name[0], interval, later, spec, b"{}", scene.chance(0.3)))
    elif how < 0.8:
        do(r.MovePlan(name, later))
    else:
        do(r.ClearPlan(name))


def mapping(scene: Scene, do: Do) -> None:
    do(r.SetMapping(scene.one_of(({}, MAPPING, MAPPING)), scene.one_of(({}, BATCHES, BATCHES))))


def tick(scene: Scene, do: Do) -> None:
    do(c.Tick(10_000))


Act = Callable[[Scene, Do], None]

ACTS: Final[tuple[tuple[int, Act], ...]] = (
    (100, push),
    (10, reserve),
    (10, release),
    (25, defer),
    (15, mark),
    (15, unlock),
    (30, finalise),
    (20, finalise_with_deferred),
    (40, fail_or_retry),
    (80, pop),
    (20, pop_from_batch),
    (50, empty),
    (12, lose),
    (15, take),
    (20, put_on),
    (60, lease),
    (60, settle),
    (30, open_batch),
    (60, change_batch),
    (12, move),
    (8, bury),
    (10, plan),
    (4, mapping),
    (50, tick),
)
_WEIGHTS: Final = list(accumulate(weight for weight, _ in ACTS))
_FUNCTIONS: Final = [act for _, act in ACTS]
