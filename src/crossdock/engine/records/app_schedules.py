"""Schedules that an app sets as a whole: those that it does not name any more end. Runs are in `records.schedules`."""

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.records.schedules import with_next_run
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.extensions import SetAppSchedules
from crossdock.model.events.extensions import AppSchedulesSet
from crossdock.model.records import APP_PREFIX


def record_name(app: str, name: str) -> str:
    """The name of an app's schedule among all schedules. The name of an app contains no colon."""
    return f"{APP_PREFIX}{app}:{name}"


def set_app_schedules(state: EngineState, command: SetAppSchedules, now: Now) -> Decision[None]:
    app, known = command.app, state.schedules
    named = [replace(each, name=record_name(app, each.name), app=app) for each in command.schedules]
    wanted = [with_next_run(each, known.get(each.name), now) for each in named]
    if {each.name: each for each in wanted} == {name: each for name, each in known.items() if each.app == app}:
        return (), None, ()
    return (AppSchedulesSet(later(state, now), app, wanted),), None, ()


def app_schedules_set(state: EngineState, event: AppSchedulesSet) -> None:
    others = {name: each for name, each in state.schedules.items() if each.app != event.app}
    state.schedules = others | {each.name: each for each in event.schedules}
    state.next_runs = SortedList((each.next, name) for name, each in state.schedules.items())
