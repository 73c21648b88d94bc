"""Celery on Redis: messages are acknowledged before the task runs, results are off, as in its guide for speed."""

from celery import Celery
from common import URL, Tally, main

app = Celery("bench", broker=URL)
app.conf.task_ignore_result = True
app.conf.broker_connection_retry_on_startup = True
tally = Tally()


@app.task
def noop() -> None:
    tally.job()


@app.task
def stamp(pushed_ns: int) -> None:
    tally.started(pushed_ns)


if __name__ == "__main__":
    # The module of a task is part of its name, and a worker imports this one by its name.
    import peer_celery as named

    main(named.noop.delay, named.stamp.delay)
