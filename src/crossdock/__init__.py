"""Crossdock: a durable job server that speaks the wire protocols of several others.

Names of the Python API are imported when they are first used, so that `import crossdock` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from crossdock.client.aio import AsyncClient
    from crossdock.client.client import Client
    from crossdock.client.jobs import NewJob

__version__ = "0.1.0.dev0"

__all__ = ["AsyncClient", "Client", "NewJob", "__version__"]

#: The module of each name.
_MODULES: Final = {
    "AsyncClient": "crossdock.client.aio",
    "Client": "crossdock.client.client",
    "NewJob": "crossdock.client.jobs",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
