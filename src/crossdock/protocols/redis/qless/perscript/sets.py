"""Scripts about lists of jobs, queues, workers, configuration and recurring jobs."""

from collections.abc import Callable
from typing import Final

from crossdock.engine.qless import queries
from crossdock.protocols.redis.qless import job_lists, queues, settings
from crossdock.protocols.redis.qless import recurring as qless_recurring
from crossdock.protocols.redis.qless.arguments import QlessError, array, data, finite, number, options
from crossdock.protocols.redis.qless.call import Reply
from crossdock.protocols.redis.qless.perscript.script import Script, forwarded


def jobs(script: Script) -> Reply:
    word = script.require(0, 'Jobs(): Arg "type" missing')
    if word == "complete":
        return job_lists.jobs(script.unified(None, *script.rest(0)))
    t = script.time(1, 'Jobs(): Arg "now" missing or not a number: ')
    return job_lists.jobs(script.unified(t, word, *script.rest(2)))


def unfail(script: Script) -> Reply:
    t = script.now(0, 'Unfail(): Arg "now" missing')
    group = script.require(1, 'Unfail(): Arg "group" missing')
    queue = script.require(2, 'Unfail(): Arg "queue" missing')
    there = queries.lists_failures_of(script.dispatcher.state, group)
    if not there and not script.as_documented:
        raise QlessError("Wrong number of args calling Redis command from script")
    return job_lists.unfail(script.unified(t, queue, group, script[3]))


def all_queues(script: Script) -> Reply:
    return queues.queues(script.unified(script.time(0, 'Queues(): Arg "now" missing or not a number: '), script[1]))


def all_workers(script: Script) -> Reply:
    return queues.workers(script.unified(script.time(0, 'Workers(): Arg "now" missing or not a number: '), script[1]))


def stats(script: Script) -> Reply:
    queue = script.require(0, 'Stats(): Arg "queue" missing')
    number(script[1], 'Stats(): Arg "time" missing or not a number: ')
    return queues.stats(script.unified(None, queue, script[1]))


def configure(script: Script) -> Reply:
    word = script[0]
    if word is None:
        raise QlessError("attempt to concatenate local 'command' (a nil value)")
    acts = {"get": settings.get, "set": settings.put, "unset": settings.unset}
    if word not in acts:
        raise QlessError(f"Config(): Unrecognized command {word}")
    if word != "get":
        script.require(1, 'Config(): Arg "option" missing')
    if word == "set" and script[2] is None:
        raise QlessError('Config(): Arg "value" missing')
    return acts[word](script.unified(None, *script.rest(1)))


def get_config(script: Script) -> Reply:
    return settings.get(script.unified(None, script[0]))


def set_config(script: Script) -> Reply:
    """Of the original protocol document: without a value the option is unset."""
    act = settings.unset if script[1] is None else settings.put
    return act(script.unified(None, *script.rest(0)))


def recurring(script: Script) -> Reply:
    word = script[0]
    if word is None:
        raise QlessError("Recur(): Missing first argument")
    acts = {
        "off": qless_recurring.unrecur,
        "get": qless_recurring.get,
        "update": qless_recurring.update,
        "tag": qless_recurring.tag,
        "untag": qless_recurring.untag,
    }
    if word in acts:
        return acts[word](script.unified(None, *script.rest(1)))
    if word != "on":
        raise QlessError(f"Recur(): First argument must be one of [on, off, get, update, tag, untag]. Got {word}")
    return _at_interval(script)


def _at_interval(script: Script) -> Reply:
    """on queue jid klass data now "interval" seconds offset [option value]… An option without a value is ignored."""
    for at, missing in enumerate(("queue", "jid", "klass"), 1):
        script.require(at, f'Recur(): Arg "{missing}" missing')
    data(script[4], 'Recur(): Arg "data" missing or not JSON: ')
    t = script.time(5, 'Recur(): Arg "now" missing or not a number: ')
    if script.require(6, 'Recur(): Arg "schedule type" missing') == "interval":
        for at, wrong in ((7, "interval"), (8, "offset")):
            number(script[at], f'Recur(): Arg "{wrong}" must be a number: ')
    more = script.rest(9)
    more = more[: len(more) // 2 * 2]
    pairs = options(more)
    if "tags" not in pairs:
        raise QlessError("bad argument #1 to 'decode' (string expected, got table)")
    array(pairs["tags"], 'Recur(): Arg "tags" must be JSON-encoded array of string. Got: ')
    for wrong in ("priority", "retries"):
        finite(pairs.get(wrong), f'Recur(): Arg "{wrong}" must be a number. Got: ', 0.0)
    return qless_recurring.recur(script.unified(t, *script.rest(1)[:4], *script.rest(6)[:3], *more))


SCRIPTS: Final[dict[str, Callable[[Script], Reply]]] = {
    "jobs": jobs,
    "failed": forwarded(job_lists.failed),
    "unfail": unfail,
    "queues": all_queues,
    "workers": all_workers,
    "stats": stats,
    "config": configure,
    "getconfig": get_config,
    "setconfig": set_config,
    "recur": recurring,
    "pause": forwarded(queues.pause),
    "unpause": forwarded(queues.unpause),
    "deregister_workers": forwarded(queues.deregister),
}
