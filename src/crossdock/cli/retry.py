"""`crossdock retry`: jobs that wait or are dead become ready now."""

from crossdock.cli.acting import Verb, acting

_ABOUT = """Make jobs ready now, by ID or filter.

An ID is a number or a jid. Without --state those that wait for a retry and those that are dead; with --state
scheduled jobs run before their time. By filter it tells how many there are, asks, and touches only those it has
counted.
"""

_EXAMPLES = """\b
Examples:
  crossdock retry 4711
  crossdock retry --state dead --kind invoice
  crossdock retry --queue mail --older-than 1h --yes
"""

retry = acting(Verb("retry", "retried", ("retrying", "dead", "scheduled"), _ABOUT, _EXAMPLES))
