"""Requests of pages to the server."""

from typing import Any

from crossdock.web.caller import WebRequest
from crossdock.web.context import by


async def ask(request: WebRequest, do: str, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = await request.app.state.admin.ask(do, **fields)
    return found


async def change(request: WebRequest, do: str, **fields: Any) -> dict[str, Any]:
    """A request that changes something. The audit trail names its sender."""
    return await ask(request, do, by=by(request), **fields)
