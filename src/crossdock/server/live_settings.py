"""The settings of a running server: those in effect with their sources, what warns of them, and their reload."""

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from crossdock import logs
from crossdock.auth.tls import Tls
from crossdock.model.commands.core import Command
from crossdock.model.errors import BadSetting
from crossdock.protocols.admin.audit import record_signal
from crossdock.protocols.admin.measurements import SettingRow
from crossdock.protocols.base import PasswordProtected, WireProtocol
from crossdock.server import endpoints, reload, static_config
from crossdock.server.connection_registry import ConnectedPeer
from crossdock.server.diagnosis import running_warnings
from crossdock.server.group_commit import GroupCommit
from crossdock.server.lake_keeper import LakeKeeper
from crossdock.server.metrics import Metrics
from crossdock.server.reload import Reloaded
from crossdock.server.web_keeper import WebKeeper
from crossdock.settings.address import Address
from crossdock.settings.loading import Loaded
from crossdock.settings.schema import Settings
from crossdock.settings.table import LISTS, TABLE

log = logging.getLogger("crossdock")


class LiveSettings:
    def __init__(
        self,
        settings: Settings,
        settings_file: str,
        sources: Mapping[str, str],
        load: Callable[[], Loaded] | None,
        *,
        commit: GroupCommit,
        metrics: Metrics,
        connections: Collection[ConnectedPeer],
        protocols: Mapping[str, WireProtocol],
        web: WebKeeper | None,
        lake: LakeKeeper | None,
        addresses: Mapping[str, Address],
        tls: Tls | None,
    ) -> None:
        """`load` reads the settings again. None: the server was started without a settings file."""
        self._settings = settings
        self._file = settings_file
        self._sources = sources
        self._load = load
        self._commit = commit
        self._metrics = metrics
        self._connections = connections
        self._protocols = protocols
        self._web = web
        self._lake = lake
        self._addresses = addresses
        self._tls = tls
        metrics.settings = settings_in_effect(settings, sources, settings_file)
        metrics.diagnose = self._warnings

    def hang_up(self) -> None:
        """SIGHUP. The system does not tell which user sent it, so the audit trail names the signal."""
        with suppress(BadSetting):  # which is logged
            done = self.reload()
            self._commit.clock.enter()
            record_signal(self._commit, "SIGHUP", done.changed)

    def reload(self) -> Reloaded:
        """Read the settings again and apply those that can change while the server runs. Raises BadSetting, and then
        nothing is changed."""
        try:
            if self._load is None:
                raise BadSetting("this server was started without a settings file")
            loaded = self._load()
            new = loaded.settings
            settings = reload.effective(self._settings, new)
            endpoints.addresses(settings)  # a password that a listener needs may be missing
            commands = static_config.commands(settings)
            files = endpoints.tls_files(settings, self._addresses)
            if self._tls is not None and files is not None:
                self._tls.reload(files)
        except BadSetting as error:
            text = f"the settings were not reloaded, and nothing was changed: {error}"
            logs.event(log, logging.ERROR, "reload-failed", text)
            raise
        done = reload.compare(self._settings, new)
        self._settings = settings
        changed = {name: loaded.sources[name] for name in done.changed if name in loaded.sources}
        self._sources = dict(self._sources) | changed
        self._metrics.settings = settings_in_effect(settings, self._sources, self._file)
        self._apply(done.changed, commands)
        for name in done.changed:
            logs.event(log, logging.INFO, "setting-changed", reload.shown(settings, name), setting=name)
        level = logging.WARNING if done.restart else logging.INFO
        logs.event(log, level, "reloaded", f"the settings were reloaded: {done.text}")
        if not reload.LOG.isdisjoint(done.changed):  # after these lines, which the new level may hide
            self._apply_log()
        return done

    def _apply(self, changed: list[str], commands: dict[str, Command[None]]) -> None:
        settings = self._settings
        self._commit.clock.enter()
        for name, command in commands.items():
            if name in changed:
                self._commit.do(command)
        for name, protocol in self._protocols.items():
            if f"{name}.password" in changed and isinstance(protocol, PasswordProtected):
                protocol.set_password(getattr(settings, name).password)
        if self._web is not None and self._web.reload(settings, reload.concerns_web(changed)):
            logs.event(log, logging.INFO, "web-restarted", "the web process is started again with the new settings")

    def _apply_log(self) -> None:
        server = self._settings.server
        logs.configure(logs.LogOptions(server.log, server.log_format))
        for connection in self._connections:
            connection.log_commands(log.isEnabledFor(logging.DEBUG))
        if self._lake is not None:
            self._lake.restart()

    def _warnings(self) -> list[str]:
        """Of the settings in effect, and of the file and the environment as they are now."""
        loaded = Loaded(self._settings, dict(self._sources), [], None)
        try:
            if self._load is not None:
                now = self._load()
                loaded = Loaded(self._settings, now.sources | dict(self._sources), now.warnings, now.file)
            return running_warnings(loaded)
        except (BadSetting, OSError) as error:
            return [f"the settings cannot be read again, so a reload or a restart would fail: {error}"]


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
