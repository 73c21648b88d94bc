"""The tree of commands: what each is called, what it does, and where its code is.

Help, suggestions and tab completion read this table, so that none of them imports the code of a command. A command's
module is imported when the command runs: `crossdock --help` and `crossdock queue list` do not wait for the code of the
server or the lake.
"""

from typing import Final, NamedTuple


class Entry(NamedTuple):
    help: str
    where: str  #: module below `crossdock.cli.commands`, a colon, the attribute


class Noun(NamedTuple):
    """A group of commands about one subject."""

    help: str
    examples: str
    verbs: dict[str, Entry]


_JOB: Final = Noun(
    "List, show and change jobs.",
    """\b
Examples:
  crossdock job list state:dead kind:invoice
  crossdock job show 4711
  crossdock job retry --failure Timeout
  crossdock job take mail --done
""",
    {
        "list": Entry("List jobs, all of them or those that match a filter.", "job:list_jobs"),
        "show": Entry("Show one job with everything known about it, and its history.", "job_show:show"),
        "take": Entry("Lease one job as a worker does, show it, and settle it.", "take:take"),
        "retry": Entry("Make failed, dead and retrying jobs ready now, by ID or filter.", "job:retry"),
        "kill": Entry("Move waiting jobs to the dead jobs, by ID or filter.", "job:kill"),
        "move": Entry("Move waiting jobs to another queue, by ID or filter.", "job:move"),
        "delete": Entry("Delete jobs, by ID or filter.", "job:delete"),
        "cancel": Entry("Remove waiting and leased jobs, by ID or filter.", "job:cancel"),
        "release": Entry("End the leases of workers that are gone, by ID or filter.", "job:release"),
        "replay": Entry("Choose jobs from the lake's history and push them again, each exactly once.", "replay:replay"),
        "tag": Entry("Add tags to a job and print all its tags.", "job:tag"),
        "untag": Entry("Remove tags from a job and print the tags it has left.", "job:untag"),
        "track": Entry("Track jobs: publish their changes on the Redis listener.", "job:track"),
        "untrack": Entry("Stop tracking jobs.", "job:untrack"),
    },
)

_TAG: Final = Noun(
    "List tags.",
    """\b
Examples:
  crossdock tag list
  crossdock tag list --top 10
  crossdock job tag 4711 urgent
""",
    {"list": Entry("List the tags with the number of their jobs.", "job:list_tags")},
)

_FAILURE: Final = Noun(
    "List failed and dead jobs by failure group.",
    """\b
Examples:
  crossdock failure list
  crossdock failure list --top 5
  crossdock job retry --failure Timeout
""",
    {"list": Entry("List failure groups with their number of jobs and the newest of each.", "failure:list_failures")},
)

_QUEUE: Final = Noun(
    "List, show, pause and resume queues.",
    """\b
Examples:
  crossdock queue list
  crossdock queue show mail
  crossdock queue pause mail
""",
    {
        "list": Entry("List the queues with their jobs by state.", "queue:list_queues"),
        "show": Entry("Show one queue with its jobs by state, its rates, waits and run times.", "queue:show"),
        "pause": Entry("Pause queues: pushes are accepted, fetches return nothing.", "queue:pause"),
        "resume": Entry("Resume paused queues.", "queue:resume"),
    },
)

_WORKER: Final = Noun(
    "Run a Python worker, list workers, quiet them, terminate them.",
    """\b
Examples:
  crossdock worker run shop.tasks -q mail:5,default
  crossdock worker list
  crossdock worker quiet --all
  crossdock worker terminate 4qpc2443vpvai
""",
    {
        "run": Entry("Run the tasks of a Python module.", "worker_run:run"),
        "check": Entry("Check the Python workers on this machine, for probes.", "worker_run:check"),
        "list": Entry("List the workers.", "worker:list_workers"),
        "quiet": Entry("Give workers no new jobs.", "worker:quiet"),
        "terminate": Entry("Tell workers to stop.", "worker:terminate"),
    },
)

_SCHEDULE: Final = Noun(
    "List, add and change schedules: cron entries, Resqu plans and qless recurring jobs.",
    """\b
Examples:
  crossdock schedule list
  crossdock schedule add sweep --queue chores --kind app.Sweep --every 5m
  crossdock schedule run sweep
""",
    {
        "list": Entry("List the schedules with their next run.", "schedule:list_schedules"),
        "show": Entry("Show one schedule with its job.", "schedule:show"),
        "add": Entry("Add a schedule.", "schedule:add"),
        "edit": Entry("Change a schedule.", "schedule:edit"),
        "remove": Entry("Remove schedules.", "schedule:remove"),
        "run": Entry("Push the job of a schedule once, now.", "schedule:run"),
    },
)

_BATCH: Final = Noun(
    "List and show batches.",
    """\b
Examples:
  crossdock batch list
  crossdock batch show b-KzJg9lop_mF3Bw
""",
    {
        "list": Entry("List the batches with their progress.", "batch:list_batches"),
        "show": Entry("Show one batch.", "batch:show"),
    },
)

_RATE: Final = Noun(
    "List rate limits.",
    """\b
Examples:
  crossdock rate list
  crossdock rate list --json
""",
    {"list": Entry("List the rate limits with what is left of them.", "rate:list_rates")},
)

_AUDIT: Final = Noun(
    "List what operators changed.",
    """\b
Examples:
  crossdock audit list
  crossdock audit list --limit 10 --json
""",
    {"list": Entry("List the last changes by operators, newest first.", "audit:list_changes")},
)

_LAKE: Final = Noun(
    "The history of every job, in Parquet files by date.",
    """\b
Examples:
  crossdock lake status
  crossdock lake status --data /var/lib/crossdock --json
  crossdock lake erase --payload-contains anna@example.org --dry-run
""",
    {
        "status": Entry("Show the lake's size, its lag behind the journal, and its faults.", "lake:status"),
        "erase": Entry(
            "Erase a person's data from the server's state, its journal, the lake and the tables.", "erase:erase"
        ),
    },
)

_PIPELINE: Final = Noun(
    "Make tables from the lake with Spark.",
    """\b
Examples:
  crossdock pipeline run
  crossdock pipeline stream
  crossdock pipeline status
""",
    {
        "run": Entry("Ingest everything new, update the tables, and stop.", "pipeline:run"),
        "stream": Entry("Ingest files as they are written, until Ctrl-C or SIGTERM.", "pipeline:stream"),
        "rebuild": Entry("Make all tables again from the events in the lakes.", "pipeline:rebuild"),
        "status": Entry("Show the tables, and how far they are behind each lake.", "pipeline_tables:status"),
        "check": Entry("Check that the tables agree with the lakes and with each other.", "pipeline_tables:check"),
        "add": Entry("Add the lake of another server to the tables.", "pipeline_tables:add_lake"),
        "skip": Entry("Leave out a damaged file of a lake.", "pipeline_tables:skip"),
        "register": Entry("Name the tables in a persistent Spark catalog.", "pipeline_tables:register"),
    },
)

_REPORT: Final = Noun(
    "Reports about queues, failures, workers, objectives and cost, from the pipeline's tables.",
    """\b
Examples:
  crossdock report queue
  crossdock report queue mail --days 30
  crossdock report failures --html failures.html
""",
    {
        "queue": Entry("Throughput, outcomes, waits, runs and outlook of all queues or one.", "report:of_queue"),
        "failures": Entry("Deaths, failures and retries, their top causes, and examples.", "report:of_failures"),
        "workers": Entry("Utilisation of workers and the outcomes of their attempts.", "report:of_workers"),
        "slow": Entry("The slowest kinds, the longest runs and waits, and the longest flows.", "report:of_slow"),
        "slo": Entry("Objectives of queues: jobs in time, error budgets and burn rates.", "report:of_slo"),
        "capacity": Entry("Workers that each queue needs in its busiest hour.", "report:of_capacity"),
        "cost": Entry("Cost of each queue's run time, and of its failed attempts.", "report:of_cost"),
        "flaky": Entry("Kinds whose jobs often need several attempts.", "report:of_flaky"),
    },
)

#: In the order of the help.
COMMANDS: Final[dict[str, Entry | Noun]] = {
    "up": Entry("Run the server in the foreground.", "up:up"),
    "demo": Entry("Run a server with example jobs, to look at the dashboard.", "demo:demo"),
    "reload": Entry("Reload the settings file of a running server, as SIGHUP does.", "settings:reload"),
    "doctor": Entry("Show the settings in effect and warn of risks to jobs.", "doctor:doctor"),
    "push": Entry("Push one job and print its jid once it is on disk.", "push:push"),
    "top": Entry("Show live rates, queues and workers.", "top:top"),
    "job": _JOB,
    "queue": _QUEUE,
    "worker": _WORKER,
    "schedule": _SCHEDULE,
    "batch": _BATCH,
    "tag": _TAG,
    "failure": _FAILURE,
    "rate": _RATE,
    "audit": _AUDIT,
    "lake": _LAKE,
    "pipeline": _PIPELINE,
    "report": _REPORT,
    "cert": Entry("Make a certificate for development.", "cert:cert"),
    "password": Entry("Print the argon2id hash of a password, for http.password.", "settings:password"),
    "backup": Entry("Copy the data to DEST, a new folder, and verify the copy.", "data:backup"),
    "restore": Entry("Verify BACKUP, copy it to the data folder, and verify that.", "data:restore"),
    "check": Entry("Verify the journal, the snapshots and the lake of a data folder.", "data:check"),
    "salvage": Entry("Copy what is readable of a damaged data folder and list the losses.", "data:salvage"),
}

#: Other words for a command, which are likely to be typed.
SYNONYMS: Final = {
    "try": "job take",
    "fetch": "job take",
    "unfail": "job retry",
    "tracked": "job list --tracked",
    "cron": "schedule list",
    "plans": "schedule list",
    "recurring": "schedule list",
    "plan": "schedule add",
    "recur": "schedule add",
    "unrecur": "schedule remove",
    "rm": "delete",
    "ls": "list",
    "version": "--version",
}
