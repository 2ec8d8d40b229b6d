"""In a cluster too, a password shows in one place only: the answer to who leased its proxy."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.asking_proxy import AskingProxy
from tests.e2e.home import TOKEN, Operator
from tests.e2e.processes import arguments_of, until
from tests.integration.secret_site import CREDENTIALS, SecretSite, an_endpoint
from tests.spellings import spellings

PASSWORD = 'S3cr3t-päss/"w@rd'
WRONG = "Wr0ng-p@ssw0rd"
UNSEEN = "Uns33n-p@ssw0rd"
SPELLINGS = {one for text in (PASSWORD, WRONG, UNSEEN) for one in spellings(text)}
OPERATORS_OWN = spellings(TOKEN)


def betrayed_by(text: str) -> set[str]:
    return {one for one in SPELLINGS | OPERATORS_OWN if one in text}


class World(NamedTuple):
    home: SecretSite
    operator: Operator
    lease: Any


@pytest.fixture(scope="module")
def asking() -> Iterator[AskingProxy]:
    proxy = AskingProxy("crawler", PASSWORD)
    try:
        yield proxy
    finally:
        proxy.close()


@pytest.fixture(scope="module")
def world(secret_site: SecretSite, asking: AskingProxy) -> World:
    """An operator that has probed with right, wrong and unlabelled passwords, leased and heard."""
    home = secret_site
    operator = home.operator("--log-level", "debug")
    for name, password, labels in (
        ("right", PASSWORD, (CREDENTIALS,)),
        ("wrong", WRONG, (CREDENTIALS,)),
        ("unlabelled", UNSEEN, ()),
    ):
        home.make_secret(name, *labels, username="crawler", password=password)
        home.make_proxy(name, **an_endpoint(asking.port, name))
    home.make_secret("half", CREDENTIALS, password=UNSEEN)
    home.make_proxy("half", **an_endpoint(asking.port, "half"))
    reasons = {
        "right": "ProbeSucceeded",
        "wrong": "AuthFailed",
        "unlabelled": "AuthFailed",
        "half": "AuthFailed",
    }
    until(
        lambda: {name: home.condition(name, "Healthy")[1] for name in reasons} == reasons,
        "all are judged",
    )
    until(lambda: operator.lease() is not None, "the healthy one can be leased")
    lease = operator.lease(target="a.example")
    path = f"/v1/leases/{lease['leaseID']}/report"
    report = {"result": "banned", "target": "a.example"}
    assert operator.ask("POST", path, report).status == 204
    until(
        lambda: {"BecameHealthy", "BecameUnhealthy"} <= {one["reason"] for one in home.events()},
        "Events are written",
    )
    return World(home, operator, lease)


def test_who_leases_is_told_the_password(world: World, asking: AskingProxy):
    assert world.lease["proxy"]["password"] == PASSWORD
    assert betrayed_by(json.dumps(world.lease))
    assert asking.wanted in asking.asked


def test_no_answer_of_the_operator_betrays_it(world: World):
    for path in ("/v1/leases", "/v1/proxies"):
        reply = world.operator.ask("GET", path)
        assert reply.status == 200
        assert reply.body["count"] > 0
        assert betrayed_by(json.dumps(reply.body, ensure_ascii=False)) == set()
        assert betrayed_by(json.dumps(reply.body)) == set()
    metrics = world.operator.ask("GET", "/metrics", server="metrics").body
    assert f'proxy="{world.home.namespace}/right"' in metrics
    assert betrayed_by(metrics) == set()
    refused = world.operator.ask("POST", "/v1/leases", {"password": PASSWORD})
    assert refused.status == 400
    assert betrayed_by(json.dumps(refused.body)) == set()


def test_no_log_line_and_no_argument_betrays_it(world: World):
    assert world.operator.said("request served")
    assert any(one["level"] == "debug" for one in world.operator.records())
    assert betrayed_by(world.operator.output()) == set()
    assert betrayed_by(" ".join(arguments_of(world.operator.pid))) == set()


def test_no_object_and_no_event_betrays_it(world: World):
    home = world.home
    names = ("right", "wrong", "unlabelled", "half")
    assert betrayed_by(json.dumps([home.proxy(name) for name in names])) == set()
    events = home.events()
    assert {one["regarding"]["name"] for one in events} == set(names)
    assert betrayed_by(json.dumps(events)) == set()


@pytest.mark.parametrize(
    "command",
    [
        ("get", "secrets", "-o", "yaml"),
        ("get", "secrets", "-o", "json"),
        ("get", "secrets", "-o", "wide"),
        ("get", "proxies", "-o", "yaml"),
        ("get", "proxies", "-o", "json"),
        ("get", "proxies", "-o", "wide"),
        ("describe", "proxy", "right", "wrong", "unlabelled", "half"),
        ("describe", "secret", "right", "unlabelled"),
    ],
    ids=" ".join,
)
def test_no_command_betrays_it(world: World, command: tuple[str, ...]):
    ended = world.home.show(*command)
    assert ended.code == 0, ended.err
    assert "right" in ended.out
    assert betrayed_by(ended.out + ended.err) == set()
