"""Commands of operators and programs: on jobs and queues, groups, throttles, schedules, and the tick."""

from typing import Any

from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.job import Callback, Form, Number, Spec
from crossdock.model.records import Schedule
from crossdock.model.states import State
from tests.model import values
from tests.model.acts.scene import Client, Scene


def _some(scene: Scene) -> list[Number]:
    """A few numbers of jobs in any state but ready, one of them twice, and one that was never used."""
    some = [number for index in scene.state.by_state.values() for _, number in index]
    scene.random.shuffle(some)
    few = some[: 1 + int(scene.random.random() * 4)]
    return [*few, *few[:1], scene.state.counters.number + 1]


def _ready(scene: Scene) -> list[Number]:
    queue = scene.state.queues.get(scene.one_of(values.QUEUES))
    return [] if queue is None else [sort_key[4] for sort_key in queue.ready.islice(0, 5)]


def requeue(scene: Scene, client: Client) -> c.Command[Any]:
    return admin.Requeue(client.via, _some(scene))


def bury(scene: Scene, client: Client) -> c.Command[Any]:
    return admin.Bury(client.via, _some(scene))


def bury_ready(scene: Scene, client: Client) -> c.Command[Any] | None:
    numbers = _ready(scene)
    return admin.Bury(client.via, numbers) if numbers else None


def reroute(scene: Scene, client: Client) -> c.Command[Any]:
    numbers = _some(scene) if scene.chance(0.5) else _ready(scene)
    return admin.Reroute(client.via, scene.one_of((*values.QUEUES, "never pushed to")), numbers)


def remove(scene: Scene, client: Client) -> c.Command[Any]:
    return admin.Remove(client.via, "discarded", _some(scene), frozenset(scene.random.sample(values.KEPT, 3)))


def remove_ready(scene: Scene, client: Client) -> c.Command[Any] | None:
    return admin.Remove(client.via, "queue removed", _ready(scene), frozenset({State.READY}))


def pause(scene: Scene, client: Client) -> c.Command[Any]:
    return admin.PauseQueues([scene.one_of(values.QUEUES)])


def resume(scene: Scene, client: Client) -> c.Command[Any]:
    return admin.ResumeQueues(None if scene.chance(0.7) else [scene.one_of(values.QUEUES)])


def forget(scene: Scene, client: Client) -> c.Command[Any]:
    return admin.ForgetQueue(scene.one_of((*values.QUEUES, "never pushed to")))


def flush(scene: Scene, client: Client) -> c.Command[Any]:
    return admin.Flush(client.via)


def open_group(scene: Scene, client: Client) -> c.Command[Any] | None:
    if len(scene.state.batches) > 8:
        return None
    scene.groups += 1
    name = f"group {scene.groups}"
    parent = scene.one_of([*scene.state.batches, "no such group"]) if scene.chance(0.4) else ""
    complete, success = (values.callback(name, call) if scene.chance(0.7) else None for call in Callback)
    return c.OpenBatch(name, client.via, parent, "text", complete, success)


def commit_group(scene: Scene, client: Client) -> c.Command[Any]:
    return c.CommitBatch(scene.one_of([*scene.state.batches, "no such group"]))


def set_throttles(scene: Scene, client: Client) -> c.Command[Any]:
    return c.SetThrottles(scene.one_of(values.THROTTLES))


def set_schedules(scene: Scene, client: Client) -> c.Command[Any]:
    extra = scene.one_of(values.SCHEDULED_EXTRAS)
    spec = Spec("", scene.one_of(values.QUEUES), "again", b"[]", Form.JSON, 0, values.RULES[0], extra=extra)
    names = scene.random.sample(sorted(values.SCHEDULES), scene.one_of((0, 1, 2)))
    wanted = [Schedule(name, client.via, values.SCHEDULES[name], "UTC", spec, 0.0) for name in sorted(names)]
    return c.SetSchedules(wanted)


def tick(scene: Scene, client: Client) -> c.Command[Any]:
    return c.Tick(scene.one_of((1, 10, 500, 500)))
