"""Table `flows`: jobs that belong together by needs, groups and callbacks, and the longest way through them.

A flow is a connected part of one graph. Its nodes are jobs and groups; a job comes before those that need it, a member
before its group, a group before its callbacks and before its parent. Both walks over it stop after STEPS steps.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

FLOWS: Final = StructType(
    [
        StructField("date", DateType()),  # of its first job's push
        StructField("number", LongType()),  # of its first job, and so is the next
        StructField("jid", StringType()),
        StructField("groups", ArrayType(StringType())),
        StructField("jobs", LongType()),
        StructField("links", LongType()),
        StructField("depth", LongType()),  # jobs on the longest chain
        StructField("succeeded", LongType()),
        StructField("failed", LongType()),
        StructField("open", LongType()),  # neither, as far as attempts tell
        StructField("pushed_at", TimestampType()),
        StructField("closed_at", TimestampType()),  # of the last attempt so far
        StructField("run_s", DoubleType()),
        StructField("critical_s", DoubleType()),  # run time on the longest way: what no number of workers saves
    ]
)

#: Bound of both walks. A chain of more jobs than this is measured up to here, a job that needs itself too.
STEPS: Final = 64


def flows(links: DataFrame, attempts: DataFrame, earlier: DataFrame) -> DataFrame:
    """`attempts` of the days of these links, and later. Flows that began with links of `earlier` are left out."""
    edges = _edges(links).localCheckpoint()
    jobs = _jobs(links, attempts).localCheckpoint()
    nodes = edges.select(F.col("before").alias("node")).union(edges.select("after")).union(_nodes(links))
    nodes = nodes.distinct().join(jobs, "node", "left").localCheckpoint()
    flow = _parts(nodes.select("node"), edges)
    far = _far(nodes.select("node", F.coalesce("run_s", F.lit(0.0)).alias("cost")), edges)
    names = links.where(F.col("group_name").isNotNull()).select(_group("group_name").alias("node"), "group_name")
    old = _nodes(earlier).join(flow, "node").select("flow").distinct()
    flow = flow.join(old, "flow", "left_anti").localCheckpoint()
    whole = nodes.join(flow, "node").join(far, "node").join(names.distinct(), "node", "left")
    number_of_links = edges.join(flow, F.col("after") == F.col("node")).groupBy("flow").agg(F.count("*").alias("links"))
    grouped = whole.groupBy("flow").agg(
        F.min(F.when(F.col("pushed_at").isNotNull(), F.struct("node", "jid", "date", "pushed_at"))).alias("first"),
        F.array_sort(F.collect_set("group_name")).alias("groups"),
        F.count_if(F.col("node") > 0).alias("jobs"),
        F.max("depth").alias("depth"),
        F.count_if(F.col("end") == "succeeded").alias("succeeded"),
        F.count_if(F.col("end") == "failed").alias("failed"),
        F.max("closed_at").alias("closed_at"),
        F.coalesce(F.sum("run_s"), F.lit(0.0)).alias("run_s"),
        F.max("far").alias("critical_s"),
    )
    counted = grouped.join(number_of_links, "flow", "left").select(
        F.col("first.date").alias("date"),
        F.col("first.node").alias("number"),
        F.col("first.jid").alias("jid"),
        "groups",
        "jobs",
        F.coalesce("links", F.lit(0)).cast("long").alias("links"),
        F.col("depth").cast("long").alias("depth"),
        "succeeded",
        "failed",
        (F.col("jobs") - F.col("succeeded") - F.col("failed")).alias("open"),
        F.col("first.pushed_at").alias("pushed_at"),
        "closed_at",
        "run_s",
        "critical_s",
    )
    return counted.where(F.col("date").isNotNull()).select(*FLOWS.fieldNames())


def _group(name: str) -> Column:
    """A group's node: below all numbers of jobs."""
    return -F.abs(F.xxhash64(name)) - 1


def _nodes(links: DataFrame) -> DataFrame:
    """Those that links are about, not those that they only name."""
    jobs = links.select(F.col("number").alias("node"))
    groups = links.where(F.col("number").isNull()).select(_group("group_name"))
    return jobs.union(groups).where(F.col("node").isNotNull()).distinct()


def _edges(links: DataFrame) -> DataFrame:
    job = F.col("number").isNotNull()
    last = links.where(job & F.col("needs").isNotNull()).groupBy("number").agg(F.max_by("needs", "seq").alias("needs"))
    need = F.col("need")
    needs = last.select("number", F.explode("needs").alias("need")).select(
        F.when(need < 0, F.col("number") + need).otherwise(need).alias("before"), F.col("number").alias("after")
    )
    member = links.where(job & F.col("group_name").isNotNull()).select("number", _group("group_name"))
    called = links.where(job & F.col("callback_of").isNotNull()).select(_group("callback_of"), "number")
    child = links.where(F.col("parent_group").isNotNull()).select(_group("group_name"), _group("parent_group"))
    return needs.union(member).union(called).union(child).distinct()


def _jobs(links: DataFrame, attempts: DataFrame) -> DataFrame:
    """What is known of each job: its push, if it has links of its own, and its attempts."""
    linked = links.where(F.col("number").isNotNull())
    needed = linked.select(F.explode("needs").alias("number"))
    numbers = linked.select("number").union(needed).distinct()
    pushed = linked.groupBy("number").agg(F.min(F.struct("seq", "date", "jid", "at")).alias("push"))
    ran = attempts.join(numbers, "number", "left_semi").groupBy("number").agg(
        F.sum("run_s").alias("run_s"),
        F.max("closed_at").alias("closed_at"),
        F.max(F.struct("seq", "outcome", "state")).alias("last"),
    )  # fmt: skip
    failed = F.col("last.outcome").isin("failed", "lost") & F.col("last.state").isin("failed", "dead", "gone")
    end = F.when(F.col("last.outcome") == "succeeded", "succeeded").when(failed, "failed")
    return numbers.join(pushed, "number", "left").join(ran, "number", "left").select(
        F.col("number").alias("node"),
        F.col("push.date").alias("date"),
        F.col("push.jid").alias("jid"),
        F.col("push.at").alias("pushed_at"),
        "run_s",
        "closed_at",
        end.alias("end"),
    )  # fmt: skip


def _parts(nodes: DataFrame, edges: DataFrame) -> DataFrame:
    """Which flow each node is of: the smallest node it is connected with. Labels double their reach each step."""
    both = edges.union(edges.select("after", "before")).localCheckpoint()
    labels = nodes.select("node", F.col("node").alias("flow")).localCheckpoint()
    for _ in range(STEPS):
        near = both.join(labels, F.col("before") == F.col("node")).groupBy("after").agg(F.min("flow").alias("near"))
        nearer = labels.join(near, F.col("node") == F.col("after"), "left").select(
            "node", "flow", F.least("flow", F.coalesce("near", "flow")).alias("next")
        )
        beyond = nearer.select(F.col("node").alias("next"), F.col("next").alias("beyond"))
        step = nearer.join(beyond, "next").select("node", F.col("flow").alias("was"), F.col("beyond").alias("flow"))
        step = step.localCheckpoint()
        labels = step.select("node", "flow")
        if step.where(F.col("flow") != F.col("was")).isEmpty():
            break
    return labels


def _far(nodes: DataFrame, edges: DataFrame) -> DataFrame:
    """How far each node is from the beginning of its flow, by run time and in jobs, itself included."""
    own = F.when(F.col("node") > 0, 1).otherwise(0)
    far = nodes.select("node", "cost", F.col("cost").alias("far"), own.alias("depth")).localCheckpoint()
    for _ in range(STEPS):
        reach = edges.join(far, F.col("before") == F.col("node")).groupBy("after").agg(
            F.max("far").alias("far_before"), F.max("depth").alias("depth_before")
        )  # fmt: skip
        step = far.join(reach, F.col("node") == F.col("after"), "left").select(
            "node",
            "cost",
            F.col("far").alias("was"),
            F.col("depth").alias("was_deep"),
            (F.col("cost") + F.coalesce("far_before", F.lit(0.0))).alias("far"),
            (own + F.coalesce("depth_before", F.lit(0))).alias("depth"),
        )
        step = step.localCheckpoint()
        far = step.select("node", "cost", "far", "depth")
        if step.where((F.col("far") != F.col("was")) | (F.col("depth") != F.col("was_deep"))).isEmpty():
            break
    return far.select("node", "far", "depth")
