"""The dashboard's pages. Each module has `handlers`."""

from litestar.types import ControllerRouterHandler

from crossdock.web.pages import overview


def all_handlers() -> list[ControllerRouterHandler]:
    return [*overview.handlers]
