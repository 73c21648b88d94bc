"""Sessions on a Spark Connect server, and a limit for a server that does not answer.

pyspark's client repeats a call to a dead server for ten minutes or more, and waits an hour for one that accepts
connections and does not answer. Meanwhile the process would hold the lock of the tables. So a thread connects to the
server at intervals. If no attempt succeeds within the time limit, it closes the client, and the waiting call fails.
"""

import os
import threading
import time
import warnings
from typing import Any, Final

from pyspark.sql import SparkSession

from crossdock.pipeline.errors import PipelineError, give_up, hopeful

_BACKOFF_MS: Final = 50
_BACKOFF_MOST_MS: Final = 2_000
_LOOKS: Final = 6  #: per time limit


def connect(url: str, timeout_s: float, *, verbose: bool) -> SparkSession:
    """A session whose calls fail after `timeout_s` without an answer. Raises PipelineError."""
    if not verbose:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    from pyspark.sql.connect.client.retries import DefaultPolicy

    if not answers(url, timeout_s):
        raise PipelineError(_silent(url, timeout_s))
    hopeful()
    session: Any = SparkSession.builder.remote(url).getOrCreate()
    tries = 5 + int(timeout_s * 1_000 / _BACKOFF_MOST_MS)
    policy = DefaultPolicy(tries, initial_backoff=_BACKOFF_MS, max_backoff=_BACKOFF_MOST_MS, jitter=0)
    session.client.set_retry_policies([policy])
    threading.Thread(target=_watch, args=(session, url, timeout_s), name="crossdock-connect", daemon=True).start()
    return session  # type: ignore[no-any-return]


def answers(url: str, timeout_s: float) -> bool:
    """Whether the server completes a gRPC handshake in time."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.client import DefaultChannelBuilder

    # Without its own pool the channel would share the connection of the session, which may be dead.
    channel = DefaultChannelBuilder(url, [("grpc.use_local_subchannel_pool", 1)]).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout_s)
    except grpc.FutureTimeoutError:
        return False
    finally:
        channel.close()
    return True


def _watch(session: Any, url: str, timeout_s: float) -> None:
    heard = time.monotonic()
    while not session.client.is_closed:
        begun = time.monotonic()
        if answers(url, max(heard + timeout_s - begun, timeout_s / _LOOKS)):
            heard = time.monotonic()
        elif time.monotonic() >= heard + timeout_s:
            if not session.client.is_closed:
                give_up(_silent(url, timeout_s))
                session.client.close()
            return
        time.sleep(max(0.0, begun + timeout_s / _LOOKS - time.monotonic()))


def _silent(url: str, timeout_s: float) -> str:
    return (
        f"the Connect server at {url.partition(';')[0]} has not answered for {timeout_s:.0f} s: start it again, or "
        "allow more time with --timeout, then run this command again (no data is lost)"
    )
