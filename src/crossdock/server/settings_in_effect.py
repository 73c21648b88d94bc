"""The settings in effect, each with its source. Secrets are never shown."""

from collections.abc import Mapping

from crossdock.protocols.admin.measurements import SettingRow
from crossdock.settings.schema import Settings
from crossdock.settings.table import LISTS, TABLE


def settings_in_effect(settings: Settings, sources: Mapping[str, str], file: str) -> list[SettingRow]:
    """`sources` are those of `settings.loading.Loaded`. Lists of entries can only come from the file."""
    rows = [
        SettingRow(
            name,
            setting.show(getattr(getattr(settings, setting.section), setting.key)),
            sources.get(name, "default"),
            setting.description,
        )
        for name, setting in TABLE.items()
    ]
    for name in sorted(LISTS):
        entries = _entries(getattr(settings, name))
        source = f"file {file}" if entries else "default"
        rows.append(SettingRow(name, f"{entries} {'entry' if entries == 1 else 'entries'}", source, _LISTS[name]))
    return rows


def _entries(value: object) -> int:
    if isinstance(value, dict | list):
        return len(value)
    return sum(len(pools) for section in ("static", "batch") for pools in getattr(value, section).values())


_LISTS = {
    "cron": "Jobs that are pushed by a schedule",
    "mapping": "Pools of Resqu jobs and batches",
    "rate": "Queues and kinds that start a limited number of jobs in a time",
    "slo": "Objectives of queues, for reports",
    "throttles": "Queues that run a limited number of jobs at a time",
}
