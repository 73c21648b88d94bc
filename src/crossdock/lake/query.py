"""Finds past jobs by a filter, in the form in which a replay pushes them again. Runs page by page, in bounded memory.

A filter selects events by time, queue, kind, outcome or error group. Jobs that are alive, or that have succeeded since,
are left out (job_outcomes.py). The others are looked up in their `pushed` rows, which have the kind, payload and
other properties.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from crossdock.lake.event_rows.tables import date_named
from crossdock.lake.job_outcomes import (
    FACTS,
    REPLACES,
    Ask,
    History,
    LeftOut,
    Matches,
    among,
    between,
    facts_about,
    last_of_each,
    near,
    reasons,
)
from crossdock.lake.redaction import REDACTED
from crossdock.lake.schema import EVENTS, SEQ_SHIFT
from crossdock.lake.selection import ERASED
from crossdock.lake.table import Lake, LakeFile, NoLake
from crossdock.lake.verify import damage, missing
from crossdock.model.clock import DAY
from crossdock.model.errors import CrossdockError

Progress = Callable[[str, int, int], None]
_Columns = tuple[str, ...] | dict[str, ds.Expression]

_SCHEMA: Final = pa.schema([(field.name, field.type) for field in EVENTS])
_event: Final = pc.field("event")
_PUSHED: Final = _event == "pushed"
_REPLAYED: Final = _PUSHED & pc.is_valid(pc.field("replayed_from"))

#: The outcomes that an operator can name, and the events they select.
OUTCOMES: Final[dict[str, ds.Expression]] = {
    "pushed": _PUSHED,
    "succeeded": _event == "succeeded",
    "failed": (_event == "failed") | ((_event == "rescheduled") & (pc.field("outcome") == "failed")),
    "lost": (_event == "failed") & pc.field("lost") | (_event == "lease-expired"),
    "dead": (_event == "failed") & pc.field("state").isin(["dead", "failed", "gone"]) | (_event == "buried"),
    "removed": _event == "removed",
}

#: Outcomes that can be made good later, by a success or by a replay. The others select finished work on purpose.
_MENDED: Final = ("failed", "lost", "dead", "removed")

_COLUMNS: Final = (
    "number", "jid", "queue", "kind", "priority", "retries", "lease_s", "form", "payload", "custom", "tags",
)  # fmt: skip


def _is_redacted(column: str) -> ds.Expression:
    return pc.if_else(pc.is_valid(pc.field(column)), pc.match_substring(pc.field(column), REDACTED), False)


#: Whether the lake lacks something of a row's payload. Payloads themselves are not returned.
_LACKS: Final[dict[str, ds.Expression]] = {
    "number": pc.field("number"),
    "jid": pc.field("jid"),
    "seq": pc.field("seq"),
    "pushed": _PUSHED,
    "empty": pc.field("size") == 0,
    "absent": pc.is_null(pc.field("payload")),
    "redacted": _is_redacted("payload"),
    "custom": _is_redacted("custom"),
}

_MATCHES: Final = {"number": pc.field("number"), "matched": pc.field("seq")}

#: Rows that are held at a time; fewer of those with payloads.
_ROWS: Final = 131_072
_PAYLOADS: Final = 1_000

#: Retries of a replayed job that was pushed without a number, and upper limits for the others.
RETRIES: Final = 25
RETRIES_AT_MOST: Final = 1_000_000
LEASE_AT_MOST: Final = 86_400


#: How many of the skipped jobs are listed.
NAMED: Final = 5


class LakeNotWhole(CrossdockError):
    """Part of the history is missing; the text names it."""


class Filter(NamedTuple):
    """Selects events. An empty field matches all."""

    queue: str = ""
    kind: str = ""
    outcome: str = "pushed"
    group: str = ""
    tag: str = ""
    jid: str = ""
    since: float | None = None
    until: float | None = None


class Past(NamedTuple):
    """A job as it was pushed, with its latest payload."""

    number: int
    jid: str
    queue: str
    kind: str
    priority: float
    retries: int | None
    lease_s: float | None
    form: str | None
    payload: bytes | None  #: None: the job has none
    custom: bytes | None
    tags: list[str] | None


class Segment(NamedTuple):
    """A live file of a lake."""

    lake: Lake
    file: LakeFile


class Chosen(NamedTuple):
    lake: str  #: the lake's id; job numbers are unique within it
    at: float  #: time of the newest event; later events are not in the lake yet
    numbers: pa.Array  #: of the jobs, ascending
    replaced: pa.Table  #: jobs whose payload was replaced: `number`, and the `seq` of the last payload and form
    left_out: LeftOut
    unknown: int  #: jobs without a `pushed` row: pushed before the lake began, or on an expired date
    bare: int  #: jobs whose payload the lake does not have (lake.payloads), was redacted (lake.redact) or erased
    named: list[str]  #: jids of some of these
    segments: list[Segment]


def mark(run: str, lake: str) -> str:
    """How the jids of the jobs begin that a replay pushes."""
    return sha256(f"{run}\0{lake}".encode()).hexdigest()[:8]


def choose(
    location: str | Path,
    which: Filter,
    progress: Progress = lambda what, done, of: None,
    *,
    run: str = "",
    include: Collection[str] = (),
    ask: Ask = lambda numbers: None,
) -> Chosen:
    """Find the jobs that match. Raises LakeNotWhole.

    Jobs that are alive are left out. If the outcome is failed, lost, dead or removed, so are jobs that have succeeded
    or were replayed after it. `include` names fields of LeftOut: these jobs are not left out. `ask` asks the running
    server which jobs are alive. If it cannot be asked, the last event of a job decides.

    `run` is the name of this replay. Jobs that it has pushed itself do not match, and their originals are not left out:
    the server ignores the jobs of a replay that it knows.
    """
    name, at, segments = _opened(location)
    checked: set[str] = set()
    matches = Matches()
    for segment in _sound(_during(segments, which, progress), checked):
        for batch in _scan(segment, _MATCHES, _condition(which)):
            matches.add(batch)
    jobs = matches.table()
    jobs = _with_history(_sound(_with(segments, jobs["number"], progress), checked), jobs)
    replays, own = _replays(_with(segments, jobs["number"]), mark(run, name))
    jobs = _drop(jobs, own)
    if which.tag:
        jobs = _drop(jobs, _untagged(_with(segments, jobs["number"]), _array(jobs["number"]), which.tag))
    jobs = jobs.append_column("replay", _last_replay(segments, _array(jobs["number"]), replays))
    why = reasons(jobs, ask, include, since=which.outcome in _MENDED)
    left_out = LeftOut(**{each: pc.sum(pc.equal(why, each)).as_py() or 0 for each in LeftOut._fields})
    jobs = jobs.select(["number", "pushed", "replaced", "formed"]).filter(pc.is_null(why))
    known = jobs.filter(pc.greater(jobs["pushed"], 0)).combine_chunks()
    bare, named = _bare(_with(segments, known["number"], progress), known)
    kept = _drop(known, bare)
    replaced = kept.filter(pc.greater(kept["replaced"], 0)).select(["number", "replaced", "formed"])
    return Chosen(
        lake=name,
        at=at,
        numbers=_array(kept["number"]),
        replaced=replaced.combine_chunks(),
        left_out=left_out,
        unknown=len(jobs) - len(known),
        bare=len(bare),
        named=named,
        segments=segments,
    )


def _opened(location: str | Path) -> tuple[str, float, list[Segment]]:
    """Id, time of the newest event, and files. Empty if the server has not written a segment yet. Raises
    LakeNotWhole."""
    try:
        lake = Lake.open(location)
    except NoLake:
        return "", 0.0, []
    files = lake.files()
    for fault in missing(lake, files):
        raise LakeNotWhole(f"the lake in {location} is incomplete: {fault}")
    return lake.id, lake.at, [Segment(lake, file) for file in files]


def has(location: str | Path, column: str, value: str) -> bool:
    """Whether any row of the lake has this value in this column."""
    where = pc.field(column) == value
    return any(True for segment in _opened(location)[2] for _ in _scan(segment, ("number",), where))


def jobs(chosen: Chosen, limit: int | None = None) -> Iterator[Past]:
    """The chosen jobs, in the order in which they were pushed."""
    left = len(chosen.numbers) if limit is None else limit
    for segment in _with(chosen.segments, chosen.numbers):
        for batch in _scan(segment, _COLUMNS, _PUSHED & between(chosen.numbers), _PAYLOADS):
            rows = among(chosen.numbers, batch)
            replaced = _replacements(chosen, rows.column("number"))
            for values in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                if left <= 0:
                    return
                left -= 1
                past = Past(*values)
                form, payload = replaced.get(past.number, (past.form, past.payload))
                yield past._replace(form=form or past.form, payload=payload)


def _condition(which: Filter) -> ds.Expression:
    condition = OUTCOMES[which.outcome] & pc.is_valid(pc.field("number"))
    for name, value in (("queue", which.queue), ("kind", which.kind), ("error_group", which.group), ("jid", which.jid)):
        if value:
            condition = condition & (pc.field(name) == value)
    if which.since is not None:
        condition = condition & (pc.field("at") >= which.since)
    if which.until is not None:
        condition = condition & (pc.field("at") < which.until)
    return condition


def _during(segments: list[Segment], which: Filter, progress: Progress) -> Iterator[Segment]:
    first = "" if which.since is None else _day(which.since)
    last = "9999" if which.until is None else _day(which.until)
    return _with_progress("choosing", [each for each in segments if first <= each.file.date <= last], progress)


def _with(
    segments: list[Segment], numbers: pa.Array, progress: Progress = lambda what, done, of: None
) -> Iterator[Segment]:
    return _with_progress("looking up", segments if len(numbers) else [], progress)


def _with_progress(what: str, segments: list[Segment], progress: Progress) -> Iterator[Segment]:
    for done, each in enumerate(segments):
        progress(what, done, len(segments))
        yield each


def _sound(segments: Iterable[Segment], checked: set[str]) -> Iterator[Segment]:
    """Verify the checksums of each file first, so that no damaged payload is pushed. Raises LakeNotWhole."""
    for segment in segments:
        path = segment.file.path
        why = "" if path in checked else damage(segment.lake, segment.file)
        if why:
            raise LakeNotWhole(f"{path} cannot be used: {why}; restore it from a copy of the lake")
        checked.add(path)
        yield segment


def _with_history(segments: Iterable[Segment], jobs: pa.Table) -> pa.Table:
    numbers = _array(jobs["number"])
    history = History(numbers)
    for segment in segments:
        for batch in _scan(segment, FACTS, facts_about(numbers)):
            history.add(batch)
    return history.table().append_column("matched", jobs["matched"])


def _replays(segments: Iterable[Segment], own: str) -> tuple[pa.Table, pa.Array]:
    """The jids of replayed jobs, each with the `seq` of its last replay, and the numbers of the jobs of this replay."""
    found = [pa.table({"jid": pa.array([], pa.string()), "replay": pa.array([], pa.int64())})]
    mine = [pa.array([], pa.int64())]
    for segment in segments:
        for batch in _scan(segment, ("number", "seq", "jid", "replayed_from"), _REPLAYED):
            is_mine = pc.starts_with(batch.column("jid"), own)
            others = batch.filter(pc.invert(is_mine))
            mine.append(batch.filter(is_mine).column("number"))
            found.append(pa.table({"jid": others.column("replayed_from"), "replay": others.column("seq")}))
    return last_of_each(pa.concat_tables(found)), pa.concat_arrays(mine)


def _last_replay(segments: list[Segment], numbers: pa.Array, replays: pa.Table) -> pa.Array:
    """The `seq` of each job's last replay, or 0. A replay names the old job by its jid."""
    jids = _array(replays["jid"])
    found = [pa.table({"number": numbers[:0], "replay": numbers[:0]})]
    for segment in segments if len(jids) else []:
        for batch in _scan(segment, ("number", "jid"), _PUSHED & between(numbers) & pc.field("jid").isin(jids)):
            rows = among(numbers, batch)
            seqs = replays["replay"].take(pc.index_in(rows.column("jid"), value_set=jids))
            found.append(pa.table({"number": rows.column("number"), "replay": seqs}))
    last = pa.concat_tables(found)
    return pc.fill_null(last["replay"].take(pc.index_in(numbers, value_set=_array(last["number"]))), 0)


def _untagged(segments: Iterable[Segment], numbers: pa.Array, tag: str) -> pa.Array:
    """The jobs that were pushed without the tag."""
    found = [numbers[:0]]
    for segment in segments:
        for batch in _scan(segment, ("number", "tags"), _PUSHED & between(numbers)):
            lacks = [tag not in (tags or ()) for tags in batch.column("tags").to_pylist()]
            found.append(batch.column("number").filter(pa.array(lacks, pa.bool_())))
    return pa.concat_arrays(found)


def _drop(jobs: pa.Table, numbers: pa.Array) -> pa.Table:
    return jobs.filter(pc.invert(pc.is_in(jobs["number"], value_set=numbers)))


def _bare(segments: Iterable[Segment], jobs: pa.Table) -> tuple[pa.Array, list[str]]:
    """The jobs whose last payload or custom data the lake lacks, and the jids of the first ones."""
    numbers, replaced = _array(jobs["number"]), _array(jobs["replaced"])
    found = [numbers[:0]]
    named: dict[int, str] = {}
    for segment in segments:
        for batch in _scan(segment, _LACKS, (_PUSHED | REPLACES) & between(numbers)):
            rows = among(numbers, batch)
            first, some = near(numbers, rows.column("number"))
            last = replaced.slice(first, len(some)).take(pc.index_in(rows.column("number"), value_set=some))
            lacks = pc.or_(rows.column("redacted"), pc.and_not(rows.column("absent"), rows.column("empty")))
            gone = pc.or_(rows.column("custom"), pc.equal(rows.column("jid"), ERASED))
            at_first = pc.and_(rows.column("pushed"), pc.or_(gone, pc.and_(lacks, pc.equal(last, 0))))
            later = pc.and_(pc.equal(rows.column("seq"), last), pc.or_(rows.column("redacted"), rows.column("absent")))
            bare = rows.filter(pc.or_(at_first, later))
            found.append(bare.column("number"))
            some_named = zip(
                *(bare.column(name).slice(0, NAMED).to_pylist() for name in ("number", "jid")), strict=True
            )
            named = dict(sorted((named | dict(some_named)).items())[:NAMED])
    return pc.unique(pa.concat_arrays(found)), list(named.values())


def _replacements(chosen: Chosen, numbers: pa.Array) -> dict[int, tuple[str | None, bytes | None]]:
    """Form and payload of the jobs whose payload was replaced. A row without a form keeps the form as it was."""
    first, some = near(_array(chosen.replaced["number"]), numbers)
    rows = chosen.replaced.slice(first, len(some))
    rows = rows.filter(pc.is_in(rows["number"], value_set=numbers))
    if not len(rows):
        return {}
    wanted = sorted({seq for name in ("replaced", "formed") for seq in rows[name].to_pylist() if seq})
    found: dict[int, tuple[str | None, bytes | None]] = {0: (None, None)}
    for segment in chosen.segments:
        first, last = segment.file.first << SEQ_SHIFT, (segment.file.last + 1) << SEQ_SHIFT
        # A file of another tool does not say which entries it has.
        here = wanted[bisect_left(wanted, first) : bisect_left(wanted, last)] if segment.file.first else wanted
        if here:
            seq = pc.field("seq")
            where = (seq >= here[0]) & (seq <= here[-1]) & seq.isin(here)
            for batch in _scan(segment, ("seq", "form", "payload"), where, _PAYLOADS):
                values = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                found |= {seq: (form, payload) for seq, form, payload in values}
    lasts = zip(*(rows[name].to_pylist() for name in ("number", "replaced", "formed")), strict=True)
    return {number: (found[formed][0], found[replaced][1]) for number, replaced, formed in lasts}


def _scan(segment: Segment, columns: _Columns, where: ds.Expression, rows: int = _ROWS) -> Iterator[pa.RecordBatch]:
    path, filesystem = segment.lake.store.path(segment.file.path)
    data: Any = ds.dataset(path, schema=_SCHEMA, format="parquet", filesystem=filesystem)
    shown = columns if isinstance(columns, dict) else list(columns)
    # Reading ahead would hold the payloads of many row groups, and is not faster here.
    for batch in data.to_batches(columns=shown, filter=where, batch_size=rows, batch_readahead=0):
        if batch.num_rows:
            yield batch


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _day(at: float) -> str:
    return date_named(int(at // DAY)).isoformat()
