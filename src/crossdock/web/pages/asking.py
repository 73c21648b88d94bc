"""Requests of pages to the server."""

from typing import Any

from crossdock.web.admin import Refused
from crossdock.web.caller import WebRequest
from crossdock.web.context import by


async def ask(request: WebRequest, do: str, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = await request.app.state.admin.ask(do, **fields)
    return found


async def ask_optional(request: WebRequest, do: str, **fields: Any) -> dict[str, Any]:
    try:
        return await ask(request, do, **fields)
    except Refused as error:
        if "unknown request" not in str(error):
            raise
        return {do: None}


async def change(request: WebRequest, do: str, **fields: Any) -> dict[str, Any]:
    """A request that changes something. The audit trail names its sender."""
    return await ask(request, do, by=by(request), **fields)
