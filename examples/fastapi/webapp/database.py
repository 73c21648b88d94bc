"""Users in SQLite. A real application has its own database layer."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

PATH = os.environ.get("WEBAPP_DATABASE", "webapp.db")


@contextmanager
def transaction() -> Iterator[sqlite3.Connection]:
    """Commits at the end of the block, and rolls back after an error."""
    with closing(sqlite3.connect(PATH)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
        yield connection
