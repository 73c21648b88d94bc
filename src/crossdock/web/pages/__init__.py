"""The dashboard's pages. Each module has its route handlers in `handlers`."""

from litestar.handlers import HTTPRouteHandler


def all_handlers() -> list[HTTPRouteHandler]:
    """Imported here, because `live` and the pages share formatting functions of this package."""
    from crossdock.web import live
    from crossdock.web.pages import (
        batches,
        failures,
        history,
        job,
        job_actions,
        jobs,
        overview,
        queues,
        schedules,
        server,
        workers,
    )

    modules = (live, overview, jobs, job, job_actions, queues, workers, failures, batches, schedules, history, server)
    return [handler for module in modules for handler in module.handlers]
