"""The walks of tools/walks.py: a request is traced from the connection to its reply."""

from tools.walks import Call, Walk, faktory


def test_a_push_is_traced_from_the_connection_on() -> None:
    walk = next(faktory())
    assert walk.name == "Faktory PUSH"
    assert walk.calls[0].file == "server/connection.py"
    assert "engine/engine.py" in {call.file for call in walk.calls}
    assert 10 < walk.hops < len(walk.calls)


def test_a_hop_is_a_change_of_file() -> None:
    walk = Walk("w", [Call("a.py", "f"), Call("a.py", "g"), Call("b.py", "h"), Call("a.py", "f")])
    assert (len(walk.calls), walk.files, walk.hops) == (4, 2, 2)
