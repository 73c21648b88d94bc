"""Collects rows of similar shape and turns them into Arrow columns. Rare values are stored separately, by row index.

A column that is constant or null in all rows of a part costs nothing, and frequent kinds need no tuple per row. This
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
    """Rows of one shape. `fixed` are the columns that all of them share."""

    fixed: ClassVar[dict[str, Any]] = {}

    def __init__(self, payloads: Payloads) -> None:
        self.payloads = payloads
        self.seqs: list[int] = []
        self._beside: dict[str, tuple[list[int], list[Any]]] = {}

    def beside(self, column: str, value: object) -> None:
        """Set a rare column of the last row. None is ignored."""
        if value is not None:
            indexes, values = self._beside.setdefault(column, ([], []))
            indexes.append(len(self.seqs) - 1)
            values.append(value)

    def content(self, payload: bytes | None, form: Form | None = None) -> None:
        """Set the new payload of the last row's job.

        Without `form` it is qless' `data`, whose JSON is less strict: what a strict parser rejects is stored as raw.
        """
        if payload is not None:
            shown, hashed = self.payloads.shown(payload)
            self.beside("payload", shown)
            self.beside("payload_hash", hashed)
            self.beside("form", FORMS[form_of(payload) if form is None else form])

    def links(self, spec: Spec) -> None:
        """Set the optional properties of the last row's job, which was pushed or put again."""
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
            self.beside("group_name", links.batch or None)
            self.beside("needs", list(links.depends_on) or None)
            if links.callback_of:
                self.beside("callback_of", links.callback_of)
                self.beside("callback", None if links.callback is None else links.callback.name.lower())

    def columns(self, day: int) -> Columns:
        """The columns in which the rows differ. `day` is the day of `at`, the same for all rows."""
        raise NotImplementedError

    def table(self, day: int, flush_epoch: int) -> pa.Table:
        many = len(self.seqs)
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
    except (pa.ArrowInvalid, OverflowError):  # clients may send priorities and retries of any size
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
    """Like `array`, for columns that are often constant. The check takes a quarter of the time of an array."""
    one = values[0]
    return (
        constant(name, one, len(values))
        if values[-1] == one and values.count(one) == len(values)
        else array(name, values)
    )


def booked_days(at: Sequence[float], t: Sequence[float | None], day: int) -> pa.Array:
    """The booked day of each row: the day of `t` if set, else `day`, which is the day of `at`."""
    if t.count(None) == len(t):
        return constant("booked_day", day, len(t))
    return array("booked_day", [day if each is None else day_of(each) for each in t])


def _places(indexes: Sequence[int], many: int) -> pa.Array:
    """For each row, the index of its rare value."""
    places: list[int | None] = [None] * many
    for place, index in enumerate(indexes):
        places[index] = place
    return pa.array(places, pa.int64())
