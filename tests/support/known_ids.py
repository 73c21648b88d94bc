"""Count the ids that the server generates instead of drawing them: the first batch is `b-00000000000001`."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from unittest.mock import patch
from uuid import UUID


@contextmanager
def known_ids() -> Iterator[None]:
    batches, jobs = count(1), count(1)
    with (
        patch("crossdock.protocols.faktory.batch.secrets.token_urlsafe", lambda _: f"{next(batches):014d}"),
        patch("crossdock.protocols.faktory.batch.uuid.uuid4", lambda: UUID(int=next(jobs))),
        patch("crossdock.protocols.masenko.push.new_jid", lambda: str(UUID(int=next(jobs)))),
    ):
        yield
