"""Drawings: the columns of boxes, the lines between them, and links."""

from typing import Any

from crossdock.web.pages.graphs import BOX_W, Drawing, of_batch, of_job


def job(number: int, level: int, state: str = "blocked") -> dict[str, Any]:
    return {"number": number, "jid": f"j{number}", "queue": "q", "kind": f"k{number}", "state": state, "level": level}


def graph(jobs: list[dict[str, Any]], *edges: tuple[int, int], **left_out: int) -> dict[str, Any]:
    return {"jobs": jobs, "edges": list(edges), "left_out": left_out}


def places(drawing: Drawing | None) -> dict[str, int]:
    assert drawing is not None
    return {box.label: box.x for box in drawing.boxes}


def test_a_job_without_relations_has_no_drawing() -> None:
    assert of_job(graph([job(1, 0)])) is None


def test_every_line_leads_to_the_right_and_the_longest_way_decides() -> None:
    jobs = [job(3, 0), job(1, -1, "ready"), job(2, -1), job(4, 1)]
    found = places(of_job(graph(jobs, (1, 3), (2, 3), (1, 2), (3, 4))))
    assert found["k1"] < found["k2"] < found["k3"] < found["k4"]


def test_jobs_in_a_circle_are_drawn() -> None:
    drawing = of_job(graph([job(1, 0), job(2, 1)], (1, 2), (2, 1)))
    assert drawing is not None and len(drawing.boxes) == len(drawing.paths) == 2


def test_boxes_do_not_overlap_and_fit_in_the_drawing() -> None:
    drawing = of_job(graph([job(1, 0), *(job(number, 1) for number in range(2, 9))], (1, 2)))
    assert drawing is not None
    assert len({(box.x, box.y) for box in drawing.boxes}) == 8
    assert max(box.x for box in drawing.boxes) + BOX_W <= drawing.width


def test_links_that_are_not_drawn_are_counted_in_their_column() -> None:
    found = graph([job(1, 0), job(2, 1)], (1, 2)) | {"left_out": {"1": 40}}
    drawing = of_job(found)
    assert drawing is not None
    more = next(box for box in drawing.boxes if box.label == "40 more")
    assert (more.href, more.x) == ("", places(drawing)["k2"])


def batch(name: str, **more: Any) -> dict[str, Any]:
    return {"batch": name, "description": "", "parent": None, "state": "running", "total": 3, "pending": 1} | more


def test_a_batch_stands_between_its_jobs_and_its_callbacks() -> None:
    waiting = {"call": "complete", "state": "waiting", "jid": "c1", "queue": "back/end", "kind": "Tidy"}
    pushed = {"call": "success", "state": "pushed", "jid": "c2", "queue": "back", "kind": "Mail"}
    whole = batch("b-1", parent="b-0", children=["b-2"], callbacks=[waiting, pushed])
    drawing = of_batch(whole, [batch("b-2")])
    found = places(drawing)
    assert found["3 jobs"] == found["b-2"] < found["b-1"] < found["Tidy"] == found["Mail"] == found["b-0"]
    hrefs = {box.label: box.href for box in drawing.boxes}
    assert hrefs["Tidy"] == "/queue?name=back%2Fend"
    assert hrefs["Mail"] == "/jobs?filter=id%3Ac2"
    assert len(drawing.paths) == 5


def test_a_resqu_batch_has_no_callbacks() -> None:
    assert [box.label for box in of_batch(batch("r"), []).boxes] == ["3 jobs", "r"]
