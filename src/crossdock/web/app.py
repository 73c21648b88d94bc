"""Puts the application together: routes, templates, error pages and the guard around them."""

from pathlib import Path
from typing import Final

from litestar import Litestar, get
from litestar.datastructures import State
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.static_files import create_static_files_router
from litestar.template.config import TemplateConfig

from crossdock.web import api, errors, metrics, pages
from crossdock.web.admin import Admin
from crossdock.web.api import description
from crossdock.web.auth import login
from crossdock.web.auth.passwords import Passwords
from crossdock.web.auth.sessions import Sessions
from crossdock.web.auth.tokens import Tokens
from crossdock.web.data_checks import DataChecks
from crossdock.web.history_reader import History
from crossdock.web.options import WebOptions
from crossdock.web.security import BODY_BYTES, Guard
from crossdock.web.traffic import Counting, Traffic

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


def create_app(options: WebOptions, traffic: Traffic | None = None) -> Counting:
    """`traffic` is shared with the process, which knows the open connections."""
    traffic = traffic or Traffic()
    admin = Admin(options.data)
    history = History(str(options.data), options.lake, options.tables, options.segment_s)
    passwords, sessions, tokens = Passwords(options.password), Sessions(), Tokens(options.token_file)
    app = Litestar(
        route_handlers=[
            healthz,
            readyz,
            *api.all_handlers(),
            *login.handlers,
            *metrics.handlers,
            *pages.all_handlers(),
            create_static_files_router("/static", [_HERE / "static"], include_in_schema=False),
        ],
        state=State(
            {
                "admin": admin,
                "checks": DataChecks(history),
                "history": history,
                "options": options,
                "passwords": passwords,
                "sessions": sessions,
                "traffic": traffic,
            }
        ),
        template_config=TemplateConfig(directory=_HERE / "templates", engine=JinjaTemplateEngine),
        openapi_config=description.config(),
        plugins=[description.RawJson()],
        exception_handlers=errors.HANDLERS,
        request_max_body_size=BODY_BYTES,
        on_shutdown=[admin.close, history.close],
        logging_config=None,  # Litestar's own would replace the format of the log
    )
    return Counting(Guard(app, options, passwords, sessions, tokens), traffic)
