import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy_operator.discovery.listing import is_leasable, select_page
from proxy_operator.discovery.model import InvalidRequestError, ListQuery
from proxy_operator.domain.proxy import Proxy
from tests.builders import EPOCH, a_proxy
from tests.unit.discovery.fleet import a_leasable, a_status

FLEET = [
    a_leasable(name, meta={"namespace": namespace}, attributes={"region": region})
    for namespace in ("b", "a")
    for name, region in (("p2", "eu"), ("p10", "us"), ("p1", "eu"))
]


def names(proxies: list[Proxy]) -> list[str]:
    return [f"{p.metadata.namespace}/{p.metadata.name}" for p in proxies]


def test_the_order_is_namespace_then_name():
    page, token = select_page(FLEET, ListQuery())
    assert names(page) == ["a/p1", "a/p10", "a/p2", "b/p1", "b/p10", "b/p2"]
    assert token is None


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ((("region", "us"),), ["a/p10", "b/p10"]),
        ((("region", "eu"), ("region", "us")), []),
        ((("region", "EU"),), []),
        ((("nope", ""),), []),
    ],
    ids=["one attribute", "all must hold", "exact text", "absent is not empty"],
)
def test_attributes_are_all_required(attributes, found):
    assert names(select_page(FLEET, ListQuery(attributes=attributes))[0]) == found


@pytest.mark.parametrize(
    ("proxy", "leasable"),
    [
        (a_leasable(), True),
        (a_leasable(healthy=False), False),
        (a_leasable(meta={"deletion_timestamp": EPOCH}), False),
        (a_proxy(), False),
        (a_proxy(status=a_status()), False),
    ],
    ids=["probes succeed", "probes fail", "deleting", "never probed", "no address"],
)
def test_what_healthy_means(proxy, leasable):
    assert is_leasable(proxy) is leasable
    assert bool(select_page([proxy], ListQuery(is_healthy=True))[0]) is leasable
    assert bool(select_page([proxy], ListQuery(is_healthy=False))[0]) is not leasable


@given(size=st.integers(1, 7), seed=st.integers(0, 100))
def test_pages_add_up_to_the_whole_in_order(size, seed):
    shuffled = random.Random(seed).sample(FLEET, len(FLEET))
    seen: list[str] = []
    token = None
    for _ in range(len(FLEET) + 1):
        page, token = select_page(shuffled, ListQuery(limit=size, token=token))
        seen += names(page)
        if token is None:
            break
        assert len(page) == size
    assert seen == names(select_page(FLEET, ListQuery())[0])


def test_a_page_goes_on_after_proxies_came_and_went():
    first, token = select_page(FLEET, ListQuery(limit=2))
    gone = [p for p in FLEET if p is not first[-1]]
    came = a_leasable("p0", meta={"namespace": "a"})
    assert names(select_page([*gone, came], ListQuery(limit=2, token=token))[0]) == ["a/p2", "b/p1"]


def test_a_token_belongs_to_its_filters():
    _, token = select_page(FLEET, ListQuery(limit=2, is_healthy=True))
    with pytest.raises(InvalidRequestError, match="start again"):
        select_page(FLEET, ListQuery(limit=2, token=token))


def test_a_page_may_change_its_size():
    _, token = select_page(FLEET, ListQuery(limit=2))
    assert len(select_page(FLEET, ListQuery(limit=3, token=token))[0]) == 3


@pytest.mark.parametrize(
    "token", ["", "x", "é", "====", "AAAA", base64.b64encode(b"\xff" * 40).decode(), "a" * 10_000]
)
def test_what_is_no_token_is_refused(token):
    with pytest.raises(InvalidRequestError, match="continue"):
        select_page(FLEET, ListQuery(token=token))


@given(data=st.data())
def test_a_damaged_token_is_refused(data):
    _, token = select_page(FLEET, ListQuery(limit=2))
    assert token is not None
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InvalidRequestError):
        select_page(FLEET, ListQuery(limit=2, token=base64.urlsafe_b64encode(raw).decode()))
