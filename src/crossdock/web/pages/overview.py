"""The first page."""

from litestar import get
from litestar.datastructures import State
from litestar.response import Template


@get("/", include_in_schema=False)
async def page(state: State) -> Template:
    return Template("overview.html", context={"status": await state.admin.ask("status")})
