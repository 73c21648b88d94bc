"""Load the settings: a flag wins over the environment, that over the file, and that over the default.

Each value keeps its source. An error is one sentence that names the setting, its source and the allowed values.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.model.errors import BadSetting
from crossdock.settings.address import parse_address
from crossdock.settings.schema import CronEntry, RateEntry, Settings, SloEntry, ThrottleEntry
from crossdock.settings.table import CONFIG_VARIABLE, LISTS, OTHER_VARIABLES, PREFIX, TABLE, Setting, sections

#: Read if no file is named and this one exists.
CONFIG_FILE: Final = Path("crossdock.toml")


class Found(NamedTuple):
    value: Any
    source: str
    strict: bool = False  #: TOML values have types; flags and variables are text to convert


class Loaded(NamedTuple):
    settings: Settings
    sources: dict[str, str]  #: by setting name
    warnings: list[str]
    file: Path | None


def load(flags: Mapping[str, Found], environment: Mapping[str, str], config: Path | None = None) -> Loaded:
    """`flags` are the values from the command line, by setting name. Raises BadSetting."""
    file = _file(config, environment)
    content = {} if file is None else _content(file)
    lists = {name: _list(file, name, content.pop(name)) for name in LISTS & content.keys()}
    found = _found(file, content)
    warnings = []
    variables = {setting.variable: setting for setting in TABLE.values()}
    for variable, text in environment.items():
        if variable in variables and text:
            found[variables[variable].name] = Found(text, f"environment {variable}")
        elif variable.startswith(PREFIX) and variable not in variables and variable not in OTHER_VARIABLES:
            warnings.append(f"{variable} is not a setting and has no effect{_did_you_mean(variable, variables)}")
    found.update(flags)
    made: dict[str, dict[str, Any]] = {section: {} for section in sections()}
    for name, value in found.items():
        setting = TABLE[name]
        made[setting.section][setting.key] = _convert(setting, value)
    settings = Settings(**{section: struct(**made[section]) for section, struct in sections().items()}, **lists)
    sources = {name: found[name].source if name in found else "default" for name in TABLE}
    return Loaded(settings, sources, warnings, file)


def _file(config: Path | None, environment: Mapping[str, str]) -> Path | None:
    if config is not None:
        return config
    if environment.get(CONFIG_VARIABLE):
        return Path(environment[CONFIG_VARIABLE])
    return CONFIG_FILE if CONFIG_FILE.exists() else None


def _content(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadSetting(f"cannot read the settings file {file}: {error.strerror}") from error
    except ValueError as error:
        raise BadSetting(f"the settings file {file} is not valid TOML: {error}") from error


def _list(file: Path | None, name: str, value: Any) -> Any:
    """Convert entry by entry, so that an error names the entry: msgspec does not name the keys of a table."""
    kind = {field.name: field.type for field in msgspec.structs.fields(Settings)}[name]
    if name == "throttles" and isinstance(value, dict):
        return {queue: _entry(file, f"throttles.{queue}", each, ThrottleEntry) for queue, each in value.items()}
    if name == "rate" and isinstance(value, dict):
        return {each: _entry(file, f"rate.{each}", entry, RateEntry) for each, entry in value.items()}
    if name == "slo" and isinstance(value, dict):
        return {queue: _entry(file, f"slo.{queue}", each, SloEntry) for queue, each in value.items()}
    if name == "cron" and isinstance(value, list):
        return [_entry(file, _cron_name(at, each), each, CronEntry) for at, each in enumerate(value, 1)]
    if name == "mapping" and isinstance(value, dict):
        for section, sources in value.items():
            for source, pools in sources.items() if isinstance(sources, dict) else ():
                _entry(file, f"mapping.{section}.{source}", pools, dict[str, str])
    return _entry(file, name, value, kind)


def _cron_name(at: int, entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return f'cron "{name}"' if isinstance(name, str) and name else f"cron entry {at}"


def _entry(file: Path | None, name: str, value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except ValueError as error:
        why, _, path = str(error).partition(" - at `$")
        keys = path.rstrip("`").lstrip(".")
        where = f": {keys}" if keys and "..." not in keys else ""
        raise BadSetting(f"{file}: {name}{where}: {why}; crossdock up --help shows an example") from error


def _found(file: Path | None, content: dict[str, Any]) -> dict[str, Found]:
    found = {}
    for section, keys in content.items():
        if not isinstance(keys, dict):
            raise BadSetting(f"{file}: {section} is outside of a section; the sections are {', '.join(sections())}")
        if section not in sections():
            raise BadSetting(f"{file}: unknown section [{section}]{_did_you_mean(section, sections())}")
        for key, value in keys.items():
            name = f"{section}.{key}"
            if name not in TABLE:
                raise BadSetting(f"{file}: unknown setting {name}{_did_you_mean(name, TABLE)}")
            found[name] = Found(value, f"file {file}", strict=True)
    return found


def _convert(setting: Setting, found: Found) -> Any:
    try:
        made = msgspec.convert(found.value, setting.kind, strict=found.strict, dec_hook=_path)
        if isinstance(made, str | Path):
            str(made).encode()  # an environment variable may hold any bytes
        if setting.section == "listen":
            parse_address(made)
    except ValueError as error:  # msgspec's error is a ValueError too
        shown = "" if setting.is_secret else f" = {found.value!r}"
        raise BadSetting(
            f"{setting.name}{shown} ({found.source}) is not allowed; it must be {setting.allowed}"
        ) from error
    return made


def _path(kind: type, value: Any) -> Any:
    if kind is not Path or not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("not a path")
    return Path(value)


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else "; crossdock up --help lists all settings"
