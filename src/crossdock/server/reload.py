"""Reloading settings: which of them can change while the server runs, and which need a restart."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.settings.schema import Settings
from crossdock.settings.table import LISTS, TABLE

#: Settings of the web process. It is started again when one of them changes.
_WEB: Final = frozenset({"http.password", "http.token_file", "http.hosts", "tls.cert", "tls.key"})

#: Settings of the log, in all processes.
LOG: Final = frozenset({"server.log", "server.log_format"})

#: Settings that a reload applies. `throttles`, `rate`, `cron` and `mapping` are lists of entries.
RELOADABLE: Final = LOG | _WEB | {"faktory.password", "redis.password", "throttles", "rate", "cron", "mapping"}

#: The pipeline reads these at each run. The server does not use them.
_OF_PIPELINE: Final = frozenset({"slo", *(name for name in TABLE if name.startswith("pipeline."))})


class Reloaded(NamedTuple):
    changed: list[str]  #: names of settings that were changed
    restart: list[str]  #: names of settings that differ and need a restart

    @property
    def text(self) -> str:
        changed = f"changed {', '.join(self.changed)}" if self.changed else "no setting was changed"
        return changed + (f"; a restart is needed for {', '.join(self.restart)}" if self.restart else "")


def compare(old: Settings, new: Settings) -> Reloaded:
    differing = [
        name
        for name in (*TABLE, *sorted(LISTS))
        if name not in _OF_PIPELINE and value_of(old, name) != value_of(new, name)
    ]
    return Reloaded(
        [name for name in differing if name in RELOADABLE], [name for name in differing if name not in RELOADABLE]
    )


def effective(old: Settings, new: Settings) -> Settings:
    """The old settings with the values that a reload can change."""
    changed: dict[str, Any] = {name: value_of(new, name) for name in RELOADABLE & LISTS}
    for section, members in _sections(RELOADABLE - LISTS):
        values = {key: value_of(new, f"{section}.{key}") for key in members}
        changed[section] = msgspec.structs.replace(getattr(old, section), **values)
    return msgspec.structs.replace(old, **changed)


def concerns_web(changed: Iterable[str]) -> bool:
    return not (_WEB | LOG).isdisjoint(changed)


def shown(settings: Settings, name: str) -> str:
    """A setting for the log. A secret is not shown."""
    if name in LISTS:
        entries = value_of(settings, name)
        return f"{name}: {len(entries)} entries" if isinstance(entries, dict | list) else f"{name} is changed"
    return f"{name} = {TABLE[name].show(value_of(settings, name))}"


def value_of(settings: Settings, name: str) -> Any:
    section, _, key = name.partition(".")
    found = getattr(settings, section)
    return getattr(found, key) if key else found


def _sections(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for name in names:
        section, _, key = name.partition(".")
        found.setdefault(section, []).append(key)
    yield from found.items()
