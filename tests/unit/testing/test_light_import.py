"""The test helpers work in the light install: without the packages of the server, and on Windows."""

import subprocess
import sys

PACKAGES = ("apsw", "argon2", "deltalake", "jinja2", "litestar", "prometheus_client", "pyarrow", "uvicorn", "uvloop")
NOT_ON_WINDOWS = ("fcntl", "grp", "pwd", "resource")

PROGRAM = f"""
import sys
for name in {(*PACKAGES, *NOT_ON_WINDOWS)!r}:
    sys.modules[name] = None  # an import of it fails
import crossdock.testing.plugin
assert not [name for name in sys.modules if name.startswith("crossdock.engine")]
import crossdock.testing.jobs
with crossdock.testing.jobs.Jobs() as jobs:
    jobs.drain()
"""


def test_the_helpers_import_nothing_of_the_server_install() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], check=True, timeout=60)
