"""Which Java Spark will run on. Its own words for a missing or an old one are a stack trace; these name the cure."""

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

#: Spark 4 is compiled for it.
OLDEST: Final = 17

_CURE: Final = (
    f"install Java {OLDEST} or newer (Debian: apt-get install openjdk-{OLDEST}-jre-headless), "
    "or set JAVA_HOME to one that is"
)
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


def check_java(environ: Mapping[str, str] | None = None) -> int:
    """The version of the Java that Spark would start. Raises NoJava."""
    environ = os.environ if environ is None else environ
    program = _find(environ)
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJava(f"the pipeline runs on Spark, which needs Java, and {program} does not run: {_CURE}") from error
    found = _VERSION.search(said.stderr + said.stdout)
    if found is None:
        raise NoJava(f"the pipeline runs on Spark, which needs Java, and {program} names no version: {_CURE}")
    version = int(found[1])
    if version < OLDEST:
        raise NoJava(f"the pipeline runs on Spark, which needs Java {OLDEST}, and {program} is Java {version}: {_CURE}")
    return version


def _find(environ: Mapping[str, str]) -> str:
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


# Whether anybody is at the address that `--master` names. Spark's own clients try for minutes before they say so, and
# one of Connect that is interrupted meanwhile does not end.


#: Where the two listen if the address does not say.
_PORTS: Final = {"spark": 7077, "sc": 15002}
_PATIENCE_S: Final = 10.0


def check_master(master: str) -> None:
    """Raises PipelineError if it is a standalone cluster's or a Connect server's, and nobody answers there."""
    scheme, _, rest = master.partition("://")
    if scheme not in _PORTS:
        return
    refused = ""
    for address in rest.partition("/")[0].split(","):  # a cluster may have several masters, one of which serves
        try:
            parts = urlsplit(f"//{address}")
            socket.create_connection((parts.hostname or "", parts.port or _PORTS[scheme]), _PATIENCE_S).close()
            return
        except (OSError, ValueError) as error:
            refused = refused or str(getattr(error, "strerror", None) or error)
    raise PipelineError(f"nobody answers at {master} ({refused}): start it, or name another by --master")


# Folders that Spark reads: their names must not look like patterns.
#
# It takes `*` for any text and `[` for a choice, so from a folder of such a name it would read others' files, too, or
# none; and Delta's log does not find its own files where a name holds a backslash, or what looks like an escape in a
# URL.


_PATTERN: Final = re.compile(r"[*?\[{\\]|%[0-9A-Fa-f]{2}")


def expect_plain(folder: Path) -> None:
    """Raises PipelineError. Links are followed: readers do so, too."""
    for path in (folder.absolute(), folder.resolve()):
        found = _PATTERN.search(str(path))
        if found is not None:
            raise PipelineError(
                f"the folder {path} has {found[0]} in its name, which Spark takes for a pattern: give it another name, "
                "or name another folder"
            )
