"""The screen of `crossdock top`: the server's figures, the longest queues, the workers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from crossdock.cli.render.tables import age, clean, number, rate, size, some

#: Lines that are neither head nor rows: two headings with a blank line before each, and two counts of further rows.
_OTHER_LINES = 6
_SLOW_SYNC_MS = 50.0
_USUAL = frozenset({"ready", "scheduled", "leased", "retrying", "dead"})


class Seen(NamedTuple):
    """Replies of the server, all from about the same time."""

    status: dict[str, Any]
    queues: list[dict[str, Any]]  #: longest first
    workers: list[dict[str, Any]]


def view(seen: Seen, height: int | None, width: int) -> RenderableType:
    """`height` in lines; None: unlimited."""
    head = _head(seen, width)
    room = None if height is None else max(2, height - len(head) - _OTHER_LINES)
    few = None if room is None else max(1, room - min(len(seen.workers), room // 3))
    rest = None if room is None or few is None else max(1, room - min(len(seen.queues), few))
    return Group(
        *head,
        Text(),
        _queues(seen.queues, few),
        *_more(max(len(seen.queues), seen.status["queues"]), len(seen.queues[:few]), "queue"),
        Text(),
        _workers(seen.workers, rest),
        *_more(max(len(seen.workers), seen.status["workers"]), len(seen.workers[:rest]), "worker"),
    )


def _more(total: int, shown: int, thing: str) -> list[Text]:
    return [_line((f"and {some(total - shown, f'more {thing}')}", "dim"))] if total > shown else []


def _head(seen: Seen, width: int) -> list[Text]:
    status = seen.status
    rates, sync = status["rates"], status["sync"]
    oldest = max((queue["oldest_s"] or 0.0 for queue in seen.queues), default=0.0)
    slow = sync["p99_ms"] is not None and sync["p99_ms"] >= _SLOW_SYNC_MS
    lines = [
        _line(
            ("Crossdock", "bold"),
            f" {status['version']}  up {age(status['uptime_s'])}  {some(status['connections'], 'connection')}  "
            f"{number(status['memory_mib'])} MiB",
        ),
        *_packed("listen", [f"{name} {clean(where)}" for name, where in status["listeners"].items()], width),
        *_packed("jobs", [(text, "bold") for text in _states(status["states"])], width),
        *_packed(
            "rates",
            [
                *((f"{name} {rates[name]:,.1f}/s", "bold") for name in ("pushed", "leased", "processed")),
                (f"failed {rates['failed']:,.1f}/s", "bold red" if rates["failed"] else "bold"),
            ],
            width,
        ),
        _line("totals  ", f"processed {number(status['processed'])}  failed {number(status['failures'])}"),
        *_packed(
            "disk",
            [
                (f"sync p50 {_ms(sync['p50_ms'])} p99 {_ms(sync['p99_ms'])}", "bold red" if slow else "bold"),
                f"{number(status['entries_written'])} entries",
                f"tail {size(status['tail_bytes'])}",
                f"free {size(status['disk_free_bytes'])}",
            ],
            width,
        ),
        _line("oldest  ", (age(oldest), "bold"), " waiting"),
    ]
    if status["refusing"]:
        lines.append(_line((f"new jobs are refused: {status['refusing']}", "bold red")))
    return lines


def _packed(label: str, parts: Sequence[str | tuple[str, str]], width: int) -> list[Text]:
    """Parts of a line under a label. Parts that do not fit go to further lines, so that none is cut off."""
    lines: list[Text] = []
    for part in parts:
        shown = part if isinstance(part, str) else part[0]
        if lines and lines[-1].cell_len + 2 + len(shown) <= width:
            lines[-1].append("  ")
        else:
            lines.append(_line("" if lines else f"{label:8}"))
            lines[-1].pad_right(8 - lines[-1].cell_len)
        lines[-1].append(shown, None if isinstance(part, str) else part[1])
    return lines


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
    table = _table("QUEUE", ">READY", ">OLDEST", ">IN", ">OUT", ">FAILED", "")
    for queue in queues[:rows]:
        table.add_row(
            Text(clean(queue["queue"])),
            number(queue["ready"]),
            age(queue["oldest_s"]),
            *_rates(queue["rates"]),
            Text("paused", "yellow") if queue["paused"] else "",
        )
    return table


def _rates(rates: dict[str, float] | None) -> list[Text]:
    """Jobs pushed, processed and failed. A queue that is not among the busiest has no rates."""
    if rates is None:
        return [Text("-")] * 3
    failed = Text(rate(rates["failed"]), "red" if rates["failed"] else "")
    return [Text(rate(rates["pushed"])), Text(rate(rates["processed"])), failed]


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
