"""Connected parts of a graph, in few rounds however long its chains are."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def components(nodes: DataFrame, edges: DataFrame) -> DataFrame:
    """Of each `node` the smallest one it is connected with, `part`. Edges are from `before` to `after`, or back.

    Each part moves to the smallest of its neighbours, and on to where that one moves, until it stands still. What moved
    to the same place is one part from then on. At least every second part moves, or does so in the next round.
    """
    known = nodes.select("node", F.col("node").alias("part"))
    while True:
        edges = edges.select("before", "after").where("before != after").distinct().localCheckpoint(eager=False)
        if not edges.count():
            return known
        moves = _moves(edges)
        known = _moved(known, "part", moves).localCheckpoint(eager=False)
        edges = _moved(_moved(edges, "before", moves), "after", moves)


def _moves(edges: DataFrame) -> DataFrame:
    both = edges.union(edges.select("after", "before"))
    moves = both.groupBy(F.col("before").alias("from")).agg(F.min("after").alias("to"))
    moves = moves.select("from", F.least("from", "to").alias("to"))
    while True:
        onwards = moves.select(F.col("from").alias("to"), F.col("to").alias("then"))
        on = F.col("then") != F.col("to")
        step = moves.join(onwards, "to").select("from", F.col("then").alias("to"), on.alias("on"))
        step = step.localCheckpoint(eager=False)
        moves = step.drop("on")
        if not step.where("on").count():
            return moves


def _moved(rows: DataFrame, column: str, moves: DataFrame) -> DataFrame:
    moves = moves.select(F.col("from").alias(column), "to")
    return rows.join(moves, column, "left").withColumn(column, F.coalesce("to", column)).select(*rows.columns)
