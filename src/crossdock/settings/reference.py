"""Writes docs/reference/settings.md from the settings: `python -m crossdock.settings.reference FILE`."""

import sys
from itertools import groupby
from pathlib import Path
from typing import Final

from crossdock.settings.table import TABLE, Setting

_HEAD: Final = """# Settings

<!-- Written by `make docs` from src/crossdock/settings.py; a test compares the two. -->

A setting has one name, `section.key`, and three places. The first that has it wins:

1. a flag, `--section-key` (`--journal-durability everysec`); a switch is `--server-flush` or `--no-server-flush`
2. the environment, `CROSSDOCK_SECTION_KEY` (`CROSSDOCK_JOURNAL_DURABILITY=everysec`); an empty one counts as not set
3. a TOML file, `[section]` and below it `key = value`: the one named by `--config` or `CROSSDOCK_CONFIG`, or else
   `crossdock.toml` in the folder the server is started in, if it is there

`--data DIR` is short for `--server-data DIR`, and `--listen DOOR=ADDRESS` for `--listen-DOOR ADDRESS`.
Secrets have no flag: a command line is readable by everybody on the machine.
A relative path counts from the folder the server is started in, that of `lake.dir` from the data folder.
`crossdock doctor` shows the settings in effect and where each came from.
"""


#: Below the table of a section.
_NOTES: Final = {
    "limits": """
`limits.jobs` bounds memory. So beside the jobs of all doors, whatever their state, these count: every open batch and
every state of TRACK; and of queues, tags, tracked and recurring jobs, settings of qless and buffers of Resqu, taken
together, those above 10,000. A queue takes about as much memory as a job, and stays when it is empty. At the limit a
job is refused even if its queue is known; what is there is worked off as ever. The refusal says how many there are of
both, of which records there are most, and what to do: to forget a queue is `QUEUE REMOVE` on the Faktory door and
`queue.forget` of qless; `crossdock job untag`, `job untrack` and `schedule remove` do the same for the others.
""",
}


_LISTS: Final = """## throttles, cron and mapping

Lists of entries, in the file only. They are read at the start.

```toml
[throttles]
mail = { concurrency = 10, timeout = 60 }   # at most 10 leases of this queue at a time, each counted for 60 s at most
video = { worker = 1 }                      # at most one lease for each worker id, as long as it lasts

[[cron]]
schedule = "*/5 * * * *"                    # minute hour day month weekday
timezone = "Europe/Berlin"                  # UTC unless given
name = "sweep"                              # unique; made of type and schedule unless given
[cron.job]
type = "sweep"
queue = "chores"
args = [1, 2]
retry = 3
reserve_for = 600
unique_for = 3600                           # no run while the last one, or an equal job, is there: an hour at most
unique_until = "success"                    # or "start": until it is fetched
expires_in = 900                            # a run that nobody has fetched in that time is dropped
[cron.job.custom]
why = "housekeeping"

[mapping.static.default]                    # Resqu: the pools of jobs, by sourceId and name
default = "static_1"                        # all that is not named below
MailJob = "mail"                            # of every source
[mapping.static.acc2]
MailJob = "slow-mail"                       # of this source
[mapping.batch.default]                     # and those of batches, by the name of their first job
default = "batch_1"
```

A throttled queue looks empty to whoever would fetch from it. Each cron entry fires once at its time, over restarts too;
runs missed while the server was down are made up for by one. An entry whose job was changed keeps its times; one whose
schedule or time zone was changed counts from now. `unique_for`, `unique_until` and `expires_in` mean what they mean in
the `custom` of a pushed job, may as well stand there, and count from each run. A run that finds its lock held is left
out.

A pool is a queue: every door may push to it and fetch from it. Without `mapping.static` Resqu jobs wait in the queue
`unassigned`, without `mapping.batch` committed batches in the list `committed`, until one of Resqu's own allocators
says where they go. What waits there when a mapping is added is given its pool at the next start. A kind of pool that
is mapped at all needs a `default.default`, and no pool is of both kinds.

An entry that is wrong stops `crossdock up` before it has touched the data folder, and `crossdock doctor` names it.
"""


def page() -> str:
    parts = [_HEAD]
    for section, settings in groupby(TABLE.values(), lambda setting: setting.section):
        rows = "\n".join(map(_row, settings)) + "\n" + _NOTES.get(section, "")
        parts.append(f"## {section}\n\n| Setting | Default | Allowed | What it does |\n|---|---|---|---|\n{rows}")
    return "\n".join([*parts, _LISTS])


def _row(setting: Setting) -> str:
    what = f"{setting.description}. Secret: no flag" if setting.is_secret else setting.description
    return f"| `{setting.name}` | `{setting.show(setting.default)}` | {setting.allowed} | {what} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
