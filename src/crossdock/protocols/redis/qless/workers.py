"""Commands about workers: who was heard of, and what each was given."""

from typing import Final

from crossdock.engine.qless.queries import setting
from crossdock.engine.queries.workers import leases_by_worker, workers_by_age
from crossdock.model.commands.qless import ForgetWorkers
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import Raised
from crossdock.protocols.redis.qless.call import Call, Reply

_AGE_S: Final = 86_400.0

#: A lease that ends later than this from now is not counted (page 3).
_AHEAD_S: Final = 8_640_000.0


def workers(call: Call) -> Reply:
    call.writes()
    state, t = call.state, call.t
    oldest = t - setting(state, "max-worker-age", _AGE_S)
    silent = [name for time, name in workers_by_age(state) if 0 <= time <= oldest]
    if silent:
        call.dispatcher.do(ForgetWorkers(silent, with_jobs=True))
    given = leases_by_worker(state)
    name = call[0]
    if name is not None:
        held = sorted(((until, jid) for jid, until in given.get(name, {}).items()), reverse=True)
        running = [jid for until, jid in held if t <= until <= t + _AHEAD_S]
        return cjson.write({"stalled": [jid for until, jid in held if 0 <= until <= t], "jobs": running})
    rows = []
    for _, one in reversed(workers_by_age(state)):
        stalled = ahead = 0
        for until in given[one].values() if one in given else ():
            stalled += 0 <= until <= t
            ahead += t <= until <= t + _AHEAD_S
        rows.append(f'{{"stalled":{stalled},"name":{cjson.write(one)},"jobs":{ahead}}}')
    return f"[{','.join(rows)}]" if rows else "{}"


def deregister(call: Call) -> Reply:
    names = call.rest(0)
    if not names:
        raise Raised("Wrong number of args calling Redis command from script")
    call.dispatcher.do(ForgetWorkers(names))
    return None
