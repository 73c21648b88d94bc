"""The one argument of ACK and NACK, with Go's words for what is wrong with it (page 3.4)."""

from typing import Annotated, Final

import msgspec

from crossdock.protocols.masenko.go_json import NotJson, WrongType, members
from crossdock.protocols.masenko.go_json_errors import complaint
from crossdock.protocols.masenko.messages import ECHO, Invalid

MOST: Final = 0xFFFFFFFF
MISSING: Final = "missing id"


class _Body(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: Annotated[int, msgspec.Meta(ge=0, le=MOST)] = 0


_decode = msgspec.json.Decoder(_Body).decode


def read(body: bytes, verb: str) -> int:
    """The id. `verb` is `ack` or `nack`: Go names its own type. Raises Invalid."""
    try:
        task = _decode(body).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        task = 0
    task = task or _read_as_go_does(body, verb)  # the decoder takes -0 for a number without a sign
    if not task:
        raise Invalid(MISSING)
    return task


def _read_as_go_does(body: bytes, verb: str) -> int:
    task, wrong = 0, ""
    try:
        for _, value in members(body, ("id",)):
            try:
                task = value.integer(0, MOST) if value.kind != "null" else task
            except WrongType as error:
                wrong = wrong or f"{error} into Go struct field {verb}Request.id of type uint32"
    except NotJson as error:
        raise Invalid(f"unmarshal payload: {complaint(body)}") from error
    except WrongType as error:
        wrong = f"{error} into Go value of type proto.{verb}Request"
    if wrong:
        raise Invalid(f"unmarshal payload: json: cannot unmarshal {wrong[:ECHO]}")
    return task
