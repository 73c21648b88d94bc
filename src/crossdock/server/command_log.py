"""The name of a command, for the debug log. Arguments are never logged: they hold payloads and passwords."""

import re
from collections.abc import Callable
from typing import Any, Final

from crossdock.protocols.base import Answer
from crossdock.protocols.rejection_delay import Long

#: A name of a command. Anything else is input that no command has.
_NAME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9._-]{0,31}")
_VERB: Final = re.compile(rb'"do"\s*:\s*"([a-z_-]{1,32})"')
_SCRIPTS: Final = frozenset({b"eval", b"evalsha", b"fcall"})
_WORD_BYTES: Final = 64

Handle = Callable[[Any], Answer]


def command_name(request: Any) -> str:
    """The name of a request as any session receives it from its parser."""
    if isinstance(request, Long):
        return command_name(request.request)
    if isinstance(request, bytes):
        if request.startswith(b"{"):
            found = _VERB.search(request[:4_096])
            return found[1].decode() if found else "unknown"
        return _checked(request[:_WORD_BYTES].split(b" ", 1)[0])
    if isinstance(request, list | tuple) and request:
        words = request if isinstance(request, list) else request[0]
        if isinstance(words, list | tuple) and words and isinstance(words[0], bytes):
            return _with_function(words)
    return "unknown"


def _with_function(words: Any) -> str:
    """The function that a script without keys runs is its first argument: `fcall put` of qless."""
    name = _checked(words[0])
    if words[0].lower() in _SCRIPTS and len(words) > 3 and words[2] == b"0" and _NAME.fullmatch(words[3]):
        return f"{name} {words[3].decode()}"
    return name


def _checked(word: bytes) -> str:
    return word.decode() if _NAME.fullmatch(word) else "unknown"
