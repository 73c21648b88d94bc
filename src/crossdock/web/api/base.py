"""What all parts of the API share: parameters, documented errors, and typed questions to the server."""

from typing import Annotated, Any, Final, TypeVar
from urllib.parse import unquote

import msgspec
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter

from crossdock.protocols.admin.messages import PAGE
from crossdock.web.caller import WebRequest
from crossdock.web.errors import Problem

T = TypeVar("T")

Limit = Annotated[int, QueryParameter(ge=1, le=PAGE, description="Rows of a page.")]
After = Annotated[
    str | None,
    QueryParameter(max_length=4_096, description="The cursor of the previous page. Leave it out for the first."),
]
FilterText = Annotated[
    str,
    QueryParameter(name="filter", max_length=4_096, description='A filter, such as `state:dead error:"timed out"`.'),
]
Number = Annotated[int, PathParameter(ge=0, le=2**53, description="The job's number.")]
Name = Annotated[str, PathParameter(min_length=1, max_length=1_024, description="A slash in it is sent as %2F.")]

#: Longest text of a filter and of a name in a body.
FilterBody = Annotated[str, msgspec.Meta(max_length=4_096)]
NameText = Annotated[str, msgspec.Meta(min_length=1, max_length=1_024)]


def _problem(text: str) -> ResponseSpec:
    return ResponseSpec(Problem, description=text, generate_examples=False)


#: Of every request.
ERRORS: Final = {
    400: _problem("The request is not valid."),
    401: _problem("Sign-in is required, or the token is not known."),
    403: _problem("The request comes from a page of another site."),
    429: _problem("Too many requests. `Retry-After` says when to try again."),
    503: _problem("The server is starting, stopping or overloaded."),
}
NOT_FOUND: Final = {**ERRORS, 404: _problem("There is no such thing.")}
CONFLICT: Final = {**NOT_FOUND, 409: _problem("The state of the job does not allow it, or the count has changed.")}
BODY: Final = {413: _problem("The body is larger than 1 MiB."), 415: _problem("The body is not JSON.")}


async def ask(state: State, into: type[T], do: str, **fields: Any) -> T:
    """Ask the server and decode its reply. Raises Refused or ServerUnavailable."""
    found: T = msgspec.json.decode(await state.admin.ask_raw(do, **fields), type=into)
    return found


async def exact(request: WebRequest, name: str) -> msgspec.Raw | None:
    """A member of the body as it was sent. Litestar decodes the body, and a number in it may fit no type."""
    members: dict[str, msgspec.Raw] = msgspec.json.decode(await request.body(), type=dict[str, msgspec.Raw])
    return members.get(name)


def plain(name: str) -> str:
    """A name from a path of the API, in which `security.segments` has escaped slashes."""
    return unquote(name)
