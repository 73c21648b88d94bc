"""The table of moves: what it allows, and that docs/explain/states.md shows it.

`python -m tests.unit.model.test_states` rewrites the drawn parts of the page.
"""

import re
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from crossdock.model.errors import IllegalMove, UsageError
from crossdock.model.states import MOVES, State, move
from tests.model.coverage import HELD, MOVED, RATED, USED

S = State
PAGE: Final = Path(__file__).parents[3] / "docs" / "explain" / "states.md"

LIVE: Final = (S.SCHEDULED, S.BLOCKED, S.HELD, S.READY, S.LEASED, S.RETRYING)
NOT_GONE: Final = tuple(state for state in State if state is not S.GONE)
PAIRS: Final = list(product(State, State))


def test_every_state_has_a_row_in_the_table() -> None:
    assert set(MOVES) == set(State)


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda state: state.name)
def test_a_move_is_in_the_table_or_an_error(before: State, after: State) -> None:
    if after in MOVES[before]:
        assert move(before, after) is after
    else:
        with pytest.raises(IllegalMove, match=f"from {before!r} to {after!r}") as caught:
            move(before, after)
        assert isinstance(caught.value, UsageError), "recovery takes it for damage"


def test_a_removed_job_cannot_move() -> None:
    assert MOVES[S.GONE] == frozenset()


def test_only_ready_and_held_jobs_can_be_leased() -> None:
    assert [before for before in State if S.LEASED in MOVES[before]] == [S.HELD, S.READY]


def test_only_a_leased_job_is_retried() -> None:
    assert [before for before in State if S.RETRYING in MOVES[before]] == [S.LEASED]


@pytest.mark.parametrize("before", LIVE, ids=lambda state: state.name)
def test_workq_may_end_a_job_in_any_live_state(before: State) -> None:
    assert {S.COMPLETE, S.FAILED} <= MOVES[before]


@pytest.mark.parametrize("before", NOT_GONE, ids=lambda state: state.name)
def test_a_qless_put_takes_a_job_from_any_state(before: State) -> None:
    assert {S.READY, S.SCHEDULED, S.BLOCKED} <= MOVES[before]


@pytest.mark.parametrize("before", NOT_GONE, ids=lambda state: state.name)
def test_any_job_can_be_removed(before: State) -> None:
    assert S.GONE in MOVES[before]


def test_every_move_of_the_engine_is_allowed() -> None:
    for kind, moves in (*USED.items(), *MOVED.items(), *HELD.items(), *RATED.items()):
        for before, after in moves:
            assert before is None or after in MOVES[before], kind


# The page

GROUPS: Final[dict[str, tuple[State, ...]]] = {
    "waiting": (S.SCHEDULED, S.BLOCKED, S.HELD, S.READY),
    "kept": (S.COMPLETE, S.FAILED),
}
_ALONE: Final = [state for state in State if not any(state in members for members in GROUPS.values())]


def draw() -> str:
    """The table as Mermaid text. An arrow from or to a group stands for one from or to each of its members."""
    lines = ["flowchart TD"]
    for group, members in GROUPS.items():
        free = all(set(members) <= MOVES[each] for each in members)
        lines.append(f'    subgraph {group}["{group}{": each may become any other" if free else ""}"]')
        lines += [f"        {state.name.lower()}" for state in members]
        lines.append("    end")
    nodes = {**GROUPS, **{state.name.lower(): (state,) for state in _ALONE}}
    for before, after in product(nodes, nodes):
        pairs = list(product(nodes[before], nodes[after]))
        allowed = [(one, other) for one, other in pairs if other in MOVES[one]]
        if before == after and before in GROUPS:
            assert len(allowed) in (0, len(pairs)), "this drawing has no way to show that"
        elif len(allowed) == len(pairs):
            lines.append(f"    {before} --> {after}")
        else:
            lines += [f"    {one.name.lower()} --> {other.name.lower()}" for one, other in allowed]
    return "\n".join(lines)


def read(drawing: str) -> dict[State, frozenset[State]]:
    """The table that a drawing shows."""
    nodes = {**GROUPS, **{state.name.lower(): (state,) for state in State}}
    moves: dict[State, set[State]] = {state: set() for state in State}
    free = re.findall(r'subgraph (\w+)\["\w+: each may become any other"\]', drawing)
    arrows = [*re.findall(r"(\w+) --> (\w+)", drawing), *((group, group) for group in free)]
    for before, after in arrows:
        for one in nodes[before]:
            moves[one].update(nodes[after])
    return {state: frozenset(after) for state, after in moves.items()}


def used() -> str:
    """The moves that each kind of event makes."""
    lines = ["| event | from | to |", "|---|---|---|"]
    for kind, moves in (*USED.items(), *MOVED.items(), *HELD.items(), *RATED.items()):
        name = str(kind.__struct_config__.tag)
        for before, after in sorted(moves, key=lambda each: (-1 if each[0] is None else each[0], each[1])):
            lines.append(f"| `{name}` | {'(new)' if before is None else before.name.lower()} | {after.name.lower()} |")
    return "\n".join(lines)


def parts() -> dict[str, str]:
    return {"moves": f"```mermaid\n{draw()}\n```", "used": used()}


def replaced(page: str) -> str:
    for name, text in parts().items():
        mark = re.compile(rf"(<!-- drawn: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert len(mark.findall(page)) == 1, f"the page has no place for {name}"
        page = mark.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)  # type: ignore[misc]
    return page


def test_the_drawing_shows_the_table_and_nothing_else() -> None:
    assert read(draw()) == MOVES


def test_the_page_shows_the_drawing() -> None:
    page = PAGE.read_text("utf-8")
    assert page == replaced(page), "python -m tests.unit.model.test_states rewrites it"


def test_the_page_explains_every_state() -> None:
    page = PAGE.read_text("utf-8")
    assert [state.name.lower() for state in State if f"| **{state.name.lower()}** |" not in page] == []


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text("utf-8")), "utf-8")
