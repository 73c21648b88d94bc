"""History: all events of a job from the lake, and rows of the pipeline's tables."""

import datetime
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from litestar.response import Stream

from crossdock.web.admin import Refused, ServerUnavailable
from crossdock.web.api.base import NOT_FOUND, Name, Number, plain
from crossdock.web.api.models import Model
from crossdock.web.history_reader import History

Streamed = Annotated[
    bool, QueryParameter(description="Send a line of JSON for each day as it is read, newest day first.")
]


class JobHistory(Model):
    """Events of a job, oldest first."""

    events: list[dict[str, Any]]
    complete: bool  #: the job's push is among them, so nothing is older
    stopped_at: str  #: why the search ended
    looked_back_to: str | None  #: the oldest day that was read
    days: int
    seconds: float
    upto: str | None  #: the newest event in the lake; later ones are not in it yet


class Column(Model):
    name: str
    about: str


class TableRows(Model):
    """Rows of a table, newest day first."""

    table: str
    about: str
    columns: list[Column]
    rows: list[dict[str, Any]]
    cut: bool  #: there are more rows
    first: str
    last: str
    upto: str | None  #: the newest event in the tables
    waiting: int  #: files of the lake that are not in the tables yet


@get(
    "/jobs/{number:int}/history",
    responses=NOT_FOUND
    | {200: ResponseSpec(JobHistory, description="The events that were found.", generate_examples=False)},
    tags=["history"],
)
async def job_history(state: State, number: Number, stream: Streamed = False) -> Response[Any]:
    """Every transition of a job, from the lake. It looks back at most 30 days and for 5 seconds."""
    return await _history(state, number, stream)


async def _history(state: State, ident: int | str, stream: bool) -> Response[Any]:
    history: History = state.history
    if stream:
        return Stream(_lines(history, ident), media_type="application/x-ndjson")
    return Response(msgspec.convert(await history.whole_job(ident), JobHistory))


async def _lines(history: History, ident: int | str) -> AsyncIterator[bytes]:
    try:
        async for part in history.job(ident):
            yield msgspec.json.encode(part) + b"\n"
    except (Refused, ServerUnavailable) as error:
        yield msgspec.json.encode({"error": str(error)}) + b"\n"


@get(
    "/history/jobs/{jid:str}",
    responses=NOT_FOUND
    | {200: ResponseSpec(JobHistory, description="The events that were found.", generate_examples=False)},
    tags=["history"],
)
async def history_of_jid(state: State, jid: Name, stream: Streamed = False) -> Response[Any]:
    """Every transition of the newest job with this jid, from the lake, also after the job has ended."""
    return await _history(state, plain(jid), stream)


@get("/history/{table:str}", responses=NOT_FOUND, tags=["history"])
async def table_rows(
    state: State,
    table: Name,
    days: Annotated[int, QueryParameter(ge=1, le=366, description="Days that end with `until`.")] = 30,
    until: Annotated[datetime.date | None, QueryParameter(description="The last day. Default: today.")] = None,
    queue: Annotated[str | None, QueryParameter(max_length=1_024)] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=5_000)] = 1_000,
) -> TableRows:
    """Rows of one of the pipeline's tables, such as `daily` or `attempts`, and how old the tables are."""
    last = None if until is None else until.isoformat()
    found = await state.history.table(plain(table), days, last, queue, limit)
    return msgspec.convert(found, TableRows)


router = Router("/", route_handlers=[job_history, history_of_jid, table_rows])
