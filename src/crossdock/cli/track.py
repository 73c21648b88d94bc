"""`crossdock track`: somebody follows these jobs."""

from crossdock.cli.naming import Verb, naming

_ABOUT = """Follow jobs, by ID.

An ID is a number or a jid, of a job of whatever door. What happens to a tracked job is published on the Redis door, as
qless does it: ql:popped, ql:completed, ql:failed and so on. crossdock tracked lists them; a job stays there when it is
gone.
"""

_EXAMPLES = """\b
Examples:
  crossdock track 4711
  crossdock track 2c1d8c4e-0d52-4f0c-9d0a-8f1c8b3f9a11 --json
"""

track = naming(Verb("track", "tracking", "job", _ABOUT, _EXAMPLES, member="ids", listed_by="jobs", has_all=False))
