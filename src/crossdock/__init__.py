"""Crossdock: a durable job server that speaks the wire protocols of several others.

Names of the Python API are imported when they are first used, so that `import crossdock` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from crossdock.app.app import App
    from crossdock.app.context import current_job, progress
    from crossdock.app.outcomes import Cancel, Reschedule, Retry, Snooze
    from crossdock.client.aio import AsyncClient
    from crossdock.client.client import Client
    from crossdock.client.jobs import NewJob

__version__ = "0.1.0.dev0"

__all__ = [
    "App",
    "AsyncClient",
    "Cancel",
    "Client",
    "NewJob",
    "Reschedule",
    "Retry",
    "Snooze",
    "__version__",
    "current_job",
    "progress",
]

#: The module of each name.
_MODULES: Final = {
    "App": "crossdock.app.app",
    "AsyncClient": "crossdock.client.aio",
    "Cancel": "crossdock.app.outcomes",
    "Client": "crossdock.client.client",
    "NewJob": "crossdock.client.jobs",
    "Reschedule": "crossdock.app.outcomes",
    "Retry": "crossdock.app.outcomes",
    "Snooze": "crossdock.app.outcomes",
    "current_job": "crossdock.app.context",
    "progress": "crossdock.app.context",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
