"""`crossdock kill`: jobs that wait become dead."""

from crossdock.cli.acting import Verb, acting

_ABOUT = """Move waiting jobs to the dead, by ID or filter.

An ID is a number or a jid. Whatever waits: ready and scheduled jobs, those that wait for a retry, for other jobs, for
a throttle or in a batch. Jobs of Masenko that need one of them fail with it. The dead are kept for 180 days, and
crossdock retry brings them back, ready at once. By filter it tells how many there are, asks, and touches only those it
has counted.
"""

_EXAMPLES = """\b
Examples:
  crossdock kill 4711
  crossdock kill --state retrying --kind invoice
  crossdock kill --queue mail --yes
  crossdock kill --state blocked --older-than 7d
"""

kill = acting(Verb("kill", "killed", ("ready", "retrying", "scheduled", "blocked", "held"), _ABOUT, _EXAMPLES))
