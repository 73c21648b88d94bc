"""One request of the admin protocol over HTTP, for the command line on another machine."""

from typing import Any

import msgspec
from litestar import Response, Router, post
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody

from crossdock.protocols.admin import messages
from crossdock.web.api.base import BODY, NOT_FOUND
from crossdock.web.caller import WebRequest
from crossdock.web.context import by


@post(
    "/admin",
    status_code=200,
    tags=["admin"],
    responses=NOT_FOUND
    | BODY
    | {200: ResponseSpec(dict[str, Any], description="The reply of the server.", generate_examples=False)},
)
async def admin(request: WebRequest, state: State, data: JSONBody[dict[str, Any]]) -> Response[bytes]:
    """Send one request of the admin protocol, such as `{"do": "queues"}`. The reply is the server's.

    A change is recorded with the name of the token. `by` in the request is replaced.
    """
    body = await request.body()
    fields: dict[str, msgspec.Raw] = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    verb = data.get("do")
    if not isinstance(verb, str):
        raise ClientException('a request names its verb in "do", such as {"do": "status"}')
    if verb in messages.CHANGING:
        fields["by"] = msgspec.Raw(msgspec.json.encode(by(request)))
    reply = await state.admin.send(msgspec.json.encode(fields) + b"\n")
    return Response(reply, media_type="application/json")


router = Router("/", route_handlers=[admin])
