"""Download Mermaid for the documentation site, so that drawings need no network when the pages are read.

    python -m tools.fetch_mermaid

The file is 3.4 MiB, so git ignores it. Its hash is fixed here. Without a network the script prints a warning and the
site is built without the file: a browser then loads Mermaid from the web.
"""

import hashlib
import io
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Final

from tools.docs_hooks import MERMAID

ADDRESS: Final = "https://registry.npmjs.org/mermaid/-/mermaid-11.17.2.tgz"
MEMBER: Final = "package/dist/mermaid.min.js"
SHA256: Final = "581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8"
FILE: Final = Path(__file__).parents[1] / "docs" / MERMAID


def fetch() -> bytes:
    """Raises OSError if the file cannot be downloaded, ValueError if it is not the expected one."""
    with urllib.request.urlopen(ADDRESS, timeout=60) as reply:
        content = io.BytesIO(reply.read())
    with tarfile.open(fileobj=content, mode="r:gz") as archive:
        member = archive.extractfile(MEMBER)
        assert member is not None
        script = member.read()
    if (found := hashlib.sha256(script).hexdigest()) != SHA256:
        raise ValueError(f"{MEMBER} of {ADDRESS} has the SHA-256 {found}, expected {SHA256}")
    return script


def main() -> None:
    if FILE.exists() and hashlib.sha256(FILE.read_bytes()).hexdigest() == SHA256:
        return
    try:
        script = fetch()
    except OSError as error:
        print(f"warning: cannot download {ADDRESS}: {error}; drawings will need the web", file=sys.stderr)
        return
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_bytes(script)


if __name__ == "__main__":
    main()
