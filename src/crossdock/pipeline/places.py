"""Folders that Spark reads: their names must not look like patterns.

It takes `*` for any text and `[` for a choice, so from a folder of such a name it would read others' files, too, or
none; and Delta's log does not find its own files where a name holds a backslash, or what looks like an escape in a URL.
"""

import re
from pathlib import Path
from typing import Final

from crossdock.pipeline.errors import PipelineError

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
