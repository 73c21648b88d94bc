"""What belongs to a release: metadata, licence, lock files, workflows and the release check."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from tools.release_check import problems, version

import crossdock
from crossdock.cli.extras import EXTRAS

ROOT: Final = Path(__file__).parents[3]
MAKEFILE: Final = (ROOT / "Makefile").read_text("utf-8")
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_metadata_is_complete(metadata: dict[str, Any]) -> None:
    project = metadata["project"]
    assert project["license"] == "Apache-2.0"
    assert project["authors"] == [{"name": "Crossdock contributors"}]
    assert {"description", "readme", "keywords", "classifiers", "requires-python"} <= project.keys()
    assert "urls" not in project, "there is no web address yet"
    assert (ROOT / project["readme"]).exists()


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_changelog_begins_with_the_version_of_the_source() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    first = re.search(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    assert first is not None
    assert crossdock.__version__ == (f"{first[1]}.dev0" if first[2] == "unreleased" else first[1])
    assert version() == crossdock.__version__


def test_every_data_file_of_the_package_is_packed(metadata: dict[str, Any]) -> None:
    package = ROOT / "src" / "crossdock"
    patterns = metadata["tool"]["setuptools"]["package-data"]["crossdock"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    files = {path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert files - packed == set()
    assert all(any(package.glob(pattern)) for pattern in patterns)


def packages(project: dict[str, Any], extra: str) -> set[str]:
    """The names of an extra's packages. It may name other extras of this project."""
    found = set()
    for wanted in project["optional-dependencies"][extra]:
        name, extras = re.fullmatch(r"([\w.-]+)(?:\[([\w.,-]+)\])?.*", wanted).groups()  # type: ignore[union-attr]
        if name == "crossdock":
            found |= {each for other in extras.split(",") for each in packages(project, other)}
        else:
            found.add(name)
    return found


@pytest.mark.parametrize("extra", ["server", "docs", "pipeline", "release", "test"])
def test_every_dependency_is_locked_with_hashes(extra: str, metadata: dict[str, Any]) -> None:
    project = metadata["project"]
    lock = (ROOT / "requirements" / f"{extra}.txt").read_text("utf-8")
    locked = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    light = {re.split(r"[^\w.-]", wanted)[0] for wanted in project["dependencies"]}
    assert (light | packages(project, extra)) - locked == set()
    assert all("--hash=sha256:" in entry for entry in re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:])


def test_the_light_install_has_few_packages(metadata: dict[str, Any]) -> None:
    names = {re.split(r"[^\w.-]", wanted)[0] for wanted in metadata["project"]["dependencies"]}
    assert names == {"click", "cronsim", "msgspec", "rich", "sortedcontainers", "tzdata"}


def test_the_table_of_extras_has_every_package_of_theirs(metadata: dict[str, Any]) -> None:
    """The command line names the extra of a package that is not installed."""
    modules = {"argon2-cffi": "argon2"}
    for extra in ("server", "pipeline", "otel"):
        named = {modules.get(each, each.replace("-", "_")) for each in packages(metadata["project"], extra)}
        assert {each.split("_")[0] if each.startswith("opentelemetry") else each for each in named} <= set().union(
            *EXTRAS.values()
        )


def test_the_locks_agree() -> None:
    """The test environment also builds the site, so no package may have two versions."""
    versions: dict[str, set[str]] = {}
    for name in ("server", "pipeline", "test", "docs", "release"):
        lock = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
        for package, found in re.findall(r"^([\w.-]+)==(\S+) \\$", lock, re.MULTILINE):
            versions.setdefault(package, set()).add(found)
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def test_every_target_has_a_line_of_help() -> None:
    listed = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert set(re.findall(r"^  make ([a-z-]+) ", listed, re.MULTILINE)) == targets()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: str(path.name))
def test_workflows_call_targets_that_exist(path: Path) -> None:
    called = re.findall(r"run: (?:make|\.ci/run) ([a-z-]+)$", path.read_text("utf-8"), re.MULTILINE)
    assert called
    assert set(called) <= targets()


def test_the_workflow_tests_every_python_that_the_metadata_names(metadata: dict[str, Any]) -> None:
    classifiers = metadata["project"]["classifiers"]
    named = [each.removeprefix("Programming Language :: Python :: ") for each in classifiers if " 3." in each]
    matrix = re.search(r"python: \[(.+)\]", (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8"))
    assert matrix is not None
    assert re.findall(r"[\d.]+", matrix[1]) == named
    assert metadata["project"]["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize(
    ("tag", "released", "changelog", "found"),
    [
        ("v0.1.0", "0.1.0", "## 0.1.0 (2026-12-01)\n", []),
        ("v0.1.0", "0.1.1", "## 0.1.1 (2026-12-01)\n", ["the tag is v0.1.0"]),
        ("v0.1.0.dev0", "0.1.0.dev0", "## 0.1.0.dev0 (2026-12-01)\n", ["0.1.0.dev0 is not the version of a release"]),
        ("v0.1.0", "0.1.0", "## 0.1.0 (unreleased)\n", ["CHANGELOG.md has no heading"]),
    ],
)
def test_a_release_is_refused_if_tag_version_and_changelog_differ(
    tag: str, released: str, changelog: str, found: list[str]
) -> None:
    told = problems(tag, released, changelog)
    assert len(told) == len(found)
    assert all(text.startswith(start) for text, start in zip(told, found, strict=True))
