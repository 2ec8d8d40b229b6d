"""What may be told to clients: the Secret's content, while the instance was made with it."""

from typing import Any

import pytest

from proxy_operator.domain.names import CREDENTIALS_LABEL
from proxy_operator.domain.proxy import Proxy, SecretRef
from proxy_operator.domain.secret import Credentials, Secret
from proxy_operator.provisioning.credentials import MadeWith, SecretReader, ServingCredentials
from proxy_operator.runtime.objects import key_of
from proxy_operator.runtime.store import Store
from tests.builders import a_proxy, a_secret, an_external

REF = SecretRef(name="s1")
FIRST = Credentials("crawler", "s3cret")
SECOND = Credentials("crawler", "other")


def a_secret_of(credentials: Credentials, name: str = "s1", **labels: str) -> Secret:
    username, password = credentials.username.encode(), credentials.password.encode()
    return a_secret(
        name,
        labels={CREDENTIALS_LABEL: "true", **labels},
        username=username,
        password=password,
    )


class World:
    def __init__(self) -> None:
        self.secrets = Store[Secret]()
        self.secrets.put(a_secret_of(FIRST))
        self.made_with = MadeWith()
        self.serving = ServingCredentials(SecretReader(self.secrets, self.secrets), self.made_with)

    def told(self, proxy: Proxy) -> Credentials | str | None:
        try:
            return self.serving.credentials_for(proxy)
        except ValueError as err:
            return str(err)


@pytest.fixture
def world() -> World:
    return World()


def test_what_is_there_at_the_start_is_taken_for_true(world: World):
    assert world.told(a_proxy(credentials_secret_ref=REF)) == FIRST


def test_other_content_is_withheld_until_an_instance_is_made_with_it(world: World):
    proxy = a_proxy(credentials_secret_ref=REF)
    world.told(proxy)
    world.secrets.put(a_secret_of(SECOND))
    for _ in range(2):
        assert "other credentials" in str(world.told(proxy))
    world.made_with.note(proxy.metadata.uid, SECOND)
    assert world.told(proxy) == SECOND


def test_the_earlier_content_is_told_again(world: World):
    proxy = a_proxy(credentials_secret_ref=REF)
    world.made_with.note(proxy.metadata.uid, FIRST)
    world.secrets.put(a_secret_of(SECOND))
    assert "other credentials" in str(world.told(proxy))
    world.secrets.put(a_secret_of(FIRST))
    assert world.told(proxy) == FIRST


def test_a_change_of_labels_withholds_nothing(world: World):
    proxy = a_proxy(credentials_secret_ref=REF)
    world.told(proxy)
    world.secrets.put(a_secret_of(FIRST, team="crawl"))
    assert world.told(proxy) == FIRST


@pytest.mark.parametrize("spec", [{}, {"credentials_secret_ref": SecretRef(name="s2")}])
def test_another_reference_is_other_content(world: World, spec: dict[str, Any]):
    proxy = a_proxy(credentials_secret_ref=REF)
    world.told(proxy)
    world.secrets.put(a_secret_of(SECOND, "s2"))
    edited = a_proxy(meta={"uid": proxy.metadata.uid}, **spec)
    assert "other credentials" in str(world.told(edited))


def test_an_external_proxy_takes_new_content_at_once(world: World):
    proxy = an_external(credentials_secret_ref=REF)
    assert world.told(proxy) == FIRST
    world.secrets.put(a_secret_of(SECOND))
    assert world.told(proxy) == SECOND


def test_a_proxy_that_is_gone_is_forgotten(world: World):
    proxies = Store[Proxy]()
    proxies.add_handler(world.made_with.handle)
    first, second = a_proxy(), a_proxy()
    proxies.put(first)
    world.made_with.note(first.metadata.uid, FIRST)
    proxies.put(second)
    world.made_with.note(second.metadata.uid, FIRST)
    proxies.remove(key_of(second))
    assert world.made_with._known == {}
