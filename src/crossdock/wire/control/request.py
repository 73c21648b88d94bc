"""What all requests of the control door are made of. Every member is typed, and nothing unknown is passed over."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

#: Rows of a page, at most.
PAGE: Final = 200
#: Names and ids of one request, at most.
NAMES: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=PAGE)]
Name = Annotated[str, Meta(max_length=1_024)]
Names = Annotated[list[Name], Meta(max_length=NAMES)]
Id = int | Name  #: a number, or a jid (a text of digits that is no jid is a number)
Ids = Annotated[list[Id], Meta(max_length=NAMES)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class Invalid(Exception):
    """A request that is not understood; the text is for whoever sent it."""


class Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="do"):
    pass


class Page(Request):
    after: str | None = None  #: as the page before gave it
    limit: Limit = 50
