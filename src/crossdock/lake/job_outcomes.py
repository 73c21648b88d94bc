"""What became of selected jobs after the event that selected them: success, another replay, or still alive.

Only maxima of `seq` are kept, one per job and question. This takes about 200 bytes per selected job, and does not
depend on the length of the history or on the size of payloads.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from crossdock.model.states import OVER, State

#: Asks the running server for the states of jobs, by their numbers. The state of a job that it does not have is None.
#: Without a server that can be asked, the whole answer is None.
Ask = Callable[[list[int]], list[str | None] | None]

#: Jobs per question.
_ASKED: Final = 1_000

#: Rows that are collected before they are reduced to one per job.
_FOLD_AT: Final = 500_000

#: Jobs per chunk.
_CHUNK: Final = 65_536

_NONE: Final = pa.array([], pa.int64())

_ALIVE: Final = [state.name.lower() for state in State if state not in OVER | {State.GONE}]
_ENDED: Final = [state.name.lower() for state in OVER | {State.GONE}]

_event, _state = pc.field("event"), pc.field("state")
_PUSHED: Final = _event == "pushed"
#: A qless job that goes on to another queue, and a Resqu job that runs again later, have succeeded in their attempt.
_SUCCEEDED: Final = _event.isin(["succeeded", "advanced"]) | (
    (_event == "rescheduled") & (pc.field("outcome") == "succeeded")
)
#: Rows that replace the payload of their job. They have a form or, if the payload is empty, at least the retries.
REPLACES: Final = (_event != "pushed") & (pc.is_valid(pc.field("form")) | pc.is_valid(pc.field("retries")))


def _seq_if(condition: ds.Expression) -> ds.Expression:
    return pc.if_else(condition, pc.field("seq"), 0)


#: The columns that `History.add` takes. All but the first are the row's `seq` where the condition holds.
FACTS: Final[dict[str, ds.Expression]] = {
    "number": pc.field("number"),
    "pushed": _seq_if(_PUSHED),
    "alive": _seq_if(_state.isin(_ALIVE)),
    "ended": _seq_if(_state.isin(_ENDED)),
    "gone": _seq_if(_state == "gone"),
    "succeeded": _seq_if(_SUCCEEDED),
    "replaced": _seq_if(REPLACES),
    "formed": _seq_if(REPLACES & pc.is_valid(pc.field("form"))),
    "flushed": _seq_if(_event == "flushed"),
}


_KEPT: Final = [name for name in FACTS if name not in ("number", "flushed")]


def facts_about(numbers: pa.Array) -> ds.Expression:
    """The rows that `History.add` needs."""
    return between(numbers) | (_event == "flushed")


def between(numbers: pa.Array) -> ds.Expression:
    """A condition that can be evaluated quickly, and that holds for the rows of all these jobs. `numbers` ascend."""
    number = pc.field("number")
    return (number >= numbers[0]) & (number <= numbers[-1]) if len(numbers) else pc.scalar(False)


def near(numbers: pa.Array, some: pa.Array) -> tuple[int, pa.Array]:
    """The part of `numbers`, which ascend, between the least and the greatest of `some`, and where it begins.

    Jobs of neighbouring rows have similar numbers, so this part is short, and a hash table of it costs little.
    """
    ends = pc.min_max(some).as_py()
    if ends["min"] is None:
        return 0, numbers.slice(0, 0)
    first = bisect_left(numbers, ends["min"], key=_value)
    return first, numbers.slice(first, bisect_right(numbers, ends["max"], lo=first, key=_value) - first)


def _value(scalar: Any) -> int:
    value: int = scalar.as_py()
    return value


def among(numbers: pa.Array, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of these jobs."""
    column = batch.column("number")
    return batch.filter(pc.is_in(column, value_set=near(numbers, column)[1]))


class Matches:
    """The last matching row of each job."""

    def __init__(self) -> None:
        self._parts = [pa.table({"number": _NONE, "matched": _NONE})]
        self._rows = self._folded = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows with the columns `number` and `matched`, which is their `seq`."""
        self._parts.append(pa.Table.from_batches([batch]))
        self._rows += batch.num_rows
        if self._rows > _FOLD_AT + self._folded:
            self._parts = [last_of_each(pa.concat_tables(self._parts))]
            self._rows, self._folded = 0, self._parts[0].num_rows

    def table(self) -> pa.Table:
        """One row per job, in ascending order."""
        return last_of_each(pa.concat_tables(self._parts)).sort_by("number").combine_chunks()


def last_of_each(rows: pa.Table) -> pa.Table:
    """The greatest value of each column by the first one."""
    key, *names = rows.column_names
    made = rows.group_by(key, use_threads=False).aggregate([(name, "max") for name in names])  # threads take memory
    return made.select([key, *(f"{name}_max" for name in names)]).rename_columns([key, *names])


class LeftOut(NamedTuple):
    """Jobs that match and are not replayed."""

    succeeded: int = 0  #: after the event that matches
    alive: int = 0
    replayed: int = 0  #: after the event that matches, by another replay
    unclear: int = 0  #: the server does not have them any more, and the lake does not have their end yet

    @property
    def total(self) -> int:
        return sum(self)


class History:
    """All events of the selected jobs, in short. The columns are cut into chunks, so that a few can be replaced."""

    def __init__(self, numbers: pa.Array) -> None:
        self._numbers = [numbers.slice(first, _CHUNK) for first in range(0, len(numbers), _CHUNK)]
        self._whole = numbers
        self._facts = {name: [pa.repeat(0, len(each)) for each in self._numbers] for name in _KEPT}
        self._flushed = 0  #: all jobs of rows before it are gone

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows with the columns FACTS."""
        self._flushed = max(self._flushed, pc.max(batch.column("flushed")).as_py() or 0)
        rows = last_of_each(pa.Table.from_batches([among(self._whole, batch).drop_columns("flushed")]))
        if not rows.num_rows:
            return
        found = rows["number"].combine_chunks()
        first, some = near(self._whole, found)
        for chunk in range(first // _CHUNK, (first + len(some) - 1) // _CHUNK + 1):
            place = pc.index_in(self._numbers[chunk], value_set=found)
            if place.null_count < len(place):
                for name, chunks in self._facts.items():
                    seq = rows[name].combine_chunks().take(place)
                    chunks[chunk] = pc.max_element_wise(chunks[chunk], seq)  # skips nulls

    def table(self) -> pa.Table:
        """One row per selected job. `gone` is set for flushed jobs, too."""
        columns = {name: pa.chunked_array(chunks, pa.int64()) for name, chunks in self._facts.items()}
        flushed = pc.less(pc.max_element_wise(columns["alive"], columns["ended"]), self._flushed)
        columns["gone"] = pc.if_else(flushed, self._flushed, columns["gone"])
        columns["ended"] = pc.max_element_wise(columns["ended"], columns["gone"])
        return pa.table({"number": pa.chunked_array(self._numbers, pa.int64())} | columns)


def reasons(jobs: pa.Table, ask: Ask, include: Collection[str], *, since: bool) -> pa.Array:
    """For each job the field of LeftOut that applies, or null.

    `jobs` has the columns FACTS, `matched`, the `seq` of the event that matches, and `replay`, that of the last replay.
    Reasons in `include` do not apply. Without `since`, only jobs that are alive are left out.
    """
    numbers = jobs["number"].combine_chunks()
    alive = pc.greater(jobs["alive"], jobs["ended"])
    succeeded = pc.and_(pc.greater(jobs["succeeded"], jobs["matched"]), since)
    replayed = pc.and_(pc.greater(jobs["replay"], jobs["matched"]), since)
    unclear = pc.and_(alive, False)
    now = _ask_all(ask, numbers.filter(_whole(pc.equal(jobs["gone"], 0))))  # a job that is gone does not come back
    if now is not None:
        alive = pc.is_in(numbers, value_set=now["alive"])
        succeeded = pc.or_(succeeded, pc.and_(pc.is_in(numbers, value_set=now["complete"]), since))
        unclear = pc.and_(pc.is_in(numbers, value_set=now["absent"]), since)
    conditions = {"succeeded": succeeded, "alive": alive, "replayed": replayed, "unclear": unclear}
    left_out = {name: pc.fill_null(_whole(each), False) for name, each in conditions.items() if name not in include}
    if not left_out:
        return pa.nulls(len(jobs), pa.string())
    flags = pa.StructArray.from_arrays(list(left_out.values()), list(left_out))
    return pc.case_when(flags, *map(pa.scalar, left_out))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _ask_all(ask: Ask, numbers: pa.Array) -> dict[str, pa.Array] | None:
    """The numbers of jobs that are alive, complete and absent, as the server says. None: it cannot be asked."""
    found: dict[str, list[pa.Array]] = {"alive": [], "complete": [], "absent": []}
    for first in range(0, len(numbers), _ASKED):
        some = numbers.slice(first, _ASKED)
        told = ask(some.to_pylist())
        if told is None:
            return None
        states = pa.array(told, pa.string())
        found["alive"].append(some.filter(pc.is_in(states, value_set=pa.array(_ALIVE))))
        found["complete"].append(some.filter(pc.equal(states, "complete")))
        found["absent"].append(some.filter(pc.is_null(states)))
    return {name: pa.concat_arrays([numbers.slice(0, 0), *parts]) for name, parts in found.items()}
