"""The server's status."""

from typing import Any

from litestar import Router, get
from litestar.datastructures import State


@get("/status")
async def status(state: State) -> dict[str, Any]:
    """Totals, rates, listeners, journal and memory of the server."""
    found: dict[str, Any] = await state.admin.ask("status")
    return found


router = Router("/api/v1", route_handlers=[status])
