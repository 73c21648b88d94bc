"""Drawings of what waits for what: boxes in columns, from left to right in the order in which they can happen.

A drawing is plain SVG with links, so it needs no script. Its lists are bounded by the requests that fill it.
"""

from collections import defaultdict
from typing import Any, Final

import msgspec

from crossdock.web.pages import links
from crossdock.web.pages.formatting import count, some

#: Pixels of a box, and between boxes.
BOX_W: Final = 176
BOX_H: Final = 44
_GAP_X: Final = 48
_GAP_Y: Final = 12
_EDGE: Final = 2  #: around the drawing, for the outline of a box that has the focus

#: Child batches in a drawing. The page lists more of them.
_CHILDREN: Final = 8


class Box(msgspec.Struct, kw_only=True):
    """One job, batch or callback. A box without a link is a remark, such as "4 more"."""

    label: str
    note: str
    state: str = ""  #: chooses the colour
    href: str = ""
    is_here: bool = False  #: what the page is about
    x: int = 0
    y: int = 0


class Drawing(msgspec.Struct, kw_only=True):
    width: int
    height: int
    boxes: list[Box]
    paths: list[str]  #: `d` of an SVG path


def draw(columns: dict[int, list[str]], boxes: dict[str, Box], edges: list[tuple[str, str]]) -> Drawing:
    """Place the boxes. Columns are centred, so that a single box stands beside the middle of the others."""
    height = max(_height(len(keys)) for keys in columns.values())
    for place, level in enumerate(sorted(columns)):
        top = (height - _height(len(columns[level]))) // 2
        for row, key in enumerate(columns[level]):
            boxes[key].x = _EDGE + place * (BOX_W + _GAP_X)
            boxes[key].y = _EDGE + top + row * (BOX_H + _GAP_Y)
    return Drawing(
        width=len(columns) * (BOX_W + _GAP_X) - _GAP_X + 2 * _EDGE,
        height=height + 2 * _EDGE,
        boxes=[boxes[key] for level in sorted(columns) for key in columns[level]],
        paths=[_path(boxes[start], boxes[end]) for start, end in edges],
    )


def _height(rows: int) -> int:
    return rows * (BOX_H + _GAP_Y) - _GAP_Y


def _path(start: Box, end: Box) -> str:
    x, y = start.x + BOX_W, start.y + BOX_H // 2
    to_x, to_y = end.x, end.y + BOX_H // 2
    bend = _GAP_X // 2
    return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"


def of_job(graph: dict[str, Any]) -> Drawing | None:
    """The jobs of the `graph` verb. None: the job waits for no other, and no other waits for it."""
    if len(graph["jobs"]) == 1:
        return None
    edges = [(str(start), str(end)) for start, end in graph["edges"]]
    levels = _spread({str(job["number"]): job["level"] for job in graph["jobs"]}, edges)
    columns: defaultdict[int, list[str]] = defaultdict(list)
    boxes = {}
    for job in graph["jobs"]:
        key = str(job["number"])
        columns[levels[key]].append(key)
        boxes[key] = Box(
            label=job["kind"],
            note=f"{key}, {job['state'] if job['state'] != 'leased' else 'running'}",
            state=job["state"],
            href=f"/jobs/{key}",
            is_here=job["level"] == 0,
        )
    for level, left in graph["left_out"].items():
        key = f"more {level}"
        columns[int(level)].append(key)
        boxes[key] = Box(label=f"{count(left)} more", note="not drawn")
    return draw(columns, boxes, edges)


def _spread(levels: dict[str, int], edges: list[tuple[str, str]]) -> dict[str, int]:
    """Move jobs outwards until every edge leads to the right. A job may be reached over several ways, and the longest
    one decides. Jobs that wait for each other in a circle are moved a few times and then left."""
    for _ in range(6):
        for start, end in edges:
            if levels[start] >= levels[end]:
                if levels[end] <= 0:
                    levels[start] = levels[end] - 1
                else:
                    levels[end] = levels[start] + 1
    return levels


def of_batch(batch: dict[str, Any], children: list[dict[str, Any]]) -> Drawing:
    """Its jobs and child batches come first, then the batch, then its callbacks and the batch that it is part of."""
    columns: dict[int, list[str]] = {0: ["jobs"], 1: ["batch"]}
    boxes = {"jobs": _jobs(batch), "batch": _batch(batch, is_here=True)}
    edges = [("jobs", "batch")]
    for place, child in enumerate(children[:_CHILDREN]):
        key = f"child {place}"
        columns[0].append(key)
        boxes[key] = _batch(child)
        edges.append((key, "batch"))
    left = len(batch.get("children") or []) - min(len(children), _CHILDREN)
    if left > 0:
        columns[0].append("more")
        boxes["more"] = Box(label=f"{count(left)} more", note="child batches")
    after = []
    for callback in batch.get("callbacks") or []:
        after.append(callback["call"])
        boxes[callback["call"]] = _callback(callback)
    if batch["parent"]:
        after.append("parent")
        boxes["parent"] = Box(
            label=batch["parent"], note="the batch it is part of", href=links.address("batches", batch["parent"])
        )
    if after:
        columns[2] = after
        edges += [("batch", key) for key in after]
    return draw(columns, boxes, edges)


def _jobs(batch: dict[str, Any]) -> Box:
    state = "ready" if batch["pending"] else "complete"
    return Box(label=some(batch["total"], "job"), note=f"{count(batch['pending'])} pending", state=state)


def _batch(batch: dict[str, Any], *, is_here: bool = False) -> Box:
    return Box(
        label=batch["description"] or batch["batch"],
        note=f"batch, {batch['state']}",
        state=batch["state"],
        href=links.address("batches", batch["batch"]),
        is_here=is_here,
    )


#: States of callbacks, by the state of a job that looks the same.
_CALLBACK_STATES: Final = {"waiting": "blocked", "pushed": "ready", "done": "complete"}


def _callback(callback: dict[str, Any]) -> Box:
    """Its job exists between the push and its success. Otherwise the box leads to the queue."""
    is_job = callback["state"] == "pushed"
    return Box(
        label=callback["kind"],
        note=f"on {callback['call']}, {callback['state']}",
        state=_CALLBACK_STATES[callback["state"]],
        href=links.jobs(id=callback["jid"]) if is_job else links.address("queues", callback["queue"]),
    )
