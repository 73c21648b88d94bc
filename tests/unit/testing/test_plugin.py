"""The plugin in test runs of an application, with its settings, its fixtures and the texts of failed tests."""

import pytest

pytest_plugins = ["pytester"]

TASKS = """
from crossdock import App

app = App("crossdock://nowhere.invalid:7419", name="shop")
mails = []

@app.task(queue="mail")
def welcome(user_id: int, *, lang: str = "en") -> str:
    if user_id < 0:
        raise ValueError("no such user")
    mails.append((user_id, lang))
    return f"{user_id} {lang}"

@app.task
def again() -> None:
    again.push()
"""


@pytest.fixture
def application(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # No other plugins, and this one by name, whether the package that registers it is installed or not.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(shop_tasks=TASKS)
    pytester.makeini("[pytest]\ncrossdock_app = shop_tasks:app\npythonpath = .\nfilterwarnings = error\n")
    return pytester


def run(application: pytest.Pytester) -> pytest.RunResult:
    return application.runpytest_subprocess("-p", "crossdock.testing.plugin", timeout=60)


def test_the_fixture_serves_the_app_of_the_settings(application: pytest.Pytester) -> None:
    application.makepyfile(
        """
        import shop_tasks
        from shop_tasks import welcome

        def test_push(jobs):
            handle = welcome.push(42, lang="de")
            jobs.assert_pushed(welcome, user_id=42)
            jobs.drain()
            assert shop_tasks.mails == [(42, "de")]
            assert handle.result() == "42 de"

        def test_each_test_has_a_fresh_server(jobs):
            jobs.refute_pushed(welcome)
            assert jobs.drain() == []

        def test_inline(jobs):
            with jobs.inline():
                assert welcome.push(1).result() == "1 en"
        """
    )
    run(application).assert_outcomes(passed=3)


def test_failed_tests_show_what_happened(application: pytest.Pytester) -> None:
    application.makepyfile(
        """
        from shop_tasks import again, welcome

        def test_another_user(jobs):
            welcome.push(41)
            jobs.assert_pushed(welcome, user_id=42)

        def test_nothing(jobs):
            jobs.assert_pushed(welcome)

        def test_unwanted(jobs):
            welcome.push(41, lang="de")
            jobs.refute_pushed(welcome)

        def test_exception(jobs):
            welcome.push(-1)
            jobs.drain()

        def test_endless(jobs):
            again.push()
            jobs.drain()

        def test_wait(jobs):
            welcome.push(1).result(timeout=10)
        """
    )
    result = run(application)
    result.assert_outcomes(failed=6)
    result.stdout.fnmatch_lines(
        [
            "E * AssertionError: welcome(user_id=42) was not pushed; these jobs were:",
            "E * welcome(user_id=41) on queue mail  (user_id is 41, not 42)",
            "E * AssertionError: welcome() was not pushed; no job was pushed",
            "E * AssertionError: welcome() should not be pushed; these jobs were:",
            "E * welcome(user_id=41, lang='de') on queue mail",
            "E * ValueError: no such user",
            "E *EndlessChain: 1000 jobs were run and again is ready again; *again 1000 times*",
            "E *WouldWait: the request waits, and in a test nothing happens meanwhile: RESULT *jobs.drain()*",
        ]
    )


def test_the_app_is_chosen_by_a_fixture(application: pytest.Pytester) -> None:
    application.makeini("[pytest]\npythonpath = .\n")
    application.makeconftest(
        """
        import pytest

        @pytest.fixture
        def crossdock_app():
            from shop_tasks import app
            return app
        """
    )
    application.makepyfile(
        "def test_push(jobs):\n    from shop_tasks import welcome\n    welcome.push(1)\n    jobs.drain()\n"
    )
    run(application).assert_outcomes(passed=1)


def test_the_app_is_chosen_in_the_test(application: pytest.Pytester) -> None:
    application.makeini("[pytest]\npythonpath = .\n")
    application.makepyfile(
        """
        from shop_tasks import app, welcome

        def test_push(jobs):
            jobs.use(app)
            welcome.push(1)
            assert len(jobs.drain()) == 1
        """
    )
    run(application).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nothing.tasks:app", "*crossdock_app = nothing.tasks:app: No module named 'nothing'; write MODULE:APP*"),
        ("shop_tasks:shop", "*crossdock_app = shop_tasks:shop: module 'shop_tasks' has no attribute 'shop'*"),
        ("shop_tasks:mails", "*crossdock_app = shop_tasks:mails: it is a list, not a crossdock.App*"),
    ],
)
def test_a_wrong_name_is_an_error_that_says_how_to_write_it(
    application: pytest.Pytester, name: str, error: str
) -> None:
    application.makeini(f"[pytest]\ncrossdock_app = {name}\npythonpath = .\n")
    application.makepyfile("def test_push(jobs): ...")
    result = run(application)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([error])


def test_test_runs_without_the_fixture_load_nothing(application: pytest.Pytester) -> None:
    application.makeini("[pytest]\n")
    application.makepyfile(
        """
        import sys

        def test_nothing_is_loaded():
            assert not [name for name in sys.modules if name.startswith(("crossdock.engine", "crossdock.app"))]
        """
    )
    run(application).assert_outcomes(passed=1)
