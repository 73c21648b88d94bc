"""`crossdock release`: ends leases whose workers are gone."""

import click

from crossdock.cli.acting import Verb, acting

_ABOUT = """End leases whose workers are gone, by ID or filter.

It counts as a lost worker: each job goes on as if its lease had run out. By the rules of its protocol it is ready
again, waits for a retry, or has failed for good. What the worker says of the job later changes nothing newer. Jobs of a
connected worker are refused: a Faktory worker's are released with --force, a Masenko worker's end with its connection.
An ID is a number or a jid. By filter it tells how many there are, asks, and touches only those it has counted.
"""

_EXAMPLES = """\b
Examples:
  crossdock jobs --state leased                    which jobs have which workers
  crossdock release 4711
  crossdock release --queue mail --older-than 1h
  crossdock release 4711 --force                   though its worker is connected
"""

_FORCE = click.Option(["--force"], is_flag=True, help="Also jobs whose Faktory workers are connected.")

release = acting(Verb("release", "released", ("leased",), _ABOUT, _EXAMPLES, (_FORCE,)))
