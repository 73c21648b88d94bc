"""Scripts about many: lists of jobs, queues, workers, settings, jobs at intervals."""

from collections.abc import Callable
from typing import Final

from crossdock.wire.redis.qless import config, job_lists, queues, recur, workers
from crossdock.wire.redis.qless.call import Reply
from crossdock.wire.redis.qless.given import Raised, number
from crossdock.wire.redis.qless.perscript.script import Script, as_it_is


def jobs(script: Script) -> Reply:
    word = script.given(0, 'Jobs(): Arg "type" missing')
    if word == "complete":
        return job_lists.jobs(script.unified(None, *script.rest(0)))
    t = script.time(1, 'Jobs(): Arg "now" missing or not a number: ')
    return job_lists.jobs(script.unified(t, word, *script.rest(2)))


def unfail(script: Script) -> Reply:
    script.given(0, 'Unfail(): Arg "now" missing')
    t = script.time(0, 'Unfail(): Arg "now" missing or not a number: ')
    group = script.given(1, 'Unfail(): Arg "group" missing')
    queue = script.given(2, 'Unfail(): Arg "queue" missing')
    return job_lists.unfail(script.unified(t, queue, group, script[3]))


def all_queues(script: Script) -> Reply:
    return queues.queues(script.unified(script.time(0, 'Queues(): Arg "now" missing or not a number: '), script[1]))


def all_workers(script: Script) -> Reply:
    return workers.workers(script.unified(script.time(0, 'Workers(): Arg "now" missing or not a number: '), script[1]))


def stats(script: Script) -> Reply:
    queue = script.given(0, 'Stats(): Arg "queue" missing')
    number(script[1], 'Stats(): Arg "time" missing or not a number: ')
    return queues.stats(script.unified(None, queue, script[1]))


def configure(script: Script) -> Reply:
    word = script[0]
    if word is None:
        raise Raised("attempt to concatenate local 'command' (a nil value)")
    acts = {"get": config.get, "set": config.put, "unset": config.unset}
    if word not in acts:
        raise Raised(f"Config(): Unrecognized command {word}")
    if word != "get":
        script.given(1, 'Config(): Arg "option" missing')
    if word == "set" and script[2] is None:
        raise Raised('Config(): Arg "value" missing')
    return acts[word](script.unified(None, *script.rest(1)))


def get_config(script: Script) -> Reply:
    return config.get(script.unified(None, script[0]))


def set_config(script: Script) -> Reply:
    """The seed's own: without a value it is unset."""
    act = config.unset if script[1] is None else config.put
    return act(script.unified(None, *script.rest(0)))


def recurring(script: Script) -> Reply:
    word = script[0]
    if word is None:
        raise Raised("Recur(): Missing first argument")
    acts = {
        "off": recur.unrecur,
        "get": recur.get,
        "update": recur.update,
        "tag": recur.tag,
        "untag": recur.untag,
    }
    if word in acts:
        return acts[word](script.unified(None, *script.rest(1)))
    if word != "on":
        raise Raised(f"Recur(): First argument must be one of [on, off, get, update, tag, untag]. Got {word}")
    t = script.time(5, 'Recur(): Arg "now" not a number: ')
    more = script.rest(6)
    if "tags" not in more[3::2]:
        raise Raised("bad argument #1 to 'decode' (string expected, got table)")
    return recur.recur(script.unified(t, *script.rest(1)[:4], *more))


SCRIPTS: Final[dict[str, Callable[[Script], Reply]]] = {
    "jobs": jobs,
    "failed": as_it_is(job_lists.failed),
    "unfail": unfail,
    "queues": all_queues,
    "workers": all_workers,
    "stats": stats,
    "config": configure,
    "getconfig": get_config,
    "setconfig": set_config,
    "recur": recurring,
    "pause": as_it_is(queues.pause),
    "unpause": as_it_is(queues.unpause),
    "deregister_workers": as_it_is(workers.deregister),
}
