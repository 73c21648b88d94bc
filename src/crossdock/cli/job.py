"""`crossdock job`: everything known of one job."""

from typing import Any

import click

from crossdock.cli.control import OperatorCommand, print_json, server
from crossdock.cli.filters import Name
from crossdock.cli.show import age, clean

_EXAMPLES = """\b
Examples:
  crossdock job 4711
  crossdock job 2c1d8c4e-0d52-4f0c-9d0a-8f1c8b3f9a11
  crossdock job 4711 --json
"""

#: What is told in the first lines, and what stands in sections of its own.
_PLAIN = ("jid", "queue", "kind", "origin", "priority", "attempts", "failures", "tracked", "group", "expires")
_NESTED = ("lease", "error", "lock", "callback", "track", "rules")


@click.command("job", cls=OperatorCommand, epilog=_EXAMPLES)
@click.argument("ident", type=Name(), metavar="ID")
def job(ident: str, as_json: bool, **values: Any) -> None:
    """Show everything known of one job.

    By its number or jid: fields, lease, last error, needs, batch, lock, track and timeline. An arrow marks what is to
    come. Of a job that is gone its track is shown, as long as that is kept.
    """
    with server(values) as client:
        answer = client.job(ident)
    if as_json:
        print_json(answer)
        return
    found = answer["job"]
    if found is None:
        click.echo(f"job {clean(ident)} is gone\n" + "\n".join(_section("track", answer["track"])))
        return
    lines = [f"job {found['number']}, {found['state']} for {age(found['age_s'])}", ""]
    lines += [f"  {name:9} {clean(str(found[name]))}" for name in _PLAIN if found[name] is not None]
    lines += [f"  {name:9} {clean(', '.join(found[name]))}" for name in ("tags", "needs", "needed_by") if found[name]]
    lines += [f"  replay of {clean(found['replayed_from'])}"] if found["replayed_from"] else []
    texts = [(name, found[name]) for name in ("payload", "custom") if found.get(name) is not None]
    lines += [f"  {name:9} {clean(bytes(text).decode())}" for name, text in texts]
    if answer["same_jid"]:
        lines.append(f"  older     {', '.join(map(str, answer['same_jid']))}, of the same jid")
    for name in _NESTED:
        if found[name] is not None:
            lines += ["", *_section(name, found[name])]
    lines += ["", "timeline"]
    for step in found["timeline"]:
        note = f"  {clean(step['note'])}" if step["note"] else ""
        lines.append(f"  {step['at']:27} {'→' if step['ahead'] else ' '} {step['what']}{note}")
    click.echo("\n".join(lines))


def _section(name: str, members: dict[str, Any]) -> list[str]:
    lines = [name]
    for key, value in members.items():
        if isinstance(value, list):
            lines += [f"  {key}", *(f"    {clean(str(item))}" for item in value)] if value else []
        elif value is not None:
            lines.append(f"  {key:12} {clean(str(value))}")
    return lines
