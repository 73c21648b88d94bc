"""Every setting, once: its name, type, default and what it does. Loading them is settings/loading.py's affair.

A setting has one name, `section.key`: `[section] key` in the TOML file, `CROSSDOCK_SECTION_KEY` in the environment,
`--section-key` as a flag. Secrets have no flag: a command line is readable by everybody on the machine.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta


def _secret(description: str) -> Meta:
    return Meta(description=description, extra={"secret": True})


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data: Annotated[Path, Meta(description="Folder that holds the journal")] = Path("crossdock-data")
    flush: Annotated[
        bool, Meta(description="Allow FLUSH, which deletes everything, while a door listens beyond loopback")
    ] = False
    log: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="What is logged to stderr")] = "info"


class ListenSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    faktory: Annotated[str, Meta(description="Faktory door; port 0 takes one that is free")] = "127.0.0.1:7419"
    workq: Annotated[
        str, Meta(description="Workq door; port 0 takes one that is free. No password, so loopback or unix:PATH only")
    ] = "127.0.0.1:9922"
    masenko: Annotated[
        str, Meta(description="Masenko door; port 0 takes a free one. It has no password: loopback or unix:PATH only")
    ] = "127.0.0.1:12345"
    redis: Annotated[str, Meta(description="Redis door; port 0 takes one that is free")] = "127.0.0.1:7379"
    http: Annotated[str, Meta(description="HTTP door; not built yet, so only off")] = "off"


class JournalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    durability: Annotated[
        Literal["always", "everysec"],
        Meta(description="always: on disk before the reply. everysec: once a second; a power cut loses up to that"),
    ] = "always"
    min_free_mib: Annotated[
        int, Meta(ge=0, description="Refuse new jobs when less is free (or less than a tenth of a small disk)")
    ] = 256


class LakeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on: Annotated[
        bool, Meta(description="Keep every transition of every job as Parquet files, for Spark and others")
    ] = True
    dir: Annotated[
        Path, Meta(description="Folder of these files; a name that is not absolute is one inside the data folder")
    ] = Path("lake")
    payloads: Annotated[
        Literal["full", "hash", "none"],
        Meta(description="What of a payload goes there. A replay needs it in full"),
    ] = "full"
    redact: Annotated[
        str,
        Meta(description="Names of JSON fields, commas between them, whose values never get there: password, token"),
    ] = ""
    errors: Annotated[
        Literal["full", "group"],
        Meta(description="What of an error goes there. group: its type or group, without message and backtrace"),
    ] = "full"
    segment_mib: Annotated[
        int, Meta(ge=1, le=1_024, description="A file is finished when so much of the journal is in it")
    ] = 64
    segment_s: Annotated[
        float, Meta(gt=0, le=86_400, description="Or when its oldest event is there for so many seconds")
    ] = 60.0
    keep_days: Annotated[
        int,
        Meta(
            ge=0,
            description="Days it keeps a date after that date's last event, and attempts and flows with it; 0: all",
        ),
    ] = 0


class FaktorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: Annotated[str, _secret("Clients must know it. Needed to listen beyond loopback")] = ""
    allow_legacy_hash: Annotated[
        bool,
        Meta(description="Accept the one-round password hash of clients below protocol version 2 (PyPI faktory)"),
    ] = True
    line_mib: Annotated[int, Meta(ge=1, le=256, description="Longest request line")] = 16
    handshake_s: Annotated[float, Meta(gt=0, le=60, description="A client must have said HELLO by then")] = 2.0


class WorkqSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lease_ttr: Annotated[
        bool, Meta(description="A lease tells the TTR, as Workq 0.2.0 does (go-workq); false: as before (python-workq)")
    ] = False


class MasenkoSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    heartbeat: Annotated[
        float, Meta(ge=1, le=86_400, description="Seconds a client may be silent; then its tasks are failed")
    ] = 45.0
    line_mib: Annotated[int, Meta(ge=1, le=256, description="Longest request line")] = 16


class RedisSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: Annotated[str, _secret("Clients must send it by AUTH. Needed to listen beyond loopback")] = ""
    databases: Annotated[
        Literal["one", "shared"],
        Meta(description="one: SELECT takes 0 alone. shared: it takes 0 to 15, and all of them are the same store"),
    ] = "one"
    keys_mib: Annotated[
        int, Meta(ge=1, le=2_048, description="Memory for plain keys; what would need more is refused")
    ] = 64
    request_mib: Annotated[int, Meta(ge=1, le=256, description="Longest request, and longest transaction")] = 16
    handshake_s: Annotated[
        float, Meta(gt=0, le=60, description="With a password, a client must have sent it by then")
    ] = 5.0


class QlessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    clock: Annotated[
        Literal["caller", "server"],
        Meta(description="Whose time counts in a qless call: the one it brings, as its protocol says, or the server's"),
    ] = "caller"
    priority: Annotated[
        Literal["larger-first", "smaller-first"],
        Meta(description="Which priority is popped first. All clients mean larger-first, qless' own document smaller"),
    ] = "larger-first"
    histogram: Annotated[
        Literal["coarse", "fine"],
        Meta(description="Buckets of `stats`: 148 as all clients know, or those of qless' own document"),
    ] = "coarse"


class ResquSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fail_retries: Annotated[
        int,
        Meta(ge=0, le=1_000_000, description="How often a Resqu job is tried at all, as Resqu's own server counts"),
    ] = 3
    max_attempts: Annotated[
        int,
        Meta(ge=0, le=1_000_000, description="A Resqu job begun so often ends if its worker dies again; 0: never"),
    ] = 0


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    connections: Annotated[
        int, Meta(ge=1, description="Connections over all doors; one without its handshake does not count yet")
    ] = 10_000
    jobs: Annotated[
        int,
        Meta(
            ge=1,
            description="Jobs held, and records beside them that count; beyond it pushes are refused, the rest goes on",
        ),
    ] = 10_000_000
    reply_buffer_kib: Annotated[
        int, Meta(ge=16, description="Replies a client may leave unread before its requests are not read either")
    ] = 1_024
    request_memory_mib: Annotated[
        int,
        Meta(
            ge=16,
            description="Memory for incomplete requests across all connections. When exceeded, the largest is closed",
        ),
    ] = 256
    reply_memory_mib: Annotated[
        int,
        Meta(ge=16, description="Memory for unsent replies over all connections; when exceeded, the largest is closed"),
    ] = 256


class ThrottleEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[throttles]`, `QUEUE = { concurrency = N, timeout = S }` or `{ worker = N, timeout = S }`."""

    concurrency: Annotated[int, Meta(ge=1)] | None = None
    worker: Annotated[int, Meta(ge=1)] | None = None
    timeout: Annotated[float, Meta(ge=0)] = 0.0


class PoolMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[mapping.static]` and `[mapping.batch]`: which pool a Resqu job, or a batch, goes to; in each
    `SOURCE.NAME = "POOL"`, and `default` for all others, as in the configuration of Resqu's own server."""

    static: dict[str, dict[str, str]] = {}
    batch: dict[str, dict[str, str]] = {}


class CronJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[cron.job]`"""

    type: str
    queue: str = "default"
    args: list[Any] = []
    retry: int | None = None
    reserve_for: int | None = None
    priority: int | None = None
    custom: dict[str, Any] = {}
    unique_for: int | float | None = None  #: as in `custom`, and so are the next two
    unique_until: str | None = None
    expires_in: int | float | None = None


class CronEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[cron]]`, one table an entry."""

    schedule: str
    job: CronJob
    name: str = ""
    timezone: str = "UTC"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    server: ServerSettings = ServerSettings()
    listen: ListenSettings = ListenSettings()
    journal: JournalSettings = JournalSettings()
    lake: LakeSettings = LakeSettings()
    faktory: FaktorySettings = FaktorySettings()
    workq: WorkqSettings = WorkqSettings()
    masenko: MasenkoSettings = MasenkoSettings()
    redis: RedisSettings = RedisSettings()
    qless: QlessSettings = QlessSettings()
    resqu: ResquSettings = ResquSettings()
    limits: LimitSettings = LimitSettings()
    throttles: dict[str, ThrottleEntry] = {}  #: in the file only
    cron: list[CronEntry] = []  #: in the file only
    mapping: PoolMapping = PoolMapping()  #: in the file only
