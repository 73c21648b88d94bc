"""reqless: the commands of the unified script under other names (qless.md section 10).

The arguments are put into the order of the unified script, and the same functions execute the call. The dialect decides
about error texts and formats.
"""

from collections.abc import Callable
from typing import Final

from crossdock.protocols.redis.qless import (
    cjson,
    edit,
    job_lists,
    pop,
    put,
    queue_patterns,
    queues,
    recurring,
    settings,
    settle,
    throttles,
)
from crossdock.protocols.redis.qless.arguments import QlessError, number
from crossdock.protocols.redis.qless.call import Call, Reply


def _written(reply: Reply) -> Reply:
    """A list as one JSON text; an empty one is `[]`."""
    assert isinstance(reply, list), "these commands return a list"
    return cjson.write(reply) if reply else "[]"


def _list(act: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
    """A command whose reply is a JSON list; an empty one is `[]`."""

    def listed(call: Call) -> Reply:
        reply = act(call)
        return "[]" if reply == "{}" else reply

    return listed


def _with(word: str, act: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
    """A command that the unified script has as a subcommand."""

    def with_word(call: Call) -> Reply:
        return act(call.with_args(word, *call.rest(0)))

    return with_word


def complete(call: Call) -> Reply:
    return settle.complete(call.with_args(*(call[at] for at in range(4))))


def complete_and_requeue(call: Call) -> Reply:
    if call[4] is None:
        return complete(call)
    return settle.complete(call.with_args(*(call[at] for at in range(4)), "next", *call.rest(4)))


def _depends(word: str) -> Callable[[Call], Reply]:
    def act(call: Call) -> Reply:
        return edit.depends(call.with_args(call.jid(), word, *call.rest(1)))

    return act


def jobs_completed(call: Call) -> Reply:
    return _written(job_lists.jobs(call.with_args("complete", *call.rest(0))))


def jobs_by_state(call: Call) -> Reply:
    return _written(job_lists.jobs(call))


def failed_by_group(call: Call) -> Reply:
    return job_lists.failed(call)


def failure_groups(call: Call) -> Reply:
    """Start and limit are checked but ignored: the reply has all groups."""
    for at, word in enumerate(("start", "limit")):
        number(call[at], job_lists.NOT_A_NUMBER % word, 0.0)
    return job_lists.failed(call.with_args())


def counts(call: Call) -> Reply:
    return queues.queues(call)


def all_counts(call: Call) -> Reply:
    return _list(queues.queues)(call.with_args())


def names(call: Call) -> Reply:
    return _written(queues.names(call))


def unfail(call: Call) -> Reply:
    call.require(0, 'queue.unfail(): Arg "queue" missing')
    call.text(1, 'Unfail(): Arg "group" missing')
    if number(call[2], 'Unfail(): Arg "count" not a number: ', 25.0) <= 0:
        raise QlessError('Unfail(): Arg "count" must be greater than zero')
    return job_lists.unfail(call)


def workers_counts(call: Call) -> Reply:
    return _list(queues.workers)(call.with_args())


def config_get(call: Call) -> Reply:
    call.text(0, "config.get(): Argument 'key' missing")
    return settings.get(call)


def config_all(call: Call) -> Reply:
    return settings.get(call.with_args())


COMMANDS: Final[dict[str, Callable[[Call], Reply]]] = {
    "config.get": config_get,
    "config.getAll": config_all,
    "config.set": settings.put,
    "config.unset": settings.unset,
    "failureGroups.counts": failure_groups,
    "job.addDependency": _depends("on"),
    "job.addTag": _list(_with("add", edit.tag)),
    "job.cancel": edit.cancel,
    "job.complete": complete,
    "job.completeAndRequeue": complete_and_requeue,
    "job.fail": settle.fail,
    "job.get": job_lists.get,
    "job.getMulti": job_lists.multiget,
    "job.heartbeat": settle.heartbeat,
    "job.log": edit.log,
    "job.removeDependency": _depends("off"),
    "job.removeTag": _list(_with("remove", edit.tag)),
    "job.requeue": put.requeue,
    "job.retry": settle.retry,
    "job.setPriority": edit.priority,
    "job.timeout": settle.timeout,
    "job.track": _with("track", edit.track),
    "job.untrack": _with("untrack", edit.track),
    "jobs.completed": jobs_completed,
    "jobs.failedByGroup": failed_by_group,
    "jobs.tagged": _with("get", edit.tag),
    "jobs.tracked": lambda call: edit.track(call.with_args()),
    "queue.counts": counts,
    "queue.forget": queues.forget,
    "queue.jobsByState": jobs_by_state,
    "queue.length": queues.length,
    "queue.pause": queues.pause,
    "queue.peek": pop.peek,
    "queue.pop": pop.pop,
    "queue.put": put.put,
    "queue.recurAtInterval": recurring.recur_at_interval,
    "queue.stats": queues.stats,
    "queue.throttle.get": throttles.get_queue,
    "queue.throttle.set": throttles.set_queue,
    "queue.unfail": unfail,
    "queue.unpause": queues.unpause,
    "queueIdentifierPatterns.getAll": queue_patterns.identifiers,
    "queueIdentifierPatterns.setAll": queue_patterns.set_identifiers,
    "queuePriorityPatterns.getAll": queue_patterns.priorities,
    "queuePriorityPatterns.setAll": queue_patterns.set_priorities,
    "queues.counts": all_counts,
    "queues.names": names,
    "recurringJob.addTag": _list(recurring.tag),
    "recurringJob.cancel": recurring.unrecur,
    "recurringJob.get": recurring.get,
    "recurringJob.removeTag": recurring.untag,
    "recurringJob.update": recurring.update,
    "tags.top": _list(_with("top", edit.tag)),
    "throttle.delete": throttles.delete,
    "throttle.get": throttles.get,
    "throttle.locks": throttles.locks,
    "throttle.pending": throttles.pending,
    "throttle.release": throttles.release,
    "throttle.set": throttles.set_one,
    "worker.forget": queues.deregister,
    "worker.jobs": queues.workers,
    "workers.counts": workers_counts,
}

#: The index of the data argument, counted from the command.
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
