"""Resqu V4 on the Redis door: its scripts as a library, its keys as views."""

from collections.abc import Mapping

from crossdock.protocols.redis.resp.values import Value
from crossdock.protocols.redis.resqu import script_hashes, scripts
from crossdock.protocols.redis.resqu.other_versions import Strangers
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.protocols.redis.resqu.view import ResquView
from crossdock.protocols.redis.scripts import Call, Library


class Resqu:
    """`known` says which text, by its SHA-1, is which script."""

    def __init__(self, specs: Specs | None = None, *, known: Mapping[str, str] = script_hashes.KNOWN) -> None:
        self._specs = specs or Specs()
        self.library = Library(frozenset(scripts.SCRIPTS), known, self._handle, at_once=True)
        self.views = (ResquView(self._specs), Strangers())

    def _handle(self, call: Call) -> Value:
        return scripts.answer(call, self._specs)
