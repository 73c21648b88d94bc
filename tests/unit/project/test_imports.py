"""Which package may import which: top-level packages, and the rules between their subpackages.

A violation fails here with file, line and rule.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import crossdock

ROOT: Final = Path(crossdock.__file__).parent

_INNER: Final = {
    "logs": {"logs"},
    "model": {"model"},
    "engine": {"model", "engine"},
    "journal": {"logs", "model", "engine", "journal"},
    "lake": {"logs", "model", "journal", "lake"},
    "pipeline": {"model", "lake", "client", "pipeline"},
    "protocols": {"logs", "model", "engine", "protocols"},
    "client": {"model", "protocols", "client"},
    "app": {"model", "client", "app"},
    "worker": {"logs", "model", "client", "app", "worker"},
    "settings": {"model", "settings"},
    "auth": {"logs", "model", "auth"},
    "web": {"logs", "model", "journal", "lake", "pipeline", "client", "protocols", "settings", "web"},
    "server": {"logs", "model", "auth", "engine", "journal", "lake", "protocols", "settings", "server", "web"},
}
ALLOWED: Final = _INNER | {
    "testing": {"model", "engine", "protocols", "client", "app", "server", "testing"},
    "cli": {*_INNER, "worker", "cli"},
    "__main__": {"cli"},
    "__init__": {"app", "client"},  # imported when a name is first used
}

#: The module that opens a journal; the only one outside journal.sqlite that may import it.
OPENS_A_JOURNAL: Final = "journal.open"

_CORE: Final = ("engine.jobs", "engine.index", "engine.records", "engine.keyspace")
_DIALECTS: Final = ("engine.qless", "engine.resqu")


#: Modules of the client that programs use. Those beside them are for the command line.
_PUBLIC_CLIENT: Final = frozenset(
    {
        "address", "aio", "base", "bulk_push", "call", "calls", "client", "durations", "encode", "errors", "jobs",
        "lane", "lanes", "pool", "retries", "transport", "wire", "worker_calls",
    }
)  # fmt: skip


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def part_of(module: str, package: str, parts: tuple[str, ...]) -> str | None:
    """Which of a package's subpackages a module is in. None: none of them, or not in the package."""
    return next((part for part in parts if is_in(module, f"{package}.{part}")), None)


PROTOCOLS: Final = tuple(
    sorted(each.name for each in (ROOT / "protocols").iterdir() if each.is_dir() and (each / "__init__.py").exists())
)
_REDIS: Final = ("qless", "resqu")


class Rule(NamedTuple):
    """`broken(importer, imported)`; both are module names without `crossdock.`."""

    name: str
    broken: Callable[[str, str], bool]


def _top(importer: str, imported: str) -> bool:
    return imported.split(".")[0] not in ALLOWED[importer.split(".")[0]]


def _protocols(importer: str, imported: str) -> bool:
    """Modules directly in protocols/ are shared. They do not import a protocol either."""
    if not is_in(importer, "protocols"):
        return False
    target = part_of(imported, "protocols", PROTOCOLS)
    return target is not None and target != part_of(importer, "protocols", PROTOCOLS)


def _redis(importer: str, imported: str) -> bool:
    source, target = (part_of(each, "protocols.redis", _REDIS) for each in (importer, imported))
    return source is not None and target is not None and source != target


def _core(importer: str, imported: str) -> bool:
    return any(is_in(importer, each) for each in _CORE) and any(is_in(imported, each) for each in _DIALECTS)


def _engine_dialects(importer: str, imported: str) -> bool:
    source, target = (part_of(each, "engine", _REDIS) for each in (importer, imported))
    return source is not None and target is not None and source != target


def _public_client(importer: str, imported: str) -> bool:
    """A light installation has neither the server nor what it needs."""
    package, _, module = importer.partition(".")
    return package == "client" and module in _PUBLIC_CLIENT and imported.split(".")[0] not in ("client", "model")


def _sqlite(importer: str, imported: str) -> bool:
    own = is_in(importer, "journal.sqlite") or importer == OPENS_A_JOURNAL
    return is_in(imported, "journal.sqlite") and not own


RULES: Final = (
    Rule("packages import inward", _top),
    Rule("protocols do not import each other", _protocols),
    Rule("qless and resqu do not import each other", _redis),
    Rule("the engine's core does not import a dialect", _core),
    Rule("qless and resqu of the engine do not import each other", _engine_dialects),
    Rule("the public client imports nothing of the server", _public_client),
    Rule("only the module that opens a journal imports journal.sqlite", _sqlite),
)


class Violation(NamedTuple):
    importer: str
    line: int
    imported: str
    rule: str


def imported_by(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of every import in a file. `package` resolves relative imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module or ""]).rstrip(".")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def violations(source: str, module: str, *, is_package: bool = False) -> list[Violation]:
    """`module` is the importer's name without `crossdock.`."""
    package = ["crossdock", *module.split(".")]
    found = []
    for line, name in imported_by(ast.parse(source), package if is_package else package[:-1]):
        root, _, imported = name.partition(".")
        if root == "crossdock" and imported and imported != "__version__":
            found += [Violation(module, line, imported, rule.name) for rule in RULES if rule.broken(module, imported)]
    return found


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def in_file(file: Path) -> list[Violation]:
    return violations(file.read_text("utf-8"), module_of(file), is_package=file.name == "__init__.py")


FILES: Final = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_imports_only_what_the_rules_allow(file: Path) -> None:
    top = module_of(file).split(".")[0]
    assert top in ALLOWED, f"{top} is new: list in ALLOWED what it may import"
    assert in_file(file) == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        # top-level packages
        ("from crossdock.journal.files import write_whole", "protocols.base"),
        ("import crossdock.server.app", "journal.port"),
        ("from crossdock import settings", "engine.engine"),
        ("def f():\n    from crossdock.engine import engine", "model.job"),
        ("from ..server import room", "protocols.base"),
        ("from crossdock.server import address", "client.bulk"),
        ("from ...journal.port import Journal", "protocols.faktory.session"),
        ("from crossdock.cli import main", "server.app"),
        ("from crossdock.engine.state import EngineState", "settings.loading"),
        # protocols
        ("from crossdock.protocols.faktory.job import spec", "protocols.redis.bulk.jobs"),
        ("from crossdock.protocols.redis.resqu import specs", "protocols.admin.plans"),
        ("from crossdock.protocols import faktory", "protocols.workq.session"),
        ("from ..masenko import push", "protocols.workq.session"),
        ("from crossdock.protocols.redis.pubsub import Channels", "protocols.base"),
        ("from crossdock.protocols.redis.resqu.keys import read", "protocols.redis.qless.key_view"),
        ("from crossdock.protocols.redis.qless import job", "protocols.redis.resqu.view"),
        # the engine's core
        ("from crossdock.engine.qless import history", "engine.jobs.lease"),
        ("from crossdock.engine.resqu.plans import parse", "engine.records.schedules"),
        ("from crossdock.engine import qless", "engine.index.queue"),
        ("def f():\n    from crossdock.engine.qless import history", "engine.keyspace.store"),
        ("from crossdock.engine.resqu import batch_queues", "engine.qless.pop"),
        # the public client
        ("from crossdock.protocols.faktory.protocol import Challenge", "client.wire"),
        # the journal's adapter
        ("from crossdock.journal.sqlite.journal import checksum", "lake.exporter"),
        ("from crossdock.journal import sqlite", "journal.recovery"),
    ],
)
def test_a_violation_is_seen(source: str, module: str) -> None:
    assert violations(source, module) != []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import os\nfrom crossdock import __version__\nfrom crossdock.model.job import Job", "protocols.base"),
        ("from . import line_reader", "protocols.base"),
        ("from crossdock.protocols.job_spec import NAME_BYTES", "protocols.faktory.job"),
        ("from crossdock.protocols.redis.resp.values import Error", "protocols.redis.resqu.payload"),
        ("from crossdock.protocols.redis.qless.service import Qless", "server.endpoints"),
        ("from crossdock.engine.qless import history", "engine.engine"),
        ("from crossdock.engine.index.queue import Queue", "engine.jobs.lease"),
        ("from crossdock.journal.sqlite.journal import SqliteJournal", OPENS_A_JOURNAL),
        ("from crossdock.journal.sqlite import schema", "journal.sqlite.reader"),
        ("from crossdock.protocols.redis.resp.encode import encode", "client.bulk"),
        ("from crossdock.model.password_hash import digest", "client.wire"),
        ("from crossdock.cli import render", "cli.main"),
    ],
)
def test_an_allowed_import_is_left_alone(source: str, module: str) -> None:
    assert violations(source, module) == []
