"""Which script a text is, and who answers it (protocol page, qless 1.1). No text is ever run.

A published one is known by its hash. Every build writes its own header, so others are known by what they contain.
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
    PER_SCRIPT,
    PHP,
    REQLESS,
    REQLESS_013,
    SEED,
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

#: Of the per-script form, by script.
SCRIPT: Final = "qless/"

#: The same as its document has it, which is FCALL's notation.
BY_SEED: Final = "seed/"

#: All that are answered.
ANSWERED: Final = frozenset(
    {*UNIFIED_DIALECTS, *(f"{form}{name}" for form in (SCRIPT, BY_SEED) for name in perscript.SCRIPTS)}
)

#: The first of these that a text contains tells its dialect.
_MARKS: Final = (
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
    for mark, other, dialect in _MARKS:
        if mark in text and other in text:
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
    """All that are answered, as this server is set."""

    def __init__(
        self,
        clock: CallersClock = CALLERS,
        *,
        smaller_first: bool = False,
        fine: bool = False,
        keys_bytes: int = UNIFIED.keys_bytes,
    ) -> None:
        def as_set(dialect: Dialect) -> Dialect:
            return replace(dialect, clock=clock, smaller_first=smaller_first, fine=fine, keys_bytes=keys_bytes)

        self.answers: dict[str, CallHandler] = {
            name: unified.answering(as_set(dialect)) for name, dialect in UNIFIED_DIALECTS.items()
        }
        for form, dialect in ((SCRIPT, as_set(PER_SCRIPT)), (BY_SEED, as_set(SEED))):
            self.answers |= {f"{form}{name}": perscript.answering(name, dialect) for name in perscript.SCRIPTS}
