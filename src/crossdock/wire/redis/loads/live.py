"""Live jobs through the Redis door, for who cannot open the control socket: Spark's executors on other machines.

    FCALL crossdock.jobs 0 <request>        a page: the request and the answer of the control door's verb `jobs`

A call is one step of the server, which other clients wait for: it looks at fewer jobs than a request of the control
door does, and hands out its cursor all the same.
"""

from typing import Final

import msgspec

from crossdock.wire.control import choose, cursor, views
from crossdock.wire.control.messages import Chosen
from crossdock.wire.control.request import Invalid, Limit
from crossdock.wire.control.walk import Looked, go, spot_of
from crossdock.wire.redis.scripts import Call
from crossdock.wire.redis.values import Error, Value

#: Jobs looked at for one call: about a millisecond.
LOOKED_AT_MOST: Final = 1_000
_SLICE: Final = 250


class _Jobs(Chosen, tag="jobs"):
    limit: Limit = 200


_decode = msgspec.json.Decoder(_Jobs).decode
_encode = msgspec.json.Encoder().encode


def jobs(call: Call) -> Value:
    if call.keys or len(call.args) != 1:
        raise Error(f"ERR {call.dialect} takes no keys and 1 argument")
    try:
        return _page(call, _decode(call.args[0]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Error(f'ERR not a request: {error}; write one JSON object, such as {{"queue":"mail"}}') from error
    except Invalid as error:
        raise Error(f"ERR {error}") from error


def _page(call: Call, request: _Jobs) -> bytes:
    desk = call.context.desk
    memory, now = desk.memory, desk.now
    wanted = choose.wanted(request, memory, now)
    rows: list[views.View] = []
    looked = 0

    def take(some: Looked) -> cursor.Spot | None:
        nonlocal looked
        looked += some.number
        room = request.limit - len(rows)
        rows.extend(views.row(job, now) for job in some.jobs[:room])
        if len(some.jobs) >= room:
            return spot_of(some.jobs[room - 1], memory, wanted)
        return some.spot if looked >= LOOKED_AT_MOST else None

    walk = go(memory, wanted, cursor.read(request), take, _SLICE)
    while True:
        try:
            next(walk)
        except StopIteration as over:
            _, after = over.value
            return _encode({"jobs": rows, "looked": looked, "after": cursor.write(after)})
