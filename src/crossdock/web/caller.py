"""What is known of a request's sender. The guard sets it, pages and the API read it."""

from typing import Any, Final, NamedTuple

from litestar import Request
from litestar.datastructures import State

from crossdock.web.auth.sessions import Session

WebRequest = Request[Any, Any, State]

#: The name of a sender without sign-in.
LOCAL: Final = "local"

_KEY: Final = "caller"


class Caller(NamedTuple):
    user: str  #: "admin", the name of a token, or LOCAL
    address: str
    csp_nonce: str
    csrf_token: str
    session: Session | None = None


def set_caller(scope: Any, caller: Caller) -> None:
    scope.setdefault("state", {})[_KEY] = caller


def caller_of(request: WebRequest) -> Caller:
    found: Caller = request.scope["state"][_KEY]
    return found
