import pytest

from crossdock.settings.address import Address
from crossdock.web.hosts import Hosts, host_name, is_same_origin


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:7420", "LOCALHOST:1", "127.0.0.1:7420", "[::1]:7420", "[::1]", "jobs.example:443"]
)
def test_loopback_names_and_the_names_of_the_settings_are_accepted(host: str) -> None:
    assert Hosts(Address("127.0.0.1", 7420), ["jobs.example"]).accepts(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "jobs.example.evil",
        "10.0.0.1",
        "",
        "a b",
        "[::1",
        "localhost@evil.example",
    ],
)
def test_other_names_are_not(host: str) -> None:
    assert not Hosts(Address("127.0.0.1", 7420), ["jobs.example"]).accepts(host)


def test_a_listener_on_one_address_does_not_accept_loopback_names() -> None:
    hosts = Hosts(Address("10.1.2.3", 7420), [])
    assert hosts.accepts("10.1.2.3:7420")
    assert not hosts.accepts("localhost")


def test_a_listener_on_all_addresses_accepts_every_address_and_no_name() -> None:
    hosts = Hosts(Address("0.0.0.0", 7420), ["jobs.example"])
    assert hosts.accepts("10.1.2.3:7420")
    assert hosts.accepts("[2001:db8::1]:7420")
    assert hosts.accepts("jobs.example")
    assert not hosts.accepts("rebound.example")


def test_a_host_name_has_no_port() -> None:
    assert host_name("Jobs.Example:7420") == "jobs.example"


@pytest.mark.parametrize("origin", ["http://127.0.0.1:7420", "https://127.0.0.1:7420"])
def test_a_page_of_this_server_is_of_the_same_origin(origin: str) -> None:
    assert is_same_origin(origin, "127.0.0.1:7420")


@pytest.mark.parametrize(
    "origin", ["null", "", "http://127.0.0.1", "http://127.0.0.1:8080", "http://evil.example", "file://127.0.0.1:7420"]
)
def test_another_page_is_not(origin: str) -> None:
    assert not is_same_origin(origin, "127.0.0.1:7420")
