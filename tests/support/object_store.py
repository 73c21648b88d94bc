"""An object store that speaks S3: moto, in a process of its own. Calls of delta-rs hold Python's lock."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.support.patience import wait_until

BUCKET = "crossdock-lake"


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """Start it with one empty bucket. Yields the environment variables by which delta-rs finds it, and sets them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    variables = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
    }
    before = {name: os.environ.get(name) for name in variables}
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        os.environ.update(variables)
        try:
            wait_until(lambda: _has_bucket(url), "the object store")
            yield variables
        finally:
            server.kill()
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _has_bucket(url: str) -> bool:
    try:
        with urlopen(Request(f"{url}/{BUCKET}", method="PUT")):
            return True
    except URLError:
        return False
