"""Job ids (page section 3): read leniently (section 10, rows 8 and 9), shown in canonical form.

A job of another door whose jid Workq could not spell is shown as a UUID made from its number (MODEL section 9), and
that UUID is understood again.
"""

import re
from typing import Final

from crossdock.model.job import Job, Number

_CANONICAL: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LENIENT: Final = re.compile(
    rb"(?:urn:uuid:|(\{))?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})(?(1)\})",
    re.IGNORECASE,
)

#: Version 4 and the variant of RFC 4122; what a client draws at random begins like this once in 2**56 times.
MADE_UP: Final = "c205d0c0-0000-400"
_MADE_UP: Final = re.compile(MADE_UP + "([0-9a-f])-8([0-9a-f]{3})-([0-9a-f]{12})")


def parse(text: bytes) -> str | None:
    """The canonical form of what can be read as a UUID, else None."""
    if _CANONICAL.fullmatch(text):
        return text.decode()
    match = _LENIENT.fullmatch(text)
    return None if match is None else b"-".join(match.groups()[1:]).lower().decode()


def sound(ident: str) -> bool:
    """Is this canonical UUID one of RFC 4122, or of its successor? The nil UUID and others are not."""
    return ident[14] in "12345678" and ident[19] in "89ab"


def read(text: bytes) -> str | None:
    """`parse` and `sound` in one, where nothing is checked in between."""
    ident = parse(text)
    return ident if ident is not None and sound(ident) else None


def shown(job: Job) -> str:
    """A jid as it is if this door would take it as an id."""
    jid = job.jid
    if len(jid) == 36 and jid.isascii() and _CANONICAL.fullmatch(jid.encode()) and sound(jid):
        return jid
    number = job.number
    return f"{MADE_UP}{number >> 60 & 0xF:x}-8{number >> 48 & 0xFFF:03x}-{number & 0xFFFFFFFFFFFF:012x}"


def number(ident: str) -> Number:
    """The number a made-up id was made from; 0: it is none."""
    match = _MADE_UP.fullmatch(ident)
    return 0 if match is None else int("".join(match.groups()), 16)
