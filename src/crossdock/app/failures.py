"""Exceptions as text for operators: a type, a message and a backtrace, each of limited length and always valid UTF-8.

An exception comes from code that may do anything in `__str__`, so every text is read with care.
"""

import linecache
import os
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from types import TracebackType
from typing import Final

MESSAGE_CHARS: Final = 10_000
TYPE_CHARS: Final = 200
BACKTRACE_LINES: Final = 50
LINE_CHARS: Final = 500
#: Exceptions of a chain that are shown.
_CHAIN: Final = 5
#: Frames that are read of one exception.
_FRAMES: Final = 10_000
#: The module that calls tasks. Frames up to its last one say nothing about the task.
_CALLER: Final = os.path.join(os.path.dirname(__file__), "execute.py")


def type_of(error: BaseException) -> str:
    """The name of the exception's class, with its module unless that is a built-in one."""
    kind = type(error)
    module = getattr(kind, "__module__", "")
    name = kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"
    return _valid(name, TYPE_CHARS)


def message_of(error: BaseException) -> str:
    """The exception's text."""
    if isinstance(error, SystemExit):
        return f"the task called sys.exit({_text(lambda: repr(error.code))})"
    text = _text(lambda: str(error))
    return _valid(text, MESSAGE_CHARS) if text else _valid(_text(lambda: repr(error)), MESSAGE_CHARS)


def _text(read: Callable[[], str]) -> str:
    try:
        return f"{read()}"
    except Exception as failure:  # noqa: BLE001 - any class may raise anything here
        return f"(its text cannot be read: {type(failure).__name__})"


def _valid(text: str, chars: int) -> str:
    """Encodable as UTF-8, without NUL, and cut."""
    cut = text if len(text) <= chars else f"{text[:chars]}… ({len(text) - chars} characters more)"
    return cut.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def backtrace_of(error: BaseException | None) -> tuple[str, ...]:
    """A line for each frame, the innermost last, then the exceptions that caused it."""
    lines: list[str] = []
    seen: set[int] = set()
    each = error
    while each is not None and id(each) not in seen and len(seen) < _CHAIN:
        if seen:
            lines.append(f"caused by {type_of(each)}: {message_of(each)}")
        lines += _frames(each.__traceback__)
        seen.add(id(each))
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    if len(lines) > BACKTRACE_LINES:  # the ends tell most: where the task began and where it failed
        head = BACKTRACE_LINES // 2
        tail = BACKTRACE_LINES - head - 1
        lines = [*lines[:head], f"… {len(lines) - head - tail} lines more", *lines[-tail:]]
    return tuple(_valid(line.replace("\n", " "), LINE_CHARS) for line in lines)


def _frames(trace: TracebackType | None) -> Iterator[str]:
    frames = [(frame.f_code, line) for frame, line in islice(traceback.walk_tb(trace), _FRAMES)]
    called = max((at + 1 for at, (code, _) in enumerate(frames) if code.co_filename == _CALLER), default=0)
    for code, line in frames[called:]:
        source = linecache.getline(code.co_filename, line).strip()
        yield f"{code.co_filename}:{line} in {code.co_qualname}{f': {source}' if source else ''}"
