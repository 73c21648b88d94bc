"""The audit trail: the last actions of operators, with the user, the target and the number of changed things."""

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.admin import Audit
from crossdock.model.events import Audited


def audit(state: EngineState, command: Audit, now: Now) -> Decision[None]:
    """Work on many jobs makes an event for each part. They share an entry, so one action does not fill the trail."""
    last = state.audit[-1] if state.audit else None
    entry = 1 if last is None else last.entry + 1
    if last is not None and command.continues and _is_part(command, last):
        entry = last.entry
    event = Audited(
        at=later(state, now),
        entry=entry,
        user=command.user,
        address=command.address,
        via=command.via,
        action=command.action,
        target=command.target,
        count=command.count,
    )
    return (event,), None, ()


def _is_part(command: Audit, last: Audited) -> bool:
    names = ("user", "address", "via", "action", "target")
    return all(getattr(command, name) == getattr(last, name) for name in names)


def audited(state: EngineState, event: Audited) -> None:
    trail = state.audit
    if trail and trail[-1].entry == event.entry:
        trail[-1] = replace(trail[-1], count=trail[-1].count + event.count)
    else:
        trail.append(event)
