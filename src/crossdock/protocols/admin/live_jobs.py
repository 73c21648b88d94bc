"""One page of live jobs within one step of the server, for protocols that cannot answer in slices."""

from typing import Final

import msgspec

from crossdock.protocols.admin import cursor, selection, views
from crossdock.protocols.admin.job_walk import Looked, go, spot_of
from crossdock.protocols.admin.messages import Chosen, Invalid, Limit
from crossdock.protocols.base import Dispatcher

#: Jobs examined per call: about a millisecond.
LOOKED_AT_MOST: Final = 1_000
_SLICE: Final = 250


class _JobsPage(Chosen, tag="jobs"):
    limit: Limit = 200


_decode = msgspec.json.Decoder(_JobsPage).decode
_encode = msgspec.json.Encoder().encode


def page(dispatcher: Dispatcher, text: bytes) -> bytes:
    """`text` is the request as a JSON object, the result the reply as JSON. Raises ValueError."""
    try:
        return _page(dispatcher, _decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f'not a request: {error}; write one JSON object, such as {{"queue":"mail"}}') from error
    except Invalid as error:
        raise ValueError(str(error)) from error


def _page(dispatcher: Dispatcher, request: _JobsPage) -> bytes:
    state, now = dispatcher.state, dispatcher.now
    wanted = selection.wanted(request, state, now)
    rows: list[views.View] = []
    looked = 0

    def take(some: Looked) -> cursor.Spot | None:
        nonlocal looked
        looked += some.number
        room = request.limit - len(rows)
        rows.extend(views.row(job, now) for job in some.jobs[:room])
        if len(some.jobs) >= room:
            return spot_of(some.jobs[room - 1], state, wanted)
        return some.spot if looked >= LOOKED_AT_MOST else None

    walk = go(state, wanted, cursor.read(request), take, _SLICE)
    while True:
        try:
            next(walk)
        except StopIteration as over:
            _, after = over.value
            return _encode({"jobs": rows, "looked": looked, "after": cursor.write(after)})
