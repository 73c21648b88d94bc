"""`crossdock doctor`: the settings in effect, their sources, and warnings."""

from typing import Any

import apsw
import click
import msgspec

from crossdock import __version__
from crossdock.cli import diagnosis
from crossdock.cli.options import SettingsCommand, loaded
from crossdock.server.diagnosis import bad_settings
from crossdock.settings.table import TABLE

_EXAMPLES = """\b
Examples:
  crossdock doctor
  crossdock doctor --config /etc/crossdock.toml
  crossdock doctor --data /var/lib/crossdock --json
"""


class Shown(msgspec.Struct):
    name: str
    value: str  #: for a secret, only whether it is set
    source: str


class Report(msgspec.Struct):
    version: str
    sqlite: str
    file: str | None
    settings: list[Shown]
    notes: list[str]
    warnings: list[str]


@click.command("doctor", cls=SettingsCommand, epilog=_EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool, **values: Any) -> int:
    """Show the settings in effect and warn of risks to jobs.

    Takes the flags of `crossdock up` and changes nothing. Exit code 0: no warnings, 1: there are some, 2: a bad setting
    keeps the server from starting.
    """
    found = loaded(values)
    report = Report(
        version=__version__,
        sqlite=apsw.sqlite_lib_version(),
        file=str(found.file) if found.file else None,
        settings=[
            Shown(name, setting.show(_value(found.settings, name)), found.sources[name])
            for name, setting in TABLE.items()
        ],
        notes=diagnosis.notes(found.settings),
        warnings=diagnosis.warnings(found),
    )
    click.echo(msgspec.json.format(msgspec.json.encode(report)).decode() if as_json else _text(report))
    if bad_settings(found.settings):
        return 2
    return 1 if report.warnings else 0


def _value(settings: msgspec.Struct, name: str) -> Any:
    section, key = name.split(".")
    return getattr(getattr(settings, section), key)


def _text(report: Report) -> str:
    names = max(len(shown.name) for shown in report.settings)
    values = max(len(shown.value) for shown in report.settings)
    lines = [
        f"Crossdock {report.version}, SQLite {report.sqlite}, "
        + (f"settings file {report.file}" if report.file else "no settings file"),
        "",
        *(f"  {shown.name:{names}}  {shown.value:{values}}  {shown.source}" for shown in report.settings),
        "",
        *(f"note: {note}" for note in report.notes),
        *(f"warning: {warning}" for warning in report.warnings),
    ]
    if not report.warnings:
        lines.append("no warnings")
    return "\n".join(lines)
