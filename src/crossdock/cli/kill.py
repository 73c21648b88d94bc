"""`crossdock kill`: jobs that wait become dead."""

from crossdock.cli.acting import Verb, acting

_ABOUT = """Move waiting jobs to the dead, by ID or filter.

An ID is a number or a jid. Ready and scheduled jobs, and those that wait for a retry. The dead are kept for 180 days,
and crossdock retry brings them back. By filter it tells how many there are, asks, and touches only those it has
counted.
"""

_EXAMPLES = """\b
Examples:
  crossdock kill 4711
  crossdock kill --state retrying --kind invoice
  crossdock kill --queue mail --yes
"""

kill = acting(Verb("kill", "killed", ("ready", "retrying", "scheduled"), _ABOUT, _EXAMPLES))
