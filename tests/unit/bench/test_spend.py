"""The CPU time of a task whose processes may end while it runs."""

import subprocess
import sys

from bench.pipeline.spend import Member, rise, spending


def test_the_time_of_all_members_is_added() -> None:
    before = {1: Member(0, 2.0, 0.0), 2: Member(1, 5.0, 1.0)}
    after = {1: Member(0, 3.0, 0.0), 2: Member(1, 9.0, 1.0), 3: Member(2, 0.5, 0.0)}
    assert rise(before, after) == 5.5


def test_a_reaped_child_is_counted_in_its_parents_time() -> None:
    before = {1: Member(0, 2.0, 0.0), 2: Member(1, 5.0, 0.0)}
    after = {1: Member(0, 2.0, 6.0)}
    assert rise(before, after) == 1.0


def test_the_earlier_time_of_an_unreaped_child_is_not_subtracted() -> None:
    before = {1: Member(0, 2.0, 0.0), 2: Member(1, 5.0, 0.0)}
    after = {1: Member(0, 4.0, 0.0)}
    assert rise(before, after) == 2.0


def test_a_real_child_is_measured_while_running_and_after_its_end() -> None:
    work = "sum(i * i for i in range(3_000_000))"
    with spending() as ended:
        subprocess.run([sys.executable, "-c", work], check=True)
    with subprocess.Popen([sys.executable, "-c", f"{work}; print(flush=True); input()"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()  # its work is done
        with spending() as nothing:
            pass
    assert ended.cpu > 0.05 > nothing.cpu
