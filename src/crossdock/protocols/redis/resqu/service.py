"""Resqu V4 on the Redis protocol: its scripts as a library, its keys as views. Other versions are refused."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.model.commands.keyspace import Kind
from crossdock.protocols.redis.commands.command import Act
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.resp.values import Error, Result, Value
from crossdock.protocols.redis.resqu import scripts
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.protocols.redis.resqu.view import ResquView
from crossdock.protocols.redis.scripts import Library, ScriptCall
from crossdock.protocols.redis.views import Page, page_by_hash


class Resqu:
    """`known` maps the SHA-1 of each text to its script."""

    def __init__(self, specs: Specs | None = None, *, known: Mapping[str, str] = scripts.KNOWN) -> None:
        self._specs = specs or Specs()
        self.library = Library(frozenset(scripts.SCRIPTS), known, self._handle, preloaded=True)
        self.views = (ResquView(self._specs), OtherVersions())

    def _handle(self, call: ScriptCall) -> Value:
        return scripts.answer(call, self._specs)


# Keys of other Resqu versions, which have other prefixes. They are refused (model.md section 11).


_OTHERS: Final = re.compile(rb"resque?-v(?!4:)\d+:")


class OtherVersions:
    prefix = b"resqu"

    def owns(self, key: bytes) -> bool:
        return _OTHERS.match(key) is not None

    def act(self, name: bytes, key: bytes) -> Act:
        return self._refuse

    def _refuse(self, context: Context, args: list[bytes]) -> Result:
        raise _refused(next(key for key in args if self.owns(key)))

    def read(self, context: Context, key: bytes) -> Entry | None:
        raise _refused(key)

    def keys(self, context: Context) -> Iterator[bytes]:
        return iter(())

    def page(self, context: Context, cursor: int, count: int) -> Page:
        return page_by_hash(self.keys(context), cursor, count)

    def kind(self, key: bytes) -> Kind:
        return Kind.STRING


def _refused(key: bytes) -> Error:
    prefix = key.partition(b":")[0]
    return Error(b"ERR '%b' is not supported; only Resqu V4 (prefix resqu-v4) is: use a client 1.0.x" % prefix)
