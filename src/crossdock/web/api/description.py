"""The OpenAPI description at /api/v1/openapi.json."""

from typing import Any, Final

import msgspec
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, Schema, SecurityScheme
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

from crossdock import __version__

_ABOUT: Final = (
    "A job server for clients of Faktory, Workq, Masenko, qless and Resqu. Times are RFC 3339 in UTC. Durations are "
    'seconds, and their names end in `_s`. An error is `{"error": "…"}`; the text says what to do.'
)


class RawJson(OpenAPISchemaPlugin):
    """A field that holds any JSON, as it was pushed."""

    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:
        return value is msgspec.Raw

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:
        return Schema(description="Any JSON.")


def config() -> OpenAPIConfig:
    """The document is the only handler below its path, because Litestar adds one for everything else there."""
    return OpenAPIConfig(
        title="Crossdock",
        version=__version__,
        description=_ABOUT,
        use_handler_docstrings=True,
        path="/api/v1/openapi.json",
        render_plugins=[JsonRenderPlugin(path="/")],
        components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
        security=[{}, {"token": []}],
    )
