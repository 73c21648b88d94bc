"""PUSH and PUSHB (page sections 5.2 and 5.3)."""

import msgspec

from crossdock.model.commands import Enqueue, Refused
from crossdock.model.job import Spec
from crossdock.wire.answer import Answer, Slices
from crossdock.wire.desk import Desk
from crossdock.wire.faktory.job import PushBody, read_many, read_one, spec
from crossdock.wire.faktory.messages import OK, Invalid, bulk, error
from crossdock.wire.faktory.mutate import SLICE

#: Pushing costs half of what moving does.
_SLICE = 2 * SLICE


def push(desk: Desk, via: str, body: bytes) -> Answer:
    try:
        one = spec(read_one(body), desk.now)
    except Invalid as refused:
        return error(str(refused))
    no_room = desk.no_room(1)
    if no_room is not None:
        return error(no_room)
    outcome = desk.do(Enqueue(via, [one]))
    if not outcome:
        return OK
    code, _, text = _refusal(one, outcome[0]).partition(" ")
    return error(text, code.encode())


def push_bulk(desk: Desk, via: str, body: bytes) -> Answer:
    try:
        bodies = read_many(body)
    except Invalid as refused:
        return error(str(refused))
    return _slices(desk, via, bodies)


def _slices(desk: Desk, via: str, bodies: list[PushBody]) -> Slices:
    """The reply names every job that was refused, and why."""
    refused: dict[str, str] = {}
    for first in range(0, len(bodies), _SLICE):
        specs: list[Spec] = []
        for each in bodies[first : first + _SLICE]:
            try:
                specs.append(spec(each, desk.now))
            except Invalid as wrong:
                refused[each.jid or ""] = str(wrong)
        no_room = desk.no_room(len(specs))
        if no_room is not None:
            refused.update((each.jid, no_room) for each in specs)
        elif specs:
            outcome = desk.do(Enqueue(via, specs))
            refused.update(
                (one.jid, _refusal(one, why).removeprefix("ERR "))
                for one, why in zip(specs, outcome, strict=False)
                if why is not None
            )
        if first + _SLICE < len(bodies):
            yield
    return bulk(msgspec.json.encode(dict(sorted(refused.items()))))


def _refusal(one: Spec, why: Refused | None) -> str:
    """Why the server did not take it, with its code."""
    if why is Refused.NOT_UNIQUE:
        return "NOTUNIQUE Job not unique"
    group = one.extra.links.group if one.extra is not None and one.extra.links is not None else ""
    return f"ERR no such batch {group}"
