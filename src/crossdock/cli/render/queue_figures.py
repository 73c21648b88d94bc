"""Figures of a queue that the server measures: requests that wait on it, rates, waits and run times."""

from typing import Any

from crossdock.cli.render.tables import age, lasting, rate, some


def asked(askers: int, asked_s: float | None) -> str:
    """Whether workers ask for jobs of the queue."""
    if askers:
        return f"{some(askers, 'request')} {'waits' if askers == 1 else 'wait'} for a job"
    if asked_s is None:
        return "no worker has asked for a job since the server started"
    return f"no request waits for a job; a worker last asked {age(asked_s)} ago"


def rates(found: dict[str, float] | None) -> str:
    """Only the busiest queues have rates, after their first ten seconds."""
    if found is None:
        return "-"
    return ", ".join(f"{name} {rate(found[name])}" for name in ("pushed", "leased", "processed", "failed"))


def in_and_out(found: dict[str, float] | None) -> tuple[str, str]:
    """The rates of jobs pushed and processed."""
    return ("-", "-") if found is None else (rate(found["pushed"]), rate(found["processed"]))


def quantiles(found: dict[str, Any]) -> str:
    if not found["count"]:
        return "-"
    shown = ", ".join(f"{name} {lasting(found[f'{name}_s'])}" for name in ("p50", "p95", "p99"))
    return f"{shown}, of {some(found['count'], 'job')}"
