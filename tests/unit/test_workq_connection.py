"""The Workq door behind a connection: leases nobody heard of, and a server that stops while somebody waits."""

import time

import pytest

from crossdock.model.states import State
from crossdock.wire.workq.door import WorkqDoor
from tests.support.house import House

RUN = "run 61a444a0-6128-41c0-8078-cc757d3bd2d8 q 60000 60000 4\r\nping"
ADD = "add 61a444a0-6128-41c0-8078-cc757d3bd2d8 q 60000 60000 4\r\npong"


@pytest.fixture
def house() -> House:
    return House(WorkqDoor())


def test_a_lease_nobody_heard_of_is_given_back_to_who_waits(house: House) -> None:
    (first, unheard), (second, heard), (adds, _) = (house.connect() for _ in range(3))
    for each in (first, second):
        house.say(each, "lease q 60000")
    adds.data_received(f"{ADD}\r\n".encode())
    house.loop.run()  # decided for the first, and on its way to the disk
    first.connection_lost(None)
    house.sync()
    assert unheard.heard == b""
    assert heard.heard == b"+OK 1\r\n61a444a0-6128-41c0-8078-cc757d3bd2d8 q 4\r\npong\r\n"
    assert house.look(State.LEASED) == [("q", 1, 0)], "what nobody heard of is no attempt"


class TestAStop:
    def stop(self, house: House, *connections: object) -> None:
        for each in connections:
            each.shut_down(time.monotonic() + 1)  # type: ignore[attr-defined]
        house.sync()

    def test_a_run_whose_job_another_was_given_meanwhile(self, house: House) -> None:
        """It was read behind a wait, so it is carried out; whoever has its job has as much time as the server."""
        runs, told = house.connect()
        works, given = house.connect()
        house.say(runs, "lease other 60000", RUN, "inspect queues 0 10")
        house.say(works, "lease q 60000")
        self.stop(house, runs, works)
        assert told.heard == b"-TIMEOUT\r\n", "what follows would be taken for the answer to run"
        assert given.heard.startswith(b"+OK 1\r\n61a444a0")
        assert told.eof and given.eof

    def test_a_run_whose_job_is_being_worked_on(self, house: House) -> None:
        runs, told = house.connect()
        works, _ = house.connect()
        house.say(runs, RUN, "inspect queues 0 10")
        house.say(works, "lease q 0")
        self.stop(house, runs)
        assert told.heard == b"" and told.eof
        house.say(works, "complete 61a444a0-6128-41c0-8078-cc757d3bd2d8 0", "")
        assert told.heard == b"", "nothing is written behind the end"
