import re

import pytest

from tests.unit.adapters.web.harness import Api, Reply
from tests.unit.discovery.fleet import Fleet


@pytest.fixture
def page() -> Reply:
    return Api(Fleet()).ask("GET", "/docs", token=None)


def test_everything_the_page_names_is_served_from_here(page):
    api = Api(Fleet())
    named = re.findall(rb'(?:src|href)="([^"]+)"', page.body)
    assert len(named) >= 5
    for target in named:
        if target != b"data:,":
            reply = api.ask("GET", target.decode(), token=None)
            assert reply.status == 200
            assert reply.body


def test_the_page_may_load_nothing_from_elsewhere(page):
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert "unsafe" not in policy
    assert b"://" not in page.body
    assert b"<style" not in page.body
    assert not re.search(rb"<script>|onload=|style=", page.body)


def test_only_the_files_of_the_page_can_be_had():
    api = Api(Fleet())
    for name in ("page.html", "..%2f__init__.py", "swagger-ui.LICENSE", "%2e%2e"):
        assert api.ask("GET", f"/docs/{name}", token=None).status == 404


def test_the_interface_is_one_that_knows_openapi_3_1():
    bundle = Api(Fleet()).ask("GET", "/docs/swagger-ui-bundle.js", token=None)
    assert b"https://spec.openapis.org/oas/3.1/dialect/base" in bundle.body
