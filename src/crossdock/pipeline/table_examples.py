"""One question per table, answered in SQL, with Polars and with PySpark. docs/reference/tables.md shows them.

The SQL runs unchanged in deltalake's engine (DataFusion), DuckDB and Spark. The tests run every example in every engine
and compare the answers.
"""

from typing import Final, NamedTuple


class Example(NamedTuple):
    question: str
    sql: str
    polars: str  #: `scan(name)` is a LazyFrame
    pyspark: str  #: tables are views of the session


EXAMPLES: Final = {
    "attempts": Example(
        "Which runs took longest?",
        """
SELECT date, queue, jid, run_s FROM attempts
WHERE outcome = 'succeeded' ORDER BY run_s DESC, jid LIMIT 10
""",
        """
scan("attempts").filter(pl.col("outcome") == "succeeded").select("date", "queue", "jid", "run_s").sort(
    "run_s", "jid", descending=[True, False]
).head(10)
""",
        """
spark.table("attempts").where("outcome = 'succeeded'").select("date", "queue", "jid", "run_s").orderBy(
    F.desc("run_s"), "jid"
).limit(10)
""",
    ),
    "links": Example(
        "How many jobs has each batch?",
        """
SELECT group_name, count(DISTINCT number) AS jobs FROM links
WHERE group_name IS NOT NULL AND number IS NOT NULL GROUP BY group_name ORDER BY group_name
""",
        """
scan("links").drop_nulls(["group_name", "number"]).group_by("group_name").agg(
    pl.col("number").n_unique().alias("jobs")
).sort("group_name")
""",
        """
spark.table("links").dropna(subset=["group_name", "number"]).groupBy("group_name").agg(
    F.count_distinct("number").alias("jobs")
).orderBy("group_name")
""",
    ),
    "counts_hour": Example(
        "How many jobs were pushed in each hour, by protocol?",
        """
SELECT hour, protocol, sum(n) AS pushes FROM counts_hour
WHERE event = 'pushed' GROUP BY hour, protocol ORDER BY hour, protocol
""",
        """
scan("counts_hour").filter(pl.col("event") == "pushed").group_by("hour", "protocol").agg(
    pl.col("n").sum().alias("pushes")
).sort("hour", "protocol")
""",
        """
spark.table("counts_hour").where("event = 'pushed'").groupBy("hour", "protocol").agg(
    F.sum("n").alias("pushes")
).orderBy("hour", "protocol")
""",
    ),
    "counts_day": Example(
        "How did attempts end, and how long did they run?",
        """
SELECT queue, outcome, sum(n) AS attempts, sum(run_s) AS seconds FROM counts_day
WHERE outcome IS NOT NULL GROUP BY queue, outcome ORDER BY queue, outcome
""",
        """
scan("counts_day").drop_nulls("outcome").group_by("queue", "outcome").agg(
    pl.col("n").sum().alias("attempts"), pl.col("run_s").sum().alias("seconds")
).sort("queue", "outcome")
""",
        """
spark.table("counts_day").dropna(subset=["outcome"]).groupBy("queue", "outcome").agg(
    F.sum("n").alias("attempts"), F.sum("run_s").alias("seconds")
).orderBy("queue", "outcome")
""",
    ),
    "hist_day": Example(
        "How long did jobs of each queue wait on average?",
        """
SELECT queue, sum(n) AS waits, sum(n * mean) / sum(n) AS mean_s FROM hist_day
WHERE what = 'wait' GROUP BY queue ORDER BY queue
""",
        """
scan("hist_day").filter(pl.col("what") == "wait").group_by("queue").agg(
    pl.col("n").sum().alias("waits"), ((pl.col("n") * pl.col("mean")).sum() / pl.col("n").sum()).alias("mean_s")
).sort("queue")
""",
        """
spark.table("hist_day").where("what = 'wait'").groupBy("queue").agg(
    F.sum("n").alias("waits"), (F.sum(F.col("n") * F.col("mean")) / F.sum("n")).alias("mean_s")
).orderBy("queue")
""",
    ),
    "failures_day": Example(
        "Which causes kill most jobs?",
        """
SELECT cause, sum(deaths) AS dead, sum(n) AS failures FROM failures_day
GROUP BY cause ORDER BY dead DESC, cause LIMIT 10
""",
        """
scan("failures_day").group_by("cause").agg(
    pl.col("deaths").sum().alias("dead"), pl.col("n").sum().alias("failures")
).sort("dead", "cause", descending=[True, False]).head(10)
""",
        """
spark.table("failures_day").groupBy("cause").agg(F.sum("deaths").alias("dead"), F.sum("n").alias("failures")).orderBy(
    F.desc("dead"), "cause"
).limit(10)
""",
    ),
    "work": Example(
        "How many hours did each worker work?",
        """
SELECT worker, sum(busy_s) / 3600 AS hours FROM work
GROUP BY worker ORDER BY hours DESC, worker
""",
        """
scan("work").group_by("worker").agg((pl.col("busy_s").sum() / 3600).alias("hours")).sort(
    "hours", "worker", descending=[True, False]
)
""",
        """
spark.table("work").groupBy("worker").agg((F.sum("busy_s") / 3600).alias("hours")).orderBy(F.desc("hours"), "worker")
""",
    ),
    "hourly": Example(
        "How did the queue `mail` go, hour by hour?",
        """
SELECT hour, sum(arrived) AS arrivals, sum(departed) AS departures, sum(died) AS deaths FROM hourly
WHERE queue = 'mail' GROUP BY hour ORDER BY hour
""",
        """
scan("hourly").filter(pl.col("queue") == "mail").group_by("hour").agg(
    pl.col("arrived").sum().alias("arrivals"),
    pl.col("departed").sum().alias("departures"),
    pl.col("died").sum().alias("deaths"),
).sort("hour")
""",
        """
spark.table("hourly").where("queue = 'mail'").groupBy("hour").agg(
    F.sum("arrived").alias("arrivals"), F.sum("departed").alias("departures"), F.sum("died").alias("deaths")
).orderBy("hour")
""",
    ),
    "depths": Example(
        "How many jobs were left in each queue at the end of each day?",
        """
SELECT date, queue, sum(depth) AS jobs FROM depths
GROUP BY date, queue ORDER BY date, queue
""",
        """
scan("depths").group_by("date", "queue").agg(pl.col("depth").sum().alias("jobs")).sort("date", "queue")
""",
        """
spark.table("depths").groupBy("date", "queue").agg(F.sum("depth").alias("jobs")).orderBy("date", "queue")
""",
    ),
    "forecast": Example(
        "When did which queue grow?",
        """
SELECT hour, queue, depth, arrival_rate - service_rate AS growth FROM forecast
WHERE arrival_rate > service_rate ORDER BY hour, queue
""",
        """
scan("forecast").filter(pl.col("arrival_rate") > pl.col("service_rate")).select(
    "hour", "queue", "depth", (pl.col("arrival_rate") - pl.col("service_rate")).alias("growth")
).sort("hour", "queue")
""",
        """
spark.table("forecast").where("arrival_rate > service_rate").select(
    "hour", "queue", "depth", (F.col("arrival_rate") - F.col("service_rate")).alias("growth")
).orderBy("hour", "queue")
""",
    ),
    "daily": Example(
        "How many jobs of each queue succeeded, day by day?",
        """
SELECT date, queue, sum(succeeded) AS done, sum(died) AS dead, max(run_p95) AS slowest_p95 FROM daily
GROUP BY date, queue ORDER BY date, queue
""",
        """
scan("daily").group_by("date", "queue").agg(
    pl.col("succeeded").sum().alias("done"),
    pl.col("died").sum().alias("dead"),
    pl.col("run_p95").max().alias("slowest_p95"),
).sort("date", "queue")
""",
        """
spark.table("daily").groupBy("date", "queue").agg(
    F.sum("succeeded").alias("done"), F.sum("died").alias("dead"), F.max("run_p95").alias("slowest_p95")
).orderBy("date", "queue")
""",
    ),
    "histogram": Example(
        "What is the 95th percentile of all waits? Percentiles of days cannot be added; counts in buckets can.",
        """
WITH buckets AS (SELECT log, sum(n) AS n FROM histogram WHERE what = 'wait' GROUP BY log),
ranked AS (SELECT log, sum(n) OVER (ORDER BY log) AS upto, sum(n) OVER () AS whole FROM buckets)
SELECT min(CASE WHEN log = -10000 THEN 0.0 ELSE power(1.04, log) * 2 / 2.04 END) AS p95
FROM ranked WHERE upto >= ceil(0.95 * whole)
""",
        """
scan("histogram").filter(pl.col("what") == "wait").group_by("log").agg(pl.col("n").sum()).sort("log").filter(
    pl.col("n").cum_sum() >= (0.95 * pl.col("n").sum()).ceil()
).select(
    pl.when(pl.col("log").min() == -10000).then(0.0).otherwise(1.04 ** pl.col("log").min() * 2 / 2.04).alias("p95")
)
""",
        """
buckets = spark.table("histogram").where("what = 'wait'").groupBy("log").agg(F.sum("n").alias("n"))
upto, whole = F.sum("n").over(Window.orderBy("log")), F.sum("n").over(Window.partitionBy())
value = F.when(F.col("log") == -10000, 0.0).otherwise(F.pow(F.lit(1.04), "log") * 2 / 2.04)
buckets.withColumns({"upto": upto, "whole": whole}).where("upto >= ceil(0.95 * whole)").agg(F.min(value).alias("p95"))
""",
    ),
    "failures": Example(
        "What fails most, and since when?",
        """
SELECT queue, cause, sum(n) AS failed, sum(deaths) AS dead, min(first) AS since FROM failures
GROUP BY queue, cause ORDER BY failed DESC, queue, cause LIMIT 10
""",
        """
scan("failures").group_by("queue", "cause").agg(
    pl.col("n").sum().alias("failed"), pl.col("deaths").sum().alias("dead"), pl.col("first").min().alias("since")
).sort("failed", "queue", "cause", descending=[True, False, False]).head(10)
""",
        """
spark.table("failures").groupBy("queue", "cause").agg(
    F.sum("n").alias("failed"), F.sum("deaths").alias("dead"), F.min("first").alias("since")
).orderBy(F.desc("failed"), "queue", "cause").limit(10)
""",
    ),
    "workers": Example(
        "How busy was each worker in the hours in which it had work?",
        """
SELECT worker, sum(busy_s) / (3600 * count(DISTINCT hour)) AS busy, sum(spent) AS failed FROM workers
GROUP BY worker ORDER BY busy DESC, worker
""",
        """
scan("workers").group_by("worker").agg(
    (pl.col("busy_s").sum() / (3600 * pl.col("hour").n_unique())).alias("busy"), pl.col("spent").sum().alias("failed")
).sort("busy", "worker", descending=[True, False])
""",
        """
spark.table("workers").groupBy("worker").agg(
    (F.sum("busy_s") / (3600 * F.count_distinct("hour"))).alias("busy"), F.sum("spent").alias("failed")
).orderBy(F.desc("busy"), "worker")
""",
    ),
    "slo": Example(
        "On which days was an objective missed?",
        """
SELECT date, queue, ratio, target, burn_rate FROM slo
WHERE ratio < target ORDER BY date, queue
""",
        """
scan("slo").filter(pl.col("ratio") < pl.col("target")).select("date", "queue", "ratio", "target", "burn_rate").sort(
    "date", "queue"
)
""",
        """
spark.table("slo").where("ratio < target").select("date", "queue", "ratio", "target", "burn_rate").orderBy(
    "date", "queue"
)
""",
    ),
    "capacity": Example(
        "How many workers did each queue need on its busiest day?",
        """
SELECT queue, max(workers_needed) AS needed, max(load) AS highest_load FROM capacity
GROUP BY queue ORDER BY queue
""",
        """
scan("capacity").group_by("queue").agg(
    pl.col("workers_needed").max().alias("needed"), pl.col("load").max().alias("highest_load")
).sort("queue")
""",
        """
spark.table("capacity").groupBy("queue").agg(
    F.max("workers_needed").alias("needed"), F.max("load").alias("highest_load")
).orderBy("queue")
""",
    ),
    "flows": Example(
        "Which flows have the longest critical path?",
        """
SELECT name, jobs, critical_s FROM flows ORDER BY critical_s DESC, name LIMIT 10
""",
        """
scan("flows").select("name", "jobs", "critical_s").sort("critical_s", "name", descending=[True, False]).head(10)
""",
        """
spark.table("flows").select("name", "jobs", "critical_s").orderBy(F.desc("critical_s"), "name").limit(10)
""",
    ),
}
