"""The audit trail: every request that changed something, with the operator, the target and the number of changes.

A request that is answered at once is recorded from its reply. A request that works in slices records each slice in the
journal entry of its changes, because a client may disconnect, or the server stop, between two slices.

The trail names jobs by number and has no jids: a jid may be personal data, and erasing a job must not leave it here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from crossdock.engine.queries.records import audit_trail
from crossdock.engine.state import EngineState
from crossdock.model.commands.admin import Audit
from crossdock.model.events import Audited
from crossdock.model.job import Job
from crossdock.protocols.admin import messages, selection
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.messages import Invalid
from crossdock.protocols.base import Answer, Dispatcher
from crossdock.protocols.timestamps import stamp

_LOCAL: Final = "local"

#: Bytes of a target.
_TARGET_BYTES: Final = 500
_CUT: Final = "…"

#: Fields that are no part of the target: the operator, the position of a walk, jids, and data of jobs.
#: Payloads may hold secrets, and a jid in the trail would outlive an erased job.
_NOT_TARGET: Final = frozenset(
    {"by", "after", "as_of", "limit", "dry_run", "payload", "args", "custom", "jid", "id", "ids"}
)
_FIRST: Final = frozenset({"name", "names"})
_ERASED: Final = frozenset({"numbers", "jids", "forget"})

_Reply = dict[str, Any]


def _of_list(found: _Reply) -> int:
    return len(found["done"])


def _of_number(found: _Reply) -> int:
    return int(found["done"])


def _one(found: _Reply) -> int:
    return 1


def _of_settings(found: _Reply) -> int:
    return len(found["reload"]["changed"])


#: How many things a request changed, by its reply. Requests that work in slices are not here.
_COUNTS: Final[dict[type[messages.Request], Callable[[_Reply], int]]] = {
    messages.Pause: _of_list,
    messages.Resume: _of_list,
    messages.Quiet: _of_list,
    messages.Terminate: _of_list,
    messages.Tag: _of_number,
    messages.Untag: _of_number,
    messages.Track: _of_list,
    messages.ScheduleAdd: _of_number,
    messages.ScheduleEdit: _of_number,
    messages.ScheduleRemove: _of_list,
    messages.ScheduleRun: _one,
    messages.Push: _one,
    messages.Reload: _of_settings,
}


def record_reply(dispatcher: Dispatcher, request: messages.AnyRequest, answer: Answer) -> None:
    """Record a request that was answered at once. The reply waits for the record, as for the change itself."""
    count = _COUNTS.get(type(request))
    if count is not None and isinstance(answer, bytes):
        found = msgspec.json.decode(answer)
        if "error" not in found:
            changed = found["reload"]["changed"] if isinstance(request, messages.Reload) else ()
            record(dispatcher, request, count(found), _pushed(dispatcher.state, request, found), settings=changed)


def _pushed(state: EngineState, request: messages.AnyRequest, found: _Reply) -> list[Job] | None:
    """The new job of a push, if it is still there. None: the request was none."""
    if not isinstance(request, messages.Push):
        return None
    return [] if found["number"] is None else selection.find_jobs(state, found["number"])


def record(
    dispatcher: Dispatcher,
    request: Any,
    count: int,
    jobs: Sequence[Job] | None = None,
    *,
    settings: Sequence[str] = (),
    continues: bool = False,
) -> None:
    """Record that a request changed `count` things. `jobs` are those that it named by ID, if they may be gone now.
    `settings` are the names of changed settings, which the request does not have.
    `continues`: an earlier slice or page of the request was recorded."""
    if not count:
        return
    by: messages.Operator | None = request.by
    address = _LOCAL if by is None else by.address
    dispatcher.do(
        Audit(
            user=user(request),
            address=address,
            via="admin" if address == _LOCAL else "http",
            action=str(request.__struct_config__.tag),
            target=target(request, _named(dispatcher.state, request) if jobs is None else jobs, settings),
            count=count,
            continues=continues,
        )
    )


def record_signal(dispatcher: Dispatcher, name: str, settings: Sequence[str]) -> None:
    """Record that a signal changed settings. `name` stands in for the user, whom the system does not report."""
    if settings:
        target_text = target(messages.Reload(), settings=settings)
        dispatcher.do(
            Audit(user=name, address=_LOCAL, via="signal", action="reload", target=target_text, count=len(settings))
        )


def user(request: Any) -> str:
    """Empty if the request does not name the operator."""
    by: messages.Operator | None = request.by
    return "" if by is None else by.user


def _named(state: EngineState, request: Any) -> list[Job]:
    """The jobs that the request names by ID."""
    ids = getattr(request, "ids", None) or ([request.id] if hasattr(request, "id") else [])
    return [job for each in ids for job in selection.find_jobs(state, each)[-1:]]


def target(request: messages.Request, jobs: Sequence[Job] = (), settings: Sequence[str] = ()) -> str:
    """The jobs or settings, and the fields that select what is changed, such as `states:dead queue:mail`."""
    words = [f"jobs:{','.join(str(job.number) for job in jobs)}"] if jobs else []
    words += [f"settings:{','.join(settings)}"] if settings else []
    text = " ".join([*words, *_words(request)])
    data = text.encode()
    if len(data) <= _TARGET_BYTES:
        return text
    return data[: _TARGET_BYTES - len(_CUT.encode())].decode(errors="ignore") + _CUT


def _words(request: messages.Request) -> Iterator[str]:
    for field in sorted(msgspec.structs.fields(request), key=lambda field: field.name not in _FIRST):
        value = getattr(request, field.name)
        if field.name in _NOT_TARGET or value is None or value is False or value in ("", []):
            continue
        if value is True:
            yield field.name
        elif isinstance(value, list):
            yield f"{field.name}:{len(value) if field.name in _ERASED else ','.join(map(_word, value))}"
        else:
            yield f"{field.name}:{_word(value)}"


def _word(value: object) -> str:
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    return msgspec.json.encode(text).decode() if any(each in text for each in ' ",') else text


def page(dispatcher: Dispatcher, request: messages.Audit) -> bytes:
    """The cursor is the number of the last entry of the page."""
    trail = audit_trail(dispatcher.state)
    after = request.after
    if after is not None and not (after.isascii() and after.isdecimal() and len(after) < 20):
        raise Invalid("after is not a cursor of this listing; leave it out to begin at the start")
    before = None if after is None else int(after)
    older = [each for each in reversed(trail) if before is None or each.entry < before]
    shown = older[: request.limit]
    following = str(shown[-1].entry) if len(older) > len(shown) else None
    return reply({"audit": [_row(each) for each in shown], "after": following})


def _row(one: Audited) -> dict[str, Any]:
    return {
        "at": stamp(one.at),
        "user": one.user or None,
        "address": one.address,
        "via": one.via,
        "action": one.action,
        "target": one.target,
        "count": one.count,
    }
