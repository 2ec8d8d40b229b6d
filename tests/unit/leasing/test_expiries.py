"""Expiries give the soonest end of the claims that are active, however often they moved."""

from datetime import UTC, datetime
from random import Random

from proxy_operator.domain.lease import Candidate, Lease
from proxy_operator.leasing.expiries import Expiries
from proxy_operator.leasing.shape import Claim, Record


def a_claim(serial: int, expires: float) -> Claim:
    candidate = Candidate(
        uid="u",
        namespace="default",
        name="p",
        address=("192.0.2.1", 1),
        attributes={},
        is_healthy=True,
        latency_millis=0,
        max_leases=None,
    )
    lease = Lease(
        id=str(serial),
        uid="u",
        namespace="default",
        name="p",
        target="",
        ttl_seconds=1,
        expires_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return Claim(Record(candidate), lease, expires, serial)


def test_follows_every_renewal_and_every_early_end_in_bounded_memory():
    random = Random(7)
    expiries = Expiries()
    held: list[Claim] = []
    most = 0
    for serial in range(5000):
        choice = random.random()
        if choice < 0.4 or not held:
            held.append(a_claim(serial, random.randrange(50)))
            expiries.expect(held[-1])
        elif choice < 0.8:
            held.pop(random.randrange(len(held))).expiry = None
        else:
            renewed = random.choice(held)
            renewed.expires = random.randrange(50)
            expiries.expect(renewed)
        soonest = min(((c.expires, c.serial) for c in held), default=None)
        first = expiries.first()
        assert (first and first[:2]) == soonest
        most = max(most, len(held))
        assert len(expiries) <= 2 * most + 64
