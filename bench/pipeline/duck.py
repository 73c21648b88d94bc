"""The whole work of the pipeline with DuckDB: from the lake's files to all tables, as Parquet.

It has the same row-level table, rollups and views. The queries of the views are those of the pipeline, which run in
both engines. It has no commits, no ledger and no checks.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb

from crossdock.pipeline.views.queries import QUERIES

_ATTEMPTS: Final = """
    select date '1970-01-01' + floor("at" / 86400)::int as date, server, seq, flush_epoch, jid, number, attempt, queue,
        kind, origin as protocol_in, lease_via as protocol_out, via as settled_by, worker,
        make_timestamp((pushed_at * 1e6)::bigint) as pushed_at, make_timestamp((leased_at * 1e6)::bigint) as leased_at,
        make_timestamp(("at" * 1e6)::bigint) as closed_at, outcome, state, wait_s, run_s,
        case when event = 'succeeded' then "at" - pushed_at end as total_s, beats, lost, error_group, error_message
    from events where outcome is not null
"""

_ROLLUPS: Final = {
    "counts_hour": """
        select date '1970-01-01' + (slot // 24)::int as date, server, make_timestamp(slot * 3600000000) as hour,
            flush_epoch, queue, to_queue, protocol, event, state, over, n, first_at, last_at
        from (
            select server, floor("at" / 3600)::bigint as slot, flush_epoch, queue, to_queue, origin as protocol, event,
                state, coalesce("over", false) as over, count(*) as n, min("at") as first_at, max("at") as last_at
            from events group by all
        )
    """,
    "counts_day": """
        select date '1970-01-01' + floor("at" / 86400)::int as date, server, flush_epoch, queue, kind,
            origin as protocol, event, state, outcome, coalesce(lost, false) as lost,
            coalesce(attempt > 1, false) as again, coalesce("over", false) as over,
            case when event = 'failed' then coalesce(error_group, '') end as error_group, count(*) as n,
            coalesce(sum(run_s) filter (outcome is not null), 0) as run_s
        from events where number is not null and event not in ('leased', 'renewed', 'readied', 'scheduled')
        group by all
    """,
    "hist_day": """
        with booked as (
            select booked_day as day, server, flush_epoch, booked_queue as queue, kind,
                case when booked_wait then 'wait' when booked_run then 'run' else 'count' end as what,
                case when booked_wait then wait_s when booked_run then run_s end as value,
                booked_failures, booked_failed, booked_retries
            from events where booked_day is not null
            union all
            select floor("at" / 86400)::bigint, server, flush_epoch, queue, kind, 'total', "at" - pushed_at, null, null,
                null
            from events where event = 'succeeded' and pushed_at is not null
        ), bucketed as (
            select *, floor(value) as whole,
                case when value > 0 then ceil(ln(value) / ln(1.04))::int else -10000 end as log
            from booked
        )
        select date '1970-01-01' + day::int as date, server, flush_epoch, queue, kind, what,
            case when what = 'total' or value is null then null when whole < 60 then whole
                when whole < 3600 then 59 + floor(whole / 60)
                when whole < 86400 then 115 + floor(whole / 900)
                when whole < 259200 then 187 + floor(whole / 3600)
                else 256 + floor(whole / 86400) end::int as fine,
            log, count(value) as n, avg(value) as mean, var_pop(value) * count(value) as m2, max(value) as max,
            coalesce(sum(booked_failures), 0) as failures, coalesce(sum(booked_failed), 0) as failed,
            coalesce(sum(booked_retries), 0) as retries
        from bucketed group by all
    """,
    "failures_day": """
        select date '1970-01-01' + floor("at" / 86400)::int as date, server, queue, kind,
            coalesce(error_group, '') as error_group,
            left(regexp_replace(left(coalesce(error_message, ''), 500), '[0-9]+', 'N', 'g'), 200) as cause,
            count(*) as n, count(*) filter (state in ('complete', 'failed', 'dead', 'gone')) as deaths,
            min("at") as first_at, max("at") as last_at, min(seq) as seq, arg_min(jid, seq) as jid,
            arg_min(error_message, seq) as message
        from events where event = 'failed' group by all
    """,
    "work": """
        with spread as (
            select server, worker, lease_via as protocol, outcome, leased_at, "at",
                unnest(generate_series(least(floor(leased_at / 3600), floor("at" / 3600))::bigint,
                    floor("at" / 3600)::bigint)) as slot
            from events where outcome is not null
        )
        select date '1970-01-01' + (slot // 24)::int as date, server, make_timestamp(slot * 3600000000) as hour, worker,
            protocol, outcome,
            sum(greatest(least("at", slot * 3600 + 3600) - greatest(leased_at, slot * 3600), 0)) as busy_s,
            count(*) filter (slot = floor("at" / 3600)) as n
        from spread group by all
    """,
}

_HOW: Final = "(format parquet, compression zstd, partition_by (date), overwrite_or_ignore)"


def whole(files: Sequence[str], out: Path, threads: int) -> dict[str, int]:
    """Write all tables. Returns the number of rows of each."""
    con = duckdb.connect()
    con.execute(f"set threads = {threads}")
    con.execute("create macro to_timestamp_micros(x) as make_timestamp(x)")
    named = "[" + ", ".join(f"'{file}'" for file in files) + "]"
    con.execute(f"create view events as select * from read_parquet({named}, hive_partitioning = false)")
    rows = {"attempts": _write(con, _ATTEMPTS, out / "attempts")}
    for name, query in _ROLLUPS.items():
        rows[name] = _write(con, query, out / name)
        con.execute(f"create view {name} as select * from read_parquet('{out / name}/**/*.parquet')")
    for schema, (query, _) in QUERIES.items():
        text = query.format(dates="true", price="cast(null as double)")
        rows[schema.name] = _write(con, text, out / schema.name)
    return rows


def _write(con: duckdb.DuckDBPyConnection, query: str, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    found = con.execute(f"copy ({query}) to '{folder}' {_HOW}").fetchone()
    return int(found[0]) if found else 0
