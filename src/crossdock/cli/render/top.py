"""The screen of `crossdock top`: the server's figures, the longest queues, the workers."""

from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from crossdock.cli.render.tables import age, clean, number, size, some

#: Lines that are not rows: the head, two headings with a blank line before each.
_OTHER_LINES = 12
_SLOW_SYNC_MS = 50.0
_USUAL = frozenset({"ready", "scheduled", "leased", "retrying", "dead"})


class Seen(NamedTuple):
    """Replies of the server, all from about the same time."""

    status: dict[str, Any]
    queues: list[dict[str, Any]]  #: longest first
    workers: list[dict[str, Any]]


def view(seen: Seen, height: int | None) -> RenderableType:
    """`height` in lines; None: unlimited."""
    room = None if height is None else max(2, height - _OTHER_LINES)
    few = None if room is None else max(1, room - min(len(seen.workers), room // 3))
    rest = None if room is None or few is None else max(1, room - min(len(seen.queues), few))
    return Group(_head(seen), Text(), _queues(seen.queues, few), Text(), _workers(seen.workers, rest))


def _head(seen: Seen) -> RenderableType:
    status = seen.status
    rates, sync = status["rates"], status["sync"]
    listeners = ", ".join(f"{protocol} {where}" for protocol, where in status["listeners"].items())
    oldest = max((queue["oldest_s"] or 0.0 for queue in seen.queues), default=0.0)
    slow = sync["p99_ms"] is not None and sync["p99_ms"] >= _SLOW_SYNC_MS
    lines = [
        _line(
            ("Crossdock", "bold"),
            f" {status['version']}  up {age(status['uptime_s'])}  {clean(listeners)}  "
            f"{some(status['connections'], 'connection')}  {number(status['memory_mib'])} MiB",
        ),
        _line("jobs    ", ("  ".join(_states(status["states"])), "bold")),
        _line(
            "rates   ",
            ("".join(f"{name} {rates[name]:,.1f}/s  " for name in ("pushed", "leased", "processed")), "bold"),
            (f"failed {rates['failed']:,.1f}/s", "bold red" if rates["failed"] else "bold"),
        ),
        _line("totals  ", f"processed {number(status['processed'])}  failed {number(status['failures'])}"),
        _line(
            "disk    ",
            (f"sync p50 {_ms(sync['p50_ms'])} p99 {_ms(sync['p99_ms'])}", "bold red" if slow else "bold"),
            f"  {number(status['entries_written'])} entries  tail {size(status['tail_bytes'])}  "
            f"free {size(status['disk_free_bytes'])}",
        ),
        _line("oldest  ", (age(oldest), "bold"), " waiting"),
    ]
    if status["refusing"]:
        lines.append(_line((f"new jobs are refused: {status['refusing']}", "bold red")))
    return Group(*lines)


def _states(counts: dict[str, int]) -> list[str]:
    """The usual states, and others while a job is in them."""
    return [f"{state} {number(count)}" for state, count in counts.items() if count or state in _USUAL]


def _line(*parts: str | tuple[str, str]) -> Text:
    """A line cut at the terminal's width: a wrapped line would push the last row off the screen."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} ms"


def _table(*heads: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        figures = head.startswith(">")
        table.add_column(head.removeprefix(">"), justify="right" if figures else "left", no_wrap=True)
    return table


def _queues(queues: list[dict[str, Any]], rows: int | None) -> Table:
    table = _table("QUEUE", ">READY", ">OLDEST", "")
    for queue in queues[:rows]:
        table.add_row(
            Text(clean(queue["queue"])),
            number(queue["ready"]),
            age(queue["oldest_s"]),
            Text("paused", "yellow") if queue["paused"] else "",
        )
    return table


def _workers(workers: list[dict[str, Any]], rows: int | None) -> Table:
    table = _table("WORKER", "HOST", ">PID", "STATE", ">LEASES", ">BEAT", ">MEMORY")
    for worker in workers[:rows]:
        table.add_row(
            Text(clean(worker["worker"])),
            Text(clean(worker["hostname"])),
            str(worker["pid"]),
            Text(worker["state"], "" if worker["state"] == "running" else "yellow"),
            number(worker["leases"]),
            age(worker["beat_s"]),
            size(worker["rss_kib"] * 1_024) if worker["rss_kib"] else "-",
        )
    return table
