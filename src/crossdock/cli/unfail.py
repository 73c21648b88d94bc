"""`crossdock unfail`: jobs that failed for good begin anew."""

import click

from crossdock.cli.acting import Verb, acting
from crossdock.cli.filters import Name

_ABOUT = """Bring failed and dead jobs back to a queue, by ID or filter.

They begin anew, with all their tries, in the queue that --to names or each in its own. An ID is a number or a jid. By
filter it tells how many there are, asks, and touches only those it has counted.
"""

_EXAMPLES = """\b
Examples:
  crossdock unfail --failure Timeout
  crossdock unfail --failure Timeout --kind invoice --to slow --yes
  crossdock unfail 4711 4712 --to mail
"""

_TO = click.Option(["--to"], type=Name(), metavar="QUEUE", help="The queue. Without it each goes back to its own.")

unfail = acting(Verb("unfail", "revived", ("failed", "dead"), _ABOUT, _EXAMPLES, (_TO,)))
