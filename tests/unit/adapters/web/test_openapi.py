import json
import re

import msgspec
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from proxy_operator.adapters.web.openapi import openapi_document, openapi_json
from proxy_operator.adapters.web.routes import ROUTES
from tests.unit.adapters.web.harness import Api, Reply
from tests.unit.discovery.fleet import Fleet, a_leasable


def test_the_document_is_valid_openapi_3_1():
    document = openapi_document()
    assert document["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(document).validate()


def test_every_documented_route_is_in_the_document():
    documented = {
        (method.upper(), path)
        for path, methods in openapi_document()["paths"].items()
        for method in methods
    }
    assert documented == {(r.method, r.path) for r in ROUTES if r.summary}


def test_only_public_routes_go_without_a_token():
    for path, methods in openapi_document()["paths"].items():
        for operation in methods.values():
            assert (operation.get("security") == []) is (path == "/healthz")


def test_what_is_served_is_the_document():
    reply = Api(Fleet()).ask("GET", "/openapi.json", token=None)
    assert reply.body == openapi_json()
    assert reply.json == json.loads(msgspec.json.encode(openapi_document()))


def test_no_schema_has_a_place_for_passwords_but_the_grant():
    schemas = openapi_document()["components"]["schemas"]
    assert {
        n
        for n, s in schemas.items()
        if "password" in s["properties" if "properties" in s else "enum"]
    } == {"LeasedProxy"}


def conforms(method: str, path: str, reply: Reply) -> None:
    document = openapi_document()
    answer = document["paths"][path][method.lower()]["responses"][str(reply.status)]
    if not reply.body:
        assert "content" not in answer
        return
    schema = answer["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": document["components"]}).validate(reply.json)


@pytest.mark.parametrize("token", [None, "t0ken-for-tests"])
def test_every_answer_conforms_to_its_schema(token):
    api = Api(Fleet().add(a_leasable("p1", max_leases=1), a_leasable("p2", healthy=False)))
    lease = api.ask("POST", "/v1/leases", {}).json["leaseID"]
    asked = [
        ("GET", "/healthz", None),
        ("GET", "/v1/proxies", None),
        ("GET", "/v1/proxies?limit=1", None),
        ("GET", "/v1/proxies?limit=x", None),
        ("GET", "/v1/leases", None),
        ("POST", "/v1/leases", {}),
        ("POST", "/v1/leases", {"ttl": 1}),
        ("POST", "/v1/leases", b" " * 70_000),
        ("POST", f"/v1/leases/{lease}/renew", {}),
        ("POST", "/v1/leases/x/renew", {}),
        ("POST", f"/v1/leases/{lease}/report", {"result": "ok"}),
        ("POST", f"/v1/leases/{lease}/report", {"result": "x"}),
        ("POST", "/v1/leases/x/report", {"result": "ok"}),
        ("DELETE", f"/v1/leases/{lease}", None),
        ("POST", "/v1/leases", {"ttlSeconds": 60}),
    ]
    for method, target, body in asked:
        path = re.sub(r"/leases/[^/]+", "/leases/{id}", target.partition("?")[0])
        conforms(method, path, api.ask(method, target, body, token=token))
