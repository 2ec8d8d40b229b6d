import pytest

from proxy_operator.domain.proxy import HealthCheck, ProviderName
from proxy_operator.health.targets import TargetRules, label_of, target_of
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


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("https://Check.example/a/secret?token=s3cret#x", "https://check.example"),
        ("https://check.example:443/", "https://check.example"),
        ("http://check.example:443/", "http://check.example:443"),
        ("http://user:s3cret@check.example:8080/", "http://check.example:8080"),
        ("http://[2001:DB8::1]:8081/healthz", "http://[2001:db8::1]:8081"),
        ("http://check.example:port/", "invalid"),
        ("http://[::1/", "invalid"),
        (f"http://{'a' * 500}.example/", f"http://{'a' * 253}"),
    ],
)
def test_a_label_holds_no_secret_and_is_bounded(url, label):
    assert label_of(url) == label
