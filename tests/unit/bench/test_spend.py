"""The processor time of a piece of work, where processes end in the middle of it."""

import subprocess
import sys

from bench.pipeline.spend import Member, rise, spending


def test_what_all_members_spent_is_added_up() -> None:
    before = {1: Member(0, 2.0, 0.0), 2: Member(1, 5.0, 1.0)}
    after = {1: Member(0, 3.0, 0.0), 2: Member(1, 9.0, 1.0), 3: Member(2, 0.5, 0.0)}
    assert rise(before, after) == 5.5


def test_a_child_that_was_waited_for_is_in_its_parents_time() -> None:
    before = {1: Member(0, 2.0, 0.0), 2: Member(1, 5.0, 0.0)}
    after = {1: Member(0, 2.0, 6.0)}
    assert rise(before, after) == 1.0


def test_what_a_child_had_spent_that_nobody_waited_for_is_not_taken_off() -> None:
    before = {1: Member(0, 2.0, 0.0), 2: Member(1, 5.0, 0.0)}
    after = {1: Member(0, 4.0, 0.0)}
    assert rise(before, after) == 2.0


def test_a_real_child_is_seen_running_and_ended() -> None:
    work = "sum(i * i for i in range(3_000_000))"
    with spending() as ended:
        subprocess.run([sys.executable, "-c", work], check=True)
    with subprocess.Popen([sys.executable, "-c", f"{work}; print(flush=True); input()"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()  # its work is done
        with spending() as nothing:
            pass
    assert ended.cpu > 0.05 > nothing.cpu
