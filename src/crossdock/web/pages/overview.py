"""The first page."""

from litestar import get
from litestar.response import Template

from crossdock.web.caller import WebRequest
from crossdock.web.context import page


@get("/", include_in_schema=False)
async def overview(request: WebRequest) -> Template:
    return await page(request, "overview.html", status=await request.app.state.admin.ask("status"))


handlers = [overview]
