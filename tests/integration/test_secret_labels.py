"""Labels decide which Secrets the operator sees, and every change of them is followed."""

from collections.abc import Iterator

import pytest

from tests.asking_proxy import AskingProxy
from tests.e2e.home import Operator
from tests.e2e.processes import until
from tests.integration.secret_site import CLOUD_INIT, CREDENTIALS, SecretSite, an_endpoint

HIDDEN = f'does not exist or is not labelled; add the label {CREDENTIALS}: "true"'


@pytest.fixture(scope="module")
def asking() -> Iterator[AskingProxy]:
    proxy = AskingProxy("crawler", "p4ss")
    try:
        yield proxy
    finally:
        proxy.close()


@pytest.fixture(scope="module")
def operator(secret_site: SecretSite) -> Operator:
    return secret_site.operator()


class Case:
    """A proxy and its Secret, both of the same name."""

    def __init__(self, home: SecretSite, operator: Operator, name: str) -> None:
        self.home = home
        self.operator = operator
        self.name = name

    def make(self, port: int, *labels: str) -> None:
        data = {"username": "crawler", "password": "p4ss", "user-data": "#cloud-config"}
        self.home.make_secret(self.name, *labels, **data)
        spec = an_endpoint(port, self.name, attributes={"case": self.name})
        self.home.make_proxy(self.name, **spec)

    def is_offered(self) -> bool:
        return self.operator.lease(selector={"case": self.name}) is not None

    def until_used(self) -> None:
        def is_used() -> bool:
            told = self.home.condition(self.name, "Provisioned")
            return told == ("True", "ExternalEndpoint", "") and self.is_offered()

        until(is_used, f"{self.name} is leased with its Secret")

    def until_hidden(self) -> None:
        def is_hidden() -> bool:
            status, reason, message = self.home.condition(self.name, "Provisioned")
            return (
                (status, reason) == ("True", "ExternalEndpoint")
                and message == f"CredentialsError: Secret {self.name} {HIDDEN}"
                and self.home.condition(self.name, "Healthy")[1] == "AuthFailed"
                and not self.is_offered()
            )

        until(is_hidden, f"the Secret {self.name} is as good as absent")


@pytest.fixture
def case(secret_site: SecretSite, operator: Operator, request: pytest.FixtureRequest) -> Case:
    name = request.node.name.removeprefix("test_").replace("_", "-")
    return Case(secret_site, operator, name)


def test_labelled_later(case: Case, asking: AskingProxy):
    case.make(asking.port)
    case.until_hidden()
    case.home.relabel(case.name, CREDENTIALS)
    case.until_used()


def test_label_removed(case: Case, asking: AskingProxy):
    case.make(asking.port, CREDENTIALS)
    case.until_used()
    case.home.relabel(case.name)
    case.until_hidden()
    case.home.relabel(case.name, CREDENTIALS)
    case.until_used()


def test_secret_deleted(case: Case, asking: AskingProxy):
    case.make(asking.port, CREDENTIALS)
    case.until_used()
    case.home.delete_secret(case.name)
    case.until_hidden()


def test_one_secret_for_both_uses(case: Case, asking: AskingProxy):
    case.make(asking.port, CREDENTIALS, CLOUD_INIT)
    case.until_used()
    a_machine = case.name + "-vm"
    case.home.make_proxy(a_machine, **a_vm(case.name))
    until(lambda: has_its_inputs(case.home, a_machine), "both uses are seen")
    case.home.relabel(case.name, CREDENTIALS)
    until(lambda: lacks(case.home, a_machine, CLOUD_INIT), "one of the uses is gone")
    case.until_used()


def test_from_one_use_to_the_other(case: Case, asking: AskingProxy):
    case.make(asking.port, CREDENTIALS)
    case.until_used()
    a_machine = case.name + "-vm"
    case.home.make_proxy(a_machine, provider="kubernetes", cloudInit=cloud_init(case.name))
    until(lambda: lacks(case.home, a_machine, CLOUD_INIT), "it is for the other use")
    for _ in range(2):
        case.home.relabel(case.name, CLOUD_INIT)
        case.until_hidden()
        until(lambda: has_its_inputs(case.home, a_machine), "the new use is seen")
        case.home.relabel(case.name, CREDENTIALS)
        until(lambda: lacks(case.home, a_machine, CLOUD_INIT), "the old use is gone")
        case.until_used()


def cloud_init(secret: str) -> dict[str, object]:
    return {"secretRef": {"name": secret, "key": "user-data"}}


def a_vm(secret: str) -> dict[str, object]:
    """A spec whose instance takes one Secret for both uses."""
    return {
        "provider": "kubernetes",
        "cloudInit": cloud_init(secret),
        "credentialsSecretRef": {"name": secret},
    }


def lacks(home: SecretSite, name: str, label: str) -> bool:
    status, reason, message = home.condition(name, "Provisioned")
    return (status, reason) == ("False", "CloudInitError") and label in message


def has_its_inputs(home: SecretSite, name: str) -> bool:
    """No Secret is missing: what is wrong now is that a Pod takes no cloud-init."""
    _, reason, message = home.condition(name, "Provisioned")
    return reason == "PermanentError" and "a squid Pod has no first boot" in message
