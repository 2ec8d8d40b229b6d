import ipaddress

import pytest

from proxy_operator.domain.allow_list import AllowList, is_within, parse_allowed_host
from proxy_operator.domain.proxy import HealthCheck
from tests.builders import a_proxy, an_external

ANYWHERE = None
REFUSED = "refused"
NET = ipaddress.ip_network("10.1.0.0/16")
NETWORKS = (NET,)


def a_list(endpoints: str = "", urls: str = "") -> AllowList:
    return AllowList(
        tuple(map(parse_allowed_host, endpoints.split())),
        tuple(map(parse_allowed_host, urls.split())),
    )


@pytest.mark.parametrize(
    ("allowed", "host", "port", "answer"),
    [
        ("", "169.254.169.254", 80, ANYWHERE),
        ("proxy.example", "proxy.example", 3128, ANYWHERE),
        ("proxy.example", "PROXY.Example.", 3128, ANYWHERE),
        ("Proxy.Example.", "proxy.example", 3128, ANYWHERE),
        ("proxy.example", "a.proxy.example", 3128, REFUSED),
        ("proxy.example", "proxy.example.evil.example", 3128, REFUSED),
        ("proxy.example:3128", "proxy.example", 3128, ANYWHERE),
        ("proxy.example:3128", "proxy.example", 22, REFUSED),
        ("*.proxies.example", "a.proxies.example", 1, ANYWHERE),
        ("*.proxies.example", "a.b.proxies.example", 1, ANYWHERE),
        ("*.proxies.example", "proxies.example", 1, REFUSED),
        ("*.proxies.example", "evilproxies.example", 1, REFUSED),
        ("*.proxies.example:3128", "a.proxies.example", 1, REFUSED),
        ("10.1.0.0/16", "10.1.2.3", 1, NETWORKS),
        ("10.1.0.0/16", "10.2.2.3", 1, REFUSED),
        ("10.1.0.0/16", "::ffff:10.1.2.3", 1, NETWORKS),
        ("::/0", "::ffff:10.1.2.3", 1, REFUSED),
        ("10.1.0.0/16", "a.example", 1, NETWORKS),
        ("10.1.0.0/16", "10.1.2.3.example", 1, NETWORKS),
        ("10.1.0.0/16 *.example", "a.example", 1, ANYWHERE),
        ("*.example", "10.1.2.3", 1, REFUSED),
        ("10.1.2.3", "10.1.2.3", 9, (ipaddress.ip_network("10.1.2.3/32"),)),
        ("10.1.2.3:8", "10.1.2.3", 9, REFUSED),
        ("10.1.2.3:8", "a.example", 9, REFUSED),
        ("10.1.2.3:8", "a.example", 8, (ipaddress.ip_network("10.1.2.3/32"),)),
        ("[2001:db8::1]:8", "2001:DB8:0::1", 8, (ipaddress.ip_network("2001:db8::1/128"),)),
        ("2001:db8::1", "2001:db8::1", 8, (ipaddress.ip_network("2001:db8::1/128"),)),
        ("fe80::/10", "fe80::1%eth0", 8, (ipaddress.ip_network("fe80::/10"),)),
    ],
)
def test_an_endpoint_is_what_the_list_names(
    allowed: str, host: str, port: int, answer: object
) -> None:
    rules, proxy = a_list(allowed), an_external(host=host, port=port)

    refusal = rules.refusal(proxy)

    if answer == REFUSED:
        assert refusal is not None
        assert host in refusal
        assert "--allow-endpoints" in refusal
    else:
        assert (refusal, rules.networks_of(proxy)) == (None, answer)


@pytest.mark.parametrize(
    ("allowed", "url", "is_allowed"),
    [
        ("", "http://169.254.169.254/latest", True),
        ("check.example", "https://check.example/ip?x=1", True),
        ("check.example", "https://CHECK.example:8443/", True),
        ("check.example", "https://check.example.evil.example/", False),
        ("check.example", "https://evil.example/check.example", False),
        ("check.example", "https://check.example@evil.example/", False),
        ("check.example", "https://evil.example#@check.example/", False),
        ("check.example", "https://evil.example\\@check.example/", True),  # asks check.example
        ("check.example:443", "https://check.example/", True),
        ("check.example:443", "http://check.example/", False),
        ("check.example:443", "http://check.example:443/", True),
        ("*.example", "http://a.example/", True),
        ("*.good.example", "http://evil.example%2f.good.example/", False),
        ("*.good.example", "http://evil.example%23.good.example/", False),
        ("*.good.example", "http://evil.example\\.good.example/", False),
        ("*.good.example", "http://evil.example;.good.example/", False),
        ("*.good.example", "http://a.evil.example\t/.good.example/", False),
        ("10.1.0.0/16", "http://167837697/", False),
        ("10.1.0.0/16", "http://10.1.2.3./", False),
        ("10.1.0.0/16", "http://10.1.2.3/", True),
        ("10.1.0.0/16", "http://10.2.2.3/", False),
        ("2001:db8::/32", "http://[2001:db8::1]/", True),
        ("10.1.0.0/16", "http://a.example/", False),
        ("xn--bcher-kva.example", "http://bücher.example/", True),
        ("check.example", "http:///", False),
        ("check.example", "http://check.example:99999/", False),
    ],
)
def test_a_url_is_judged_by_the_host_it_is_asked_of(
    allowed: str, url: str, is_allowed: bool
) -> None:
    rules, check = a_list(urls=allowed), HealthCheck(url=url)

    for proxy in (an_external(health_check=check), a_proxy(health_check=check)):
        refusal = rules.refusal(proxy)
        assert (refusal is None) is is_allowed
        assert refusal is None or "--allow-health-urls" in refusal


def test_lists_say_nothing_of_what_the_operator_made_or_chose() -> None:
    rules = a_list("nobody.example", "nobody.example")

    assert rules.refusal(a_proxy()) is None
    assert rules.networks_of(a_proxy()) is None


def test_only_addresses_lie_in_a_network() -> None:
    assert is_within((NET,), "10.1.255.255")
    assert is_within((NET,), "::ffff:10.1.0.1")
    assert not is_within((NET,), "10.2.0.0")
    assert not is_within((NET,), "a.example")
    assert not is_within((), "10.1.0.1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.",
        "*.*.example",
        "a.*.example",
        "https://check.example/",
        "https://check.example",
        "check.example/path",
        "check.example:",
        "check.example:0",
        "check.example:65536",
        "check.example:http",
        "10.1.0.1/16",
        "10.1.0.0/33",
        "10.1",
        "[2001:db8::1]:",
        "[check.example]:80",
        "2001:db8::1:99999",
        "fe80::1%eth0",
        "user@check.example",
        "a b",
        ":80",
    ],
)
def test_what_is_no_host_is_refused_and_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"no (host|network)") as caught:
        parse_allowed_host(text)
    assert repr(text) in str(caught.value)
