"""The guard in front of a whole application. The server itself is not needed: these requests never reach it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from litestar.testing import TestClient

from crossdock.web.app import create_app
from crossdock.web.options import WebOptions
from crossdock.web.security import BODY_BYTES, COOKIE, segments

HERE: Final = "http://127.0.0.1:7420"
PASSWORD: Final = "correct horse"
TOKEN: Final = "0123456789abcdef"


def client(folder: Path, **options: Any) -> TestClient[Any]:
    given = WebOptions(data=folder, address="127.0.0.1:7420", descriptor=0, **options)
    return TestClient(create_app(given), base_url=HERE, raise_server_exceptions=False)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TestClient[Any]]:
    with client(tmp_path) as found:
        yield found


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[TestClient[Any]]:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ops {TOKEN}\n")
    tokens.chmod(0o600)
    with client(tmp_path, password=PASSWORD, token_file=str(tokens)) as found:
        yield found


def csrf_token(page: httpx.Response) -> str:
    found = re.search(r'name="csrf_token" value="(\w+)"', page.text)
    assert found is not None
    return found[1]


def sign_in(web: TestClient[Any], password: str = PASSWORD, target: str = "/") -> httpx.Response:
    form = {"csrf_token": csrf_token(web.get("/login")), "password": password, "next": target}
    return web.post("/login", data=form, follow_redirects=False)


# Headers.


def test_every_response_has_the_security_headers(web: TestClient[Any]) -> None:
    for path in ("/login", "/healthz", "/nothing", "/api/v1/nothing", "/static/css/dashboard.css"):
        headers = web.get(path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert re.fullmatch(r"'nonce-[\w-]{22}'", policy["script-src"])
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["form-action"] == policy["connect-src"] == "'self'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == ("no-cache" if path.startswith("/static/") else "no-store")
        assert "access-control-allow-origin" not in headers


def test_each_response_has_another_nonce(web: TestClient[Any]) -> None:
    policies = {web.get("/healthz").headers["content-security-policy"] for _ in range(5)}
    assert len(policies) == 5


# Host and Origin.


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7420", "10.0.0.1:7420"])
def test_another_host_is_refused_before_anything_is_done(web: TestClient[Any], host: str) -> None:
    answer = web.get("/login", headers={"host": host})
    assert answer.status_code == 421
    assert "http.hosts" in answer.text


def test_a_host_of_the_settings_is_accepted(tmp_path: Path) -> None:
    with client(tmp_path, hosts=("jobs.example",)) as web:
        assert web.get("/login", headers={"host": "jobs.example"}).status_code == 200


def test_a_change_from_another_site_is_refused(web: TestClient[Any]) -> None:
    for path in ("/login", "/api/v1/jobs", "/nothing"):
        for origin in ("http://evil.example", "null", "http://127.0.0.1:8080"):
            assert web.post(path, headers={"origin": origin}).status_code == 403
        for site in ("cross-site", "same-site"):
            assert web.post(path, headers={"sec-fetch-site": site}).status_code == 403


def test_a_page_of_another_site_cannot_read_either(web: TestClient[Any]) -> None:
    assert web.get("/api/v1/queues", headers={"origin": "http://evil.example"}).status_code == 403


# Forms and bodies.


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
def test_a_form_without_its_token_is_refused(web: TestClient[Any], token: str) -> None:
    answer = web.post("/logout", data={"csrf_token": token})
    assert answer.status_code == 403
    assert "load the page again" in answer.text


def test_a_form_with_its_token_reaches_its_handler(web: TestClient[Any]) -> None:
    token = csrf_token(web.get("/login"))
    as_field = web.post("/logout", data={"csrf_token": token}, follow_redirects=False)
    as_header = web.post("/logout", headers={"x-csrf-token": token}, follow_redirects=False)
    assert (as_field.status_code, as_header.status_code) == (303, 303)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/jobs", "application/x-www-form-urlencoded"),
        ("/api/v1/jobs", "text/plain"),
        ("/logout", "multipart/form-data; boundary=x"),
    ],
)
def test_a_body_of_another_type_is_refused(web: TestClient[Any], path: str, kind: str) -> None:
    assert web.post(path, content=b"a=b", headers={"content-type": kind}).status_code == 415


@pytest.mark.parametrize(
    ("path", "kind"), [("/logout", "application/x-www-form-urlencoded"), ("/api/v1/jobs", "application/json")]
)
def test_a_body_that_is_too_large_is_refused(web: TestClient[Any], path: str, kind: str) -> None:
    answer = web.post(path, content=b"x" * (BODY_BYTES + 1), headers={"content-type": kind})
    assert answer.status_code == 413


def test_a_body_of_unknown_length_is_cut_off(web: TestClient[Any]) -> None:
    parts = (b"x" * 65_536 for _ in range(BODY_BYTES // 65_536 + 1))
    answer = web.post("/logout", content=parts, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 413


# Rates.


def test_too_many_requests_are_refused_until_later(web: TestClient[Any]) -> None:
    answers = [web.get("/healthz") for _ in range(200)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert int(refused[0].headers["retry-after"]) >= 1
    assert web.get("/static/css/dashboard.css").status_code == 200


# Sign-in.


def test_without_a_password_no_sign_in_is_needed(web: TestClient[Any]) -> None:
    assert web.get("/api/v1/nothing").status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/queues", "/api/v1/nothing", "/metrics"])
def test_a_program_without_a_token_learns_what_to_send(locked: TestClient[Any], path: str) -> None:
    answer = locked.get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in answer.text


def test_a_page_leads_to_the_sign_in_and_back(locked: TestClient[Any]) -> None:
    answer = locked.get("/jobs?filter=a", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fjobs%3Ffilter%3Da"
    assert sign_in(locked, target="/jobs?filter=a").headers["location"] == "/jobs?filter=a"


def test_the_sign_in_never_leads_to_another_site(locked: TestClient[Any]) -> None:
    for target in ("https://evil.example", "//evil.example", "/\\evil.example", "data:x", "/a\nb"):
        assert sign_in(locked, target=target).headers["location"] == "/"


def test_a_fragment_of_an_expired_page_reloads_at_the_sign_in(locked: TestClient[Any]) -> None:
    answer = locked.get("/jobs", headers={"hx-request": "true"})
    assert answer.status_code == 401
    assert answer.headers["hx-redirect"].startswith("/login")


def test_the_cookie_is_closed_to_scripts_and_other_sites(locked: TestClient[Any]) -> None:
    answer = sign_in(locked)
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert re.match(rf"{COOKIE}=[\w-]{{43}};", cookie)
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "secure" not in cookie  # plain HTTP on loopback
    assert PASSWORD not in cookie


def test_the_cookie_is_secure_with_tls_and_behind_a_proxy(tmp_path: Path) -> None:
    given = WebOptions(data=tmp_path, address="0.0.0.0:7420", descriptor=0, password=PASSWORD, hosts=("jobs.example",))
    with TestClient(create_app(given), base_url="https://jobs.example") as web:
        assert "secure" in sign_in(web).headers["set-cookie"].lower()


def test_a_session_opens_what_needs_sign_in_until_it_is_closed(locked: TestClient[Any]) -> None:
    sign_in(locked)
    assert locked.get("/api/v1/nothing").status_code == 404
    token = csrf_token(locked.get("/login"))
    locked.post("/logout", data={"csrf_token": token}, follow_redirects=False)
    assert locked.get("/api/v1/nothing").status_code == 401


def test_a_wrong_password_opens_nothing_and_tries_are_limited(locked: TestClient[Any]) -> None:
    codes = [sign_in(locked, "wrong").status_code for _ in range(6)]
    assert codes == [401] * 5 + [429]
    assert sign_in(locked).status_code == 429
    assert locked.get("/api/v1/nothing").status_code == 401


@pytest.mark.parametrize(
    ("header", "code"), [(f"Bearer {TOKEN}", 404), (f"bearer {TOKEN}", 404), ("Bearer wrong", 401), ("Basic eDp5", 401)]
)
def test_a_token_of_the_file_is_accepted(locked: TestClient[Any], header: str, code: int) -> None:
    assert locked.get("/api/v1/nothing", headers={"authorization": header}).status_code == code


def test_a_wrong_token_is_refused_even_without_sign_in(web: TestClient[Any]) -> None:
    assert web.get("/api/v1/nothing", headers={"authorization": "Bearer x"}).status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/login", "/static/css/dashboard.css"])
def test_what_needs_no_sign_in_is_open(locked: TestClient[Any], path: str) -> None:
    assert locked.get(path).status_code == 200


# Errors.


def test_errors_are_json_under_the_api_and_pages_elsewhere(web: TestClient[Any]) -> None:
    of_api, of_page = web.get("/api/v1/<b>"), web.get("/<b>")
    assert of_api.json() == {"error": "there is nothing at /api/v1/<b>"}
    assert "text/html" in of_page.headers["content-type"]
    assert "<b>" not in of_page.text


def test_a_server_that_does_not_answer_is_status_503(web: TestClient[Any]) -> None:
    answer = web.get("/api/v1/queues")
    assert answer.status_code == 503
    assert "starting or stopping" in answer.json()["error"]
    assert web.get("/readyz").status_code == 503
    assert web.get("/healthz").status_code == 200


def test_a_method_that_does_not_exist_there_is_status_405(web: TestClient[Any]) -> None:
    assert web.delete("/api/v1/queues").status_code == 405


# Paths.


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"/api/v1/queues/a%2Fb", "/api/v1/queues/a%2Fb"),
        (b"/api/v1/queues/a%252Fb", "/api/v1/queues/a%252Fb"),
        (b"/api/v1/queues/a/b", "/api/v1/queues/a/b"),
        (b"/api/v1/queues/%C3%A9%25", "/api/v1/queues/é%25"),
    ],
)
def test_a_slash_inside_a_name_begins_no_segment(raw: bytes, path: str) -> None:
    assert segments(raw) == path
