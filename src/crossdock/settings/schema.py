"""Every setting: name, type, default and description. `settings/loading.py` loads them.

A setting has one name, `section.key`. It is `[section] key` in the TOML file, `CROSSDOCK_SECTION_KEY` in the
environment and `--section-key` as a flag. Secrets have no flag, because all users can read command lines.
"""

import re
import socket
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from crossdock.model import rate_text


def _secret(description: str) -> Meta:
    return Meta(description=description, extra={"secret": True})


#: Characters that a server's name cannot have.
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")
_NAME_CHARS: Final = 64


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data: Annotated[Path, Meta(description="Data folder, which holds the journal")] = Path("crossdock-data")
    flush: Annotated[
        bool, Meta(description="Allow FLUSH, which deletes all data, while a listener is reachable beyond loopback")
    ] = False
    log: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="Lowest level that is logged to stderr. debug: each command, too"),
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="text: a sentence and key=value fields per line. json: one JSON object per line"),
    ] = "text"
    name: Annotated[
        str,
        Meta(
            pattern=r"\A[A-Za-z0-9._-]{0,64}\Z",
            description="Name of this server in the lake, distinct within a fleet. Empty: the host name",
            extra={"allowed": "up to 64 letters, digits, `.`, `_` and `-`"},
        ),
    ] = ""

    otlp_endpoint: Annotated[
        str,
        Meta(
            pattern=r"\A(https?://[^\s]+)?\Z",
            description="OTLP/HTTP endpoint for traces of jobs that carry a trace context, for example "
            "http://127.0.0.1:4318. Empty: no traces. Needs the extra `otel`",
            extra={"allowed": "empty, or a URL with http or https"},
        ),
    ] = ""

    @property
    def name_or_host(self) -> str:
        """The name in effect: `name`, or the host name with other characters replaced."""
        return self.name or _NOT_IN_NAME.sub("-", socket.gethostname())[:_NAME_CHARS] or "localhost"


class ListenSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    faktory: Annotated[str, Meta(description="Faktory listener. Port 0 chooses a free port")] = "127.0.0.1:7419"
    workq: Annotated[
        str,
        Meta(description="Workq listener, without a password: loopback, unix:PATH, or tls: with tls.client_ca"),
    ] = "127.0.0.1:9922"
    masenko: Annotated[
        str,
        Meta(description="Masenko listener, without a password: loopback, unix:PATH, or tls: with tls.client_ca"),
    ] = "127.0.0.1:12345"
    redis: Annotated[str, Meta(description="Redis listener, for qless and Resqu too. Port 0 chooses a free port")] = (
        "127.0.0.1:7379"
    )
    http: Annotated[str, Meta(description="HTTP listener, for the dashboard, the API and metrics")] = "127.0.0.1:7420"


class JournalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    durability: Annotated[
        Literal["always", "everysec"],
        Meta(description="always: sync before each reply. everysec: sync once a second, which a power cut can lose"),
    ] = "always"
    min_free_mib: Annotated[
        int,
        Meta(ge=0, description="Refuse new jobs when less disk space is free, or less than a tenth of a small disk"),
    ] = 256


class LakeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on: Annotated[bool, Meta(description="Write every state change of every job to Parquet files")] = True
    dir: Annotated[
        str,
        Meta(
            description="Folder of the lake, relative to the data folder, or URL of an object store (s3://, gs://, az://)"
        ),
    ] = "lake"
    payloads: Annotated[
        Literal["full", "hash", "none"],
        Meta(description="How payloads are stored. `crossdock job replay` needs full"),
    ] = "full"
    redact: Annotated[
        str,
        Meta(description="Comma-separated JSON fields to redact, for example password,token"),
    ] = ""
    errors: Annotated[
        Literal["full", "group"],
        Meta(description="How errors are stored. group: the error type only, without message and backtrace"),
    ] = "full"
    segment_mib: Annotated[int, Meta(ge=1, le=1_024, description="Close a segment after this many MiB of journal")] = 64
    segment_s: Annotated[
        float, Meta(gt=0, le=86_400, description="Close a segment when its oldest event is this many seconds old")
    ] = 60.0
    keep_days: Annotated[
        int,
        Meta(
            ge=0,
            description="Delete a date this many days after its last event, with its attempts and flows; 0: never",
        ),
    ] = 0
    group: Annotated[
        str,
        Meta(
            pattern=r"\A[A-Za-z0-9._-]{0,64}\Z",
            description="System group that may read the lake (folders get mode 0750). Empty: only the server's user",
            extra={"allowed": "empty, or the name or number of a group"},
        ),
    ] = ""


class PipelineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keep_hourly_days: Annotated[
        int, Meta(ge=0, description="Delete hourly figures after this many days; 0: never. Daily figures are kept")
    ] = 365
    flow_links: Annotated[
        int,
        Meta(
            ge=0,
            description="Largest number of connected links that are computed at once for the table `flows`; a million "
            "take about 1 GB of memory. 0: no flows",
        ),
    ] = 5_000_000
    price_per_worker_hour: Annotated[
        float, Meta(ge=0, le=1_000_000, description="Price of an hour of a worker's time, for the cost of each queue")
    ] = 0.0
    currency: Annotated[
        str,
        Meta(
            pattern=r"\A[^\x00-\x1f\x7f]{0,16}\Z",
            description="Currency of that price, as reports show it, for example EUR",
            extra={"allowed": "up to 16 characters"},
        ),
    ] = ""


class FaktorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: Annotated[str, _secret("Password that clients must prove. Required to listen beyond loopback")] = ""
    allow_legacy_hash: Annotated[
        bool,
        Meta(description="Accept the one-round password hash of protocol version 1 clients (PyPI faktory)"),
    ] = True
    line_mib: Annotated[int, Meta(ge=1, le=256, description="Longest request line")] = 16
    handshake_s: Annotated[float, Meta(gt=0, le=60, description="Time limit for HELLO")] = 2.0
    once_s: Annotated[
        float,
        Meta(ge=1, le=604_800, description="Time for which the jid of a push with `once` is remembered"),
    ] = 3_600.0
    once_max: Annotated[
        int,
        Meta(ge=1, le=100_000_000, description="Number of these jids. Above it, the oldest are forgotten"),
    ] = 1_000_000


class WorkqSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lease_ttr: Annotated[
        bool,
        Meta(
            description="Include the TTR in replies to lease: true for go-workq (Workq 0.2.0), false for python-workq"
        ),
    ] = False


class MasenkoSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    heartbeat: Annotated[
        float,
        Meta(ge=1, le=86_400, description="Close a connection after this many seconds of silence; its tasks fail"),
    ] = 45.0
    line_mib: Annotated[int, Meta(ge=1, le=256, description="Longest request line")] = 16


class RedisSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: Annotated[str, _secret("Password for AUTH. Required to listen beyond loopback")] = ""
    databases: Annotated[
        Literal["one", "shared"],
        Meta(description="one: SELECT accepts 0 only. shared: SELECT accepts 0 to 15, and all are the same store"),
    ] = "one"
    keys_mib: Annotated[
        int, Meta(ge=1, le=2_048, description="Memory for plain keys. Writes that need more are refused")
    ] = 64
    request_mib: Annotated[int, Meta(ge=1, le=256, description="Longest request, and longest transaction")] = 16
    handshake_s: Annotated[float, Meta(gt=0, le=60, description="Time limit for AUTH, if a password is set")] = 5.0


class HttpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: Annotated[
        str,
        _secret(
            "Password of the dashboard, or its argon2id hash (`crossdock password`). Required to listen beyond loopback"
        ),
    ] = ""
    token_file: Annotated[
        str,
        Meta(description="File with one token for programs per line, readable by its owner only. Empty: no tokens"),
    ] = ""
    hosts: Annotated[
        str,
        Meta(description="Comma-separated host names under which browsers may open the dashboard, besides the address"),
    ] = ""


class TlsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cert: Annotated[
        str, Meta(description="Certificate chain (PEM) of the listeners whose address begins with tls:")
    ] = ""
    key: Annotated[
        str, Meta(description="Private key of that certificate (PEM), readable by the server's user only")
    ] = ""
    client_ca: Annotated[
        str,
        Meta(
            description="Authorities (PEM) that sign the certificates of clients, which must then show one. "
            "HTTP has its sign-in instead. Empty: clients need no certificate"
        ),
    ] = ""
    allow_plaintext: Annotated[
        bool, Meta(description="Listen beyond loopback without TLS, for a proxy or a tunnel that adds it")
    ] = False


class QlessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    clock: Annotated[
        Literal["caller", "server"],
        Meta(
            description="Clock of qless calls: the time that each call carries, as the protocol says, or the server's"
        ),
    ] = "caller"
    priority: Annotated[
        Literal["larger-first", "smaller-first"],
        Meta(description="Priority that is popped first. Clients expect larger-first; the qless document says smaller"),
    ] = "larger-first"
    histogram: Annotated[
        Literal["coarse", "fine"],
        Meta(
            description="Buckets of `stats`. coarse: the 148 that all clients expect. fine: those of the qless document"
        ),
    ] = "coarse"


class ResquSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fail_retries: Annotated[
        int,
        Meta(ge=0, le=1_000_000, description="Number of attempts of a Resqu job, counted as the Resqu server does"),
    ] = 3
    max_attempts: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Fail a Resqu job when its worker dies in this attempt or a later one; 0: never",
        ),
    ] = 0


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    connections: Annotated[
        int, Meta(ge=1, description="Connections over all listeners, without those still in their handshake")
    ] = 10_000
    jobs: Annotated[
        int,
        Meta(
            ge=1,
            description="Jobs and other records held in memory. Above it, pushes are refused; all else works",
        ),
    ] = 10_000_000
    reply_buffer_kib: Annotated[
        int, Meta(ge=16, description="Unread replies per connection. Above it, the connection's requests are not read")
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
        Meta(
            ge=16, description="Memory for unsent replies across all connections. When exceeded, the largest is closed"
        ),
    ] = 256


class ThrottleEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[throttles]`, `QUEUE = { concurrency = N, timeout = S }` or `{ worker = N, timeout = S }`."""

    concurrency: Annotated[int, Meta(ge=1)] | None = None
    worker: Annotated[int, Meta(ge=1)] | None = None
    timeout: Annotated[float, Meta(ge=0)] = 0.0


class RateEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[rate.NAME]`: how many jobs of a queue or of a kind may start in a time, as text: `10/m`."""

    rate: str
    queue: str | None = None
    kind: str | None = None

    def __post_init__(self) -> None:
        try:
            rate_text.parse(self.rate)
        except ValueError as error:
            raise ValueError(f"rate = {error}") from error


class PoolMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[mapping.static]` and `[mapping.batch]`: the pool of a Resqu job or batch.

    Each holds `SOURCE.NAME = "POOL"`, with `default` for all others, as in the configuration of the Resqu server."""

    static: dict[str, dict[str, str]] = {}
    batch: dict[str, dict[str, str]] = {}


_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", re.ASCII)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_LONGEST_S: Final = 366 * 86_400.0


def seconds(duration: str) -> float:
    """The seconds of a duration such as `30s`. Raises ValueError."""
    found = _DURATION.fullmatch(duration)
    length = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0 < length <= _LONGEST_S:
        raise ValueError(
            f"{duration!r} is not a duration; write a number and its unit (ms, s, m, h or d), for example 30s, 5m or 2h"
        )
    return length


class SloEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[slo.QUEUE]`: the service level objective of a queue. Durations are text: `30s`, `5m`, `2h`."""

    done_within: str  #: from push to success
    ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.99  #: the share of jobs that must succeed within that time
    start_within: str | None = None  #: the target wait, from ready to leased

    def __post_init__(self) -> None:
        for key in ("done_within", "start_within"):
            given = getattr(self, key)
            if given is not None:
                try:
                    seconds(given)
                except ValueError as error:
                    raise ValueError(f"{key} = {error}") from error
        if self.start_within_s is not None and self.start_within_s > self.done_within_s:
            raise ValueError(f"start_within = {self.start_within!r} is longer than done_within = {self.done_within!r}")

    @property
    def done_within_s(self) -> float:
        return seconds(self.done_within)

    @property
    def start_within_s(self) -> float | None:
        return None if self.start_within is None else seconds(self.start_within)


class CronJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[cron.job]`"""

    type: str
    queue: str = "default"
    args: list[Any] = []
    retry: int | None = None
    reserve_for: int | None = None
    priority: int | None = None
    custom: dict[str, Any] = {}
    unique_for: int | float | None = None  #: this and the next two as in `custom`
    unique_until: str | None = None
    expires_in: int | float | None = None


class CronEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[cron]]`, one table per entry."""

    schedule: str
    job: CronJob
    name: str = ""
    timezone: str = "UTC"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    server: ServerSettings = ServerSettings()
    listen: ListenSettings = ListenSettings()
    journal: JournalSettings = JournalSettings()
    lake: LakeSettings = LakeSettings()
    pipeline: PipelineSettings = PipelineSettings()
    faktory: FaktorySettings = FaktorySettings()
    workq: WorkqSettings = WorkqSettings()
    masenko: MasenkoSettings = MasenkoSettings()
    redis: RedisSettings = RedisSettings()
    http: HttpSettings = HttpSettings()
    tls: TlsSettings = TlsSettings()
    qless: QlessSettings = QlessSettings()
    resqu: ResquSettings = ResquSettings()
    limits: LimitSettings = LimitSettings()
    throttles: dict[str, ThrottleEntry] = {}  #: in the file only
    rate: dict[str, RateEntry] = {}  #: by name; in the file only
    cron: list[CronEntry] = []  #: in the file only
    mapping: PoolMapping = PoolMapping()  #: in the file only
    slo: dict[str, SloEntry] = {}  #: by queue; in the file only
