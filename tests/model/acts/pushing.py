"""Commands that push: one job, a scheduled one, many, or a transaction."""

from typing import Any, Final

from crossdock.model.commands import core as c
from crossdock.model.job import Extra, Form, LeaseRef, Links, LockRelease, LockTerms, Number, Spec
from tests.model import values
from tests.model.acts.scene import DAY, Client, Scene

#: No job is pushed while more than this many exist.
JOBS_AT_MOST: Final = 150


def _spec(scene: Scene, due: float = 0.0) -> Spec:
    """A spec with a new jid most often, sometimes a used one. Every payload is different."""
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
        lock = LockTerms(f"lock {scene.one_of('abcdef')}", end, scene.one_of(tuple(LockRelease)))
    group = scene.one_of([*scene.state.batches, "no such group"]) if scene.chance(0.5) else ""
    expires = now.wall + scene.one_of((1.0, 900.0)) if scene.chance(0.2) else 0.0
    links = Links(
        lock,
        group,
        expires=expires,
        tracked=scene.chance(0.3),
        depends_on=_dependencies(scene) if scene.chance(0.3) else (),
        ttl_s=scene.one_of((5.0, 90.0, 3_600.0)) if scene.chance(0.2) else 0.0,
        foreground=scene.chance(0.05),
    )
    deadqueue = "dead letters" if scene.chance(0.6) else ""
    return Extra(plain.custom if plain else b"", plain.protocol_data if plain else None, None, links, None, deadqueue)


def _dependencies(scene: Scene) -> tuple[Number, ...]:
    """A few of the last jobs, an earlier one of the same push, and one that never existed."""
    last = scene.state.counters.number
    near = [max(1, last - int(scene.random.random() * 12)) for _ in range(scene.one_of((1, 1, 2, 3)))]
    return (*near, -scene.one_of((1, 1, 2, 9)), last + 50)


def push(scene: Scene, client: Client) -> c.Command[Any] | None:
    if len(scene.state.jobs) > JOBS_AT_MOST:
        return None
    return c.Enqueue(client.via, [_spec(scene)])


def push_later(scene: Scene, client: Client) -> c.Command[Any] | None:
    if len(scene.state.jobs) > JOBS_AT_MOST:
        return None
    wait = scene.one_of((-DAY, 0.0, 0.5, 30.0, 3_600.0, 5 * DAY))
    return c.Enqueue(client.via, [_spec(scene, scene.clock.wall + wait)])


def push_bulk(scene: Scene, client: Client) -> c.Command[Any] | None:
    if len(scene.state.jobs) > JOBS_AT_MOST:
        return None
    specs = [_spec(scene) for _ in range(int(scene.random.random() * 20))]
    return c.Enqueue(client.via, specs, unless_live=scene.chance(0.2))


def transact(scene: Scene, client: Client) -> c.Command[Any] | None:
    """A transaction of pushes and of successes, most often of jobs that the client holds."""
    if len(scene.state.jobs) > JOBS_AT_MOST:
        return None
    later = scene.clock.wall + 5 * DAY  # most dependencies are met before, so the job becomes scheduled
    steps: list[Spec | c.Succeed] = [
        _spec(scene, later if scene.chance(0.5) else 0.0) for _ in range(scene.one_of((0, 1, 2, 5)))
    ]
    for jid in client.working[:2]:
        claim = client.claim(jid)
        if claim.held is not None and (scene.chance(0.1) or _holds(scene, claim.held)):
            at = int(scene.random.random() * (len(steps) + 1))
            steps[at:at] = [c.Succeed(jid, claim)] * scene.one_of((1, 1, 2))
    return c.Transaction(client.via, steps)


def _holds(scene: Scene, held: LeaseRef) -> bool:
    job = scene.state.jobs.get(held[0])
    return job is not None and job.lease is not None and job.lease.token == held[1]


def draw_numbers(scene: Scene, client: Client) -> c.Command[Any]:
    return c.DrawNumbers(scene.one_of((0, 1, 3)))
