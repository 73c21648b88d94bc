"""Actions on all jobs that match a filter: first the count, then the act with that count as the confirmation."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, post
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, JSONBody
from litestar.response import Stream

from crossdock.web.admin import Admin, Refused, ServerUnavailable
from crossdock.web.api.base import BODY, CONFLICT, FilterBody, NameText
from crossdock.web.api.counting import count_jobs
from crossdock.web.api.jobs import Action
from crossdock.web.api.models import Model
from crossdock.web.caller import WebRequest
from crossdock.web.context import by


class BulkBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Without `expected` nothing is changed. An empty filter needs `all`."""

    filter: FilterBody = ""
    all: bool = False
    to: NameText | None = None
    force: bool | None = None
    expected: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None


class BulkCount(Model):
    """How many jobs the action would change. Send it back as `expected` to change them."""

    count: int


class BulkProgress(Model):
    """One line of the reply to a confirmed action. The last line has `finished` true, or an `error`."""

    done: int
    total: int
    finished: bool
    error: str | None = None


@post(
    "/jobs/actions/{action:str}",
    status_code=200,
    tags=["jobs"],
    responses=CONFLICT
    | BODY
    | {
        200: ResponseSpec(
            BulkCount | BulkProgress,
            description="The count, or with `expected` one line of JSON after each step.",
            generate_examples=False,
        )
    },
)
async def act(request: WebRequest, state: State, action: FromPath[Action], data: JSONBody[BulkBody]) -> Response[Any]:
    """Change all jobs that match a filter.

    Without `expected` the reply is `{"count": N}` and nothing is changed. With `expected` equal to the count the jobs
    are changed, and the reply is a line of JSON after each step (`application/x-ndjson`). If the count has changed, the
    status is 409 and nothing is changed. If the connection is closed, the action stops after its current step.
    """
    if not data.filter.strip() and not data.all:
        raise ClientException('filter: an empty filter matches every job; send "all": true with it')
    fields: dict[str, Any] = {"to": data.to, "force": data.force}
    fields |= {"filter": data.filter} if data.filter.strip() else {"all": True}
    counted = await count_jobs(state.admin, action, dry_run=True, **fields)
    if data.expected is None:
        return Response(BulkCount(count=counted.count))
    if data.expected != counted.count:
        raise ClientException(
            f"the filter matches {counted.count} jobs now, not {data.expected}; nothing was changed", status_code=409
        )
    steps = _steps(state.admin, action, counted.count, as_of=counted.as_of, by=by(request), **fields)
    return Stream(steps, media_type="application/x-ndjson")


async def _steps(admin: Admin, action: str, total: int, as_of: float, **fields: Any) -> AsyncIterator[bytes]:
    done, after = 0, None
    while True:
        try:
            found = await admin.ask(action, as_of=as_of, after=after, **fields)
        except (Refused, ServerUnavailable) as error:
            yield _line(BulkProgress(done=done, total=total, finished=False, error=str(error)))
            return
        done, after = done + found["done"], found["after"]
        yield _line(BulkProgress(done=done, total=total, finished=after is None))
        if after is None:
            return


def _line(progress: BulkProgress) -> bytes:
    return msgspec.json.encode(progress) + b"\n"


router = Router("/", route_handlers=[act])
