"""The per-script form, which the seed describes: a script a command, `now` where each has it (protocol page, qless 6).

A call is put into the unified order and carried out by the same functions; where those deny, the answer is nothing.
"""

from collections.abc import Callable, Sequence
from typing import Final

from crossdock.model.job import Job
from crossdock.wire.desk import Desk
from crossdock.wire.redis.qless import cjson, config, job, lua, putting, queues, recur, settling, workers
from crossdock.wire.redis.qless.call import (
    Answer,
    Call,
    Denied,
    Grant,
    Publish,
    Raised,
    Reply,
    data,
    decode,
    index,
    name,
    number,
    unheard,
)
from crossdock.wire.redis.qless.dialect import PER_SCRIPT, Dialect

#: Scripts whose first argument is a key: the queue.
_DATA: Final = {"put": 3, "complete": 4, "fail": 5, "heartbeat": 3, "recur": 4}  #: which argument is a job's data
_KEYED: Final = frozenset({"put", "pop", "peek"})


class Script:
    """One call: its arguments, and `unified` to make a call of the other kind out of some of them."""

    def __init__(self, desk: Desk, args: Sequence[str], publish: Publish, dialect: Dialect, grant: Grant) -> None:
        self.desk = desk
        self._args = args
        self._publish = publish
        self._dialect = dialect
        self._grant = grant

    def __getitem__(self, place: int) -> str | None:
        return self._args[place] if place < len(self._args) else None

    def rest(self, begin: int) -> list[str]:
        return list(self._args[begin:])

    def given(self, place: int, message: str) -> str:
        value = self[place]
        if value is None:
            raise Raised(message)
        return name(value)

    def time(self, place: int, message: str) -> float:
        return number(self[place], message)

    def unified(self, t: float | None, *args: str | None) -> Call:
        """Where the script is given no time, the server's counts."""
        words = list(args)
        while words and words[-1] is None:
            words.pop()
        known = [word if word is not None else "" for word in words]
        wall = self.desk.now.wall
        t = self._dialect.clock.read(wall if t is None else t, wall)
        return Call(self.desk, self.desk.memory, t, known, self._publish, self._dialect, self._grant)


def put(script: Script) -> Reply:
    queue = script.given(0, "Put(): Expected 1 KEYS argument")
    jid = script.given(1, 'Put(): Arg "jid" missing')
    kind = script.given(2, 'Put(): Arg "klass" missing')
    data(script[3], 'Put(): Arg "data" missing or not JSON: ')
    t = script.time(4, 'Put(): Arg "now" missing or not a number: ')
    number(script[5], 'Put(): Arg "delay" not a number: ')
    more = script.rest(6)
    return putting.put(script.unified(t, queue, jid, kind, script[3], script[5], *more[: len(more) // 2 * 2]))


def pop(script: Script) -> Reply:
    queue = script.given(0, "Pop(): Expected 1 KEYS argument")
    worker = script.given(1, 'Pop(): Arg "worker" missing')
    count = number(script[2], 'Pop(): Arg "count" missing or not a number: ')
    call = script.unified(script.time(3, 'Pop(): Arg "now" missing or not a number: '))
    call.writes()
    return _texts(call, queues.popped(call, queue, worker, count))


def peek(script: Script) -> Reply:
    queue = script.given(0, "Peek(): Expected 1 KEYS argument")
    wrong = 'Peek(): Arg "count" missing or not a number: '
    if lua.number(script[1]) is None:
        raise Raised(f"{wrong}nil")
    call = script.unified(script.time(2, 'Peek(): Arg "now" missing or not a number: '))
    call.writes()
    return _texts(call, queues.peeked(call, queue, max(0, min(1_000_000, index(script[1], wrong, 0)))))


def _texts(call: Call, jobs: Sequence[Job]) -> list[str]:
    """Of those that are popped, or would be: to these scripts they need nothing."""
    return [cjson.write(job.show(call.memory, each, call.dialect) | {"dependencies": []}) for each in jobs]


def complete(script: Script) -> Reply:
    words = ("jid", "worker", "queue")
    jid, worker, queue = (script.given(at, f'Complete(): Arg "{word}" missing.') for at, word in enumerate(words))
    t = script.time(3, 'Complete(): Arg "now" not a number or missing: ')
    return settling.complete(script.unified(t, jid, worker, queue, *script.rest(4)))


def fail(script: Script) -> Reply:
    words = ("jid", "worker", "group", "message")
    given = [script.given(at, f'Fail(): Arg "{word}" missing') for at, word in enumerate(words)]
    t = script.time(4, 'Fail(): Arg "now" missing or malformed: ')
    return settling.fail(script.unified(t, *given, script[5]))


def retry(script: Script) -> Reply:
    words = ("jid", "queue", "worker")
    given = [script.given(at, f'Retry(): Arg "{word}" missing') for at, word in enumerate(words)]
    t = script.time(3, 'Retry(): Arg "now" missing or not a number: ')
    return settling.retry(script.unified(t, *given, script[4]))


def heartbeat(script: Script) -> Reply:
    jid = script.given(0, 'Heartbeat(): Arg "jid" missing')
    worker = script.given(1, 'Heartbeat(): Arg "worker" missing')
    script.given(2, 'Heartbeat(): Arg "now" missing')
    t = script.time(2, 'Heartbeat(): Arg "now" missing or not a number: ')
    return settling.heartbeat(script.unified(t, jid, worker, script[3]))


def cancel(script: Script) -> Reply:
    jid = script.given(0, 'Cancel(): Arg "jid" missing.')
    call = script.unified(None, jid)
    found = call.job(jid)
    if found is not None and call.memory.needed_by.get(found.number):
        raise Raised(f"Cancel(): {jid} has un-canceled jobs that depend on it")
    putting.cancel(call)
    return None


def get(script: Script) -> Reply:
    return putting.get(script.unified(None, script.given(0, 'Get(): Arg "jid" missing')))


def priority(script: Script) -> Reply:
    jid = script.given(0, 'Priority(): Arg "jid" missing')
    call = script.unified(None, jid, script[1])
    if call.job(jid) is None:
        raise Raised("attempt to concatenate local 'queue' (a boolean value)")
    return putting.priority(call)


def depends(script: Script) -> Reply:
    jid = script.given(0, 'Depends(): Arg "jid" missing')
    word = script.given(1, "Depends(): Arg 2 missing")
    if word not in ("on", "off"):
        raise Raised('Depends(): Second arg must be "on" or "off"')
    return putting.depends(script.unified(None, jid, word, *script.rest(2)))


def tag(script: Script) -> Reply:
    word = script.given(0, 'Tag(): Missing first arg "add", "remove" or "get"')
    if word not in ("add", "remove"):
        return putting.tag(script.unified(None, word, *script.rest(1)))
    jid = script.given(1, 'Tag(): Arg "jid" missing')
    if lua.number(script[2]) is None:
        raise Raised('Tag(): Arg "now" is not a number')
    return putting.tag(script.unified(lua.number(script[2]), word, jid, *script.rest(3)))


def track(script: Script) -> Reply:
    if script[0] is None:
        return putting.track(script.unified(None))
    word, jid = script[0], script.given(1, 'Track(): Arg "jid" missing')
    t = script.time(2, 'Track(): Arg "now" missing or not a number: ')
    if word not in ("track", "untrack"):
        raise Raised(f'Track(): Unknown action "{word}"')
    return putting.watch(script.unified(t, jid), jid, on=word == "track")


def jobs(script: Script) -> Reply:
    word = script.given(0, 'Jobs(): Arg "type" missing')
    if word == "complete":
        return queues.jobs(script.unified(None, *script.rest(0)))
    t = script.time(1, 'Jobs(): Arg "now" missing or not a number: ')
    return queues.jobs(script.unified(t, word, *script.rest(2)))


def failed(script: Script) -> Reply:
    return queues.failed(script.unified(None, *script.rest(0)))


def unfail(script: Script) -> Reply:
    script.given(0, 'Unfail(): Arg "now" missing')
    t = script.time(0, 'Unfail(): Arg "now" missing or not a number: ')
    group = script.given(1, 'Unfail(): Arg "group" missing')
    queue = script.given(2, 'Unfail(): Arg "queue" missing')
    if group not in script.desk.memory.failed_in:
        raise Raised("Wrong number of args calling Redis command from script")
    return queues.unfail(script.unified(t, queue, group, script[3]))


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


def pause(script: Script) -> Reply:
    return queues.pause(script.unified(None, *script.rest(0)))


def unpause(script: Script) -> Reply:
    return queues.unpause(script.unified(None, *script.rest(0)))


def deregister(script: Script) -> Reply:
    return workers.deregister(script.unified(None, *script.rest(0)))


SCRIPTS: Final[dict[str, Callable[[Script], Reply]]] = {
    "put": put,
    "pop": pop,
    "peek": peek,
    "complete": complete,
    "fail": fail,
    "retry": retry,
    "heartbeat": heartbeat,
    "cancel": cancel,
    "get": get,
    "priority": priority,
    "depends": depends,
    "tag": tag,
    "track": track,
    "jobs": jobs,
    "failed": failed,
    "unfail": unfail,
    "queues": all_queues,
    "workers": all_workers,
    "stats": stats,
    "config": configure,
    "getconfig": get_config,
    "setconfig": set_config,
    "recur": recurring,
    "pause": pause,
    "unpause": unpause,
    "deregister_workers": deregister,
}


def answering(script: str, dialect: Dialect = PER_SCRIPT) -> Answer:
    """Who carries out the calls of that script."""
    title, keyed, act, its_data = script.capitalize(), script in _KEYED, SCRIPTS[script], _DATA.get(script, -1)

    def answer(
        desk: Desk, keys: Sequence[bytes], args: Sequence[bytes], publish: Publish, grant: Grant = unheard
    ) -> Reply:
        if keyed:
            if not keys:
                raise Raised(f"{title}(): Expected 1 KEYS argument")
            if len(keys) > 1:
                raise Raised(f"{title}(): Got {len(keys)}, expected 1 KEYS argument")
        elif keys:
            raise Raised(f"{title}(): No Keys should be provided")
        words = decode((*keys, *args), its_data)
        try:
            return act(Script(desk, words, publish, dialect, grant))
        except Denied:
            return None

    return answer
