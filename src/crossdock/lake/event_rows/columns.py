"""Rows that are filled in alike, collected until they become columns. What few of them have is put beside, by its row.

A column costs nothing where it is the same in all rows of a part, or null in all: that, and no tuple a row, is what
makes the writer several times as fast as the server.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa

from crossdock.lake.redaction import Payloads
from crossdock.lake.schema import EVENTS
from crossdock.model.clock import DAY as DAY
from crossdock.model.clock import day_of as day_of
from crossdock.model.job import Form, Spec, form_of
from crossdock.model.states import State

STATES: Final = tuple(state.name.lower() for state in State)
FORMS: Final = tuple(None if form is Form.NONE else form.name.lower() for form in Form)
_TYPES: Final = {field.name: field.type for field in EVENTS}

Columns = dict[str, pa.Array]


class Part:
    """`fixed` is what all its rows have in common."""

    fixed: ClassVar[dict[str, Any]] = {}

    def __init__(self, payloads: Payloads) -> None:
        self.payloads = payloads
        self.seqs: list[int] = []
        self._beside: dict[str, tuple[list[int], list[Any]]] = {}

    def __len__(self) -> int:
        return len(self.seqs)

    def beside(self, column: str, value: object) -> None:
        """Of the last row, in a column that few have; None: it has none."""
        if value is not None:
            indexes, values = self._beside.setdefault(column, ([], []))
            indexes.append(len(self.seqs) - 1)
            values.append(value)

    def content(self, payload: bytes | None, form: Form | None = None) -> None:
        """Of the last row: the payload that the job has from then on. Where the event does not say what it is, it came
        as JSON of a laxer sort (qless' `data`): what a strict reader would not take is raw."""
        if payload is not None:
            shown, hashed = self.payloads.shown(payload)
            self.beside("payload", shown)
            self.beside("payload_hash", hashed)
            self.beside("form", FORMS[form_of(payload) if form is None else form])

    def links(self, spec: Spec) -> None:
        """Of the last row: what only some jobs have when they are pushed, or put anew."""
        if spec.due:
            self.beside("due", spec.due)
        extra = spec.extra
        if extra is None:
            return
        if extra.custom:
            self.beside("custom", self.payloads.custom(extra.custom))
        if extra.replayed_from:
            self.beside("replayed_from", extra.replayed_from)
        if extra.tags:
            self.beside("tags", [str(tag) for tag in extra.tags])
        links = extra.links
        if links is not None:
            self.beside("group_name", links.group or None)
            self.beside("needs", list(links.depends_on) or None)
            if links.calls:
                self.beside("callback_of", links.calls)
                self.beside("callback", None if links.call is None else links.call.name.lower())

    def columns(self, day: int) -> Columns:
        """What its rows differ in. `day` is that of all of them by `at`."""
        raise NotImplementedError

    def table(self, day: int, flush_epoch: int) -> pa.Table:
        many = len(self)
        columns = self.columns(day)
        columns["seq"] = array("seq", self.seqs)
        for name, value in {**self.fixed, "flush_epoch": flush_epoch}.items():
            columns[name] = constant(name, value, many)
        for name, (indexes, values) in self._beside.items():
            columns[name] = array(name, values).take(_places(indexes, many))
        return pa.Table.from_arrays(
            [columns[field.name] if field.name in columns else pa.nulls(many, field.type) for field in EVENTS],
            schema=EVENTS,
        )


def array(name: str, values: Sequence[Any]) -> pa.Array:
    kind = _TYPES[name]
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


def constant(name: str, value: object, many: int) -> pa.Array:
    return pa.repeat(array(name, [value])[0], many)


def few(name: str, values: Sequence[Any]) -> pa.Array:
    """As `array`, of a column that often is the same in all rows: to see that takes a quarter of the time."""
    one = values[0]
    return (
        constant(name, one, len(values))
        if values[-1] == one and values.count(one) == len(values)
        else array(name, values)
    )


def booked_days(at: Sequence[float], t: Sequence[float | None], day: int) -> pa.Array:
    """Of rows that book on the day of `t`, else of `at`: which is that of the date they stand in."""
    if t.count(None) == len(t):
        return constant("booked_day", day, len(t))
    return array("booked_day", [day if each is None else day_of(each) for each in t])


def _places(indexes: Sequence[int], many: int) -> pa.Array:
    """For each row, which of the values beside is its own."""
    places: list[int | None] = [None] * many
    for place, index in enumerate(indexes):
        places[index] = place
    return pa.array(places, pa.int64())
