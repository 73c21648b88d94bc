"""Converts rows of a frame to jobs of a bulk load. The columns are checked before anything is sent.

A job's id is its `jid` column, or a hash of the run and the key columns, so it is the same when the row is sent again.
Ids generated in a task would differ when the task runs again.
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from crossdock.client.bulk import calls
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.source.options import Writing

#: The members of a job, in the order of the bulk load.
MEMBERS: Final[tuple[str, ...]] = (
    "jid", "queue", "kind", "args", "priority", "at", "retry", "reserve_for", "custom", "tags", "replayed_from",
)  # fmt: skip
#: Values for nulls and missing columns.
DEFAULTS: Final[dict[str, Any]] = {
    "queue": "default", "args": "[]", "priority": 0, "at": None, "retry": 25, "reserve_for": 0, "custom": "",
    "tags": None, "replayed_from": "",
}  # fmt: skip
_ID_DIGITS: Final = 32
_NUMBERS: Final = frozenset({"priority", "retry", "reserve_for"})

_json = msgspec.json.Encoder(enc_hook=str).encode
_pack = msgspec.msgpack.Encoder(enc_hook=str).encode


#: Column beside binary args: `raw`, or anything else for JSON.
FORM: Final = "form"


class BadFrame(PipelineError):
    """The frame cannot be enqueued; the text names the column."""


class Plan(NamedTuple):
    """The columns of a frame, checked."""

    columns: dict[str, str]  #: member and the simple type of its column
    key: tuple[str, ...]
    constants: dict[str, Any]


def plan(schema: Sequence[tuple[str, str]], options: Writing) -> Plan:
    """`schema` are names and simple types (`StructType.fields`, `simpleString()`). Raises BadFrame."""
    types = dict(schema)
    missing = [name for name in options.key if name not in types]
    if missing:
        raise BadFrame(f"key column {missing[0]} is not in the frame; it has {', '.join(types)}")
    columns = {name: types[name] for name in MEMBERS if name in types}
    if options.key and "jid" in columns:
        raise BadFrame("the frame has a column jid, and option key names others; leave one of the two out")
    if not options.key and "jid" not in columns:
        raise BadFrame(
            "each job needs an id that is the same when its row is sent again: add a column jid, or name the columns "
            'that identify a row, as in .option("key", "order_id")'
        )
    if "kind" not in columns and "kind" not in options.constants:
        raise BadFrame('the frame has no column kind; add it, or give one kind to all: .option("kind", "invoice")')
    formed = FORM in types and types.get("args") == "binary"
    known = {*MEMBERS, *options.key, *([FORM] if formed else [])}
    unknown = [name for name in types if name not in known]
    if unknown:
        raise BadFrame(
            f"column {unknown[0]} is none of a job's ({', '.join(MEMBERS)}); drop it, put it into args, or name it in "
            "option key"
        )
    for name, kind in columns.items():
        _check(name, kind)
    if formed:
        columns[FORM] = types[FORM]
    constants = {name: _constant(name, text) for name, text in options.constants.items() if name not in columns}
    return Plan(columns, options.key, constants)


def _check(name: str, kind: str) -> None:
    numeric = kind in ("tinyint", "smallint", "int", "bigint")
    allowed = {
        "args": True,
        "custom": kind == "string" or kind.startswith(("struct", "map")),
        "tags": kind == "array<string>",
        "at": kind in ("timestamp", "double", "bigint", "int"),
        "priority": numeric or kind in ("double", "float"),
        "retry": numeric,
        "reserve_for": numeric,
    }.get(name, kind == "string" or kind.startswith(("varchar", "char")))
    if not allowed:
        wanted = {
            "custom": "a JSON text, a struct or a map", "tags": "array<string>", "at": "a timestamp, or seconds",
            "priority": "a number", "retry": "a whole number", "reserve_for": "a whole number",
        }.get(name, "string")  # fmt: skip
        raise BadFrame(f"column {name} is of type {kind}; it must be {wanted}")


def _constant(name: str, text: str) -> Any:
    if name not in _NUMBERS:
        return text
    try:
        return int(text)
    except ValueError:
        raise BadFrame(f"option {name} = {text!r} is not allowed; it must be a whole number") from None


def chunks(batch: pa.RecordBatch, made: Plan, run: str, size: int) -> Iterator[tuple[int, bytes]]:
    """Encode a record batch as calls of at most `size` jobs. Raises BadFrame."""
    lists = [_values(batch, name, made, run) for name in MEMBERS]
    while lists and lists[-1] is None:  # trailing defaults can be omitted
        lists.pop()
    count = batch.num_rows
    full = [[DEFAULTS[name]] * count if each is None else each for name, each in zip(MEMBERS, lists, strict=False)]
    return calls(zip(*full, strict=True), size)


def _values(batch: pa.RecordBatch, name: str, made: Plan, run: str) -> list[Any] | None:
    if name == "jid" and made.key:
        return _ids(batch, made.key, run)
    if name not in made.columns:
        return [made.constants[name]] * batch.num_rows if name in made.constants else None
    column = batch.column(name)
    if name == "args" and FORM in made.columns:
        return _formed(batch)
    if name in ("jid", "kind") and column.null_count:
        raise BadFrame(f"column {name} is null in {column.null_count} rows of {batch.num_rows}; give each job one")
    values: list[Any] = _AS.get(name, _plain)(column)
    if column.null_count:
        default = made.constants.get(name, DEFAULTS.get(name))
        return [default if value is None else value for value in values]
    return values


def _formed(batch: pa.RecordBatch) -> list[Any]:
    """Binary args whose column `form` says whether they are JSON, as in the lake."""
    pairs = zip(batch.column("args").to_pylist(), batch.column(FORM).to_pylist(), strict=True)
    try:
        return [args or b"" if form == "raw" else (args or b"[]").decode() for args, form in pairs]
    except UnicodeDecodeError as error:
        raise BadFrame(f"args that are not UTF-8 cannot be JSON; set form = 'raw' for such rows: {error}") from error


def _plain(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


def _seconds(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        return _plain(pc.divide(micros.cast(pa.float64()), 1e6))
    return _plain(column.cast(pa.float64()))


def _numbers(column: pa.Array) -> list[Any]:
    """Whole numbers as integers, so that a job shows its priority as pushed."""
    values = _plain(column)
    if not pa.types.is_floating(column.type):
        return values
    return [int(value) if value is not None and value.is_integer() else value for value in values]


def _json_texts(column: pa.Array) -> list[Any]:
    """Strings are already JSON, bytes stay unchanged, other values are encoded as JSON."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return _plain(column)
    maps = {"maps_as_pydicts": "strict"} if _has_map(kind) else {}
    return [None if value is None else _json(value).decode() for value in column.to_pylist(**maps)]


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(index).type) for index in range(kind.num_fields))


_AS: Final[dict[str, Callable[[pa.Array], list[Any]]]] = {
    "at": _seconds, "priority": _numbers, "args": _json_texts, "custom": _json_texts,
}  # fmt: skip


def _ids(batch: pa.RecordBatch, key: tuple[str, ...], run: str) -> list[str]:
    """Ids from the key columns. The same row has the same id in any task."""
    begin = sha256(run.encode() + b"\0")
    ids = []
    for values in zip(*(batch.column(name).to_pylist() for name in key), strict=True):
        if None in values:
            raise BadFrame(f"key column {key[values.index(None)]} is null in a row; each row needs a key")
        each = begin.copy()
        each.update(_pack(values))
        ids.append(each.hexdigest()[:_ID_DIGITS])
    return ids
