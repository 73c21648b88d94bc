"""The flags of every verb that takes settings, made from the table, and what was given with them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from crossdock.client.admin import AdminClient
from crossdock.client.base import NoServer
from crossdock.journal.data_dir import in_use_by
from crossdock.settings.loading import Found, Loaded, load
from crossdock.settings.table import TABLE, Setting

#: click's name of each setting: that of its flag, with underscores.
_PARAMETERS = {f"{setting.section}_{setting.key}": setting for setting in TABLE.values()}


class SettingsCommand(click.Command):
    """A verb with all settings as flags, listed by section."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*_short_forms(), *map(_option, TABLE.values()), *self.params]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                setting = _PARAMETERS.get(param.name or "")
                groups.setdefault(f"Settings [{setting.section}]" if setting else "Options", []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _short_forms() -> list[click.Option]:
    return [
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Settings in TOML. Without it CROSSDOCK_CONFIG, or crossdock.toml in this folder if it is there.",
        ),
        click.Option(["--data"], metavar="DIR", help="Short for --server-data."),
        click.Option(
            ["--listen"],
            multiple=True,
            metavar="DOOR=ADDRESS",
            help="Short for --listen-DOOR. May be repeated; DOOR=off closes a door.",
        ),
    ]


def _option(setting: Setting) -> click.Option:
    if setting.is_secret:
        return click.Option([setting.flag], hidden=True, expose_value=False, callback=_refuse_secret)
    text = f"{setting.description}. [{setting.show(setting.default)}]"
    if setting.is_switch:
        return click.Option([f"{setting.flag}/--no-{setting.flag[2:]}"], default=None, help=text)
    return click.Option([setting.flag], metavar=_metavar(setting), help=text)


def _metavar(setting: Setting) -> str:
    if setting.section == "listen":
        return "ADDRESS"
    return "|".join(setting.choices) or {Path: "DIR", str: "TEXT"}.get(setting.base, "N")


def _refuse_secret(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None:
        setting = _PARAMETERS[str(param.name)]
        raise click.UsageError(
            f"{setting.flag} is not a flag, since a command line is readable by everybody on this machine: "
            f"set {setting.name} in the configuration file, or {setting.variable}"
        )


def loaded(values: dict[str, Any]) -> Loaded:
    """The settings from what click parsed. Raises BadSetting or click.UsageError."""
    flags: dict[str, Found] = {}
    for name, value in values.items():
        setting = _PARAMETERS.get(name)
        if setting is not None and value is not None:
            flags[setting.name] = Found(value, f"flag {setting.flag}")
    if values["data"] is not None:
        _give(flags, "server.data", Found(values["data"], "flag --data"))
    for text in values["listen"]:
        door, equals, where = text.partition("=")
        name = f"listen.{door}"
        if not equals or name not in TABLE:
            doors = ", ".join(setting.key for setting in TABLE.values() if setting.section == "listen")
            raise click.UsageError(f"--listen {text} is not DOOR=ADDRESS; the doors are {doors}")
        _give(flags, name, Found(where, "flag --listen"))
    return load(flags, os.environ, values["config"])


def _give(flags: dict[str, Found], name: str, found: Found) -> None:
    if name in flags:
        raise click.UsageError(f"{name} is given twice")
    flags[name] = found


# What the operator's verbs share: how they find the server, and how they tell what it said.


class AdminCommand(click.Command):
    """A verb that asks a running server: where its data folder is, and whether a program reads the answer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [
            *self.params,
            click.Option(
                ["--data"], metavar="DIR", help="The server's data folder; without it the one that the settings name."
            ),
            click.Option(
                ["--config"],
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="The server's settings. Without it CROSSDOCK_CONFIG, or crossdock.toml in this folder.",
            ),
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object instead."),
        ]


def settings_of(values: dict[str, Any]) -> Loaded:
    """The settings as the server on that folder has them, if it was given the same file and variables."""
    return loaded({"listen": (), **values})


@contextmanager
def server(values: dict[str, Any]) -> Iterator[AdminClient]:
    """The running server these flags mean. Raises NoServer with what to do."""
    folder = settings_of(values).settings.server.data
    try:
        client = AdminClient(folder)
    except NoServer as error:
        holder = in_use_by(folder)
        if holder:
            raise NoServer(
                f"process {holder} has {folder} open and does not answer yet; it may still be starting: try again"
            ) from error
        raise
    with client:
        yield client
