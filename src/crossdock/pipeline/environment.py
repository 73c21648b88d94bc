"""Checks Java, the Spark master and folder names before Spark starts, and writes locations as Spark needs them."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from crossdock.pipeline.errors import NoJava, PipelineError

#: Spark 4 needs it.
OLDEST: Final = 17

_CURE: Final = (
    f"install Java {OLDEST} or newer (Debian: apt-get install openjdk-{OLDEST}-jre-headless), "
    "or set JAVA_HOME to such a version"
)
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


def check_java(environ: Mapping[str, str] | None = None) -> int:
    """Return the version of the Java that Spark would use. Raises NoJava."""
    program = java(environ)
    try:
        result = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJava(f"the pipeline runs on Spark, which needs Java, and {program} does not run: {_CURE}") from error
    found = _VERSION.search(result.stderr + result.stdout)
    if found is None:
        raise NoJava(f"the pipeline runs on Spark, which needs Java, and {program} names no version: {_CURE}")
    version = int(found[1])
    if version < OLDEST:
        raise NoJava(f"the pipeline runs on Spark, which needs Java {OLDEST}, and {program} is Java {version}: {_CURE}")
    return version


def java(environ: Mapping[str, str] | None = None) -> str:
    """The program that Spark would start. Raises NoJava."""
    environ = os.environ if environ is None else environ
    home = environ.get("JAVA_HOME", "")
    if home:
        program = Path(home, "bin", "java")
        if not program.exists():
            raise NoJava(f"the pipeline runs on Spark, which needs Java, and JAVA_HOME={home} has no bin/java: {_CURE}")
        return str(program)
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is None:
        raise NoJava(f"the pipeline runs on Spark, which needs Java, and there is none on the PATH: {_CURE}")
    return found


# Check that the address in `--master` accepts connections. Spark's own clients retry for minutes, and a Connect client
# that is interrupted meanwhile does not exit.


#: Default ports.
_PORTS: Final = {"spark": 7077, "sc": 15002}
_CONNECT_S: Final = 10.0


def check_master(master: str) -> None:
    """Raises PipelineError if a standalone cluster or Connect server does not accept connections."""
    scheme, _, rest = master.partition("://")
    if scheme not in _PORTS:
        return
    refused = ""
    for address in rest.partition("/")[0].split(","):  # a cluster may have several masters, one of which serves
        try:
            parts = urlsplit(f"//{address}")
            socket.create_connection((parts.hostname or "", parts.port or _PORTS[scheme]), _CONNECT_S).close()
            return
        except (OSError, ValueError) as error:
            refused = refused or str(getattr(error, "strerror", None) or error)
    raise PipelineError(f"no server answers at {master} ({refused}): start it, or name another with --master")


# Folder names must not look like patterns. Spark expands `*` and `[` in paths, so it would read other files or none.
# Delta does not find its own log in a folder whose name contains a backslash or a URL escape.


_PATTERN: Final = re.compile(r"[*?\[{\\]|%[0-9A-Fa-f]{2}")


def expect_plain(folder: Path) -> None:
    """Raises PipelineError if the name, or the target of a link, looks like a pattern."""
    for path in (folder.absolute(), folder.resolve()):
        found = _PATTERN.search(str(path))
        if found is not None:
            raise PipelineError(
                f"the folder {path} has {found[0]} in its name, which Spark reads as a pattern: rename it, "
                "or name another folder"
            )


# Locations. Spark resolves a path without a scheme in its default file system, which is HDFS on many clusters. And its
# connectors use other schemes than delta-rs and pyarrow do.


_ACCOUNT: Final = "AZURE_STORAGE_ACCOUNT_NAME"


def spark_path(location: str | Path) -> str:
    """The location of a file or folder for Spark: `file:///…` for local paths, `s3a://…` for `s3://…`.

    Spark does not decode URL escapes in paths, so none are made: `file:///mnt/my lake`, not `my%20lake`. Raises
    PipelineError for `az://…` without the name of the storage account.
    """
    text = str(location)
    scheme, found, rest = text.partition("://")
    if isinstance(location, Path) or not found:
        return f"file://{Path(location).absolute()}"
    if scheme == "s3":
        return f"s3a://{rest}"
    if scheme in ("az", "azure"):
        account = os.environ.get(_ACCOUNT, "")
        if not account:
            raise PipelineError(f"Spark needs the name of the storage account for {text}: set {_ACCOUNT}")
        container, _, path = rest.partition("/")
        return f"abfss://{container}@{account}.dfs.core.windows.net/{path}"
    return text
