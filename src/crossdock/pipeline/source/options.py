"""Parses the options of `format("crossdock")`. Errors name the option."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from crossdock.client.bulk import PATIENCE_S, Where
from crossdock.lake.location import absolute
from crossdock.pipeline.errors import PipelineError

REDIS_PORT: Final = 7379
_PORT_AT_MOST: Final = 65_535

#: Defaults for columns that the frame does not have.
_CONSTANTS: Final = ("queue", "kind", "priority", "retry", "reserve_for")

#: Options of the Redis listener.
_LISTENER: Final = frozenset({"host", "port", "socket", "password"})
_READING: Final = _LISTENER | {
    "what",
    "lake",
    "tables",
    "table",
    "data",
    "state",
    "queue",
    "kind",
    "tag",
    "starting",
    "rows",
    "lost",
    "after",
}
_WRITING: Final = _LISTENER | {"run", "key", "closed", "chunk", "patience_s", "progress", *_CONSTANTS}
_SPARKS: Final = frozenset({"path", "checkpointlocation"})

#: Jobs per call: enough to be efficient, few enough for the server to serve others in between.
_CHUNK: Final = 1_000
_CHUNK_AT_MOST: Final = 5_000


class BadOption(PipelineError):
    """An option is missing or invalid; the text names it."""


class Reading(NamedTuple):
    what: Literal["history", "files", "jobs", "table"]
    lake: str  #: folder or URL
    tables: str  #: folder or URL
    table: str  #: its name
    data: str  #: folder of the server
    where: Where | None  #: its Redis listener, instead of `data`
    filters: dict[str, str]  #: of live jobs: state, queue, kind, tag
    starting: Literal["earliest", "latest"]
    after: int  #: a new stream starts after this version of the lake; -1: with the first one
    rows: int  #: approximate rows per micro-batch; 0: no limit
    lost: Literal["fail", "skip"]  #: what to do if history is missing


class Writing(NamedTuple):
    where: Where
    run: str  #: empty: generated
    key: tuple[str, ...]  #: columns that identify a job, without a column jid
    constants: dict[str, str]
    closed: Literal["fail", "skip"]  #: what to do if the run is already closed
    chunk: int
    patience_s: float
    progress: int  #: report progress after this many jobs; 0: never


def reading(options: Mapping[str, str]) -> Reading:
    given = _known(options, _READING, "read")
    what = _one_of(given, "what", ("history", "files", "jobs", "table"))
    if what == "table":
        for name, example in (("tables", "crossdock-data/tables"), ("table", "hourly")):
            if not given.get(name):
                raise BadOption(f'option {name} is missing, as in .option("{name}", "{example}")')
    elif what != "jobs" and not given.get("lake"):
        raise BadOption('option lake is missing: the folder of the lake, as in .option("lake", "crossdock-data/lake")')
    where = _where(given) if "host" in given or "socket" in given else None
    if what == "jobs" and (where is None) is not bool(given.get("data")):
        raise BadOption(
            'name the running server: its folder, as in .option("data", "jobs"), or its Redis listener, as in '
            '.option("host", "redis://10.0.0.5:7379")'
        )
    filters = {name: given[name] for name in ("state", "queue", "kind", "tag") if given.get(name)}
    if what != "jobs" and filters:
        raise BadOption(f"option {next(iter(filters))} is for live jobs; filter other rows with .where(…)")
    return Reading(
        cast(Literal["history", "files", "jobs", "table"], what),
        absolute(given.get("lake", "")),
        absolute(given.get("tables", "")),
        given.get("table", ""),
        str(Path(given.get("data", "")).absolute()),
        where,
        filters,
        cast(Literal["earliest", "latest"], _one_of(given, "starting", ("earliest", "latest"))),
        _whole(given, "after", -1, -1),
        _whole(given, "rows", 0, 0),
        cast(Literal["fail", "skip"], _one_of(given, "lost", ("fail", "skip"))),
    )


def writing(options: Mapping[str, str]) -> Writing:
    given = _known(options, _WRITING, "write")
    return Writing(
        _where(given),
        given.get("run", ""),
        tuple(name.strip() for name in given.get("key", "").split(",") if name.strip()),
        {name: given[name] for name in _CONSTANTS if name in given},
        cast(Literal["fail", "skip"], _one_of(given, "closed", ("fail", "skip"))),
        min(_whole(given, "chunk", _CHUNK, 1), _CHUNK_AT_MOST),
        _whole(given, "patience_s", int(PATIENCE_S), 0),
        _whole(given, "progress", 0, 0),
    )


def _where(given: Mapping[str, str]) -> Where:
    """`host` is a name or an address: redis://:password@host:port"""
    host, port, password = given.get("host", "127.0.0.1"), str(REDIS_PORT), None
    if "://" in host:
        try:
            parts = urlsplit(host)
            scheme, host, number, password = parts.scheme, parts.hostname or "", parts.port, parts.password
        except ValueError as error:
            raise BadOption(f"option host is not an address: {error}; write it as redis://10.0.0.5:7379") from error
        if scheme != "redis" or not host or parts.path not in ("", "/", "/0"):
            raise BadOption(
                "option host must be a name, or the address of the Redis listener, as in redis://10.0.0.5:7379"
            )
        port = port if number is None else str(number)
    secret = os.environ.get("CROSSDOCK_REDIS_PASSWORD", "") if password is None else unquote(password)
    at = _whole({"port": port} | dict(given), "port", REDIS_PORT, 1)
    if at > _PORT_AT_MOST:  # larger numbers would wrap around
        raise BadOption(f"option port = {at} is not allowed; it must be at most {_PORT_AT_MOST}")
    return Where(host, at, given.get("socket", ""), given.get("password", secret))


def _known(options: Mapping[str, str], names: frozenset[str], verb: str) -> dict[str, str]:
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(given.keys() - names - _SPARKS)
    if unknown:
        raise BadOption(f"option {unknown[0]} is unknown to {verb}; the options are {', '.join(sorted(names))}")
    return given


def _one_of(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = given.get(name, allowed[0])
    if value not in allowed:
        raise BadOption(f"option {name} = {value!r} is not allowed; it must be {' or '.join(allowed)}")
    return value


def _whole(given: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = given.get(name, str(default))
    if not text.removeprefix("-").isdecimal() or int(text) < least:
        raise BadOption(f"option {name} = {text!r} is not allowed; it must be a whole number, at least {least}")
    return int(text)
