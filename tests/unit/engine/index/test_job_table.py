"""Jobs by number, across the borders of blocks."""

import pytest

from crossdock.engine.index.job_table import JobTable
from crossdock.model.job import Form, Job
from crossdock.model.policies import Policy
from crossdock.model.states import State


def job(number: int) -> Job:
    return Job(number, "j", "q", "k", "o", b"", Form.NONE, 0, Policy(), State.READY, 0.0, 0.0)


def test_jobs_are_found_by_number_and_walked_in_its_order() -> None:
    jobs = JobTable()
    numbers = [1, 2, 32_767, 32_768, 100_000]
    for number in numbers:
        jobs.add(job(number))
    assert (len(jobs), list(jobs), [each.number for each in jobs.values()]) == (5, numbers, numbers)
    assert jobs[32_768].number == 32_768
    found = jobs.get(100_000)
    assert found is not None and found.number == 100_000
    assert 32_767 in jobs


def test_a_missing_job_is_not_found_and_cannot_be_taken() -> None:
    jobs = JobTable()
    jobs.add(job(7))
    for number in (8, 40_000):
        assert number not in jobs
        assert jobs.get(number) is None
        with pytest.raises(KeyError):
            jobs[number]
        with pytest.raises(KeyError):
            jobs.take(number)
    assert len(jobs) == 1


def test_an_empty_block_is_removed() -> None:
    jobs = JobTable()
    jobs.add(job(7))
    jobs.add(job(70_000))
    jobs.take(7)
    assert list(jobs.blocks) == [70_000 >> 15]
    jobs.take(70_000)
    assert (len(jobs), jobs.blocks) == (0, {})
