"""Connected parts of a graph. Few edges are joined by the driver: a round of Spark takes longer than a hundred thousand
of them, and hardly an increment has more. Many take few rounds, however long their chains are."""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

FEW: Final = 100_000

_MOVES: Final = pa.schema([pa.field("from", pa.int64()), pa.field("to", pa.int64())])


def components(nodes: DataFrame, edges: DataFrame) -> DataFrame:
    """Of each `node` the smallest one it is connected with, `part`. Edges are from `before` to `after`, or back."""
    known = nodes.select("node", F.col("node").alias("part"))
    few = edges.select("before", "after").limit(FEW + 1).toArrow()
    if few.num_rows > FEW:
        return _in_rounds(known, edges)
    ends = joined(zip(few["before"].to_pylist(), few["after"].to_pylist(), strict=True))
    moves = pa.table([list(ends), list(ends.values())], _MOVES)
    return _moved(known, "part", nodes.sparkSession.createDataFrame(moves))


def joined(edges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Of each node that has an edge the smallest one it is connected with."""
    above: dict[int, int] = {}

    def top(node: int) -> int:
        while (higher := above.setdefault(node, node)) != node:
            above[node] = node = above[higher]  # half as far, the next time
        return node

    for before, after in edges:
        one, other = top(before), top(after)
        above[max(one, other)] = min(one, other)
    return {node: top(node) for node in list(above)}


def _in_rounds(known: DataFrame, edges: DataFrame) -> DataFrame:
    """Each part moves to the smallest of its neighbours, and on to where that one moves, until it stands still. What
    moved to the same place is one part from then on. At least every second part moves, or does so in the next round."""
    while True:
        edges = edges.select("before", "after").where("before != after").distinct().localCheckpoint()
        if not edges.head(1):
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
        step = moves.join(onwards, "to").select(
            "from", F.col("then").alias("to"), (F.col("then") != F.col("to")).alias("on")
        )
        step = step.localCheckpoint()
        moves = step.drop("on")
        if not step.where("on").head(1):
            return moves


def _moved(rows: DataFrame, column: str, moves: DataFrame) -> DataFrame:
    moves = moves.select(F.col("from").alias(column), "to")
    return rows.join(moves, column, "left").withColumn(column, F.coalesce("to", column)).select(*rows.columns)
