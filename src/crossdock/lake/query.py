"""Jobs of the past, chosen by a typed filter, as they would be pushed again. No Spark: one machine, page by page.

A filter is about events: those of a time, a queue, a kind, an outcome, an error group. The jobs they are about are
looked up where they were pushed: kind, payload and all that makes the job stand there.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from crossdock.lake.event_rows.tables import date_named
from crossdock.lake.redaction import REDACTED
from crossdock.lake.schema import EVENTS
from crossdock.lake.segments import Segment, damage, look
from crossdock.model.clock import DAY
from crossdock.model.errors import CrossdockError

Progress = Callable[[str, int, int], None]

_SCHEMA: Final = pa.schema([(field.name, field.type) for field in EVENTS])
_PUSHED: Final = pc.field("event") == "pushed"

#: What an operator calls it, and which events that are.
OUTCOMES: Final[dict[str, ds.Expression]] = {
    "pushed": _PUSHED,
    "succeeded": pc.field("event") == "succeeded",
    "failed": pc.field("event") == "failed",
    "lost": (pc.field("event") == "failed") & pc.field("lost") | (pc.field("event") == "lapsed"),
    "dead": (pc.field("event") == "failed") & pc.field("state").isin(["dead", "failed", "gone"])
    | (pc.field("event") == "buried"),
    "removed": pc.field("event") == "removed",
}

_COLUMNS: Final = (
    "number", "jid", "queue", "kind", "priority", "retries", "lease_s", "form", "payload", "custom", "tags",
)  # fmt: skip
_LOOKED_AT: Final = ("number", "jid", "payload", "size", "custom", "tags")

#: A row that says what payload its job has from then on, whether the lake may keep that or not.
_CHANGES: Final = (
    pc.is_valid(pc.field("payload")) | pc.is_valid(pc.field("payload_hash")) | pc.is_valid(pc.field("form"))
)
_REDACTED: Final = REDACTED.encode()

#: How often a job is tried that came without a number, and what is taken of others' numbers when it is pushed again.
RETRIES: Final = 25
RETRIES_AT_MOST: Final = 1_000_000
LEASE_AT_MOST: Final = 86_400


#: Of the jobs that are left out so many are named.
NAMED: Final = 5


class LakeNotWhole(CrossdockError):
    """Part of the history is missing; the text says what."""


class Filter(NamedTuple):
    """What is not given lets all pass."""

    queue: str = ""
    kind: str = ""
    outcome: str = "pushed"
    group: str = ""
    tag: str = ""
    jid: str = ""
    since: float | None = None
    until: float | None = None


class Past(NamedTuple):
    """A job as it was pushed, its payload as it was last."""

    number: int
    jid: str
    queue: str
    kind: str
    priority: float
    retries: int | None
    lease_s: float | None
    form: str | None
    payload: bytes | None  #: None: it has none
    custom: bytes | None
    tags: list[str] | None


class Payload(NamedTuple):
    form: str | None
    payload: bytes | None  #: None: the lake does not have it


class Chosen(NamedTuple):
    lake: str  #: its name: numbers are unique in it
    at: float  #: of its newest event: what came later is not in it yet
    numbers: pa.Array  #: of the jobs, ascending
    payloads: dict[int, Payload]  #: of those whose payload was changed later
    unknown: int  #: events are there, the push is not: it was before the lake began, or was let go
    bare: int  #: the lake does not have their payloads (lake.payloads), or only with secrets taken out (lake.redact)
    named: list[str]  #: jids of some of the bare ones
    segments: list[Segment]


def choose(folder: Path, which: Filter, progress: Progress = lambda what, done, of: None) -> Chosen:
    """Raises LakeNotWhole."""
    found = look(folder)
    if found.missing:
        raise LakeNotWhole(f"the lake in {folder} is not whole: {found.missing[0]}")
    said = _said(which)
    checked: set[Path] = set()
    parts = [pa.array([], pa.int64())]
    for segment in _sound(_during(found.segments, which, progress), checked):
        parts += (batch.column("number") for batch in _scan(segment, ("number",), said))
    meant = pc.unique(pa.chunked_array(parts).drop_null())
    payloads = _changed(_sound(_with(found.segments, meant, progress), checked), meant)
    good: list[int] = []
    named: list[str] = []
    known = bare = 0
    for segment in _with(found.segments, meant, progress):
        for batch in _scan(segment, _LOOKED_AT, _PUSHED & pc.field("number").isin(meant)):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for number, jid, payload, size, custom, tags in rows:
                known += 1
                if which.tag and which.tag not in (tags or ()):
                    continue
                changed = payloads.get(number)
                whole, lacks = (payload, size) if changed is None else (changed.payload, True)
                if (whole is None and lacks) or _REDACTED in (whole or b"") or _REDACTED in (custom or b""):
                    bare += 1
                    if bare <= NAMED:
                        named.append(jid)
                else:
                    good.append(number)
    numbers = pa.array(sorted(good), pa.int64())
    name, at = ("", 0.0) if found.done is None else (found.done.lake, found.done.at)
    return Chosen(name, at, numbers, payloads, len(meant) - known, bare, named, found.segments)


def has(folder: Path, column: str, value: str) -> bool:
    """Whether any row of the history has this value."""
    where = pc.field(column) == value
    return any(True for segment in look(folder).segments for _ in _scan(segment, ("number",), where))


def jobs(chosen: Chosen, limit: int | None = None) -> Iterator[Past]:
    """In the order they were pushed."""
    left = len(chosen.numbers) if limit is None else limit
    for segment in _with(chosen.segments, chosen.numbers):
        for batch in _scan(segment, _COLUMNS, _PUSHED & pc.field("number").isin(chosen.numbers)):
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if left <= 0:
                    return
                left -= 1
                past = Past(*values)
                changed = chosen.payloads.get(past.number)
                yield (
                    past if changed is None else past._replace(form=changed.form or past.form, payload=changed.payload)
                )


def _said(which: Filter) -> ds.Expression:
    said = OUTCOMES[which.outcome] & pc.is_valid(pc.field("number"))
    for name, value in (("queue", which.queue), ("kind", which.kind), ("error_group", which.group), ("jid", which.jid)):
        if value:
            said = said & (pc.field(name) == value)
    if which.since is not None:
        said = said & (pc.field("at") >= which.since)
    if which.until is not None:
        said = said & (pc.field("at") < which.until)
    return said


def _during(segments: list[Segment], which: Filter, progress: Progress) -> Iterator[Segment]:
    first = "" if which.since is None else _day(which.since)
    last = "9999" if which.until is None else _day(which.until)
    return _told("choosing", [each for each in segments if first <= each.date <= last], progress)


def _with(
    segments: list[Segment], numbers: pa.Array, progress: Progress = lambda what, done, of: None
) -> Iterator[Segment]:
    return _told("looking up", segments if len(numbers) else [], progress)


def _told(what: str, segments: list[Segment], progress: Progress) -> Iterator[Segment]:
    for done, each in enumerate(segments):
        progress(what, done, len(segments))
        yield each


def _sound(segments: Iterable[Segment], checked: set[Path]) -> Iterator[Segment]:
    """Each file is read whole before its rows count: damaged bytes would be pushed as jobs. Raises LakeNotWhole."""
    for segment in segments:
        why = "" if segment.path in checked else damage(segment.path)
        if why:
            raise LakeNotWhole(f"{segment.path} cannot be used: {why}; put it back from a copy of the lake")
        checked.add(segment.path)
        yield segment


def _changed(segments: Iterable[Segment], numbers: pa.Array) -> dict[int, Payload]:
    """Payloads that were put in place of the first ones. Older rows may not say the form: then it is as before."""
    changed = (pc.field("event") != "pushed") & _CHANGES & pc.field("number").isin(numbers)
    rows: dict[int, tuple[int, bytes | None]] = {}
    forms: dict[int, tuple[int, str]] = {}
    for segment in segments:
        for batch in _scan(segment, ("seq", "number", "form", "payload"), changed):
            for seq, number, form, payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if seq >= rows.get(number, (0, b""))[0]:
                    rows[number] = (seq, payload)
                if form is not None and seq >= forms.get(number, (0, ""))[0]:
                    forms[number] = (seq, form)
    return {number: Payload(forms.get(number, (0, None))[1], payload) for number, (_, payload) in rows.items()}


def _scan(segment: Segment, columns: tuple[str, ...], where: ds.Expression) -> Iterator[pa.RecordBatch]:
    data: Any = ds.dataset(segment.path, schema=_SCHEMA, format="parquet")
    for batch in data.to_batches(columns=list(columns), filter=where):
        if batch.num_rows:
            yield batch


def _day(at: float) -> str:
    return date_named(int(at // DAY)).isoformat()
