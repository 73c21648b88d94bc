"""The options of `format("crossdock")`, read once and in words that name the option."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast

from crossdock.client.loads import PATIENCE_S, Where
from crossdock.pipeline.errors import PipelineError

REDIS_PORT: Final = 7379

#: Of a job, if the frame has no column of that name.
_CONSTANTS: Final = ("queue", "kind", "priority", "retry", "reserve_for")

#: Spark's own, and those that say where to read.
_READING: Final = frozenset({"what", "lake", "data", "state", "queue", "kind", "tag", "starting", "rows", "lost"})
_WRITING: Final = frozenset(
    {"host", "port", "socket", "password", "run", "key", "closed", "chunk", "patience_s", *_CONSTANTS}
)
_SPARKS: Final = frozenset({"path", "checkpointlocation"})

#: Jobs of one call: enough to make the call cheap, few enough for the server to serve others in between.
_CHUNK: Final = 1_000
_CHUNK_AT_MOST: Final = 5_000


class BadOption(PipelineError):
    """An option is missing or wrong; the text names it."""


class Reading(NamedTuple):
    what: Literal["history", "jobs"]
    lake: str  #: folder
    data: str  #: folder of the server
    filters: dict[str, str]  #: of live jobs: state, queue, kind, tag
    starting: Literal["earliest", "latest"]
    rows: int  #: of a micro-batch, about; 0: all there are
    lost: Literal["fail", "skip"]  #: what to do if history that was to be read is not there any more


class Writing(NamedTuple):
    where: Where
    run: str  #: "": made up
    key: tuple[str, ...]  #: columns that name a job, if none is called jid
    constants: dict[str, str]
    closed: Literal["fail", "skip"]  #: what to do if the run was closed before
    chunk: int
    patience_s: float


def reading(options: Mapping[str, str]) -> Reading:
    given = _known(options, _READING, "read")
    what = _one_of(given, "what", ("history", "jobs"))
    if what == "history" and not given.get("lake"):
        raise BadOption('option lake is missing: the folder of the lake, as in .option("lake", "crossdock-data/lake")')
    if what == "jobs" and not given.get("data"):
        raise BadOption('option data is missing: the folder of the running server, as in .option("data", "jobs")')
    filters = {name: given[name] for name in ("state", "queue", "kind", "tag") if given.get(name)}
    if what == "history" and filters:
        raise BadOption(f"option {next(iter(filters))} is for live jobs; of history choose with .where(…)")
    return Reading(
        cast(Literal["history", "jobs"], what),
        str(Path(given.get("lake", "")).absolute()),
        str(Path(given.get("data", "")).absolute()),
        filters,
        cast(Literal["earliest", "latest"], _one_of(given, "starting", ("earliest", "latest"))),
        _whole(given, "rows", 0, 0),
        cast(Literal["fail", "skip"], _one_of(given, "lost", ("fail", "skip"))),
    )


def writing(options: Mapping[str, str]) -> Writing:
    given = _known(options, _WRITING, "write")
    password = given.get("password", os.environ.get("CROSSDOCK_REDIS_PASSWORD", ""))
    host, port = given.get("host", "127.0.0.1"), _whole(given, "port", REDIS_PORT, 1)
    return Writing(
        Where(host, port, given.get("socket", ""), password),
        given.get("run", ""),
        tuple(name.strip() for name in given.get("key", "").split(",") if name.strip()),
        {name: given[name] for name in _CONSTANTS if name in given},
        cast(Literal["fail", "skip"], _one_of(given, "closed", ("fail", "skip"))),
        min(_whole(given, "chunk", _CHUNK, 1), _CHUNK_AT_MOST),
        _whole(given, "patience_s", int(PATIENCE_S), 0),
    )


def _known(options: Mapping[str, str], names: frozenset[str], verb: str) -> dict[str, str]:
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(given.keys() - names - _SPARKS)
    if unknown:
        raise BadOption(f"option {unknown[0]} is not known to {verb}; known are {', '.join(sorted(names))}")
    return given


def _one_of(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = given.get(name, allowed[0])
    if value not in allowed:
        raise BadOption(f"option {name} = {value!r} is not allowed; it must be {' or '.join(allowed)}")
    return value


def _whole(given: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = given.get(name, str(default))
    if not text.isdecimal() or int(text) < least:
        raise BadOption(f"option {name} = {text!r} is not allowed; it must be a whole number, at least {least}")
    return int(text)
