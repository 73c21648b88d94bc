"""reqless: the unified script's commands under other names (protocol page, qless 10).

A call is put into the unified order and carried out by the same functions; the dialect says what is worded otherwise.
"""

from collections.abc import Callable
from typing import Final

from crossdock.wire.redis.qless import (
    cjson,
    config,
    job_lists,
    patterns,
    popping,
    putting,
    queues,
    recur,
    settling,
    throttling,
    workers,
)
from crossdock.wire.redis.qless.call import Call, Reply
from crossdock.wire.redis.qless.given import Raised, number


def _written(reply: Reply) -> Reply:
    """A list as one JSON text; an empty one is a list here."""
    assert isinstance(reply, list), "these commands reply with one"
    return cjson.write(reply) if reply else "[]"


def _list(act: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
    """Of a command whose reply is JSON already."""

    def listed(call: Call) -> Reply:
        reply = act(call)
        return "[]" if reply == "{}" else reply

    return listed


def _with(word: str, act: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
    """A command that is a word of another one."""

    def worded(call: Call) -> Reply:
        return act(call.also(word, *call.rest(0)))

    return worded


def complete(call: Call) -> Reply:
    return settling.complete(call.also(*(call[at] for at in range(4))))


def complete_and_requeue(call: Call) -> Reply:
    if call[4] is None:
        return complete(call)
    return settling.complete(call.also(*(call[at] for at in range(4)), "next", *call.rest(4)))


def _depends(word: str) -> Callable[[Call], Reply]:
    def act(call: Call) -> Reply:
        return putting.depends(call.also(call.jid(), word, *call.rest(1)))

    return act


def jobs_completed(call: Call) -> Reply:
    return _written(job_lists.jobs(call.also("complete", *call.rest(0))))


def jobs_by_state(call: Call) -> Reply:
    return _written(job_lists.jobs(call))


def failed_by_group(call: Call) -> Reply:
    return job_lists.failed(call)


def failure_groups(call: Call) -> Reply:
    """A page may be asked for, and all are told."""
    for at, word in enumerate(("start", "limit")):
        number(call[at], job_lists.NOT_A_NUMBER % word, 0.0)
    return job_lists.failed(call.also())


def counts(call: Call) -> Reply:
    return queues.queues(call)


def all_counts(call: Call) -> Reply:
    return _list(queues.queues)(call.also())


def names(call: Call) -> Reply:
    return _written(queues.names(call))


def unfail(call: Call) -> Reply:
    call.require(0, 'queue.unfail(): Arg "queue" missing')
    call.text(1, 'Unfail(): Arg "group" missing')
    if number(call[2], 'Unfail(): Arg "count" not a number: ', 25.0) <= 0:
        raise Raised('Unfail(): Arg "count" must be greater than zero')
    return job_lists.unfail(call)


def workers_counts(call: Call) -> Reply:
    return _list(workers.workers)(call.also())


def config_get(call: Call) -> Reply:
    call.text(0, "config.get(): Argument 'key' missing")
    return config.get(call)


def config_all(call: Call) -> Reply:
    return config.get(call.also())


COMMANDS: Final[dict[str, Callable[[Call], Reply]]] = {
    "config.get": config_get,
    "config.getAll": config_all,
    "config.set": config.put,
    "config.unset": config.unset,
    "failureGroups.counts": failure_groups,
    "job.addDependency": _depends("on"),
    "job.addTag": _list(_with("add", putting.tag)),
    "job.cancel": putting.cancel,
    "job.complete": complete,
    "job.completeAndRequeue": complete_and_requeue,
    "job.fail": settling.fail,
    "job.get": putting.get,
    "job.getMulti": putting.multiget,
    "job.heartbeat": settling.heartbeat,
    "job.log": putting.log,
    "job.removeDependency": _depends("off"),
    "job.removeTag": _list(_with("remove", putting.tag)),
    "job.requeue": putting.requeue,
    "job.retry": settling.retry,
    "job.setPriority": putting.priority,
    "job.timeout": settling.timeout,
    "job.track": _with("track", putting.track),
    "job.untrack": _with("untrack", putting.track),
    "jobs.completed": jobs_completed,
    "jobs.failedByGroup": failed_by_group,
    "jobs.tagged": _with("get", putting.tag),
    "jobs.tracked": lambda call: putting.track(call.also()),
    "queue.counts": counts,
    "queue.forget": queues.forget,
    "queue.jobsByState": jobs_by_state,
    "queue.length": queues.length,
    "queue.pause": queues.pause,
    "queue.peek": popping.peek,
    "queue.pop": popping.pop,
    "queue.put": putting.put,
    "queue.recurAtInterval": recur.recur_at_interval,
    "queue.stats": queues.stats,
    "queue.throttle.get": throttling.get_queue,
    "queue.throttle.set": throttling.set_queue,
    "queue.unfail": unfail,
    "queue.unpause": queues.unpause,
    "queueIdentifierPatterns.getAll": patterns.identifiers,
    "queueIdentifierPatterns.setAll": patterns.set_identifiers,
    "queuePriorityPatterns.getAll": patterns.priorities,
    "queuePriorityPatterns.setAll": patterns.set_priorities,
    "queues.counts": all_counts,
    "queues.names": names,
    "recurringJob.addTag": _list(recur.tag),
    "recurringJob.cancel": recur.unrecur,
    "recurringJob.get": recur.get,
    "recurringJob.removeTag": recur.untag,
    "recurringJob.update": recur.update,
    "tags.top": _list(_with("top", putting.tag)),
    "throttle.delete": throttling.delete,
    "throttle.get": throttling.get,
    "throttle.locks": throttling.locks,
    "throttle.pending": throttling.pending,
    "throttle.release": throttling.release,
    "throttle.set": throttling.set_one,
    "worker.forget": workers.deregister,
    "worker.jobs": workers.workers,
    "workers.counts": workers_counts,
}

#: Which argument is a job's data, counted from the command on.
DATA: Final = {
    "queue.put": 6,
    "job.requeue": 6,
    "job.complete": 5,
    "job.completeAndRequeue": 5,
    "job.fail": 6,
    "job.heartbeat": 4,
    "queue.recurAtInterval": 5,
    "job.log": 4,
}
