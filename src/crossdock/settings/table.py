"""The settings as a table, built from the structs of `settings/schema.py`. Flags, loading and the reference use it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

import msgspec
from msgspec import Meta

from crossdock.settings.schema import Settings

PREFIX: Final = "CROSSDOCK_"

#: Names the settings file. It is not a setting itself.
CONFIG_VARIABLE: Final = PREFIX + "CONFIG"

#: Variables that programs on the server's machine may have for other commands and for clients.
OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, PREFIX + "SERVER", PREFIX + "TOKEN_FILE", PREFIX + "URL"})


#: Settings that are lists of entries. They can be set in the file only.
LISTS: Final = frozenset({"throttles", "rate", "cron", "mapping", "slo"})


class Setting(NamedTuple):
    section: str
    key: str
    kind: Any  #: the annotated type, for msgspec
    default: Any
    meta: Meta

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"{PREFIX}{self.section}_{self.key}".upper()

    @property
    def flag(self) -> str:
        return f"--{self.section}-{self.key}".replace("_", "-")

    @property
    def is_secret(self) -> bool:
        return bool((self.meta.extra or {}).get("secret"))

    @property
    def is_switch(self) -> bool:
        return self.base is bool

    @property
    def base(self) -> Any:
        """The type without its bounds."""
        return get_args(self.kind)[0]

    @property
    def description(self) -> str:
        return self.meta.description or ""

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.base) if get_origin(self.base) is Literal else ()

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return ", ".join(self.choices[:-1]) + f" or {self.choices[-1]}"
        if self.section == "listen":
            return "HOST:PORT, unix:PATH or off"
        if self.meta.extra and "allowed" in self.meta.extra:
            return str(self.meta.extra["allowed"])
        return _WORDS[self.base] + self._bounds()

    def _bounds(self) -> str:
        meta = self.meta
        low = f"above {meta.gt:,}" if meta.gt is not None else f"at least {meta.ge:,}" if meta.ge is not None else ""
        high = f"at most {meta.le:,}" if meta.le is not None else ""
        return "".join(f", {bound}" for bound in (low, high) if bound)

    def show(self, value: Any) -> str:
        """The value as written in a file or flag. A secret is never shown."""
        if self.is_secret:
            return "set" if value else "not set"
        return str(value).lower() if self.is_switch else str(value)


_WORDS: Final = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text in UTF-8",
    Path: "a path in UTF-8",
}


def sections() -> dict[str, Any]:
    """The struct of each section."""
    return {field.name: field.type for field in msgspec.structs.fields(Settings) if field.name not in LISTS}


def _rows() -> Iterator[Setting]:
    for section, struct in sections().items():
        for field in msgspec.structs.fields(struct):
            (meta,) = (extra for extra in get_args(field.type)[1:] if isinstance(extra, Meta))
            yield Setting(section, field.name, field.type, field.default, meta)


#: Every setting by its name.
TABLE: Final = {setting.name: setting for setting in _rows()}
