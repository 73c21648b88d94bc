"""Resqu V4 on the Redis door: its scripts as a library, its keys as views."""

from collections.abc import Mapping

from crossdock.wire.redis.resqu import hashes, scripts
from crossdock.wire.redis.resqu.specs import Specs
from crossdock.wire.redis.resqu.strangers import Strangers
from crossdock.wire.redis.resqu.view import ResquView
from crossdock.wire.redis.scripts import Call, Library
from crossdock.wire.redis.values import Value


class Resqu:
    """`known` says which text, by its SHA-1, is which script."""

    def __init__(self, specs: Specs | None = None, *, known: Mapping[str, str] = hashes.KNOWN) -> None:
        self._specs = specs or Specs()
        self.library = Library(frozenset(scripts.SCRIPTS), known, self._handle, at_once=True)
        self.views = (ResquView(self._specs), Strangers())

    def _handle(self, call: Call) -> Value:
        return scripts.answer(call, self._specs)
