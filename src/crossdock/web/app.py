"""Puts the application together: routes, templates, error pages."""

from pathlib import Path
from typing import Any, Final

from litestar import Litestar, Request, Response, get
from litestar.contrib.jinja import JinjaTemplateEngine
from litestar.datastructures import State
from litestar.openapi.config import OpenAPIConfig
from litestar.static_files import create_static_files_router
from litestar.template.config import TemplateConfig

from crossdock import __version__
from crossdock.web.admin import Admin, Refused, ServerUnavailable
from crossdock.web.api import server
from crossdock.web.options import WebOptions
from crossdock.web.pages import overview

_HERE: Final = Path(__file__).parent


@get("/healthz", include_in_schema=False)
async def healthz() -> dict[str, str]:
    """The web process runs."""
    return {"status": "ok"}


@get("/readyz", include_in_schema=False)
async def readyz(state: State) -> dict[str, str]:
    """The server answers. Otherwise ServerUnavailable becomes status 503."""
    await state.admin.ask("status")
    return {"status": "ready"}


def _unavailable(request: Request[Any, Any, Any], error: ServerUnavailable) -> Response[dict[str, str]]:
    return Response({"error": str(error)}, status_code=503)


def _refused(request: Request[Any, Any, Any], error: Refused) -> Response[dict[str, str]]:
    return Response({"error": str(error)}, status_code=400)


def create_app(options: WebOptions) -> Litestar:
    admin = Admin(options.data)
    return Litestar(
        route_handlers=[
            healthz,
            readyz,
            server.router,
            overview.page,
            create_static_files_router("/static", [_HERE / "static"], include_in_schema=False),
        ],
        state=State({"admin": admin, "options": options}),
        template_config=TemplateConfig(directory=_HERE / "templates", engine=JinjaTemplateEngine),
        openapi_config=OpenAPIConfig(title="Crossdock", version=__version__, path="/api/v1", render_plugins=[]),
        exception_handlers={ServerUnavailable: _unavailable, Refused: _refused},
        on_shutdown=[admin.close],
        logging_config=None,  # Litestar's own would replace the format of the log
    )
