"""One page of live jobs in a single step, for protocols that cannot answer in slices."""

from typing import Final

import msgspec

from crossdock.protocols.admin import selection, views
from crossdock.protocols.admin.job_walk import Slice, cursor_of, walk
from crossdock.protocols.admin.messages import Invalid, JobFilter, Limit
from crossdock.protocols.admin.pages import Cursor, read_cursor, write_cursor
from crossdock.protocols.base import Dispatcher

#: Jobs examined per call: about a millisecond.
EXAMINED_AT_MOST: Final = 1_000
_SLICE: Final = 250
#: Bytes of payloads and errors searched per call.
_SEARCHED_AT_MOST: Final = 2 * 1024 * 1024


class _JobsPage(JobFilter, tag="jobs"):
    limit: Limit = 200


_decode = msgspec.json.Decoder(_JobsPage).decode
_encode = msgspec.json.Encoder().encode


def page(dispatcher: Dispatcher, text: bytes) -> bytes:
    """Takes the request and returns the reply as JSON objects. Raises ValueError."""
    try:
        return _page(dispatcher, _decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f'not a request: {error}; send one JSON object, such as {{"queue":"mail"}}') from error
    except Invalid as error:
        raise ValueError(str(error)) from error


def _page(dispatcher: Dispatcher, request: _JobsPage) -> bytes:
    state, now = dispatcher.state, dispatcher.now
    wanted = selection.select(request, state, now)
    rows: list[views.View] = []
    examined = searched = 0

    def take(some: Slice) -> Cursor | None:
        nonlocal examined, searched
        examined += some.examined
        searched += some.searched
        room = request.limit - len(rows)
        rows.extend(views.row(job, now) for job in some.jobs[:room])
        if len(some.jobs) >= room:
            return cursor_of(some.jobs[room - 1], state, wanted)
        return some.cursor if examined >= EXAMINED_AT_MOST or searched >= _SEARCHED_AT_MOST else None

    work = walk(state, wanted, read_cursor(request.after, wanted), take, _SLICE)
    while True:
        try:
            next(work)
        except StopIteration as over:
            _, after = over.value
            return _encode({"jobs": rows, "examined": examined, "after": write_cursor(after)})
