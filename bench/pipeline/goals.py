"""What was asked of the pipeline, and what became of it."""

from typing import Final

from bench.pipeline.size import Size
from bench.table import Goal

_STATS: Final = "one-pass statistics"
_SCAN: Final = "scan of the same columns, Spark"
_STREAM: Final = "a batch of the stream: all facts"
_BATCH: Final = "one batch: all facts, all days but one"
_MORE: Final = "run: all tables, one more day"
_REBUILT: Final = "rebuild: all tables, all days"


def goals(small: Size | None, large: Size) -> list[Goal]:
    pace = large.of[_STREAM] / large.spent[_STREAM].wall / 1e3
    one_day = large.ratio(f"{_STATS} of one day, Spark", f"{_STATS}, Spark")
    found = [
        Goal("one-pass statistics, CPU of DuckDB's", _of_duck(large, _STATS), "most", 6.0, 4.0),
        Goal("one-pass statistics, CPU of a scan's", large.ratio(f"{_STATS}, Spark", _SCAN), "most", 3.5, 2.5),
        Goal("attempts, CPU of DuckDB's", _of_duck(large, "attempts"), "most", 4.5, 2.5),
        Goal("attempts by joins, CPU of DuckDB's", _of_duck(large, "attempts by joins"), "most", 4.5, 3.0),
        Goal("one day's statistics, CPU of all days'", one_day, "most", 0.15, 0.09),
        Goal("run of one more day, CPU of a rebuild's", large.ratio(_MORE, _REBUILT), "most", 1.0),
        Goal("stream, k events/s", pace, "least", 80, 200, "{:.0f}"),
    ]
    if _BATCH in large.spent:
        each = large.each(_STREAM) / large.each(_BATCH)
        found.append(Goal("stream, CPU of an event, of a batch's", each, "most", float("inf"), 2.0))
    found += _read(large) + _exact(large)
    return found if small is None else found + _growth(small, large)


def _of_duck(size: Size, stage: str) -> float:
    return size.ratio(f"{stage}, Spark", f"{stage}, DuckDB")


def _read(size: Size) -> list[Goal]:
    read = size.read
    return [
        Goal("reader, Arrow of tuples, rows/s", read["arrow"] / read["tuples"], "least", 3.0, 5.0),
        Goal("reader, Arrow of Spark's own, rows/s", read["arrow"] / read["native"], "least", 0.25, 0.4),
    ]


def _exact(size: Size) -> list[Goal]:
    apart = size.apart
    assert apart is not None
    return [
        Goal("pages whose count is wrong", apart.wrong, "most", 1, 0, "{:.0f}"),
        Goal("mean, apart by", apart.mean, "most", 1e-9, None, "{:.1e}"),
        Goal("variance, apart by", apart.variance, "most", 1e-9, None, "{:.1e}"),
        Goal("percentiles, apart by", apart.percentile, "most", 0.02, None, "{:.4f}"),
    ]


def _growth(small: Size, large: Size) -> list[Goal]:
    times = large.events / small.events
    stages = (f"{_STATS}, Spark", "attempts, Spark", "attempts by joins, Spark", _REBUILT)
    return [
        Goal(
            f"{times:.1f}x events, CPU of {stage}",
            large.spent[stage].cpu / small.spent[stage].cpu,
            "most",
            4.2 * times / 4,
            3.5 * times / 4,
        )
        for stage in stages
    ]
