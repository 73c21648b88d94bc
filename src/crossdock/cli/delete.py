"""`crossdock delete`: jobs are gone for good."""

from crossdock.cli.acting import Verb, acting

_ABOUT = """Delete jobs for good, by ID or filter.

An ID is a number or a jid. All but leased and complete ones, and these by ID or with --state. A job that is leased is
with its worker: it is not stopped, and what it will say of the job changes nothing. By filter it tells how many there
are, asks, and touches only those it has counted.
"""

_EXAMPLES = """\b
Examples:
  crossdock delete 4711
  crossdock delete --state dead --older-than 30d
  crossdock delete --state ready --queue mail --yes
"""

_STATES = ("ready", "retrying", "scheduled", "dead", "blocked", "held", "failed", "leased", "complete")

delete = acting(Verb("delete", "deleted", _STATES, _ABOUT, _EXAMPLES))
