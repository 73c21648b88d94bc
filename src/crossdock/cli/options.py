"""Flags of commands that take settings or ask a running server, and the settings they result in."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from crossdock.client.admin import AdminClient
from crossdock.client.errors import NoServer
from crossdock.client.http_admin import HttpAdminClient, read_token
from crossdock.journal.data_dir import in_use_by
from crossdock.settings.loading import Found, Loaded, load
from crossdock.settings.table import TABLE, Setting

#: click's name of each setting: that of its flag, with underscores.
PARAMETERS = {f"{setting.section}_{setting.key}": setting for setting in TABLE.values()}


class SettingsCommand(click.Command):
    """A command with all settings as flags, listed by section."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*_short_forms(), *map(_option, TABLE.values()), *self.params]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                setting = PARAMETERS.get(param.name or "")
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
            help="Settings file (TOML). Default: $CROSSDOCK_CONFIG, else crossdock.toml in this folder if it exists.",
        ),
        click.Option(["--data"], metavar="DIR", help="Short for --server-data."),
        click.Option(
            ["--listen"],
            multiple=True,
            metavar="PROTOCOL=ADDRESS",
            help="Short for --listen-PROTOCOL. May be repeated. PROTOCOL=off disables a listener.",
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
        setting = PARAMETERS[str(param.name)]
        raise click.UsageError(
            f"{setting.flag} is not a flag, because every user of this machine can read command lines; "
            f"set {setting.name} in the settings file, or {setting.variable}"
        )


def loaded(values: dict[str, Any]) -> Loaded:
    """Load the settings with the flags that click parsed. Raises BadSetting or click.UsageError."""
    flags: dict[str, Found] = {}
    for name, value in values.items():
        setting = PARAMETERS.get(name)
        if setting is not None and value is not None:
            flags[setting.name] = Found(value, f"flag {setting.flag}")
    if values["data"] is not None:
        _set(flags, "server.data", Found(values["data"], "flag --data"))
    for text in values["listen"]:
        protocol, equals, where = text.partition("=")
        name = f"listen.{protocol}"
        if not equals or name not in TABLE:
            protocols = ", ".join(setting.key for setting in TABLE.values() if setting.section == "listen")
            raise click.UsageError(f"--listen {text} is not PROTOCOL=ADDRESS; the protocols are {protocols}")
        _set(flags, name, Found(where, "flag --listen"))
    return load(flags, os.environ, values["config"])


def _set(flags: dict[str, Found], name: str, found: Found) -> None:
    if name in flags:
        raise click.UsageError(f"{name} is given twice")
    flags[name] = found


# Commands that ask a running server.


class AdminCommand(click.Command):
    """A command that asks a running server, with the flags that find the server and choose the output."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [
            *self.params,
            click.Option(
                ["--data"], metavar="DIR", help="Data folder of the server. Default: the one in the settings."
            ),
            click.Option(
                ["--config"],
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Settings file of the server. Default: $CROSSDOCK_CONFIG, else crossdock.toml in this folder.",
            ),
            click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."),
        ]


def settings_of(values: dict[str, Any]) -> Loaded:
    """The settings of the server on that folder, if it was started with the same file and variables. Raises
    click.UsageError with --server: the settings of another machine are not known here."""
    if _is_flag("server"):
        raise click.UsageError("this command reads files or listeners of this machine; leave out --server")
    return loaded({"listen": (), **values})


@contextmanager
def server(values: dict[str, Any]) -> Iterator[AdminClient]:
    """Connect to the running server that the flags select, here or at --server. Raises NoServer, which says what to
    do."""
    remote = _global("server")
    if remote is None:
        with local_server(values) as client:
            yield client
        return
    if values.get("data") is not None or values.get("config") is not None:
        raise click.UsageError("--data and --config select a server on this machine; leave them out with --server")
    token_file = _global("token_file")
    token = read_token(Path(token_file)) if token_file else ""
    with HttpAdminClient(remote, token, _global("ca")) as client:
        yield client


def remote_server(values: dict[str, Any]) -> str | None:
    """The URL of --server, for commands that also take --listen. --listen wins over $CROSSDOCK_SERVER. None: the
    command uses a listener. Raises click.UsageError if both flags are given."""
    remote: str | None = _global("server")
    if remote is None or not values.get("listen"):
        return remote
    if _is_flag("server"):
        raise click.UsageError("--listen names a listener, and --server another way to the server; give one of them")
    return None


def _global(name: str) -> Any:
    """An option that is given before the command."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.find_root().params.get(name)


def _is_flag(name: str) -> bool:
    """Whether such an option is on the command line, and not only in the environment."""
    context = click.get_current_context(silent=True)
    source = None if context is None else context.find_root().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


@contextmanager
def local_server(values: dict[str, Any]) -> Iterator[AdminClient]:
    """Connect to the running server on this machine."""
    folder = settings_of(values).settings.server.data
    try:
        client = AdminClient(folder)
    except NoServer as error:
        holder = in_use_by(folder)
        if holder:
            raise NoServer(
                f"process {holder} has {folder} open and does not answer yet; it may still be starting, so try again"
            ) from error
        raise
    with client:
        yield client
