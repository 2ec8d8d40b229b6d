"""Every id is new, and made of the kernel's random numbers."""

import os

from proxy_operator.leasing.tokens import TokenSource


def test_ids_are_distinct_across_many_refills():
    source = TokenSource()
    ids = [source.take() for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    assert all(len(token) == 32 and int(token, 16) >= 0 for token in ids)


def test_spends_every_random_byte_exactly_once(monkeypatch):
    given: list[bytes] = []
    draw = os.urandom

    def urandom(size: int) -> bytes:
        given.append(draw(size))
        return given[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    source = TokenSource()
    ids = [source.take() for _ in range(512)]
    assert "".join(ids) == b"".join(given).hex()
