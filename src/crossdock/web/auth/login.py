"""Sign-in and sign-out pages."""

from typing import Annotated, Any

from litestar import get, post
from litestar.datastructures import Cookie
from litestar.enums import RequestEncodingType
from litestar.params import Body
from litestar.response import Redirect, Template

from crossdock.settings.address import parse_address
from crossdock.web.auth.passwords import PASSWORD_CHARACTERS, Passwords
from crossdock.web.auth.sessions import LONGEST_S, Sessions
from crossdock.web.caller import WebRequest, caller_of
from crossdock.web.context import page
from crossdock.web.options import WebOptions
from crossdock.web.security import COOKIE

Form = Annotated[dict[str, Any], Body(media_type=RequestEncodingType.URL_ENCODED)]

#: The only user. Users with roles are not supported yet.
USER = "admin"


@get("/login", include_in_schema=False)
async def login_page(request: WebRequest) -> Template:
    """The form that asks for the password."""
    return await _form(request, request.query_params.get("next", "/"))


@post("/login", include_in_schema=False)
async def login(request: WebRequest, data: Form) -> Template | Redirect:
    """Check the password and begin a session."""
    passwords: Passwords = request.app.state.passwords
    sessions: Sessions = request.app.state.sessions
    target = str(data.get("next", "/"))
    wait_s = passwords.wait_s(caller_of(request).address)
    if wait_s:
        return await _form(request, target, f"too many attempts; try again in {wait_s} s", 429)
    if not await passwords.accepts(str(data.get("password", ""))[: PASSWORD_CHARACTERS + 1]):
        return await _form(request, target, "wrong password", 401)
    ident = sessions.open(USER)
    return Redirect(_local(target), status_code=303, cookies=[cookie(request, ident)])


@post("/logout", include_in_schema=False)
async def logout(request: WebRequest) -> Redirect:
    session = caller_of(request).session
    if session is not None:
        request.app.state.sessions.close(session)
    return Redirect("/login", status_code=303, cookies=[cookie(request, "", 0)])


async def _form(request: WebRequest, target: str, error: str = "", status: int = 200) -> Template:
    return await page(request, "login.html", status, next=_local(target), error=error)


def cookie(request: WebRequest, ident: str, max_age: int = LONGEST_S) -> Cookie:
    """A browser drops a Secure cookie from plain HTTP, so on loopback without TLS it is not Secure."""
    options: WebOptions = request.app.state.options
    where = parse_address(options.address)
    is_plain = where is not None and not where.tls and where.is_loopback
    return Cookie(COOKIE, value=ident, path="/", httponly=True, secure=not is_plain, samesite="strict", max_age=max_age)


def _local(target: str) -> str:
    """A path on this server. Anything else would let a link lead to another site after the sign-in."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\")) and len(target) < 2_048
    return target if is_path and target.isprintable() else "/"


handlers = [login_page, login, logout]
