"""Import of the user's module, and the app in it. An error is one sentence that says what to change."""

import importlib
import importlib.util
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crossdock.model.errors import CrossdockError

if TYPE_CHECKING:
    from crossdock.app.app import App

_TARGET: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*(\.[^\W\d]\w*)*)?")
#: Files whose lines in a traceback say nothing about the user's code.
_IMPORTING: Final = frozenset({__file__, importlib.__file__})
#: Longest list of files that `--reload` watches.
_FILES_AT_MOST: Final = 20_000


class NotLoadable(CrossdockError):
    """The module or its app cannot be used. `trace` is the traceback of an error inside the module."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


def check_target(target: str) -> None:
    """Raises NotLoadable if it is not MODULE or MODULE:APP."""
    if _TARGET.fullmatch(target) and not target.endswith(".py"):
        return
    hint = ""
    if target.endswith(".py") or "/" in target or "\\" in target:
        name = target.removesuffix(".py").strip("./\\").replace("\\", ".").replace("/", ".")
        hint = f", as in {name}" if _TARGET.fullmatch(name) else ""
    raise NotLoadable(f"{target!r} is not a module; write its dotted name{hint}, or MODULE:APP")


def load(target: str, folder: Path) -> "App":
    """Import the module and return its app. Raises NotLoadable."""
    check_target(target)
    module_name, _, attribute = target.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    module = _import(module_name, folder)
    app = _named(module, module_name, attribute) if attribute else _only_app(module, module_name)
    if not app.tasks:
        raise NotLoadable(
            f"{module_name} has an app without tasks; decorate functions with @app.task, or name the module that "
            "has them"
        )
    return app


def _import(name: str, folder: Path) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(missing + "."):
            raise NotLoadable(
                f"cannot import {name}: there is no module {missing} in {folder} or among the installed packages; "
                "start the worker in the folder that contains it, or name that folder with --app-dir"
            ) from error
        raise NotLoadable(
            f"cannot import {name}: it imports {missing}, which is not installed; install it where crossdock is "
            "installed",
            _trace(error),
        ) from error
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        raise NotLoadable(f"cannot import {name}: {text}{_where(error)}", _trace(error)) from error


def _where(error: BaseException) -> str:
    """File and line that raised it."""
    if isinstance(error, SyntaxError):
        return ""  # its text says it
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _trace(error: BaseException) -> str:
    """The traceback, without the lines of the import itself."""
    shown = traceback.TracebackException.from_exception(error)
    shown.stack = traceback.StackSummary.from_list(
        [
            frame
            for frame in shown.stack
            if not frame.filename.startswith("<frozen") and frame.filename not in _IMPORTING
        ]
    )
    return "".join(shown.format(chain=False))[-8_000:]


def _is_app(value: object) -> bool:
    from crossdock.app.app import App

    return isinstance(value, App)


def _named(module: object, name: str, attribute: str) -> "App":
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            apps = _apps(module)
            hint = f"; it has {', '.join(apps)}" if apps else ""
            raise NotLoadable(f"module {name} has no {attribute}{hint}")
        found = getattr(found, part)
    if not _is_app(found):
        raise NotLoadable(f"{name}:{attribute} is a {type(found).__name__}, not a crossdock.App")
    return found  # type: ignore[return-value]


def _apps(module: object) -> dict[str, "App"]:
    """The apps of a module by name. An app with two names counts once."""
    found: dict[int, tuple[str, App]] = {}
    for name, value in vars(module).items():
        if _is_app(value):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def _only_app(module: object, name: str) -> "App":
    apps = _apps(module)
    if "app" in apps or len(apps) == 1:
        return apps.get("app") or next(iter(apps.values()))
    if apps:
        raise NotLoadable(
            f"module {name} has several apps: {', '.join(apps)}; name one, as in {name}:{next(iter(apps))}"
        )
    raise NotLoadable(f"module {name} has no crossdock.App; define app = App() there, or name the module that has it")


def own_files() -> list[str]:
    """Sources of the imported modules that are the user's: not of the standard library or an installed package."""
    installed = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    ours = str(Path(__file__).parents[1])
    found = []
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py") and not path.startswith((*installed, ours)):
            found.append(path)
    return sorted(found)[:_FILES_AT_MOST]
