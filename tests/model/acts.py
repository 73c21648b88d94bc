"""What clients may ask for, one function a command, drawn by weight from one table.

A new command of the engine is one function and one line in `ACTS`. Everything random comes from the scene's own source,
and nothing is drawn from a set or by a hash, so a seed always gives the same commands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Any, Final, TypeVar

from crossdock.engine.memory import Memory
from crossdock.model import commands as c
from crossdock.model.job import Call, Extra, Form, Freed, Held, Job, Links, LockTerms, Number, Spec
from crossdock.model.records import Recurrence
from crossdock.model.states import State
from tests.model import values
from tests.model.rig import FakeClock

T = TypeVar("T")
DAY: Final = 86_400.0

#: A scene with more live jobs than this is pushed no more.
JOBS_AT_MOST: Final = 150


@dataclass
class Client:
    """One client: what it was told to work on, and what the server remembers to have given to it."""

    worker: str
    via: str
    terms: c.Terms
    working: list[str] = field(default_factory=list)  #: jids; the client's own knowledge
    given: dict[str, list[Held]] = field(default_factory=dict)  #: by jid, the newest last; the server's

    def claim(self, jid: str) -> c.Claim:
        held = self.given.get(jid)
        return c.Claim(self.via, self.worker, held[-1] if held else None)

    def is_given(self, job: Job) -> None:
        assert job.lease is not None
        self.given.setdefault(job.jid, []).append((job.number, job.lease.token))

    def has_settled(self, jid: str) -> None:
        """The newest lease of that jid is over: it is remembered no longer."""
        held = self.given.pop(jid, [])
        if len(held) > 1:
            self.given[jid] = held[:-1]

    def hears(self, jid: str) -> None:
        """Its settlement was answered, well or not: it works on it no more."""
        if jid in self.working:
            self.working.remove(jid)

    def reconnect(self, memory: Memory | None) -> None:
        """The server was restarted. With its memory at hand it counts leases of this name as given."""
        self.given = {}
        if memory is not None and self.worker:
            for _, number in memory.shelves[State.LEASED]:
                if (job := memory.jobs[number]).lease is not None and job.lease.worker == self.worker:
                    self.is_given(job)


@dataclass
class Scene:
    random: Random
    clock: FakeClock
    memory: Memory
    clients: list[Client]
    jids: int = 0
    payloads: int = 0
    groups: int = 0

    def one_of(self, of: Sequence[T]) -> T:
        return of[int(self.random.random() * len(of))]

    def chance(self, of_one: float) -> bool:
        return self.random.random() < of_one

    def draw(self) -> tuple[Client, c.Command[Any]]:
        """The next command and who sends it."""
        while True:
            client = self.one_of(self.clients)
            act = self.random.choices(_FUNCTIONS, cum_weights=_WEIGHTS)[0]
            command = act(self, client)
            if command is not None:
                return client, command


Act = Callable[[Scene, Client], c.Command[Any] | None]


def clients(random: Random, many: int) -> list[Client]:
    """Workers with a name and without, of each door's terms."""
    return [
        Client(
            f"w{n}" if random.random() < 0.8 else "",
            values.VIAS[int(random.random() * len(values.VIAS))],
            values.TERMS[int(random.random() * len(values.TERMS))],
        )
        for n in range(many)
    ]


def _spec(scene: Scene, due: float = 0.0) -> Spec:
    """A jid of its own most often, one that was used before sometimes; the payload is never the same."""
    if scene.jids and scene.chance(0.05):
        jid = f"j{max(1, scene.jids - int(scene.random.random() * 20))}"
    else:
        scene.jids += 1
        jid = f"j{scene.jids}"
    scene.payloads += 1
    return Spec(
        jid,
        scene.one_of(values.QUEUES),
        scene.one_of(("a", "b")),
        b"[%d]" % scene.payloads,
        Form.JSON,
        scene.one_of((0, 0, 0, 4, -4, 0.5)),
        scene.one_of(values.RULES),
        due,
        _extra(scene),
        scene.one_of((0, 0, 0, 0, 1)),
    )


def _extra(scene: Scene) -> Extra | None:
    plain = scene.one_of(values.EXTRAS)
    if scene.chance(0.6):
        return plain
    now, lock = scene.clock.now, None
    if scene.chance(0.4):
        end = now.steady + scene.one_of((1.0, 60.0, 3_600.0))
        lock = LockTerms(f"lock {scene.one_of('abcdef')}", end, scene.one_of(tuple(Freed)))
    group = scene.one_of([*scene.memory.groups, "no such group"]) if scene.chance(0.5) else ""
    expires = now.wall + scene.one_of((1.0, 900.0)) if scene.chance(0.2) else 0.0
    links = Links(
        lock,
        group,
        expires=expires,
        tracked=scene.chance(0.3),
        needs=_needs(scene) if scene.chance(0.3) else (),
        ttl_s=scene.one_of((5.0, 90.0, 3_600.0)) if scene.chance(0.2) else 0.0,
        foreground=scene.chance(0.05),
    )
    deadqueue = "dead letters" if scene.chance(0.6) else ""
    return Extra(plain.custom if plain else b"", plain.face if plain else None, None, links, None, deadqueue)


def _needs(scene: Scene) -> tuple[Number, ...]:
    """A few of the last jobs, one before it in the same push, one that was never there."""
    last = scene.memory.counters.number
    near = [max(1, last - int(scene.random.random() * 12)) for _ in range(scene.one_of((1, 1, 2, 3)))]
    return (*near, -scene.one_of((1, 1, 2, 9)), last + 50)


def push(scene: Scene, client: Client) -> c.Command[Any] | None:
    if len(scene.memory.jobs) > JOBS_AT_MOST:
        return None
    return c.Enqueue(client.via, [_spec(scene)])


def push_later(scene: Scene, client: Client) -> c.Command[Any] | None:
    if len(scene.memory.jobs) > JOBS_AT_MOST:
        return None
    wait = scene.one_of((-DAY, 0.0, 0.5, 30.0, 3_600.0, 5 * DAY))
    return c.Enqueue(client.via, [_spec(scene, scene.clock.wall + wait)])


def push_bulk(scene: Scene, client: Client) -> c.Command[Any] | None:
    if len(scene.memory.jobs) > JOBS_AT_MOST:
        return None
    specs = [_spec(scene) for _ in range(int(scene.random.random() * 20))]
    return c.Enqueue(client.via, specs, unless_live=scene.chance(0.2))


def transact(scene: Scene, client: Client) -> c.Command[Any] | None:
    """Pushes, and successes of what it holds; now and then of what it does not."""
    if len(scene.memory.jobs) > JOBS_AT_MOST:
        return None
    later = scene.clock.wall + 5 * DAY  # most needs are met before that: then the job is scheduled
    steps: list[Spec | c.Succeed] = [
        _spec(scene, later if scene.chance(0.5) else 0.0) for _ in range(scene.one_of((0, 1, 2, 5)))
    ]
    for jid in client.working[:2]:
        claim = client.claim(jid)
        if claim.held is not None and (scene.chance(0.1) or _holds(scene, claim.held)):
            at = int(scene.random.random() * (len(steps) + 1))
            steps[at:at] = [c.Succeed(jid, claim)] * scene.one_of((1, 1, 2))
    return c.Transaction(client.via, steps)


def _holds(scene: Scene, held: Held) -> bool:
    job = scene.memory.jobs.get(held[0])
    return job is not None and job.lease is not None and job.lease.token == held[1]


def draw_numbers(scene: Scene, client: Client) -> c.Command[Any]:
    return c.DrawNumbers(scene.one_of((0, 1, 3)))


def lease(scene: Scene, client: Client) -> c.Command[Any]:
    names = list(values.QUEUES)
    scene.random.shuffle(names)
    if scene.chance(0.1):
        names.insert(0, "never pushed to")
    chosen = names[: scene.one_of((1, 3, 4))]
    return c.LeaseNext(client.via, chosen, client.worker, client.terms, at_random=scene.chance(0.3))


def succeed(scene: Scene, client: Client) -> c.Command[Any] | None:
    if not client.working:
        return None
    jid = scene.one_of(client.working)
    return c.Succeed(jid, client.claim(jid))


def fail(scene: Scene, client: Client) -> c.Command[Any] | None:
    if not client.working:
        return None
    jid = scene.one_of(client.working)
    return c.Fail(jid, client.claim(jid), "Group", "message", ("line",))


def settle_of_another(scene: Scene, client: Client) -> c.Command[Any] | None:
    """Somebody else's job: by its jid alone."""
    leased = scene.memory.shelves[State.LEASED]
    if not leased:
        return None
    jid = scene.memory.jobs[leased[int(scene.random.random() * len(leased))][1]].jid
    claim = client.claim(jid)
    return c.Succeed(jid, claim) if scene.chance(0.5) else c.Fail(jid, claim, "Group", "message")


def settle_freely(scene: Scene, client: Client) -> c.Command[Any] | None:
    """Without a lease, or with one that is over; by its jid, or by its number."""
    memory = scene.memory
    if not memory.jobs:
        return None
    numbers = list(memory.jobs)
    blocked = [number for _, number in memory.shelves[State.BLOCKED]]
    at_rest = [
        number for state in (State.BLOCKED, State.RETRYING, State.SCHEDULED) for _, number in memory.shelves[state]
    ]
    job = memory.jobs[scene.one_of(scene.one_of((numbers, blocked or numbers, at_rest or numbers)))]
    via = job.origin if scene.chance(0.8) else client.via
    held = client.claim(job.jid).held if scene.chance(0.3) else None
    claim = c.Claim(via, client.worker, held, True, job.number if scene.chance(0.5) else 0)
    return c.Succeed(job.jid, claim, b"ok") if scene.chance(0.5) else c.Fail(job.jid, claim, "", "", (), b"bad")


def settle_again(scene: Scene, client: Client) -> c.Command[Any] | None:
    """With a lease that is over: the answer got lost, or the worker woke up late."""
    if not client.given:
        return None
    jid = scene.one_of(list(client.given))
    claim = c.Claim(client.via, client.worker, scene.one_of(client.given[jid]))
    return c.Succeed(jid, claim) if scene.chance(0.5) else c.Fail(jid, claim, "Group", "message")


def give_back(scene: Scene, client: Client) -> c.Command[Any] | None:
    if not client.given:
        return None
    jid = scene.one_of(list(client.given))
    return c.GiveBack(client.via, client.given[jid][-1:] * 2)


def lose_lease(scene: Scene, client: Client) -> c.Command[Any] | None:
    """Its connection is gone; sometimes with a lease that was over before."""
    if not client.given:
        return None
    return c.LoseLease(client.via, scene.one_of(client.given[scene.one_of(list(client.given))]))


def _some(scene: Scene) -> list[Number]:
    """A few numbers of jobs in any state but ready, one of them twice, and one that was never given."""
    some = [number for shelf in scene.memory.shelves.values() for _, number in shelf]
    scene.random.shuffle(some)
    few = some[: 1 + int(scene.random.random() * 4)]
    return [*few, *few[:1], scene.memory.counters.number + 1]


def _ready(scene: Scene) -> list[Number]:
    queue = scene.memory.queues.get(scene.one_of(values.QUEUES))
    return [] if queue is None else [place[4] for place in queue.ready.islice(0, 5)]


def requeue(scene: Scene, client: Client) -> c.Command[Any]:
    return c.Requeue(client.via, _some(scene))


def bury(scene: Scene, client: Client) -> c.Command[Any]:
    return c.Bury(client.via, _some(scene))


def bury_ready(scene: Scene, client: Client) -> c.Command[Any] | None:
    numbers = _ready(scene)
    return c.Bury(client.via, numbers) if numbers else None


def reroute(scene: Scene, client: Client) -> c.Command[Any]:
    numbers = _some(scene) if scene.chance(0.5) else _ready(scene)
    return c.Reroute(client.via, scene.one_of((*values.QUEUES, "never pushed to")), numbers)


def remove(scene: Scene, client: Client) -> c.Command[Any]:
    return c.Remove(client.via, "discarded", _some(scene), frozenset(scene.random.sample(values.KEPT, 3)))


def remove_ready(scene: Scene, client: Client) -> c.Command[Any] | None:
    return c.Remove(client.via, "queue removed", _ready(scene), frozenset({State.READY}))


def pause(scene: Scene, client: Client) -> c.Command[Any]:
    return c.PauseQueues([scene.one_of(values.QUEUES)])


def resume(scene: Scene, client: Client) -> c.Command[Any]:
    return c.ResumeQueues(None if scene.chance(0.7) else [scene.one_of(values.QUEUES)])


def forget(scene: Scene, client: Client) -> c.Command[Any]:
    return c.ForgetQueue(scene.one_of((*values.QUEUES, "never pushed to")))


def flush(scene: Scene, client: Client) -> c.Command[Any]:
    return c.Flush(client.via)


def open_group(scene: Scene, client: Client) -> c.Command[Any] | None:
    if len(scene.memory.groups) > 8:
        return None
    scene.groups += 1
    name = f"group {scene.groups}"
    parent = scene.one_of([*scene.memory.groups, "no such group"]) if scene.chance(0.4) else ""
    complete, success = (values.callback(name, call) if scene.chance(0.7) else None for call in Call)
    return c.OpenGroup(name, client.via, parent, "text", complete, success)


def commit_group(scene: Scene, client: Client) -> c.Command[Any]:
    return c.CommitGroup(scene.one_of([*scene.memory.groups, "no such group"]))


def track(scene: Scene, client: Client) -> c.Command[Any] | None:
    if not client.working:
        return None
    until = scene.clock.wall + scene.one_of((5.0, 7_200.0, 9 * DAY)) if scene.chance(0.5) else 0.0
    return c.SetTrack(scene.one_of(client.working), scene.one_of((None, 50)), scene.one_of((None, "half")), until)


def set_throttles(scene: Scene, client: Client) -> c.Command[Any]:
    return c.SetThrottles(scene.one_of(values.THROTTLES))


def set_recurrences(scene: Scene, client: Client) -> c.Command[Any]:
    extra = scene.one_of(values.OF_RUNS)
    spec = Spec("", scene.one_of(values.QUEUES), "again", b"[]", Form.JSON, 0, values.RULES[0], extra=extra)
    names = scene.random.sample(sorted(values.RECURRING), scene.one_of((0, 1, 2)))
    wanted = [Recurrence(name, client.via, values.RECURRING[name], "UTC", spec, 0.0) for name in sorted(names)]
    return c.SetRecurrences(wanted)


def tick(scene: Scene, client: Client) -> c.Command[Any]:
    return c.Tick(scene.one_of((1, 10, 500, 500)))


ACTS: Final[tuple[tuple[int, Act], ...]] = (
    (120, push),
    (40, push_later),
    (12, push_bulk),
    (300, lease),
    (180, succeed),
    (45, fail),
    (20, settle_of_another),
    (20, settle_again),
    (80, settle_freely),
    (25, transact),
    (3, draw_numbers),
    (10, give_back),
    (10, lose_lease),
    (10, requeue),
    (10, bury),
    (12, remove),
    (8, reroute),
    (3, remove_ready),
    (3, bury_ready),
    (3, pause),
    (6, resume),
    (3, forget),
    (1, flush),
    (14, open_group),
    (25, commit_group),
    (14, track),
    (2, set_throttles),
    (2, set_recurrences),
    (60, tick),
)
_WEIGHTS: Final = list(accumulate(weight for weight, _ in ACTS))
_FUNCTIONS: Final = [act for _, act in ACTS]
