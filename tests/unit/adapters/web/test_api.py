"""What clients see of the discovery API, without a socket."""

import logging

import pytest

from proxy_operator.adapters.web import operations as operations_module
from proxy_operator.adapters.web.auth import OpenGuard
from proxy_operator.adapters.web.bind import parse_bind
from proxy_operator.adapters.web.routes import ROUTES
from proxy_operator.domain.secret import Credentials
from tests.unit.adapters.web.harness import TOKEN, Api
from tests.unit.discovery.fleet import Fleet, a_leasable


@pytest.fixture
def api() -> Api:
    return Api(Fleet().add(a_leasable("p1", attributes={"region": "eu"}, max_leases=1)))


def test_a_lease_from_grant_to_release(api):
    lease = api.ask("POST", "/v1/leases", {"selector": {"region": "eu"}, "target": "example.com"})
    assert lease.status == 201
    assert lease.headers["cache-control"] == "no-store"
    assert list(lease.json) == ["leaseID", "proxy", "expiresAt", "ttlSeconds"]
    assert list(lease.json["proxy"]) == [
        "name",
        "namespace",
        "url",
        "scheme",
        "host",
        "port",
        "username",
        "password",
        "attributes",
        "latencyMillis",
    ]
    assert lease.json["proxy"]["username"] is None
    assert lease.json["expiresAt"].endswith("Z")
    where = f"/v1/leases/{lease.json['leaseID']}"
    assert api.ask("GET", "/v1/leases").json["leases"][0]["leaseID"] == lease.json["leaseID"]
    assert api.ask("POST", f"{where}/renew", {"ttlSeconds": 600}).json["ttlSeconds"] == 600
    assert api.ask("POST", f"{where}/report", {"result": "ok"}).status == 204
    released = api.ask("DELETE", where)
    assert (released.status, released.headers, released.body) == (204, {}, b"")
    assert api.ask("DELETE", where).status == 204
    assert api.ask("GET", "/v1/leases").json == {"leases": [], "count": 0}


def test_one_place_is_granted_once(api):
    answers = [api.ask("POST", "/v1/leases", {}).status for _ in range(100)]
    assert (answers.count(201), answers.count(409)) == (1, 99)


def test_a_refusal_says_why_and_when_to_ask_again(api):
    api.ask("POST", "/v1/leases", {"ttlSeconds": 30})
    reply = api.ask("POST", "/v1/leases", {})
    assert reply.status == 409
    assert reply.json == {
        "error": "no_match",
        "message": "of 1 matching, none can be leased: 1 at capacity",
        "considered": 1,
        "unhealthy": 0,
        "atCapacity": 1,
        "inCooldown": 0,
    }
    assert reply.headers["retry-after"] == "30"


def test_a_refusal_with_nothing_due_back_has_no_retry_after(api):
    reply = api.ask("POST", "/v1/leases", {"selector": {"region": "mars"}})
    assert (reply.status, reply.json["message"]) == (409, "no proxy matches")
    assert "retry-after" not in reply.headers


def test_a_ban_counts_for_its_target_before_the_next_answer(api):
    lease = api.ask("POST", "/v1/leases", {"target": "a.example"}).json["leaseID"]
    assert api.ask("POST", f"/v1/leases/{lease}/report", {"result": "banned"}).status == 204
    api.ask("DELETE", f"/v1/leases/{lease}")
    assert api.ask("POST", "/v1/leases", {"target": "a.example"}).json["inCooldown"] == 1
    assert api.ask("POST", "/v1/leases", {"target": "b.example"}).status == 201


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"ttlSeconds": 0}, "ttlSeconds"),
        ({"ttlSeconds": -1}, "ttlSeconds"),
        ({"ttlSeconds": 10**9}, "ttlSeconds"),
        ({"ttlSeconds": "300"}, "ttlSeconds"),
        ({"ttlSeconds": None}, "ttlSeconds"),
        ({"ttlSeconds": 1.5}, "ttlSeconds"),
        ({"ttlSeconds": True}, "ttlSeconds"),
        (b'{"ttlSeconds":1e9}', "ttlSeconds"),
        (b'{"ttlSeconds":' + b"9" * 5000 + b"}", "ttlSeconds"),
        ({"ttl": 300}, "`ttl`"),
        ({"selector": ["eu"]}, "selector"),
        ({"selector": {"region": 1}}, "selector"),
        ({"selector": {"region": None}}, "selector"),
        ({"selector": {str(n): "x" for n in range(65)}}, "selector"),
        ({"target": None}, "target"),
        ({"target": "x" * 2049}, "target"),
        ({"namespace": ""}, "namespace"),
        (b'{"ttlSeconds":5,"ttlSeconds":600}', "`ttlSeconds` is given twice"),
        (b'{"selector":{"a":"1","\\u0061":"2"}}', "`a` is given twice"),
        (b'{"target":"a:b","selector":{"a":":","a":""}}', "`a` is given twice"),
        (b"[]", "object"),
        (b"nope", "malformed"),
        (b"{}{}", "malformed"),
        (b"\xef\xbb\xbf{}", "malformed"),
        (b'{"target":"\xff"}', "UTF-8"),
        (b'{"target":"\\ud800"}', "body"),
        (b"[" * 60_000, "object"),
        (b'{"selector":' + b'{"a":' * 10_000, "selector"),
        (b'{"' + b"x" * 60_000 + b'":1}', "unknown field"),
        (b"region=eu", "malformed"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_wrong_lease_request_names_the_fault_and_leases_nothing(api, body, names):
    reply = api.ask("POST", "/v1/leases", body)
    assert (reply.status, reply.error) == (400, "invalid_request")
    assert names in reply.json["message"]
    assert len(reply.json["message"]) <= 301
    assert api.fleet.leases.total_leases() == 0
    assert api.fleet.outcomes.seen == ["invalid"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"ttlSeconds": "5"}, "expected a whole number, got text in `ttlSeconds`"),
        ({"ttlSeconds": 0}, "expected a whole number >= 1 in `ttlSeconds`"),
        ({"target": None}, "expected text, got null in `target`"),
        ({"target": True}, "expected text, got true or false in `target`"),
        ({"target": "x" * 2049}, "expected text of length <= 2048 in `target`"),
        ({"selector": ["eu"]}, "expected an object, got a list in `selector`"),
        (b"[]", "expected an object, got a list"),
        ({"int": 1}, "object contains unknown field `int`"),
        (b"{", "input data was truncated"),
        (b"region=eu", "JSON is malformed: invalid character (byte 0)"),
    ],
    ids=repr,
)
def test_faults_are_told_in_the_words_of_json(api, body, said):
    assert api.ask("POST", "/v1/leases", body).json["message"] == f"body: {said}"


def test_the_longest_target_is_taken(api):
    leased = api.ask("POST", "/v1/leases", {"target": "x" * 2048})
    assert leased.status == 201
    report = {"result": "ok", "target": "y" * 2048}
    path = f"/v1/leases/{leased.json['leaseID']}/report"
    assert api.ask("POST", path, report).status == 204
    assert api.ask("POST", path, {**report, "target": "y" * 2049}).status == 400


@pytest.mark.parametrize("body", [b"", b"{}", b" {} "])
def test_every_wish_may_be_left_out(api, body):
    assert api.ask("POST", "/v1/leases", body).status == 201


def test_a_body_over_the_cap_is_refused(api):
    reply = api.ask("POST", "/v1/leases", b" " * 65 * 1024 + b"{}")
    assert (reply.status, reply.error) == (413, "body_too_large")
    assert api.fleet.leases.total_leases() == 0


def test_a_body_at_the_cap_is_read(api):
    assert api.ask("POST", "/v1/leases", b" " * (64 * 1024 - 2) + b"{}").status == 201


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"result": "fine"}, "invalid_result"),
        ({"result": 1}, "invalid_result"),
        ({"result": None}, "invalid_result"),
        ({}, "invalid_result"),
        (b"", "invalid_result"),
        ({"result": "ok", "target": 1}, "invalid_request"),
        ({"result": "ok", "why": "x"}, "invalid_request"),
        (b"nope", "invalid_request"),
    ],
    ids=repr,
)
def test_a_wrong_report_changes_nothing(api, body, error):
    lease = api.ask("POST", "/v1/leases", {}).json["leaseID"]
    reply = api.ask("POST", f"/v1/leases/{lease}/report", body)
    assert (reply.status, reply.error) == (400, error)
    api.ask("DELETE", f"/v1/leases/{lease}")
    assert api.ask("POST", "/v1/leases", {}).status == 201


@pytest.mark.parametrize("verb", ["report", "renew"])
def test_an_unknown_lease_is_not_found(api, verb):
    body = {"result": "ok"} if verb == "report" else {}
    for lease in ("nope", "%2e%2e", "a%2Fb", "é".encode().hex()):
        reply = api.ask("POST", f"/v1/leases/{lease}/{verb}", body)
        assert (reply.status, reply.error) == (404, "unknown_lease")


def test_a_lease_id_is_percent_decoded(api):
    lease = api.ask("POST", "/v1/leases", {}).json["leaseID"]
    encoded = "".join(f"%{ord(char):02x}" for char in lease)
    assert api.ask("POST", f"/v1/leases/{encoded}/report", {"result": "ok"}).status == 204


def test_a_path_that_is_not_utf_8_is_refused(api):
    assert api.ask("DELETE", "/v1/leases/%ff").error == "invalid_request"


def test_the_fleet_is_listed_with_filters_and_pages():
    api = Api(Fleet().add(*(a_leasable(f"p{n}", attributes={"n": str(n % 2)}) for n in range(5))))
    first = api.ask("GET", "/v1/proxies?limit=3").json
    assert first["count"] == 3
    rest = api.ask("GET", f"/v1/proxies?limit=3&continue={first['continue']}").json
    assert (rest["count"], rest["continue"]) == (2, None)
    odd = api.ask("GET", "/v1/proxies?attr.n=1&healthy=true&namespace=default").json
    assert [row["name"] for row in odd["proxies"]] == ["p1", "p3"]
    assert list(odd["proxies"][0]) == [
        "name",
        "namespace",
        "scheme",
        "host",
        "port",
        "attributes",
        "phase",
        "healthy",
        "latencyMillis",
        "activeLeases",
        "maxLeases",
    ]
    assert api.ask("GET", "/v1/proxies?namespace=other").json["proxies"] == []


def test_attribute_filters_are_percent_decoded():
    api = Api(Fleet().add(a_leasable(attributes={"a/b": "x & y+é"})))
    assert api.ask("GET", "/v1/proxies?attr.a%2Fb=x+%26%20y%2B%C3%A9").json["count"] == 1


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("region=eu", "`region`"),
        ("attr.=x", "`attr.`"),
        ("Healthy=true", "`Healthy`"),
        ("healthy=yes", "healthy"),
        ("healthy=true&healthy=true", "healthy"),
        ("namespace=", "namespace"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=x", "limit"),
        ("limit=²", "limit"),
        ("limit=" + "9" * 5000, "limit"),
        ("continue=zzz", "continue"),
        ("healthy", "query"),
        ("attr.x=%ff", "query"),
        ("&".join(f"attr.a{n}=x" for n in range(101)), "query"),
    ],
    ids=lambda value: value[:30],
)
def test_a_wrong_list_query_names_the_fault(api, query, names):
    reply = api.ask("GET", f"/v1/proxies?{query}")
    assert (reply.status, reply.error) == (400, "invalid_request")
    assert names in reply.json["message"]


@pytest.mark.parametrize("target", ["/healthz?x=1", "/v1/leases?limit=1", "/docs?url=http://x"])
def test_unknown_query_parameters_are_refused_everywhere(api, target):
    assert api.ask("GET", target).error == "invalid_request"


PUBLIC = {route.path for route in ROUTES if route.is_public}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *((r.method, r.path) for r in ROUTES if not r.is_public),
        ("GET", "/"),
        ("GET", "/nope"),
        ("PUT", "/v1/leases"),
        ("GET", "/v1"),
        ("GET", "/healthz/"),
        ("GET", "//healthz"),
        ("GET", "/docs/a/b"),
        ("GET", "/%68ealthz"),
        ("POST", "/v1/leases/x/nope"),
    ],
)
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN[:-1] + "x"])
def test_without_the_token_everything_is_401_and_looks_the_same(api, method, path, token):
    reply = api.ask(method, path, b"x" * 100_000, token=token)
    assert reply.status == 401
    assert reply == api.ask("GET", "/nope", token=None)
    assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/docs", "/docs/page.js"])
def test_public_routes_need_no_token(api, path):
    assert api.ask("GET", path, token=None).status == 200


def test_two_authorization_headers_are_none(api):
    extra = ((b"authorization", b"Bearer " + TOKEN.encode()),)
    assert api.ask("GET", "/v1/leases", headers=extra).status == 401


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/leases", "GET, HEAD, POST"),
        ("POST", "/v1/proxies", "GET, HEAD"),
        ("GET", "/v1/leases/x", "DELETE"),
        ("HEAD", "/v1/leases/x/renew", "POST"),
        ("OPTIONS", "/healthz", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(api, method, path, allow):
    reply = api.ask(method, path)
    assert (reply.status, reply.error, reply.headers["allow"]) == (405, "method_not_allowed", allow)


@pytest.mark.parametrize("path", ["/", "/v1/leases/", "/v1/leases//report", "/docs/nope.js"])
def test_an_unknown_path_is_not_found(api, path):
    reply = api.ask("GET", path)
    assert (reply.status, reply.error) == (404, "not_found")


def test_a_replica_that_does_not_lead_answers_no_lease_route():
    api = Api(Fleet().add(a_leasable()), is_leader=lambda: False)
    for route in ROUTES:
        reply = api.ask(route.method, route.path.replace("{id}", "x").replace("{asset}", "page.js"))
        if "leases" in route.path:
            assert (reply.status, reply.error) == (503, "not_leader")
        else:
            assert reply.status == 200


def test_a_fault_inside_is_a_500_that_tells_nothing_and_logs_all(api, monkeypatch, caplog):
    def broken(_: object) -> None:
        raise RuntimeError("secret-detail")

    monkeypatch.setattr(api.fleet.leases, "leases", lambda: broken(None))
    with caplog.at_level(logging.ERROR):
        reply = api.ask("GET", "/v1/leases")
    assert (reply.status, reply.error) == (500, "internal")
    assert b"secret-detail" not in reply.body
    assert "secret-detail" in caplog.text


def test_no_answer_but_a_grant_has_a_password(api):
    api.fleet.secrets.by_name["p1"] = Credentials("crawler", "hidden-4")
    grant = api.ask("POST", "/v1/leases", {})
    assert b"hidden-4" in grant.body
    lease = grant.json["leaseID"]
    for method, path in [
        ("GET", "/v1/proxies"),
        ("GET", "/v1/leases"),
        ("POST", f"/v1/leases/{lease}/renew"),
        ("POST", "/v1/leases"),
    ]:
        assert b"hidden-4" not in api.ask(method, path).body


def test_the_log_has_neither_tokens_ids_nor_targets(api, caplog):
    api.fleet.secrets.by_name["p1"] = Credentials("crawler", "hidden-5")
    with caplog.at_level(logging.DEBUG):
        lease = api.ask("POST", "/v1/leases", {"target": "hidden-6"}).json["leaseID"]
        api.ask("POST", f"/v1/leases/{lease}/report", {"result": "banned"})
        api.ask("GET", "/v1/leases", token="hidden-7")
        api.ask("GET", "/v1/proxies?hidden-8=1")
    text = repr([record.__dict__ for record in caplog.records])
    assert "/v1/leases/{id}/report" in text
    for secret in (TOKEN, lease, "hidden-"):
        assert secret not in text


def test_refusals_cannot_flood_the_log(api, caplog):
    with caplog.at_level(logging.INFO):
        for _ in range(1000):
            api.ask("GET", "/v1/leases", token="wrong")
    assert len(caplog.records) <= 2


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        (b"127.0.0.1:8090", None, 200),
        (b"localhost", None, 200),
        (b"[::1]:8090", None, 200),
        (b"localhost:8090", b"http://localhost:8090", 200),
        (b"rebound.example:8090", None, 403),
        (b"localhost:8090", b"https://elsewhere.example", 403),
        (b"localhost", b"null", 403),
        (b"127.0.0.1.example", None, 403),
    ],
)
def test_an_open_loopback_is_closed_to_the_web_pages_in_the_browser(host, origin, status):
    api = Api(Fleet().add(a_leasable()), guard=OpenGuard(parse_bind("127.0.0.1:0")))
    headers = [(b"host", host)] + ([(b"origin", origin)] if origin else [])
    reply = api.endpoint.dispatch("GET", "/v1/proxies", "", headers, b"")
    assert reply.status == status


def test_an_exposed_open_api_serves_any_name():
    api = Api(Fleet(), guard=OpenGuard(parse_bind(":0")))
    headers = [(b"host", b"crawl.example")]
    assert api.endpoint.dispatch("GET", "/v1/proxies", "", headers, b"").status == 200


def test_every_route_names_an_operation():
    for route in ROUTES:
        assert callable(getattr(operations_module.Operations, route.operation))
