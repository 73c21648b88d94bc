"""The HTTP API under /api/v1."""

from litestar.types import ControllerRouterHandler

from crossdock.web.api import server


def all_handlers() -> list[ControllerRouterHandler]:
    return [server.router]
