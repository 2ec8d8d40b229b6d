"""Manifests and the fields for which they are refused; none means accepted.

One table for both homes: the unit tests hold this project's admission to it, and the integration
tests hold a real API server to it.
"""

from typing import Any, NamedTuple


class Case(NamedTuple):
    name: str
    manifest: dict[str, Any]
    refused: frozenset[str] = frozenset()
    old: dict[str, Any] | None = None
    """The stored object, when the manifest is an update."""


def proxy(spec: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "crawl.example.com/v1alpha1",
        "kind": "Proxy",
        "metadata": {"name": "p1", "namespace": "default", **metadata},
        "spec": spec,
    }


def external(**more: Any) -> dict[str, Any]:
    return {"mode": "External", "endpoint": {"host": "192.0.2.1", "port": 3128}, **more}


def local(**more: Any) -> dict[str, Any]:
    return {"provider": "local", **more}


def at_host(host: Any) -> dict[str, Any]:
    return external(endpoint={"host": host, "port": 3128})


def probed(**health_check: Any) -> dict[str, Any]:
    return local(healthCheck=health_check)


def squid(**block: Any) -> dict[str, Any]:
    return {"provider": "kubernetes", "kubernetes": block}


def gcp(**block: Any) -> dict[str, Any]:
    return {"provider": "gcp", "gcp": block}


def refused(name: str, manifest: dict[str, Any], *fields: str, old: Any = None) -> Case:
    return Case(name, manifest, frozenset(fields), old)


HOSTS = (
    *(
        "192.0.2.1",
        "0.0.0.0",
        "255.255.255.255",
        "localhost",
        "proxy.example.com",
        "p1.example.com.",
    ),
    *("xn--bcher-kva.example", "PROXY.Example.COM", "a_b.example", "3com.example", "7a3f", "1-2"),
    *("2001:db8::1", "::1", "::", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8"),
    *("::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "1:2:3:4:5:6:192.0.2.1", "2001:DB8::A"),
    *("fe80::1%eth0", "fe80::1%eth0.100", "a" * 63 + ".example"),
)
NO_HOSTS = (
    *("[::1]", "http://host", "host:3128", "user@host", "host/", "a b", "a..b", ".a", "-a", "a-"),
    *("a\n", "bücher.example", "*.example.com", "192.0.2", "192.0.2.256", "192.0.2.1.5", "127.1"),
    *("192.0.2.01", "192.0.2.1.", "3232235777", "0x7f000001", "0x7f.1", "a" * 64 + ".example"),
    *(":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "1::2::3", "12345::"),
    *(":1", "1:", "::1%", "%eth0", "::192.0.2", "192.0.2.1::", "::192.0.2.1:1", "g::"),
    "1:2:3:4:5:6::192.0.2.1",
)
URLS = (
    *("http://example.com", "https://example.com/", "http://192.0.2.1:8080/ok?a=b&c=%20d"),
    *(
        "http://[2001:db8::1]:8080/",
        "https://[::1]",
        "http://localhost:1/a/b;c=d/@:~",
        "http://e?x",
    ),
    "http://7a3f:65535/",
)
NO_URLS = (
    *("example.com", "ftp://example.com/", "http://", "http:///x", "http://user:pw@example.com/"),
    *("http://user@example.com", "http://example.com:0/", "http://example.com:65536", "http://a b"),
    *("http://example.com/a b", "http://example.com/#top", "http://example.com/ä", "http://a:/"),
    *("http://[::1", "http://::1/", "http://[1.2.3.4]/", "http://[:]/", "http://192.0.2.256/"),
    *("http://0x7f.1/", "HTTP://example.com", "http://example.com/%zz", "http://example.com\n", ""),
)
DURATIONS = ("1s", "1000ms", "1.5m", "1h30m", "24h", "5s5s")
NO_DURATIONS = (
    "5",
    "",
    "s",
    "5 s",
    "1d",
    "5S",
    "5s\n",
    "99999999999999999999h",
    "24h1ms",
)

PROXIES = (
    Case("smallest managed", proxy(local())),
    Case("smallest external", proxy(external())),
    Case(
        "everything local",
        proxy(
            local(
                mode="Managed",
                port=3128,
                scheme="https",
                credentialsSecretRef={"name": "creds.v2"},
                cloudInit={"secretRef": {"name": "user-data", "key": "user-data.v1"}},
                local={"engine": "squid", "egressAddress": "192.0.2.9"},
                attributes={"region": "eu", "a/b._-": "any text: é €\n", "asn": ""},
                maxLeases=0,
                healthCheck={
                    "url": "https://example.com/ok",
                    "expectedStatus": 204,
                    "interval": "1m",
                    "timeout": "250ms",
                    "successThreshold": 2,
                    "failureThreshold": 5,
                },
            )
        ),
    ),
    Case(
        "everything gcp",
        proxy(
            gcp(
                zone="europe-west4-a",
                fallbackZones=["europe-west4-b"],
                machineType="e2-micro",
                image="projects/debian-cloud/global/images/family/debian-12",
                network="default",
                subnetwork="regions/europe-west4/subnetworks/default",
                diskSizeGB=10,
                spot=True,
                networkTags=["proxy"],
                serviceAccount="proxy@example.iam.gserviceaccount.com",
            )
        ),
    ),
    Case(
        "everything kubernetes",
        proxy(
            squid(
                image="registry.example/squid:6",
                resources={
                    "requests": {"cpu": "50m", "memory": "64Mi", "example.com/nic": 1},
                    "limits": {"cpu": 1, "memory": "1e9", "ephemeral-storage": "1.5Gi"},
                },
                nodeSelector={"kubernetes.io/arch": "amd64", "empty": ""},
                tolerations=[
                    {"operator": "Exists"},
                    {
                        "key": "example.com/spot",
                        "operator": "Equal",
                        "value": "true",
                        "effect": "NoExecute",
                        "tolerationSeconds": 300,
                    },
                ],
            )
        ),
    ),
    Case("port 65535", proxy(local(port=65535))),
    Case("port 1", proxy(local(port=1))),
    Case("integral float", proxy(local(port=3128.0))),
    Case("null where a default exists", proxy(local(mode=None, scheme=None, healthCheck=None))),
    Case("status is ignored", {**proxy(local()), "status": {"phase": "Ready"}}),
    Case(
        "labels and annotations",
        proxy(
            local(),
            labels={"a": "", "example.com/team": "crawl_1.x"},
            annotations={"note": "any é\ntext", "Example.com/UPPER": ""},
        ),
    ),
    refused("no spec", {k: v for k, v in proxy({}).items() if k != "spec"}, "spec"),
    refused("spec is null", proxy(None), "spec"),
    refused("spec is a list", proxy([]), "spec"),
    refused("empty spec", proxy({}), "spec.provider"),
    refused("unknown field", proxy(local(colour="red")), "spec.colour"),
    refused("misspelt field", proxy(local(healthcheck={})), "spec.healthcheck"),
    refused("unknown inner field", proxy(probed(intervall="5s")), "spec.healthCheck.intervall"),
    refused(
        "unknown in a list",
        proxy(squid(tolerations=[{"k": "v"}])),
        "spec.kubernetes.tolerations[0].k",
    ),
    refused("managed without provider", proxy({"mode": "Managed"}), "spec.provider"),
    refused("external with provider", proxy(external(provider="local")), "spec.provider"),
    refused("external without endpoint", proxy({"mode": "External"}), "spec.endpoint"),
    refused(
        "managed with endpoint", proxy(local(endpoint={"host": "a", "port": 1})), "spec.endpoint"
    ),
    refused("external with port", proxy(external(port=1)), "spec.port"),
    refused(
        "external with cloud-init",
        proxy(external(cloudInit={"secretRef": {"name": "a"}})),
        "spec.cloudInit",
    ),
    refused("external with a block", proxy(external(local={})), "spec.local"),
    refused(
        "block of another provider",
        proxy(local(gcp={}, kubernetes={})),
        "spec.gcp",
        "spec.kubernetes",
    ),
    refused("mode unknown", proxy(local(mode="managed")), "spec.mode"),
    refused("provider unknown", proxy({"provider": "aws"}), "spec.provider"),
    refused("scheme unknown", proxy(local(scheme="socks5")), "spec.scheme"),
    refused("provider is null", proxy({"provider": None}), "spec.provider"),
    refused("port as text", proxy(local(port="3128")), "spec.port"),
    refused("port is true", proxy(local(port=True)), "spec.port"),
    refused("port 0", proxy(local(port=0)), "spec.port"),
    refused("port 65536", proxy(local(port=65536)), "spec.port"),
    refused("port with a fraction", proxy(local(port=3128.5)), "spec.port"),
    refused("port too large for any integer", proxy(local(port=10**30)), "spec.port"),
    refused("maxLeases negative", proxy(local(maxLeases=-1)), "spec.maxLeases"),
    refused("maxLeases huge", proxy(local(maxLeases=1_000_001)), "spec.maxLeases"),
    refused(
        "endpoint without its parts",
        proxy(external(endpoint={})),
        "spec.endpoint.host",
        "spec.endpoint.port",
    ),
    refused("endpoint as text", proxy(external(endpoint="a:1")), "spec.endpoint"),
    refused("host empty", proxy(at_host("")), "spec.endpoint.host"),
    refused("host a number", proxy(at_host(5)), "spec.endpoint.host"),
    refused("host too long", proxy(at_host(("a" * 50 + ".") * 6)), "spec.endpoint.host"),
    refused(
        "secret without name",
        proxy(local(credentialsSecretRef={})),
        "spec.credentialsSecretRef.name",
    ),
    *(
        refused(
            f"secret name {name!r}",
            proxy(local(credentialsSecretRef={"name": name})),
            "spec.credentialsSecretRef.name",
        )
        for name in ("", "A", "a_b", "a..b", "-a", "a.", "a\n", "a" * 254)
    ),
    refused(
        "cloud-init without its Secret", proxy(local(cloudInit={})), "spec.cloudInit.secretRef"
    ),
    refused(
        "secret key",
        proxy(local(cloudInit={"secretRef": {"name": "a", "key": "a/b"}})),
        "spec.cloudInit.secretRef.key",
    ),
    refused("attribute not text", proxy(local(attributes={"asn": 3320})), "spec.attributes.asn"),
    refused("attribute key", proxy(local(attributes={"a b": "x"})), "spec.attributes"),
    refused("attribute key empty", proxy(local(attributes={"": "x"})), "spec.attributes"),
    refused("attribute key long", proxy(local(attributes={"a" * 254: "x"})), "spec.attributes"),
    refused(
        "attribute value long", proxy(local(attributes={"a": "é" * 1025})), "spec.attributes.a"
    ),
    Case("attribute value at the limit", proxy(local(attributes={"a": "é" * 1024}))),
    refused(
        "too many attributes",
        proxy(local(attributes={f"a{i}": "" for i in range(65)})),
        "spec.attributes",
    ),
    refused("attributes a list", proxy(local(attributes=["a"])), "spec.attributes"),
    refused("engine", proxy(local(local={"engine": "nginx"})), "spec.local.engine"),
    *(
        refused(
            f"egress {text!r}",
            proxy(local(local={"egressAddress": text})),
            "spec.local.egressAddress",
        )
        for text in ("host", "[::1]", "192.0.2.1:80", "", "192.0.2.999")
    ),
    Case("egress IPv6", proxy(local(local={"egressAddress": "2001:db8::1"}))),
    refused("zone", proxy(gcp(zone="EU West")), "spec.gcp.zone"),
    refused(
        "fallback zones",
        proxy(gcp(fallbackZones=["a-b", "", "C"])),
        "spec.gcp.fallbackZones[1]",
        "spec.gcp.fallbackZones[2]",
    ),
    refused("too many zones", proxy(gcp(fallbackZones=["a"] * 17)), "spec.gcp.fallbackZones"),
    refused("blank in image", proxy(gcp(image="a b")), "spec.gcp.image"),
    refused("disk", proxy(gcp(diskSizeGB=0)), "spec.gcp.diskSizeGB"),
    refused("spot as text", proxy(gcp(spot="yes")), "spec.gcp.spot"),
    *(
        refused(
            f"quantity {quantity!r}",
            proxy(squid(resources={"limits": {"cpu": quantity}})),
            "spec.kubernetes.resources.limits.cpu",
        )
        for quantity in ("", "1x", "-1", -1, "1 Gi", "Gi", 1.5, True, "1" * 33)
    ),
    refused(
        "resource name",
        proxy(squid(resources={"limits": {"a b": 1}})),
        "spec.kubernetes.resources.limits",
    ),
    refused(
        "node selector key",
        proxy(squid(nodeSelector={"a/b/c": "x"})),
        "spec.kubernetes.nodeSelector",
    ),
    refused(
        "node selector value",
        proxy(squid(nodeSelector={"a": "x y"})),
        "spec.kubernetes.nodeSelector.a",
    ),
    refused(
        "toleration effect",
        proxy(squid(tolerations=[{"effect": "Never"}])),
        "spec.kubernetes.tolerations[0].effect",
    ),
    refused(
        "expected status", proxy(probed(expectedStatus=199)), "spec.healthCheck.expectedStatus"
    ),
    *(
        refused(
            f"interval {text!r}",
            proxy(probed(interval=text, timeout="100ms")),
            "spec.healthCheck.interval",
            "spec.healthCheck.timeout",
        )
        for text in ("0s", "-5s")
    ),
    refused("threshold 0", proxy(probed(failureThreshold=0)), "spec.healthCheck.failureThreshold"),
    refused(
        "timeout over interval",
        proxy(probed(interval="2s", timeout="3s")),
        "spec.healthCheck.timeout",
    ),
    refused(
        "default timeout over interval", proxy(probed(interval="2s")), "spec.healthCheck.timeout"
    ),
    refused("timeout too short", proxy(probed(timeout="99ms")), "spec.healthCheck.timeout"),
    *(Case(f"host {host}", proxy(at_host(host))) for host in HOSTS),
    *(refused(f"host {host!r}", proxy(at_host(host)), "spec.endpoint.host") for host in NO_HOSTS),
    *(Case(f"url {url}", proxy(probed(url=url))) for url in URLS),
    *(refused(f"url {url!r}", proxy(probed(url=url)), "spec.healthCheck.url") for url in NO_URLS),
    *(
        Case(f"interval {text}", proxy(probed(interval=text, timeout="500ms")))
        for text in DURATIONS
    ),
    *(
        refused(
            f"interval {text!r}",
            proxy(probed(interval=text, timeout="100ms")),
            "spec.healthCheck.interval",
        )
        for text in NO_DURATIONS
    ),
    refused(
        "many faults at once",
        proxy(
            {
                "mode": "External",
                "port": 70000,
                "colour": "red",
                "scheme": "ftp",
                "gcp": {"zone": "A"},
            }
        ),
        "spec.colour",
        "spec.endpoint",
        "spec.gcp",
        "spec.gcp.zone",
        "spec.port",
        "spec.scheme",
    ),
)

UPDATES = (
    Case("no change", proxy(local()), old=proxy(local())),
    Case("edit what may change", proxy(local(port=1, maxLeases=5)), old=proxy(local())),
    Case("mode said aloud", proxy(local(mode="Managed")), old=proxy(local())),
    Case("endpoint moves", proxy(at_host("::1")), old=proxy(external())),
    refused("provider changes", proxy(gcp()), "spec.provider", old=proxy(local())),
    refused("mode changes", proxy(external()), "spec.mode", "spec.provider", old=proxy(local())),
    refused("provider goes", proxy({}), "spec.provider", old=proxy(local())),
)

METADATA = (
    *(
        refused(f"name {name!r}", proxy(local(), name=name), "metadata.name")
        for name in ("A", "a_b", "-a", "a.", "a..b", "a\n", "a" * 254)
    ),
    *(
        refused(f"label key {key!r}", proxy(local(), labels={key: "x"}), "metadata.labels")
        for key in ("", "a b", "a/b/c", "/a", "a/", "-a", "A.example/x", "a" * 64)
    ),
    *(
        refused(
            f"annotation key {key!r}",
            proxy(local(), annotations={key: "x"}),
            "metadata.annotations",
        )
        for key in ("", "a b", "a/b/c", "a" * 64)
    ),
    refused(
        "annotations too large",
        proxy(local(), annotations={"a": "x" * 262144}),
        "metadata.annotations",
    ),
    Case("annotations at the limit", proxy(local(), annotations={"a": "x" * 262143})),
    Case("longest name", proxy(local(), name="a" * 253)),
    Case("finalizer", proxy(local(), finalizers=["example.com/a"])),
)
