"""Turns events into rows of the lake: one for each job that an event is about.

`Rows` collects those of one segment. What nearly every row has is a tuple a row (`CORE`); what few have is put beside
it under the row's index, and costs the others nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from crossdock.lake.payloads import Payloads, replayed_from
from crossdock.lake.schema import EVENTS
from crossdock.model.event import Ended, Row
from crossdock.model.job import Form, Spec
from crossdock.model.states import State

DAY: Final = 86_400

#: The columns of a row's tuple, in its order.
CORE: Final = (
    "seq", "era", "at", "t", "event", "state", "outcome", "jid", "number", "queue", "kind", "origin", "via", "worker",
    "attempt", "priority", "size", "token", "lease_via", "leased_at", "wait_s", "run_s", "beats", "booked_queue",
    "booked_day", "booked_wait", "booked_run",
)  # fmt: skip
_CONTENT: Final = ("form", "payload", "payload_hash", "retries", "lease_s")

STATES: Final = tuple(state.name.lower() for state in State)
_FORMS: Final = {form: None if form is Form.NONE else form.name.lower() for form in Form}

#: Nothing is said of a lease: token, lease_via, leased_at, wait_s, run_s, beats
NO_LEASE: Final = (None,) * 6
#: Nothing is booked: booked_queue, booked_day, booked_wait, booked_run
NO_BOOKING: Final = (None,) * 4


def day_of(at: float) -> int:
    """As the engine finds the page of a booking (engine/stats.py); a division would round just before midnight."""
    return int(at // DAY)


class Rows:
    """The rows of one date, in the order of their events."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads
        self.core: list[tuple[Any, ...]] = []
        self._content: list[tuple[Any, ...]] = []
        self._beside: dict[str, list[tuple[int, Any]]] = {}
        self.add: Callable[[tuple[Any, ...]], None] = self.core.append

    def __len__(self) -> int:
        return len(self.core)

    def beside(self, column: str, value: object) -> None:
        """Of the last row, in a column that few have."""
        if value is not None:
            self._beside.setdefault(column, []).append((len(self.core) - 1, value))

    def book(self, failures: int = 0, failed: int = 0, retries: int = 0) -> None:
        self.beside("booked_failures", failures or None)
        self.beside("booked_failed", failed or None)
        self.beside("booked_retries", retries or None)

    def content(
        self, payload: bytes | None, form: Form | None = None, retries: int | None = None, lease_s: float | None = None
    ) -> None:
        """Of the last row: the payload that the job has from then on."""
        if payload is not None:
            shown, hashed = self._payloads.shown(payload)
            named = None if form is None else _FORMS[form]
            self._content.append((len(self.core) - 1, named, shown, hashed, retries, lease_s))

    def spec(self, spec: Spec) -> None:
        """Of the last row: all else about a job as it was pushed, or put anew."""
        rules = spec.rules
        self.content(spec.payload, spec.form, rules.max_failures, rules.lease_s or None)
        extra = spec.extra
        if spec.due:
            self.beside("due", spec.due)
        if extra is None:
            return
        if extra.custom:
            self.beside("custom", self._payloads.custom(extra.custom))
            self.beside("replayed_from", replayed_from(extra.custom))
        if extra.tags:
            self.beside("tags", [str(tag) for tag in extra.tags])
        links = extra.links
        if links is not None:
            self.beside("group_name", links.group or None)
            self.beside("needs", list(links.needs) or None)
            if links.calls:
                self.beside("callback_of", links.calls)
                self.beside("callback", None if links.call is None else links.call.name.lower())

    def job(
        self, seq: int, era: int, at: float, t: float | None, event: str, state: str | None, via: str, row: Row,
        outcome: str | None = None, booked: tuple[Any, ...] = NO_BOOKING,
    ) -> None:  # fmt: skip
        """One of many jobs that an event is about."""
        ended = row.ended
        lease = NO_LEASE if ended is None else of_lease(ended)
        worker = row.worker if ended is None else ended.worker
        self.add((
            seq, era, at, t, event, state, None if ended is None else outcome, row.jid, row.number, row.queue,
            row.kind, row.origin, via, worker, row.attempt, row.priority, row.payload_bytes, *lease, *booked,
        ))  # fmt: skip

    def table(self) -> pa.Table:
        arrays: dict[str, pa.Array] = {}
        for name, values in zip(CORE, zip(*self.core, strict=True), strict=True):
            arrays[name] = _array(name, values)
        if self._content:
            where, *columns = zip(*self._content, strict=True)
            places = _places(where, len(self))
            for name, values in zip(_CONTENT, columns, strict=True):
                arrays[name] = _array(name, values).take(places)
        for name, pairs in self._beside.items():
            where, values = zip(*pairs, strict=True)
            arrays[name] = _array(name, values).take(_places(where, len(self)))
        nothing = (arrays.get(field.name) for field in EVENTS)
        columns = [
            pa.nulls(len(self), field.type) if array is None else array
            for field, array in zip(EVENTS, nothing, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=EVENTS)


def _array(name: str, values: Sequence[Any]) -> pa.Array:
    kind = EVENTS.field(name).type
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, OverflowError):  # a client's priority or number of tries may have any size
        least, most = (-float("inf"), float("inf")) if pa.types.is_floating(kind) else (-(2**63), 2**63 - 1)
        return pa.array([None if each is None else _within(each, least, most) for each in values], kind)


def _within(value: Any, least: float, most: float) -> Any:
    try:
        return type(most)(min(max(value, least), most))
    except OverflowError:
        return least if value < 0 else most


def _places(where: Sequence[int], length: int) -> pa.Array:
    """For each row, which of the values beside is its own."""
    places: list[int | None] = [None] * length
    for place, index in enumerate(where):
        places[index] = place
    return pa.array(places, pa.int64())


def of_lease(ended: Ended) -> tuple[Any, ...]:
    return ended.token, ended.via, ended.leased_at, ended.wait_s, ended.run_s, ended.beats
