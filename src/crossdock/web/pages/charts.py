"""What the chart component draws: series over the last hour from the server, or over days from the pipeline's tables."""

from typing import Any, Final

from crossdock.web.pages.formatting import moment

#: The text beside the title of a chart of the last hour.
LIVE: Final = "live, last hour"

Chart = dict[str, Any]


def series(unit: str, x: list[float], kind: str = "lines", **lines: list[Any]) -> Chart:
    """A chart whose lines are named by keyword."""
    return {
        "unit": unit,
        "kind": kind,
        "x": x,
        "series": [{"label": label.replace("_", " "), "values": values} for label, values in lines.items()],
    }


def bars(unit: str, labels: list[str], **lines: list[Any]) -> Chart:
    """A chart with a text below each bar."""
    return series(unit, [float(index) for index in range(len(labels))], "bars", **lines) | {"labels": labels}


def hour(rates: dict[str, Any] | None) -> dict[str, Chart]:
    """The charts of the `rates` verb: `flow` and `depth`. Empty for a queue whose rates are not kept."""
    if rates is None or not rates["pushed"]:
        return {}
    end = moment(rates["end"])
    last = end.timestamp() if end is not None else 0.0
    step, points = rates["step_s"], len(rates["pushed"])
    x = [last - step * (points - 1 - index) for index in range(points)]
    flow = {"in": rates["pushed"], "out": rates["processed"], "failed": rates["failed"]}
    return {
        "flow": series("per second", x, **flow),
        "depth": series("jobs", x, waiting=rates["ready"]),
    }
