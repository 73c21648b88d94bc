"""Crossdock's own client and worker, with its defaults."""

from common import IS_ASYNC, URL, Tally, main

from crossdock import App

app = App(URL)
tally = Tally()

if IS_ASYNC:

    @app.task(name="noop")
    async def noop() -> None:
        tally.job()

    @app.task(name="stamp")
    async def stamp(pushed_ns: int) -> None:
        tally.started(pushed_ns)

else:

    @app.task(name="noop")
    def noop() -> None:
        tally.job()

    @app.task(name="stamp")
    def stamp(pushed_ns: int) -> None:
        tally.started(pushed_ns)


if __name__ == "__main__":
    main(noop.push, stamp.push, lambda count: noop.push_many([()] * count))
