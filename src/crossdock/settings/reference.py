"""Writes docs/reference/settings.md from the settings: `python -m crossdock.settings.reference FILE`."""

import sys
from itertools import groupby
from pathlib import Path
from typing import Final

from crossdock.settings.table import TABLE, Setting

_HEAD: Final = """# Settings

<!-- Written by `make docs` from src/crossdock/settings/schema.py. A test compares the two. -->

A setting has one name, `section.key`. Crossdock looks for it in this order and takes the first value found:

1. The flag `--section-key`, for example `--journal-durability everysec`. A switch is `--server-flush` or
   `--no-server-flush`.
2. The environment variable `CROSSDOCK_SECTION_KEY`, for example `CROSSDOCK_JOURNAL_DURABILITY=everysec`. An empty
   variable counts as not set.
3. A TOML file with `key = value` below `[section]`. `--config` or `CROSSDOCK_CONFIG` names the file. Otherwise it is
   `crossdock.toml` in the working directory, if that exists.

`--data DIR` is short for `--server-data DIR`, and `--listen PROTOCOL=ADDRESS` for `--listen-PROTOCOL ADDRESS`.
Secrets have no flag, because every user of the machine can read command lines. Relative paths start at the working
directory, that of `lake.dir` at the data folder. `crossdock doctor` shows every setting in effect and its source.
"""


#: Text below the table of a section.
_NOTES: Final = {
    "limits": """
`limits.jobs` bounds memory. These records count:

* every job, in any state and of any protocol
* every open batch and every progress record of `TRACK`
* queues, tags, tracked jobs, recurring jobs, qless settings and Resqu buffers, taken together, above 10,000

A queue needs about as much memory as a job, and is kept when it is empty. At the limit every push is refused, and
workers go on as usual. The error names the number of jobs and of other records, the most frequent kind of record, and
the command that removes it: `QUEUE REMOVE` (Faktory) or `queue.forget` (qless) for queues, `crossdock job untag`,
`job untrack` and `schedule remove` for the others.
""",
}


_LISTS: Final = """## throttles, rate, cron, mapping and slo

These are lists of entries. They can be set in the file only and are read at start.

```toml
[throttles]
mail = { concurrency = 10, timeout = 60 }   # at most 10 leases of this queue; each counts for at most 60 s
video = { worker = 1 }                      # at most one lease per worker id

[rate.newsletter]                           # the name is shown where the limit holds jobs back
queue = "mail"                              # the jobs of this queue
rate = "10/m"                               # at most 10 per minute; also /s, /h and /d
[rate.welcome]
kind = "welcome"                            # the jobs of this kind, in every queue
rate = "100/h"

[[cron]]
schedule = "*/5 * * * *"                    # minute hour day month weekday
timezone = "Europe/Berlin"                  # default: UTC
name = "sweep"                              # unique; default: made from type and schedule
[cron.job]
type = "sweep"
queue = "chores"
args = [1, 2]
retry = 3
reserve_for = 600
unique_for = 3600                           # skip a run while an equal job exists, for at most an hour
unique_until = "success"                    # or "start": until the job is fetched
expires_in = 900                            # drop a run that no worker has fetched after this many seconds
[cron.job.custom]
why = "housekeeping"

[mapping.static.default]                    # Resqu: the pools of jobs, by sourceId and name
default = "static_1"                        # all names that are not listed
MailJob = "mail"                            # this name, from every source
[mapping.static.acc2]
MailJob = "slow-mail"                       # this name, from this source
[mapping.batch.default]                     # Resqu: the pools of batches, by the name of the first job
default = "batch_1"

[slo.mail]                                  # the objective of the queue mail
done_within = "5m"                          # from push to success
ratio = 0.99                                # the share of jobs that must succeed in that time
start_within = "10s"                        # optional: how long a ready job may wait for a worker
```

**Throttles.** A queue at its limit looks empty to workers.

**Rate limits.** A limit counts the leases that begin, through every protocol. It is a bucket of tokens: `10/m` holds at
most 10 tokens, and a token is added every 6 seconds. Each lease takes one, so 10 jobs may start at once after a pause.
A queue without a token looks empty to workers. A job whose kind has no token is held, the jobs behind it move up, and
it comes back to its place when a token is there. If several limits apply to a job, it needs a token of each.

**Cron.** Each entry fires once at its time, also across restarts. If runs were missed while the server was down, one
run makes up for all of them. An entry whose job changed keeps its times. An entry whose schedule or time zone changed
starts from now. `unique_for`, `unique_until` and `expires_in` have the same meaning as in the `custom` of a pushed job,
may also be set there, and count from each run. A run whose lock is held is skipped.

**Mapping.** A pool is a queue: every protocol can push to it and fetch from it. Without `mapping.static`, Resqu jobs
wait in the queue `unassigned`. Without `mapping.batch`, committed batches wait in the list `committed`. Both wait until
a Resqu allocator assigns them. When a mapping is added, the waiting ones get their pool at the next start. If
`mapping.static` or `mapping.batch` is used, it must have a `default.default`. No pool can be in both.

**Objectives.** The pipeline and its reports compare each queue with its objective; the server does not read it. A
duration is a number with the unit `ms`, `s`, `m`, `h` or `d`, of at most 366 days. `ratio` is above 0 and below 1; its
default is 0.99. The name of a queue with other characters than letters, digits, `_` and `-` is quoted:
`[slo."mail.eu"]`.

An invalid entry stops `crossdock up` before it touches the data folder, and `crossdock doctor` names the entry.
"""


def page() -> str:
    parts = [_HEAD]
    for section, settings in groupby(TABLE.values(), lambda setting: setting.section):
        rows = "\n".join(map(_row, settings)) + "\n" + _NOTES.get(section, "")
        parts.append(f"## {section}\n\n| Setting | Default | Allowed | Description |\n|---|---|---|---|\n{rows}")
    return "\n".join([*parts, _LISTS])


def _row(setting: Setting) -> str:
    what = f"{setting.description}. Secret, so no flag" if setting.is_secret else setting.description
    return f"| `{setting.name}` | `{setting.show(setting.default)}` | {setting.allowed} | {what} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
