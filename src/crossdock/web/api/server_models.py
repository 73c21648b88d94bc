"""What the API returns about the server as a whole."""

from typing import Any

from crossdock.web.api.models import Model


class Health(Model):
    status: str
    version: str
    refusing: str | None  #: the reason why new jobs are refused


class StatusReply(Model):
    status: dict[str, Any]


class OverviewReply(Model):
    overview: dict[str, Any]


class RatesReply(Model):
    rates: dict[str, Any] | None


class ProtocolRow(Model):
    protocol: str
    address: str | None
    connections: int | None
    commands: int | None
    errors: int | None


class Protocols(Model):
    protocols: list[ProtocolRow]


class SettingRow(Model):
    name: str
    value: Any
    source: str
    description: str


class SettingsReply(Model):
    settings: list[SettingRow]


class Warnings(Model):
    warnings: list[str]


class Checks(Model):
    warnings: list[str]
    age_s: float  #: seconds since the checks ran


class AuditEntry(Model):
    at: str
    user: str | None
    address: str | None
    via: str
    action: str
    target: str | None
    count: int | None


class Audit(Model):
    audit: list[AuditEntry]
    after: str | None
