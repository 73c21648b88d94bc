"""Which Java Spark will run on. Its own words for a missing or an old one are a stack trace; these name the cure."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from crossdock.pipeline.errors import NoJava

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
