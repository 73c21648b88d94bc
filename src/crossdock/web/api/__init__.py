"""The HTTP API under /api/v1."""

from litestar import Router

from crossdock.web.api import admin_requests, bulk, exports, history, jobs, queues, records, server


def all_handlers() -> list[Router]:
    return [
        Router(
            "/api/v1",
            route_handlers=[
                server.router,
                queues.router,
                jobs.router,
                bulk.router,
                exports.router,
                history.router,
                records.router,
                admin_requests.router,
            ],
        )
    ]
