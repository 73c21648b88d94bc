"""What every page needs: the names that all templates use, and the sender of a change for the audit trail."""

import datetime
from typing import Any

from litestar.response import Template

from crossdock import __version__
from crossdock.web.caller import WebRequest, caller_of


async def page(request: WebRequest, template_name: str, status_code: int = 200, **context: Any) -> Template:
    """A page made from a template, with `context` and the names of `common`."""
    return Template(template_name, context=common(request) | context, status_code=status_code)


def common(request: WebRequest) -> dict[str, Any]:
    """The names that every template may use."""
    caller = caller_of(request)
    return {
        "csp_nonce": caller.csp_nonce,
        "csrf_token": caller.csrf_token,
        "user": caller.user,
        "signed_in": caller.session is not None,
        "version": __version__,
        "server_now": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "path": request.url.path,
    }


def by(request: WebRequest) -> dict[str, str]:
    """The sender of a change. Pass it as `by` with every request that changes something."""
    caller = caller_of(request)
    return {"user": caller.user[:255], "address": caller.address[:255]}
