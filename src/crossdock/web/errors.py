"""Errors as responses: JSON under /api, a page elsewhere. Each says what happened and what to do."""

import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException, ValidationException
from litestar.response import Template

from crossdock import logs
from crossdock.web.admin import Refused, ServerUnavailable
from crossdock.web.context import common

log = logging.getLogger("crossdock.web")

_TITLES: Final = {
    400: "This request is not valid",
    404: "Not found",
    405: "Not possible here",
    409: "Something changed",
    413: "This request is too large",
    503: "The server does not answer",
}


class Problem(msgspec.Struct, frozen=True):
    """The reply to a request that failed."""

    error: str  #: what happened and what to do


def _unavailable(request: Request[Any, Any, Any], error: ServerUnavailable) -> Response[Any]:
    return _response(request, 503, str(error))


def _refused(request: Request[Any, Any, Any], error: Refused) -> Response[Any]:
    return _response(request, 404 if is_not_found(error) else 400, str(error))


def is_not_found(error: Refused) -> bool:
    """The admin protocol has a text for each error and no code. All texts about unknown names say it this way."""
    return "not found" in str(error)


def _http(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    if isinstance(error, NotFoundException) and error.detail == "Not Found":
        return _response(request, 404, f"there is nothing at {request.url.path}")
    if isinstance(error, MethodNotAllowedException):
        return _response(request, 405, f"{request.url.path} does not take {request.method}", error.headers)
    text = error.detail
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        text = "; ".join(_explain(each) for each in error.extra if not _is_missing_body(each)) or text
    return _response(request, error.status_code, text, error.headers)


def _explain(problem: Any) -> str:
    """One problem of a request, as Litestar reports it."""
    if not isinstance(problem, dict):
        return str(problem)
    return f"{problem.get('key', 'body')}: {problem.get('message', 'not valid')}"


def _is_missing_body(problem: Any) -> bool:
    """Litestar reports the missing body next to another problem, even if the body is optional."""
    return isinstance(problem, dict) and problem.get("key") == "data" and problem.get("message") == "'data'"


def _unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    logs.event(log, logging.ERROR, "web-error", f"{request.method} {request.url.path} failed", error=error)
    return _response(request, 500, "an error of the web process; its log has the details")


def _response(
    request: Request[Any, Any, Any], status: int, text: str, headers: dict[str, str] | None = None
) -> Response[Any]:
    if request.url.path.startswith("/api/"):
        return Response(Problem(text), status_code=status, headers=headers)
    context = common(request) | {"status": status, "title": _TITLES.get(status, "Error"), "text": text}
    return Template("error.html", context=context, status_code=status, headers=headers)


HANDLERS: Final[dict[int | type[Exception], Callable[[Request[Any, Any, Any], Any], Response[Any]]]] = {
    ServerUnavailable: _unavailable,
    Refused: _refused,
    HTTPException: _http,
    Exception: _unexpected,
}
