"""kill -9 of the operator at random moments, and what the next one finds and leaves.

The seed is printed with every failure; CRASH_SEED repeats it.
"""

import asyncio
import os
import random
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from proxy_operator.domain.proxy import LocalBlock, LocalEngine, Proxy
from proxy_operator.runtime.errors import NotFoundError
from proxy_operator.runtime.objects import ObjectKey
from tests.e2e.home import Home, Operator, a_local, credentials, is_ready
from tests.e2e.origin import Origin
from tests.e2e.processes import identities, until

NAMES = ("p1", "p2", "p3", "p4")
SECRETS = ("s1", "s2")
QUIET = 30.0


class Wanted(NamedTuple):
    """What was acknowledged of one Proxy."""

    egress: str
    secret: str | None


class Seen(NamedTuple):
    """A Ready instance: the process, and where it listens."""

    process: tuple[int, int, int]
    port: int | None


class Chaos:
    """Applies random changes, remembers what was acknowledged, and checks what came of it."""

    def __init__(self, home: Home, seed: int, engine: LocalEngine) -> None:
        self.home = home
        self.engine = engine
        self.random = random.Random(seed)
        self.wanted: dict[str, Wanted] = {}
        self.passwords: dict[str, str] = {}
        self.touched: set[str] = set()
        self.count = 0

    async def change(self) -> None:
        """Make one change at random; returning means that it was acknowledged."""
        self.count += 1
        name = self.random.choice(NAMES)
        action = self.random.choice(("create", "create", "replace", "rotate", "delete"))
        client = self.home.store.client
        if action == "rotate":
            secret = self.random.choice(SECRETS)
            await client.apply(credentials(secret, password := f"p{self.count}@/"))
            self.passwords[secret] = password
            self.touched |= {n for n, wanted in self.wanted.items() if wanted.secret == secret}
        elif action == "delete":
            try:
                await client.delete(Proxy, ObjectKey("default", name))
            except NotFoundError:
                return
            self.wanted.pop(name, None)
            self.touched.add(name)
        else:
            await self._apply(name, is_replaced=action == "replace")

    async def _apply(self, name: str, *, is_replaced: bool) -> None:
        old = self.wanted.get(name)
        if old is None or is_replaced:
            wanted = Wanted(
                f"127.0.{self.random.randrange(2, 250)}.{self.count % 250 + 1}",
                self.random.choice((*SECRETS, None)),
            )
        else:
            wanted = old
        manifest = a_local(
            name, egress=wanted.egress, engine=self.engine.value, secret=wanted.secret
        )
        applied = (await self.home.store.client.apply(manifest)).object
        if isinstance(applied, Proxy) and applied.metadata.is_deleting:
            # It goes all the same: whoever wants it back applies again after that.
            self.wanted.pop(name, None)
        else:
            self.wanted[name] = wanted
        if wanted != old:
            self.touched.add(name)

    async def crash(self, operator: Operator, delay: float) -> None:
        """Change things until the operator is killed, `delay` seconds from now."""
        loop = asyncio.get_running_loop()
        killed = loop.call_later(delay, operator.process.kill)
        while loop.time() < killed.when():
            await self.change()
            await asyncio.sleep(self.random.uniform(0, 0.15))
        await asyncio.sleep(max(0.0, killed.when() - loop.time()) + 0.01)

    def ready_ones(self) -> dict[str, Seen]:
        proxies = self.home.proxies()
        return {
            name: Seen(self.home.process_of(name).identity, proxy.status.port)
            for name, proxy in proxies.items()
            if is_ready(proxy)
        }

    def is_quiet(self) -> bool:
        proxies = self.home.proxies()
        return set(proxies) == set(self.wanted) and all(is_ready(p) for p in proxies.values())

    def is_settled(self, origin: Origin) -> bool:
        """Tell whether every proxy is Ready and takes the credentials that were written last.

        A rotated Secret shows in no generation: only asking the proxy tells.
        """
        if not self.is_quiet():
            return False
        for name, proxy in self.home.proxies().items():
            host, port = proxy.address or ("", 0)
            password = quote(self.password_of(name) or "", safe="")
            login = f"crawler:{password}@" if password else ""
            try:
                page = origin.fetch(origin.http, f"http://{login}{host}:{port}")
            except OSError:
                return False
            if page["from"] != self.wanted[name].egress:
                return False
        return self.is_quiet()

    def password_of(self, name: str) -> str | None:
        secret = self.wanted[name].secret
        return self.passwords[secret] if secret else None

    def check(self, operator: Operator, origin: Origin, before: dict[str, Seen]) -> None:
        """Hold the world against what was acknowledged."""
        proxies = self.home.proxies()
        # A draft, or a half-removed directory, that a crash left holds no process; a later list of
        # the instances sweeps it.
        names = [n for n in self.home.instance_names() if not n.startswith((".new-", ".old-"))]
        assert names == sorted(
            (p.status.provider_id or "").removeprefix("local/") for p in proxies.values()
        )
        assert identities(self.home.launchers()) == identities(
            self.home.process_of(name) for name in self.wanted
        )
        for name, wanted in self.wanted.items():
            local = LocalBlock(engine=self.engine, egress_address=wanted.egress)
            assert proxies[name].spec.local == local
            if name in before and name not in self.touched:
                now = Seen(self.home.process_of(name).identity, proxies[name].status.port)
                assert now == before[name]
        assert operator.ask("GET", "/v1/leases").body["leases"] == []
        self._check_pages(operator, origin)

    def _check_pages(self, operator: Operator, origin: Origin) -> None:
        """Fetch through every proxy by a lease of it: right port, right credentials."""
        for _ in self.wanted:
            leased = operator.lease()
            assert leased is not None
            name = leased["proxy"]["name"]
            assert leased["proxy"]["password"] == self.password_of(name)
            page = origin.fetch(origin.http, leased["proxy"]["url"])
            assert page["from"] == self.wanted[name].egress
            assert urlsplit(leased["proxy"]["url"]).port == leased["proxy"]["port"]


@pytest.mark.parametrize(
    "moments", [pytest.param(5, id="five"), pytest.param(50, id="fifty", marks=pytest.mark.slow)]
)
def test_a_crash_at_any_moment_loses_and_leaves_nothing(home: Home, origin: Origin, moments: int):
    survive_crashes(home, origin, moments, LocalEngine.PROXY_PY)


def survive_crashes(home: Home, origin: Origin, moments: int, engine: LocalEngine) -> None:
    """Kill operators of local proxies at that many moments; the origin is theirs to reach."""
    seed = int(os.environ.get("CRASH_SEED") or random.randrange(1 << 32))
    print(f"CRASH_SEED={seed}")  # noqa: T201 - shown when the test fails
    chaos = Chaos(home, seed, engine)
    flags = ("--allow-targets", f"127.0.0.1:{origin.port}")
    for secret in SECRETS:
        home.apply(credentials(secret, "first"))
        chaos.passwords[secret] = "first"
    for name in NAMES[:2]:
        home.run(chaos._apply(name, is_replaced=False))
    operator = home.operator(*flags)
    until(chaos.is_quiet, "all Ready", within=QUIET)
    for moment in range(moments):
        print(f"moment {moment}")  # noqa: T201 - shown when the test fails
        chaos.touched.clear()
        before = chaos.ready_ones()
        if before:
            assert operator.lease() is not None
        home.run(chaos.crash(operator, chaos.random.uniform(0, 0.8)))
        operator.kill()
        if chaos.random.random() < 0.3:
            # Killed again while it starts and takes over.
            home.run(chaos.crash(home.launch(*flags), chaos.random.uniform(0.2, 1.0)))
            home.operators[-1].kill()
        operator = home.operator(*flags)
        settled = "what was asked for is served, the rest is gone"
        until(lambda: chaos.is_settled(origin), settled, within=QUIET)
        chaos.check(operator, origin, before)


def test_a_restart_of_a_settled_fleet_writes_nothing(home: Home):
    operator = home.operator()
    home.apply(credentials("s", "p@s"), a_local("open"), a_local("auth", secret="s"))
    home.apply(a_local("other", attributes={"a": "b"}, maxLeases=3))
    home.wait_ready("open", "auth", "other")
    assert operator.stop() == 0
    settled = (home.proxies(), home.secrets())
    version, processes = store_version(home), identities(home.launchers())
    events = {name: home.events(name) for name in home.proxies()}

    operator = home.operator("--log-level", "debug")
    until(lambda: probes_of(operator) >= 6, "two probes of each")
    for name in home.proxies():
        assert operator.lease() is not None, name
    assert operator.stop() == 0

    assert (home.proxies(), home.secrets()) == settled
    assert store_version(home) == version
    assert identities(home.launchers()) == processes
    assert {name: home.events(name) for name in home.proxies()} == events


def store_version(home: Home) -> str:
    return home.run(home.store.client.list(Proxy)).resource_version


def probes_of(operator: Operator) -> float:
    """Count the probes whose outcome the metrics show."""
    text = operator.ask("GET", "/metrics", server="metrics").body
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("proxy_operator_healthcheck_duration_seconds_count")
    )
