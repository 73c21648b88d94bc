"""The tasks of the shop. Each one writes what it did into a file, in place of real mails and parcels."""

import os
from dataclasses import dataclass
from pathlib import Path

from crossdock import App, progress

app = App(name="shop")  # of CROSSDOCK_URL, or the server on this machine

OUTBOX = Path(os.environ.get("SHOP_OUTBOX", "outbox.txt"))


@dataclass
class Order:
    number: int
    items: list[str]


def write(line: str) -> None:
    with OUTBOX.open("a", encoding="utf-8") as outbox:
        outbox.write(f"{line}\n")


@app.task(queue="mail", retries=5, unique="1h")
def confirm(order: Order) -> None:
    """A second push for the same order within an hour is refused."""
    write(f"mail: order {order.number} with {', '.join(order.items)}")


@app.task(queue="parcels", timeout="2m")
def pack(number: int, item: str) -> str:
    progress(0.5, f"packing {item}")
    write(f"packed: {item} of order {number}")
    return item


@app.task(queue="parcels")
def ship(number: int) -> None:
    """Runs when all items of the order are packed."""
    write(f"shipped: order {number}")


# Jobs of picture.php. Resqu's jobs are in the queue `unassigned`, unless the settings of the server map them to others.
@app.task(queue="unassigned", kinds=("ResizePicture",), rate="100/m")
async def resize(path: str, width: int) -> None:
    write(f"resized: {path} to {width}")


@app.cron("0 6 * * *", zone="Europe/Berlin")
def report() -> None:
    write("report")
