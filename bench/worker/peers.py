"""The libraries to compare: what to install, which server they need, and how their worker is started."""

from typing import Final, Literal

import msgspec

Mode = Literal["asyncio", "threads"]

#: Python that a library needs, if it is newer than the bench's own.
_ANY: Final = (3, 11)


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    program: str  #: module in programs/
    packages: tuple[str, ...]
    service: Literal["redis", "postgres", "crossdock"] = "redis"
    workers: dict[Mode, tuple[str, ...]]  #: the command that starts one worker process; the first word is in its `bin`
    python: tuple[int, int] = _ANY
    has_setup: bool = False  #: its program creates tables
    has_bulk: bool = False
    url_variable: str = ""  #: where its worker looks for the server's address
    share: int = 1  #: a slow library gets this part of the jobs
    note: str = ""


_WORKER: Final = ("python", "-m", "crossdock", "worker", "run", "peer_crossdock:app", "--log-level", "error")

OURS: Final = Peer(
    name="Crossdock",
    program="peer_crossdock",
    packages=(),
    service="crossdock",
    workers={
        "asyncio": (*_WORKER, "--asyncio", "100"),
        "threads": (*_WORKER, "--threads", "10"),
    },
    has_bulk=True,
    note="every job synced to disk before its reply; 100 jobs at a time, or ten threads",
)

PEERS: Final = (
    Peer(
        name="Oban",
        program="peer_oban",
        packages=("oban==0.7.0",),
        service="postgres",
        workers={"asyncio": ("python", "peer_oban.py", "work")},
        python=(3, 12),
        has_setup=True,
        has_bulk=True,
        note="PostgreSQL, every commit synced; 100 jobs at a time",
    ),
    Peer(
        name="taskiq",
        program="peer_taskiq",
        packages=("taskiq==0.13.0", "taskiq-redis==1.2.4"),
        workers={
            "asyncio": ("taskiq", "worker", "--workers", "1", "--log-level", "ERROR", "peer_taskiq:broker"),
            "threads": (
                "taskiq", "worker", "--workers", "1", "--max-threadpool-threads", "10", "--log-level", "ERROR",
                "peer_taskiq:broker",
            ),
        },
        note="Redis lists, without acknowledgements; 100 jobs at a time",
    ),
    Peer(
        name="Huey",
        program="peer_huey",
        packages=("huey==3.5.4", "redis"),
        workers={"threads": ("huey_consumer", "peer_huey.huey", "-w", "10", "-k", "thread", "-q", "-n")},
        note="Redis; a job that is running is lost with its worker",
    ),
    Peer(
        name="Dramatiq",
        program="peer_dramatiq",
        packages=("dramatiq[redis]==2.2.1",),
        workers=dict.fromkeys(
            ("asyncio", "threads"),
            ("dramatiq", "--processes", "1", "--threads", "10", "--skip-logging", "peer_dramatiq"),
        ),
        note="Redis; asyncio: coroutines that ten threads wait for",
    ),
    Peer(
        name="SAQ",
        program="peer_saq",
        packages=("saq[redis]==0.26.4", "typing_extensions"),  # which it imports and does not require
        workers=dict.fromkeys(("asyncio", "threads"), ("saq", "peer_saq.settings", "--quiet")),
        note="Redis; 100 jobs at a time, or its pool of threads",
    ),
    Peer(
        name="Celery",
        program="peer_celery",
        packages=("celery[redis]==5.7.0",),
        workers={
            "threads": (
                "celery", "-A", "peer_celery", "worker", "-P", "threads", "-c", "10", "-l", "ERROR", "--without-gossip",
                "--without-mingle", "--without-heartbeat",
            )
        },
        note="Redis; acknowledged before the task runs",
    ),
    Peer(
        name="RQ",
        program="peer_rq",
        packages=("rq==2.12.0",),
        workers={"threads": ("rq", "worker", "--quiet")},
        url_variable="RQ_REDIS_URL",
        has_bulk=True,
        share=10,
        note="Redis; one job at a time, in a process of its own",
    ),
    Peer(
        name="pyfaktory",
        program="peer_pyfaktory",
        packages=("pyfaktory==0.2.13",),
        service="crossdock",
        workers={"threads": ("python", "peer_pyfaktory.py", "work")},
        has_bulk=True,
        share=10,
        note="the Crossdock server of this run; ten processes",
    ),
)  # fmt: skip
