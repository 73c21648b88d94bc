"""The examples of docs/how-to/test-tasks.md, run unchanged in a folder of their own."""

import re
import subprocess
import sys

import pytest

from tests.support.doc_pages import blocks

pytest_plugins = ["pytester"]

PAGE = "docs/how-to/test-tasks.md"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for block in [*blocks(PAGE, "python"), *blocks(PAGE, "ini")]:
        name = re.match(r"# (\S+)\n", block)
        assert name is not None, f"the block does not name its file: {block}"
        path = pytester.path / name[1]
        path.parent.mkdir(exist_ok=True)
        path.write_text(block, "utf-8")
    return pytester


def test_the_examples_pass(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-p", "crossdock.testing.plugin", "-W", "error", timeout=60)
    result.assert_outcomes(passed=8)
    subprocess.run([sys.executable, "without_pytest.py"], cwd=project.path, check=True, timeout=60)


def test_the_text_of_a_failed_assertion_is_as_shown(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_failed="""
        from test_pushed import sign_up
        from shop.tasks import welcome

        def test_another_user(jobs):
            sign_up(42)
            jobs.assert_pushed(welcome, 7)
        """
    )
    result = project.runpytest_subprocess("-p", "crossdock.testing.plugin", "test_failed.py", timeout=60)
    result.assert_outcomes(failed=1)
    [shown] = blocks(PAGE, "text")
    times = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    said = "\n".join(line.removeprefix("E").strip() for line in result.outlines)
    expected = "\n".join(line.strip() for line in shown.strip().splitlines())
    assert re.sub(times, "TIME", expected) in re.sub(times, "TIME", said)
