"""Orders: `python -m shop.orders 1001 tea cup` places one."""

import sys
from collections.abc import Sequence

from shop.tasks import Order, app, confirm, pack, ship


def place(number: int, items: Sequence[str]) -> None:
    """Confirm the order and pack its items. When all of them are packed, the order is shipped."""
    confirm.push(Order(number, list(items)))
    with app.batch(f"order {number}", success=ship.job(number)) as batch:
        for item in items:
            batch.push(pack, number, item)


if __name__ == "__main__":
    place(int(sys.argv[1]), sys.argv[2:])
    app.close()
