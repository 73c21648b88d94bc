"""The demo's clients that push jobs: a shop that uses all five protocols. A few jobs a second."""

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from random import Random
from typing import Any, Final

import msgspec

from crossdock.cli.demo.clients import Connect, Threads
from crossdock.client.base import Closes
from crossdock.client.jobs import NewJob

#: Seconds between two pushes, on average.
_PUSH_S: Final = 0.35
#: Jobs of queues without a worker and of paused queues, after which no more are pushed.
_IDLE_JOBS: Final = 40
_FIRST_NAMES: Final = ("Ada", "Grace", "Edsger", "Barbara", "Alan", "Radia", "Tony", "Frances")


class Shop(Closes):
    """One client of each protocol."""

    def __init__(self, connect: Connect, seed: int) -> None:
        self._random = Random(seed)
        self._numbers = count(1)
        self._idle = 0
        self._uncommitted: list[str] = []  #: batches of Resqu
        with ExitStack() as opened:
            self._faktory = opened.enter_context(connect.faktory())
            self._workq = opened.enter_context(connect.workq())
            self._masenko = opened.enter_context(connect.masenko())
            self._qless = opened.enter_context(connect.qless("shop.example.com"))
            self._resqu = opened.enter_context(connect.resqu())
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    def seed(self) -> None:
        """A few jobs of each kind, so that every state is seen soon."""
        self._qless.call("throttle.set", "gpu", "1")
        self._qless.call(
            "recur",
            "publish",
            "refresh-front-page",
            "Publish",
            '{"page":"/"}',
            "interval",
            "60",
            "0",
            "tags",
            '["web"]',
        )
        for push in (self._mail, self._charge, self._refund, self._later, self._archive, self._reports):
            for _ in range(3):
                push()
        for _ in range(4):
            self._video()
            self._film()
        self._thumbnail()
        self._index()
        self._stock()
        self._import_customers()
        self._import_prices()

    def step(self) -> None:
        """Push one job, or one group of jobs."""
        (push,) = self._random.choices(*zip(*self._weights(), strict=True))
        push()

    def _weights(self) -> list[tuple[Callable[[], None], float]]:
        idle = 1.0 if self._idle < _IDLE_JOBS else 0.0
        return [
            (self._mail, 9), (self._charge, 7), (self._refund, 0.3), (self._later, 1.5), (self._video, 0.25),
            (self._thumbnail, 6), (self._index, 5), (self._stock, 5), (self._film, 0.5),
            (self._import_customers, 0.25), (self._import_prices, 0.25), (self._archive, idle), (self._reports, idle),
        ]  # fmt: skip

    def _id(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers):05d}-{self._random.randrange(16**6):06x}"

    def _customer(self) -> dict[str, Any]:
        name = self._random.choice(_FIRST_NAMES)
        number = self._random.randrange(1_000, 9_999)
        return {"customer": number, "name": name, "email": f"{name.lower()}{number}@example.com"}

    def _job(self, queue: str, kind: str, *args: Any, **options: Any) -> NewJob:
        return NewJob(jid=self._id(kind.lower()), queue=queue, kind=kind, args=args, **options)

    def _push(self, queue: str, kind: str, *args: Any, **options: Any) -> None:
        self._faktory.push(self._job(queue, kind, *args, **options))

    # Faktory

    def _mail(self) -> None:
        self._push("mail", self._random.choice(("Welcome", "Receipt", "Newsletter")), self._customer())

    def _charge(self) -> None:
        amount = {"order": self._random.randrange(10**6), "cents": self._random.randrange(500, 90_000)}
        self._push("payments", "Charge", amount, retries=3, priority=self._random.choice((5, 5, 8)))

    def _refund(self) -> None:
        self._push("payments", "Refund", {"order": self._random.randrange(10**6)}, retries=-1)

    def _later(self) -> None:
        self._push("mail", "CartReminder", self._customer(), at=time.time() + self._random.uniform(30, 1_800))

    def _video(self) -> None:
        film = f"film-{self._random.randrange(1_000)}"
        self._push("video", "Transcode", {"film": film, "codec": "av1"}, track=True)

    def _archive(self) -> None:
        """No worker takes jobs of this queue."""
        self._idle += 1
        self._push("archive", "ArchiveOrder", {"order": self._random.randrange(10**6)})

    def _reports(self) -> None:
        """This queue is paused."""
        self._idle += 1
        self._push("reports", "RevenueReport", {"day": time.strftime("%Y-%m-%d")})

    def _import_customers(self) -> None:
        with self._faktory.batch(
            "Import of customers", success=self._job("mail", "ImportReport", "customers")
        ) as batch:
            for _ in range(self._random.randrange(6, 14)):
                batch.push(self._job("imports", "ImportCustomer", self._customer()))

    # Workq and Masenko

    def _thumbnail(self) -> None:
        ident = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        payload = msgspec.json.encode({"image": f"{next(self._numbers)}.jpg", "width": 320})
        self._workq.add(ident, "thumbnails", payload, ttr_ms=5_000, ttl_ms=600_000, flags="-max-attempts=3")

    def _index(self) -> None:
        payload = {"product": self._random.randrange(5_000), "fields": ["title", "price"]}
        self._masenko.push({"queue": "search", "name": "index_product", "payload": payload})

    # qless: a film is published after its scenes are encoded, one at a time

    def _film(self) -> None:
        scenes = [self._id("encode") for _ in range(3)]
        for scene in scenes:
            data = msgspec.json.encode({"scene": scene, "preset": self._random.choice(("fast", "slow"))})
            tags = ["film", self._random.choice(("trailer", "feature"))]
            self._qless.put("render", scene, "Encode", data, tags=tags, throttles=["gpu"], retries=2)
        data = msgspec.json.encode({"scenes": scenes})
        self._qless.put("publish", self._id("publish"), "Publish", data, depends=scenes, tags=["film", "web"])

    # Resqu

    def _stock(self) -> None:
        self._resqu.push(self._resqu_job("SyncStock", {"warehouse": self._random.choice(("north", "south"))}))

    def _import_prices(self) -> None:
        """Open a batch, and commit the one before: its jobs are held until then."""
        name = f"shop:Prices:{self._random.getrandbits(32):08x}"
        jobs = [self._resqu_job("ImportPrices", {"page": page}) for page in range(self._random.randrange(4, 9))]
        self._resqu.open_batch(name, jobs, 3_600)
        self._uncommitted.append(name)
        if len(self._uncommitted) > 1:
            self._resqu.commit_batch(self._uncommitted.pop(0))

    def _resqu_job(self, kind: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"class": kind, "sourceId": "shop", "name": kind, "args": args, "id": self._id(kind.lower())}


def start(threads: Threads, connect: Connect, seed: int) -> None:
    """Push the first jobs, pause a queue, and go on pushing in a thread. Raises ClientError."""
    with connect.admin() as admin, Shop(connect, seed) as first:
        first.seed()
        admin.ask("pause", names=["reports"])
    random = Random(f"{seed} pushes")
    runs = count(1)

    def step(shop: Shop) -> None:
        shop.step()
        threads.stop.wait(random.expovariate(1 / _PUSH_S))

    threads.add(lambda: Shop(connect, seed + next(runs)), step)
