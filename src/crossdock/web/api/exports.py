"""Jobs of a filter as a file: JSON lines or CSV."""

import csv
import io
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

import msgspec
from litestar import Response, Router, get
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from litestar.response import Stream

from crossdock.web.admin import Admin, ServerUnavailable
from crossdock.web.api.base import ERRORS, FilterText
from crossdock.web.api.models import JobRow

#: Rows of a file.
ROWS: Final = 100_000
_PAGE: Final = 200

_COLUMNS: Final = JobRow.__struct_fields__

#: A spreadsheet takes a cell that begins so for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")

Format = Literal["csv", "jsonl"]
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


@get(
    "/jobs/export",
    responses=ERRORS
    | {200: ResponseSpec(str, description="The file.", media_type="text/csv", generate_examples=False)},
    tags=["jobs"],
)
async def export(
    state: State,
    filter_text: FilterText = "",
    file_format: Annotated[Format, QueryParameter(name="format")] = "csv",
    limit: Annotated[int, QueryParameter(ge=1, le=ROWS, description="Rows of the file.")] = ROWS,
) -> Response[Any]:
    """Jobs that match a filter, as JSON lines or CSV. In CSV a cell that a spreadsheet would take for a formula begins
    with an apostrophe."""
    first = await state.admin.ask("jobs", filter=filter_text or None, limit=min(_PAGE, limit))
    return Stream(
        _rows(state.admin, filter_text, file_format, limit, first),
        media_type=_TYPES[file_format],
        headers={"Content-Disposition": f'attachment; filename="jobs.{file_format}"'},
    )


async def _rows(admin: Admin, filter_text: str, file_format: Format, limit: int, page: Any) -> AsyncIterator[bytes]:
    """A file that ends early has a last line that says so: the status was sent before."""
    write = csv_lines if file_format == "csv" else json_lines
    if file_format == "csv":
        yield csv_line(_COLUMNS)
    left = limit
    while True:
        yield write(page["jobs"][:left])
        left -= len(page["jobs"])
        if page["after"] is None or left <= 0:
            return
        try:
            page = await admin.ask("jobs", filter=filter_text or None, limit=_PAGE, after=page["after"])
        except ServerUnavailable as error:
            text = f"incomplete: {error}"
            yield csv_line([text]) if file_format == "csv" else msgspec.json.encode({"error": text}) + b"\n"
            return


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def csv_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(csv_line([row.get(name) for name in _COLUMNS]) for row in rows)


def csv_line(values: Any) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow([cell(value) for value in values])
    return out.getvalue().encode("utf-8", "surrogatepass")


def cell(value: Any) -> Any:
    """A value of a cell. Numbers are not escaped: they cannot be formulas."""
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    if isinstance(value, str):
        value = value.replace("\0", "")
        return "'" + value if value.startswith(_FORMULA) else value
    return value


router = Router("/", route_handlers=[export])
