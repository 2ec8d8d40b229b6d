import pytest

from proxy_operator.domain.proxy import HealthCheck, ProviderName
from proxy_operator.health.targets import TargetRules, target_of
from tests.builders import a_proxy, an_external

OWN = HealthCheck(url="http://own.example/")
FLEET, SELF = "http://fleet.example/", "http://127.0.0.1:8081/healthz"


@pytest.mark.parametrize(
    ("proxy", "rules", "target"),
    [
        (an_external(health_check=OWN), TargetRules(FLEET, SELF), "http://own.example/"),
        (a_proxy(health_check=OWN), TargetRules(None, None), "http://own.example/"),
        (an_external(), TargetRules(FLEET, SELF), FLEET),
        (a_proxy(), TargetRules(FLEET, SELF), FLEET),
        (a_proxy(), TargetRules(None, SELF), SELF),
        (a_proxy(), TargetRules(None, None), None),
        (an_external(), TargetRules(None, SELF), None),
        (a_proxy(provider=ProviderName.GCP), TargetRules(None, SELF), None),
    ],
)
def test_the_target(proxy, rules, target):
    assert target_of(proxy, rules) == target
