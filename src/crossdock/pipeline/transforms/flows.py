"""Table `flows`: jobs that belong together by needs, groups and callbacks, and the longest way through them.

A flow is a connected part of one graph. Its nodes are jobs and groups; a job comes before those that need it, a member
before its group, a group before its callbacks and before its parent. The longest way is looked for STEPS jobs far.
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

#: Bound of the walk. A chain of more jobs than this is measured up to here, a circle goes round.
STEPS: Final = 64


def flows(links: DataFrame, attempts: DataFrame, parts: DataFrame) -> DataFrame:
    """Of all links of these flows, of all attempts of their jobs, and of their nodes, each with the `part` it is in."""
    # Kept as they are made, by whatever asks for them first: each job of its own would cost more than its work.
    named = links.where(_is_job() & F.col("needs").isNotNull()).groupBy("number").agg(F.max("seq").alias("named"))
    last = F.when(F.col("seq") == F.col("named"), F.col("needs"))
    edges = ties(links.join(named, "number", "left").withColumn("needs", last)).localCheckpoint(eager=False)
    nodes = parts.join(_jobs(links, attempts), "node", "left").localCheckpoint(eager=False)
    walked = _walk(nodes.select("node", F.coalesce("run_s", F.lit(0.0)).alias("cost")), edges)
    names = links.where(F.col("group_name").isNotNull()).select(_group("group_name").alias("node"), "group_name")
    whole = nodes.join(walked, "node").join(names.distinct(), "node", "left")
    number_of_links = edges.groupBy(F.col("after").alias("node")).agg(F.count("*").alias("links"))
    whole = whole.join(number_of_links, "node", "left")
    grouped = whole.groupBy("part").agg(
        F.min(F.when(F.col("pushed_at").isNotNull(), F.struct("node", "jid", "date", "pushed_at"))).alias("first"),
        F.array_sort(F.collect_set("group_name")).alias("groups"),
        F.count_if(F.col("node") > 0).alias("jobs"),
        F.max("depth").alias("depth"),
        F.count_if(F.col("end") == "succeeded").alias("succeeded"),
        F.count_if(F.col("end") == "failed").alias("failed"),
        F.max("closed_at").alias("closed_at"),
        F.coalesce(F.sum("run_s"), F.lit(0.0)).alias("run_s"),
        F.max("far").alias("critical_s"),
        F.coalesce(F.sum("links"), F.lit(0)).alias("links"),
    )
    counted = grouped.select(
        F.col("first.date").alias("date"),
        F.col("first.node").alias("number"),
        F.col("first.jid").alias("jid"),
        "groups",
        "jobs",
        "links",
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


def _is_job() -> Column:
    return F.col("number").isNotNull()


def about_node() -> Column:
    """What a link is about: its job, or its group."""
    return F.when(_is_job(), F.col("number")).otherwise(_group("group_name"))


def mentioned(links: DataFrame) -> DataFrame:
    """Every `node` that a link is about, or names, and the `date` of that link."""
    nodes = F.flatten(F.transform(_edges(), lambda each: F.array(each["before"], each["after"])))
    return links.select("date", F.explode(F.array_union(F.array(about_node()), nodes)).alias("node"))


def ties(links: DataFrame) -> DataFrame:
    """All edges of these links. Of all there ever were, a job whose need was taken back stays in its flow."""
    edges = links.select(F.explode(_edges()).alias("edge")).select("edge.*").distinct()
    return edges.where(F.col("before") != F.col("after"))  # who needs itself waits for good


def _edges() -> Column:
    """From a node to the one that comes after it. A need below 0 counts from the job that has it."""
    number, group = F.col("number"), _group("group_name")
    needs = F.transform(
        F.coalesce("needs", F.array().cast("array<bigint>")),
        lambda need: _edge(F.when(need < 0, number + need).otherwise(need), number),
    )
    others = (
        F.when(_is_job() & F.col("group_name").isNotNull(), _edge(number, group)),
        F.when(_is_job() & F.col("callback_of").isNotNull(), _edge(_group("callback_of"), number)),
        F.when(F.col("parent_group").isNotNull(), _edge(group, _group("parent_group"))),
    )
    return F.concat(needs, F.array_compact(F.array(*others)))


def _edge(before: Column, after: Column) -> Column:
    return F.struct(before.alias("before"), after.alias("after"))


def _jobs(links: DataFrame, attempts: DataFrame) -> DataFrame:
    """What is known of each job: its push, if it has links of its own, and its attempts."""
    linked = links.where(_is_job())
    numbers = mentioned(links).select(F.col("node").alias("number")).where("number > 0").distinct()
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


def _walk(nodes: DataFrame, edges: DataFrame) -> DataFrame:
    """How far each node is from where its flow begins, by run time and in jobs, itself included. Each step every node
    hears what those before it know."""
    own = F.when(F.col("node") > 0, 1).otherwise(0)
    known = nodes.select("node", "cost", F.col("cost").alias("far"), own.alias("depth"))
    for _ in range(STEPS):
        heard = edges.join(known, F.col("before") == F.col("node")).groupBy("after").agg(
            F.max("far").alias("heard_far"), F.max("depth").alias("heard_depth")
        )  # fmt: skip
        far = F.col("cost") + F.coalesce("heard_far", F.lit(0.0))
        depth = own + F.coalesce("heard_depth", F.lit(0))
        step = known.join(heard, F.col("node") == F.col("after"), "left").select(
            "node",
            "cost",
            far.alias("far"),
            depth.alias("depth"),
            ((far != F.col("far")) | (depth != F.col("depth"))).alias("moved"),
        )
        step = step.localCheckpoint(eager=False)
        known = step.drop("moved")
        if not step.where("moved").count():
            break
    return known.select("node", "far", "depth")
