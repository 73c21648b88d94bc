"""Checks every request before any handler sees it, and adds the security headers to every response.

In this order: Host, rate limit, sign-in, then for changes Origin, Sec-Fetch-Site and the form's CSRF token. It wraps
the whole application, so it also covers addresses that do not exist.
"""

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote

import msgspec
from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from crossdock.settings.address import parse_address
from crossdock.web.auth.passwords import Passwords
from crossdock.web.auth.sessions import Session, Sessions
from crossdock.web.auth.tokens import Tokens
from crossdock.web.caller import LOCAL, Caller, set_caller
from crossdock.web.hosts import Hosts, is_same_origin
from crossdock.web.options import WebOptions
from crossdock.web.rate_limits import RateLimit

#: Longest body of a request.
BODY_BYTES: Final = 1024 * 1024

#: The name of the session's cookie.
COOKIE: Final = "crossdock_session"

_PER_SECOND: Final = 50
_BURST: Final = 100

#: Addresses that need no sign-in.
_OPEN: Final = ("/login", "/healthz", "/readyz")

_READS: Final = ("GET", "HEAD", "OPTIONS")
_FORM: Final = "application/x-www-form-urlencoded"


class Rejected(Exception):
    """A request that is not handed on. The text is for the sender."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Guard:
    def __init__(
        self, app: ASGIApp, options: WebOptions, passwords: Passwords, sessions: Sessions, tokens: Tokens
    ) -> None:
        self._app = app
        self._hosts = Hosts(parse_address(options.address), options.hosts)
        self._passwords = passwords
        self._sessions = sessions
        self._tokens = tokens
        self._rates = RateLimit(_PER_SECOND, _BURST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        path: str = scope["path"]
        if path.startswith("/api/"):
            scope["path"] = segments(scope["raw_path"])
        send = _with_headers(send, nonce, path, scope.get("query_string", b""))
        try:
            receive = await self._admit(scope, receive, Headers.from_scope(scope), nonce)
        except Rejected as rejected:
            await _respond(send, path, rejected)
            return
        await self._app(scope, receive, send)

    async def _admit(self, scope: Any, receive: Receive, headers: Headers, nonce: str) -> Receive:
        """Raises Rejected. Returns what reads the body, which has been read already for a form."""
        path, host = scope["path"], self._check_host(headers)
        address = (scope.get("client") or ("unix", 0))[0]
        session = self._sessions.find(_session_id(headers))
        user = self._user(headers, session)
        if not path.startswith("/static/"):
            sender = address if session is None and user in (None, LOCAL) else f"{user} {address}"
            wait_s = self._rates.wait_s(sender)
            if wait_s:
                raise Rejected(429, f"more than {_PER_SECOND} requests per second", retry_after=str(wait_s))
        if user is None and path not in _OPEN and not path.startswith("/static/"):
            raise _sign_in_first(scope, headers)
        token = self._sessions.csrf_token(session)
        set_caller(scope, Caller(user or LOCAL, address, nonce, token, session))
        _check_origin(headers, host)
        if scope["method"] not in _READS:
            _check_fetch_site(headers)
            return await _check_form(path, headers, receive, token)
        return receive

    def _check_host(self, headers: Headers) -> str:
        found = headers.getall("host", [])
        if len(found) != 1:
            raise Rejected(400, "a request needs one Host header")
        if not self._hosts.accepts(found[0]):
            raise Rejected(
                421,
                f"this server is not known as {found[0][:255]!r}; it answers to {', '.join(self._hosts.names)}. "
                "Add the name to http.hosts in the settings",
            )
        return found[0]

    def _user(self, headers: Headers, session: Session | None) -> str | None:
        """None: sign-in is required. A wrong token is an error even if none is required."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            name = self._tokens.name_of(token.strip())
            if name is None:
                raise Rejected(401, "this token is not in http.token_file", www_authenticate="Bearer")
            return name
        if session is not None:
            return session.user
        return None if self._passwords.are_required else LOCAL


def segments(raw_path: bytes) -> str:
    """The path with a slash inside a name left as %2F, so that it does not begin another segment. A percent sign is
    left as %25, so that both can be told apart from names that contain these texts."""
    return "/".join(
        unquote(part).replace("%", "%25").replace("/", "%2F") for part in raw_path.decode("latin-1").split("/")
    )


def _session_id(headers: Headers) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return cookie.value if cookie is not None else ""


def _sign_in_first(scope: Any, headers: Headers) -> Rejected:
    path: str = scope["path"]
    if path.startswith("/api/") or path == "/metrics":
        return Rejected(
            401,
            "sign in first: send the header Authorization: Bearer TOKEN with a token of http.token_file",
            www_authenticate="Bearer",
        )
    # A page that was asked for is opened after the sign-in. A change is not repeated.
    query = scope.get("query_string", b"").decode("latin-1")
    target = f"{path}?{query}" if query else path
    where = f"/login?next={quote(target if scope['method'] == 'GET' else '/', safe='')}"
    if headers.get("hx-request"):
        return Rejected(401, "the sign-in has expired; reload the page", hx_redirect=where)
    return Rejected(303, "sign in first", location=where)


def _check_origin(headers: Headers, host: str) -> None:
    origin = headers.get("origin")
    if origin is not None and not is_same_origin(origin, host):
        raise Rejected(403, "the request comes from a page of another site (Origin header)")


def _check_fetch_site(headers: Headers) -> None:
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Rejected(403, "the request comes from a page of another site (Sec-Fetch-Site header)")


async def _check_form(path: str, headers: Headers, receive: Receive, token: str) -> Receive:
    """A form needs the CSRF token, as a field or header. The API takes JSON, which no form of another site can send."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if path.startswith("/api/"):
        if kind not in ("", "application/json"):
            raise Rejected(415, "send JSON, with the header Content-Type: application/json")
        return receive
    if kind not in ("", _FORM):
        raise Rejected(415, f"send a form as {_FORM}")
    body = await _read(receive, headers)
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=2_000)
    except ValueError as error:
        raise Rejected(400, f"not a form: {error}") from error
    sent = headers.get("x-csrf-token") or fields.get("csrf_token", [""])[0]
    if not hmac.compare_digest(sent.encode(), token.encode()):
        raise Rejected(403, "the form is too old or comes from another site; load the page again and repeat the action")
    return _replay(body, receive)


async def _read(receive: Receive, headers: Headers) -> bytes:
    too_long = Rejected(413, f"a request may have at most {BODY_BYTES} bytes")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > BODY_BYTES:
        raise too_long
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Rejected(400, "the connection was closed")
        body += message["body"]
        if len(body) > BODY_BYTES:
            raise too_long
        if not message["more_body"]:
            return body


def _replay(body: bytes, receive: Receive) -> Receive:
    is_read = False

    async def again() -> Any:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send, nonce: str, path: str, query: bytes) -> Send:
    """Add the headers that make a browser run only our scripts and keep nothing."""
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}' 'self'; img-src 'self' data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    )
    # The address of a static file has the version in it, so a browser may keep the file.
    is_kept = path.startswith("/static/") and query.startswith(b"v=")
    added = {
        b"content-security-policy": policy.encode(),
        b"x-content-type-options": b"nosniff",
        b"x-frame-options": b"DENY",
        b"referrer-policy": b"same-origin",  # with no-referrer, browsers send "Origin: null" with our own forms
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
        b"cache-control": b"max-age=31536000, immutable"
        if is_kept
        else (b"no-cache" if path.startswith("/static/") else b"no-store"),
    }

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message["headers"] if name.lower() not in added]
            message["headers"] = [*kept, *added.items()]
        await send(message)

    return sending


async def _respond(send: Send, path: str, rejected: Rejected) -> None:
    is_json = path.startswith("/api/")
    body = msgspec.json.encode({"error": str(rejected)}) if is_json else f"{rejected}\n".encode()
    headers = {
        "content-type": "application/json" if is_json else "text/plain; charset=utf-8",
        "content-length": str(len(body)),
        **rejected.headers,
    }
    await send(
        {
            "type": "http.response.start",
            "status": rejected.status,
            "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
