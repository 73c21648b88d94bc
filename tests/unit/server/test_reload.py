"""Reloading settings: what is applied, what needs a restart, and what is shown."""

from typing import Any

import msgspec

from crossdock.server import reload
from crossdock.settings.schema import RateEntry, Settings, ThrottleEntry
from crossdock.settings.table import LISTS, TABLE


def changed(section: str, **values: Any) -> Settings:
    settings = Settings()
    return msgspec.structs.replace(settings, **{section: msgspec.structs.replace(getattr(settings, section), **values)})


def test_equal_settings_differ_in_nothing() -> None:
    assert reload.compare(Settings(), Settings()) == ([], [])


def test_every_reloadable_name_is_a_setting() -> None:
    assert TABLE.keys() | LISTS >= reload.RELOADABLE


def test_a_password_is_applied_and_not_shown() -> None:
    new = changed("faktory", password="hunter2")
    assert reload.compare(Settings(), new) == (["faktory.password"], [])
    assert reload.effective(Settings(), new) == new
    assert reload.shown(new, "faktory.password") == "faktory.password = set"


def test_an_address_needs_a_restart_and_is_not_applied() -> None:
    new = changed("listen", faktory="127.0.0.1:1")
    done = reload.compare(Settings(), new)
    assert (done.changed, done.restart) == ([], ["listen.faktory"])
    assert done.text == "no setting was changed; a restart is needed for listen.faktory"
    assert reload.effective(Settings(), new) == Settings()


def test_rate_limits_are_applied() -> None:
    new = msgspec.structs.replace(Settings(), rate={"mail": RateEntry("10/m", queue="mail")})
    assert reload.compare(Settings(), new) == (["rate"], [])
    assert reload.effective(Settings(), new).rate == new.rate


def test_throttles_are_applied() -> None:
    new = msgspec.structs.replace(Settings(), throttles={"mail": ThrottleEntry(concurrency=1)})
    assert reload.compare(Settings(), new) == (["throttles"], [])
    assert reload.effective(Settings(), new) == new


def test_settings_of_the_pipeline_are_not_the_servers() -> None:
    assert reload.compare(Settings(), changed("pipeline", currency="EUR")) == ([], [])


def test_only_some_changes_concern_the_web_process() -> None:
    assert reload.concerns_web(["http.password"]) and reload.concerns_web(["server.log"])
    assert not reload.concerns_web(["faktory.password", "throttles"])
