from crossdock.server.room import MIB
from crossdock.settings import Settings
from crossdock.wire.redis.door import RedisDoor
from crossdock.wire.redis.loads import library as loads
from crossdock.wire.redis.qless.service import Qless
from crossdock.wire.redis.resqu.service import Resqu
from crossdock.wire.redis.resqu.specs import Specs


def door(settings: Settings, *, may_flush: bool) -> RedisDoor:
    qless = Qless(
        server_clock=settings.qless.clock == "server",
        smaller_first=settings.qless.priority == "smaller-first",
        fine_histogram=settings.qless.histogram == "fine",
        keys_bytes=settings.redis.keys_mib * MIB,
    )
    resqu = Resqu(Specs(settings.resqu.fail_retries, settings.resqu.max_attempts))
    return RedisDoor(
        password=settings.redis.password,
        request_bytes=settings.redis.request_mib * MIB,
        keys_bytes=settings.redis.keys_mib * MIB,
        shared_databases=settings.redis.databases == "shared",
        handshake_s=settings.redis.handshake_s,
        may_flush=may_flush,
        libraries=(qless.library, resqu.library, loads.LIBRARY),
        views=(qless.view, *resqu.views),
        heralds=(qless.tell,),
    )
