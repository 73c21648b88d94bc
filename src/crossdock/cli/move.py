"""`crossdock move`: jobs that wait go to another queue."""

import click

from crossdock.cli.acting import Verb, acting
from crossdock.cli.filters import Name

_ABOUT = """Take waiting jobs to another queue, by ID or filter.

They go as they are: with their state, place in line, tries and what they wait for. Held ones leave their batch, and are
ready. Leased jobs stay with their workers, and those that ended stay too (crossdock unfail --to brings them back). An
ID is a number or a jid. By filter it tells how many there are, asks, and touches only those it has counted.
"""

_EXAMPLES = """\b
Examples:
  crossdock move --queue old --to new
  crossdock move --queue mail --kind invoice --older-than 1h --to slow --yes
  crossdock move 4711 4712 --to urgent
"""

_TO = click.Option(["--to"], required=True, type=Name(), metavar="QUEUE", help="The queue they go to.")

_STATES = ("ready", "retrying", "scheduled", "blocked", "held")

move = acting(Verb("move", "moved", _STATES, _ABOUT, _EXAMPLES, (_TO,)))
