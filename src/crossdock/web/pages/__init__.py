"""The dashboard's pages. Each module has its route handlers in `handlers`."""

from litestar.handlers import HTTPRouteHandler


def all_handlers() -> list[HTTPRouteHandler]:
    """Imported here, because `live` and the pages share formatting functions of this package."""
    from crossdock.web import live
    from crossdock.web.pages import jobs, overview

    return [*live.handlers, *overview.handlers, *jobs.handlers]
