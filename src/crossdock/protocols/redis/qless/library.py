"""Recognises the scripts of qless, and maps each dialect to its handler (qless.md section 1.1).

A published script is known by its hash. Every build writes its own header, so other builds are recognised by content.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Final

from crossdock.protocols.redis.qless import unified
from crossdock.protocols.redis.qless.call import (
    CALLERS,
    DOCUMENTED,
    PER_SCRIPT,
    PHP,
    REQLESS,
    REQLESS_013,
    THROTTLES,
    UNIFIED,
    UNIFIED_2013,
    CallersClock,
    CallHandler,
    Dialect,
)
from crossdock.protocols.redis.qless.perscript import dispatch as perscript

UNIFIED_DIALECTS: Final[dict[str, Dialect]] = {
    "qless": UNIFIED,
    "qless-2013": UNIFIED_2013,
    "qless-throttles": THROTTLES,
    "reqless-0.13": REQLESS_013,
    "qless-php": PHP,
    "reqless": REQLESS,
}

#: Prefix of the dialects of the per-script form, one for each script.
SCRIPT: Final = "qless/"

#: Prefix of the same scripts as the original protocol document describes them. FCALL uses these.
AS_DOCUMENTED: Final = "documented/"

#: All dialects.
ANSWERED: Final = frozenset(
    {*UNIFIED_DIALECTS, *(f"{form}{name}" for form in (SCRIPT, AS_DOCUMENTED) for name in perscript.SCRIPTS)}
)

#: The dialect of a text is that of the first row whose two markers it contains.
_MARKERS: Final = (
    (b"ReqlessAPI", b"", "reqless"),
    (b"QlessAPI.subscription", b"", "qless-php"),
    (b"QlessAPI", b"'Complete(): Arg \"queue_name\" missing'", "reqless-0.13"),
    (b"QlessAPI", b"throttle.set", "qless-throttles"),
    (b"QlessAPI", b"function(now, me, queue", "qless"),
    (b"QlessAPI", b"", "qless-2013"),
)
_ERROR: Final = re.compile(rb"\b([A-Z][A-Za-z]+)\(\):")
_NAMES: Final = {"deregisterworkers": "deregister_workers", "deregister": "deregister_workers"}


@cache
def hashes() -> Mapping[str, str]:
    """SHA-1 of each published script, and its dialect."""
    lines = files("crossdock.protocols.redis.qless").joinpath("known.tsv").read_text("ascii").splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def recognise(text: bytes) -> str | None:
    """The dialect of a text whose hash is not known."""
    for first, second, dialect in _MARKERS:
        if first in text and second in text:
            return dialect
    found = _ERROR.search(text)
    if found is None:
        return None
    name = found.group(1).decode().lower()
    if name == "pause" and b"'srem'" in text and b"'sadd'" not in text:
        name = "unpause"
    name = _NAMES.get(name, name)
    return f"{SCRIPT}{name}" if name in perscript.SCRIPTS else None


class Dialects:
    """The handlers of all dialects, with the settings of this server."""

    def __init__(
        self,
        clock: CallersClock = CALLERS,
        *,
        smaller_first: bool = False,
        fine_histogram: bool = False,
        keys_bytes: int = UNIFIED.keys_bytes,
    ) -> None:
        def configured(dialect: Dialect) -> Dialect:
            return replace(
                dialect, clock=clock, smaller_first=smaller_first, fine_histogram=fine_histogram, keys_bytes=keys_bytes
            )

        self.handlers: dict[str, CallHandler] = {
            name: unified.call_handler(configured(dialect)) for name, dialect in UNIFIED_DIALECTS.items()
        }
        for form, dialect in ((SCRIPT, configured(PER_SCRIPT)), (AS_DOCUMENTED, configured(DOCUMENTED))):
            self.handlers |= {f"{form}{name}": perscript.call_handler(name, dialect) for name in perscript.SCRIPTS}
