from crossdock.protocols.redis.bulk import library as loads
from crossdock.protocols.redis.protocol import RedisDoor
from crossdock.protocols.redis.qless.service import Qless
from crossdock.protocols.redis.resqu.service import Resqu
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.server.room import MIB
from crossdock.settings import Settings


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
