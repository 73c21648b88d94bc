"""A payload that was read: what the door goes on with. The text itself is kept beside it, as it was pushed.

The types are those of payloads as clients write them, so that the decoder checks them by itself (`payload`).
"""

from collections.abc import Callable
from typing import Annotated, Final

import msgspec

#: MODEL section 12.
NAME_BYTES: Final = 255

#: Characters that cannot have more bytes than a name may.
SHORT: Final = NAME_BYTES // 4

#: A delay longer than this is a mistake, and so is a time later than the year 36812.
SECONDS_AT_MOST: Final = 100 * 366 * 86_400
LATEST: Final = 2**40

FAILS_AT_MOST: Final = 2**31 - 1

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=SHORT)]

_JOB: Final = {"kind": "class", "source": "sourceId", "monitored": "isMonitored", "fails": "failCount"}
_PLAN: Final = {"jid": "id", "next_run": "nextRun", "interval": "recurrenceInterval"}

#: The bytes of a part that the decoder left as it is; `bytes` takes four times as long.
as_bytes: Final[Callable[[msgspec.Raw], bytes]] = msgspec.json.Encoder().encode


class Unique(msgspec.Struct, gc=False, rename={"deferrable_s": "deferrableBy"}):
    uid: _Name
    deferrable_s: Annotated[int, msgspec.Meta(ge=0, le=SECONDS_AT_MOST)] | None = None  #: None: it is not


class Given(msgspec.Struct, gc=False, rename=_JOB):
    """A job without an id: delayed, deferred."""

    kind: _Name
    source: _Name
    name: _Name  #: empty: the text says none, and it is that of the class
    args: msgspec.Raw = msgspec.Raw()  #: an object or an array; empty: there are none
    unique: Unique | None = None
    monitored: bool = False
    fails: Annotated[int, msgspec.Meta(ge=0, le=FAILS_AT_MOST)] = 0
    includePath: str = ""  # noqa: N815 - the protocol's own name
    environment: dict[str, str] | None = None


class Queued(Given, gc=False, kw_only=True, rename={"jid": "id"}):
    jid: _Name
    queue_time: float


class Planned(Given, gc=False, kw_only=True, rename=_PLAN):
    jid: _Name  #: of the plan
    next_run: Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
    interval: Annotated[str, msgspec.Meta(min_length=1)]
