"""Errors of tasks. The text of each begins with the name of the task and says what to change.

CrossdockError
└── AppError
    ├── BadTask          a task, schedule or limit is defined wrongly
    ├── BadArgument      an argument is missing, unknown, or cannot be encoded or decoded
    ├── BadResult        a result cannot be encoded or decoded
    ├── UnknownTask      no task is registered for a kind
    ├── UnknownBundle    no bundle is registered for an include path
    └── NoCurrentJob     no job is being executed here
"""

import difflib
from collections.abc import Iterable
from typing import Final

from crossdock.model.errors import CrossdockError

_NAMES_SHOWN: Final = 10
#: Longer names are not compared: the time grows with the product of the lengths.
_COMPARED_CHARS: Final = 100
_COMPARED_NAMES: Final = 2_000


class AppError(CrossdockError):
    """Base of all errors of tasks."""


class BadTask(AppError):
    """A task, a schedule or a limit is defined wrongly. It is raised when the module is imported or first used."""


class BadArgument(AppError):
    """An argument is missing or unknown, or cannot be encoded or decoded. At a push: nothing was pushed."""


class BadResult(AppError):
    """The result of a task cannot be encoded, or does not match the type that the task returns."""


class UnknownTask(AppError):
    """No task is registered for the kind of a job."""


class UnknownBundle(AppError):
    """A job names an include path that no bundle is registered for."""


class NoCurrentJob(AppError):
    """No job is being executed by this thread or asyncio task."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The part of an error that names what was perhaps meant: the nearest known name, or else some known names."""
    names = sorted({each for each in known if len(each) <= _COMPARED_CHARS})
    near = difflib.get_close_matches(name[:_COMPARED_CHARS], names[:_COMPARED_NAMES], n=1)
    if near:
        return f'did you mean "{near[0]}"?'
    if not names:
        return "none is registered"
    shown = ", ".join(f'"{each}"' for each in names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"known: {shown}{more}"
