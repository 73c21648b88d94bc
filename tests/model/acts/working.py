"""Commands of workers: lease, settle (also twice, or another worker's job), give back, lose a lease, set progress."""

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
    return c.LeaseNext(client.via, tuple(chosen), client.worker, client.terms, at_random=scene.chance(0.3))


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
    """Settles another client's job by its jid alone."""
    leased = scene.state.by_state[State.LEASED]
    if not leased:
        return None
    jid = scene.state.jobs[leased[int(scene.random.random() * len(leased))][1]].jid
    claim = client.claim(jid)
    return c.Succeed(jid, claim) if scene.chance(0.5) else c.Fail(jid, claim, "Group", "message")


def settle_without_lease(scene: Scene, client: Client) -> c.Command[Any] | None:
    """Settles without a lease, or with one that has ended, by jid or by number."""
    state = scene.state
    if not state.jobs:
        return None
    numbers = list(state.jobs)
    blocked = [number for _, number in state.by_state[State.BLOCKED]]
    waiting = [
        number
        for job_state in (State.BLOCKED, State.RETRYING, State.SCHEDULED)
        for _, number in state.by_state[job_state]
    ]
    job = state.jobs[scene.one_of(scene.one_of((numbers, blocked or numbers, waiting or numbers)))]
    via = job.origin if scene.chance(0.8) else client.via
    held = client.claim(job.jid).held if scene.chance(0.3) else None
    claim = c.Claim(via, client.worker, held, True, job.number if scene.chance(0.5) else 0)
    return c.Succeed(job.jid, claim, b"ok") if scene.chance(0.5) else c.Fail(job.jid, claim, "", "", (), b"bad")


def settle_again(scene: Scene, client: Client) -> c.Command[Any] | None:
    """Settles with a lease that may have ended: the reply was lost, or the worker is late."""
    if not client.leases:
        return None
    jid = scene.one_of(list(client.leases))
    claim = c.Claim(client.via, client.worker, scene.one_of(client.leases[jid]))
    return c.Succeed(jid, claim) if scene.chance(0.5) else c.Fail(jid, claim, "Group", "message")


def give_back(scene: Scene, client: Client) -> c.Command[Any] | None:
    if not client.leases:
        return None
    jid = scene.one_of(list(client.leases))
    return c.GiveBack(client.via, client.leases[jid][-1:] * 2)


def lose_lease(scene: Scene, client: Client) -> c.Command[Any] | None:
    """Loses a lease because the connection closed. The lease may have ended before."""
    if not client.leases:
        return None
    return c.LoseLease(client.via, scene.one_of(client.leases[scene.one_of(list(client.leases))]))


def track(scene: Scene, client: Client) -> c.Command[Any] | None:
    if not client.working:
        return None
    until = scene.clock.wall + scene.one_of((5.0, 7_200.0, 9 * DAY)) if scene.chance(0.5) else 0.0
    return c.SetProgress(scene.one_of(client.working), scene.one_of((None, 50)), scene.one_of((None, "half")), until)
