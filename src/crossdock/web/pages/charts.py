"""Charts of the live state: the last hour of rates, and distributions."""

from typing import Any

from crossdock.web.chart_specs import Chart, labelled, series
from crossdock.web.pages.formatting import moment, span


def hour(rates: dict[str, Any] | None) -> dict[str, Chart]:
    """The charts of the `rates` verb: `flow` and `depth`. Empty for a queue whose rates are not kept."""
    if rates is None or not rates["pushed"]:
        return {}
    end = moment(rates["end"])
    last = end.timestamp() if end is not None else 0.0
    step, points = rates["step_s"], len(rates["pushed"])
    x = [last - step * (points - 1 - index) for index in range(points)]
    names = {"in": "pushed", "out": "processed", "failed": "failed"}
    flow = {label: [count / step for count in rates[name]] for label, name in names.items()}
    whole = {"span_s": 600}  # the axis is at least this long while the hour fills
    return {
        "flow": series("per second", x, flow) | whole,
        "depth": series("jobs", x, {"waiting": rates["ready"]}) | whole,
    }


def histogram(distribution: dict[str, Any], label: str) -> Chart:
    """Counts between the bounds of a cumulative distribution, whose bounds are seconds."""
    bounds, counts = distribution["bounds"], distribution["counts"]
    labels = [f"≤ {span(bound)}" for bound in bounds] + ["more"]
    between = [count - before for before, count in zip([0, *counts], counts, strict=False)]
    first = next((index for index, count in enumerate(between) if count), 0)
    last = max((index for index, count in enumerate(between) if count), default=-1)
    return labelled("times", labels[first : last + 1], {label: between[first : last + 1]})
