"""Workers lease, settle (rightly, twice, or what is not theirs), give back, lose, track."""

from typing import Any

from crossdock.model.commands import core as c
from crossdock.model.states import State
from tests.model import values
from tests.model.acts.scene import DAY, Client, Scene


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
    leased = scene.state.by_state[State.LEASED]
    if not leased:
        return None
    jid = scene.state.jobs[leased[int(scene.random.random() * len(leased))][1]].jid
    claim = client.claim(jid)
    return c.Succeed(jid, claim) if scene.chance(0.5) else c.Fail(jid, claim, "Group", "message")


def settle_freely(scene: Scene, client: Client) -> c.Command[Any] | None:
    """Without a lease, or with one that is over; by its jid, or by its number."""
    state = scene.state
    if not state.jobs:
        return None
    numbers = list(state.jobs)
    blocked = [number for _, number in state.by_state[State.BLOCKED]]
    at_rest = [
        number
        for job_state in (State.BLOCKED, State.RETRYING, State.SCHEDULED)
        for _, number in state.by_state[job_state]
    ]
    job = state.jobs[scene.one_of(scene.one_of((numbers, blocked or numbers, at_rest or numbers)))]
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


def track(scene: Scene, client: Client) -> c.Command[Any] | None:
    if not client.working:
        return None
    until = scene.clock.wall + scene.one_of((5.0, 7_200.0, 9 * DAY)) if scene.chance(0.5) else 0.0
    return c.SetProgress(scene.one_of(client.working), scene.one_of((None, 50)), scene.one_of((None, "half")), until)
