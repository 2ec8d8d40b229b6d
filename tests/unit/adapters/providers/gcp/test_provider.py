"""The order of calls, on virtual time, against scripted answers."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from proxy_operator.adapters.providers.gcp.api import ComputeApi
from proxy_operator.adapters.providers.gcp.provider import GcpProvider
from proxy_operator.adapters.providers.gcp.session import Reply
from proxy_operator.domain.instance import InstanceState
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    PermanentProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from tests.builders import a_clock
from tests.unit.adapters.providers.gcp.scripted import (
    CLUSTER,
    REQUEST_ID,
    ZONE,
    ScriptedSession,
    a_gcp_proxy,
    a_page,
    a_request,
    an_instance,
    not_found,
    ok,
    operation,
    refusal,
)

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)


@pytest.fixture
def session() -> ScriptedSession:
    return ScriptedSession()


@pytest.fixture
def provider(session: ScriptedSession) -> GcpProvider:
    return GcpProvider(ComputeApi(session, "p"), cluster_id=CLUSTER, clock=a_clock())


def id_of(request: CreateRequest) -> str:
    return f"zones/{request.zone}/instances/{request.name}"


def foreign(request: CreateRequest) -> CreateRequest:
    labels = {**request.labels, "proxy-operator-cluster": "somebody"}
    return msgspec.structs.replace(request, labels=labels)


def again(request: CreateRequest) -> CreateRequest:
    return msgspec.structs.replace(request, is_repeated=True)


def another(zone: str = ZONE) -> CreateRequest:
    return a_request(zone=zone)


class TestCreate:
    async def test_one_insert_with_the_request_id(self, provider, session):
        session.will(operation())
        request = a_request()
        assert await provider.create(request) == id_of(request)
        [sent] = session.sent
        assert (sent.method, sent.path) == (
            "POST",
            f"/compute/v1/projects/p/zones/{ZONE}/instances",
        )
        assert sent.query == {"requestId": REQUEST_ID}
        assert sent.body["labels"].items() >= request.labels.items()

    async def test_ours_under_that_name_is_as_good(self, provider, session):
        request = a_request()
        session.will(refusal(409, "alreadyExists"), ok(an_instance(request)))
        assert await provider.create(request) == id_of(request)

    @pytest.mark.parametrize("key", ["proxy-operator-cluster", "proxy-operator-uid"])
    async def test_a_foreign_one_is_left_alone(self, provider, session, key):
        request = a_request()
        document = an_instance(request)
        document["labels"][key] = "other"
        session.will(refusal(409, "alreadyExists"), ok(document))
        with pytest.raises(PermanentProviderError, match="foreign"):
            await provider.create(request)
        assert session.calls == ["POST instances", f"GET {request.name}"]

    async def test_a_name_taken_by_what_is_just_going_may_be_free_soon(self, provider, session):
        session.will(refusal(409, "alreadyExists"), not_found())
        with pytest.raises(TransientProviderError):
            await provider.create(a_request())

    async def test_a_missing_field_sends_nothing(self, provider, session):
        with pytest.raises(PermanentProviderError):
            await provider.create(a_request(block={"image": None}))
        assert session.sent == []

    async def test_an_operation_that_failed_at_once(self, provider, session):
        session.will(operation("QUOTA_EXCEEDED"))
        with pytest.raises(QuotaExceededError):
            await provider.create(a_request())


class TestRepeatedCreate:
    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            ("QUOTA_EXCEEDED", QuotaExceededError),
            ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", StockOutError),
            ("INVALID_FIELD_VALUE", PermanentProviderError),
        ],
    )
    async def test_what_came_of_the_first_is_raised(self, provider, session, code, kind):
        request = a_request()
        session.will(operation(), operation(code))
        await provider.create(request)
        with pytest.raises(kind):
            await provider.create(again(request))
        assert [one.query for one in session.sent] == [{"requestId": REQUEST_ID}] * 2

    async def test_one_still_under_way_is_the_same_instance(self, provider, session):
        request = a_request()
        session.will(operation(), operation(), operation(status="DONE"))
        ids = [await provider.create(one) for one in (request, again(request), again(request))]
        assert set(ids) == {id_of(request)}

    @pytest.mark.parametrize(
        "reply",
        [
            refusal(403, "quotaExceeded"),
            refusal(400, "invalid"),
            refusal(404, "notFound"),
            refusal(503, "ZONE_RESOURCE_POOL_EXHAUSTED"),
        ],
    )
    async def test_a_refusal_now_says_nothing_of_the_first(self, provider, session, reply):
        request = a_request()
        session.will(operation(), reply)
        await provider.create(request)
        with pytest.raises(TransientProviderError):
            await provider.create(again(request))

    async def test_the_breaker_does_not_stand_in_its_way(self, provider, session):
        session.will(operation("ZONE_RESOURCE_POOL_EXHAUSTED"), operation())
        with pytest.raises(StockOutError):
            await provider.create(another())
        request = again(another())
        assert await provider.create(request) == id_of(request)


class TestBreaker:
    async def test_after_a_stock_out_the_others_wait_and_one_tries(self, provider, session):
        session.will(operation("ZONE_RESOURCE_POOL_EXHAUSTED"))
        with pytest.raises(StockOutError):
            await provider.create(another())
        with pytest.raises(StockOutError):
            await provider.create(another())
        assert len(session.sent) == 1
        await asyncio.sleep(31)
        session.will(operation())
        await provider.create(another())
        with pytest.raises(StockOutError):
            await provider.create(another())
        assert len(session.sent) == 2

    async def test_another_zone_or_machine_type_is_free(self, provider, session):
        session.will(operation("ZONE_RESOURCE_POOL_EXHAUSTED"), operation(), operation())
        with pytest.raises(StockOutError):
            await provider.create(another())
        await provider.create(another("us-east1-b"))
        await provider.create(a_request(proxy=a_gcp_proxy(machine_type="n2-standard-2")))

    async def test_an_instance_that_runs_opens_the_zone_again(self, provider, session):
        session.will(operation("QUOTA_EXCEEDED"))
        with pytest.raises(QuotaExceededError):
            await provider.create(another())
        await asyncio.sleep(31)
        request = another()
        session.will(operation(), a_page(), ok(an_instance(request)), operation())
        await provider.create(request)
        assert (await provider.get(id_of(request))).state is InstanceState.RUNNING
        await provider.create(another())

    async def test_an_instance_that_never_came_closes_the_zone(self, provider, session):
        request = another()
        session.will(operation())
        await provider.create(request)
        await asyncio.sleep(121)
        session.will(a_page(), not_found())
        with pytest.raises(InstanceNotFoundError):
            await provider.get(id_of(request))
        with pytest.raises(StockOutError):
            await provider.create(another())

    async def test_a_check_tells_of_a_stock_out_and_not_of_a_quota(self, provider, session):
        session.will(operation("ZONE_RESOURCE_POOL_EXHAUSTED"), not_found())
        with pytest.raises(StockOutError):
            await provider.create(another())
        with pytest.raises(StockOutError):
            await provider.check(another())
        await asyncio.sleep(31)
        session.will(operation("QUOTA_EXCEEDED"), not_found())
        with pytest.raises(QuotaExceededError):
            await provider.create(another())
        await provider.check(another())


class TestGet:
    async def test_what_no_instance_can_be_called_is_not_found(self, provider, session):
        for bad in ("zones//instances/proxy-x", "nonsense"):
            with pytest.raises(InstanceNotFoundError):
                await provider.get(bad)
        assert session.sent == []

    async def test_a_drift_cycle_of_many_is_one_list(self, provider, session):
        requests = [another() for _ in range(200)]
        session.will(a_page(*(an_instance(one) for one in requests)))
        session.seconds = 0.5
        found = await asyncio.gather(*(provider.get(id_of(one)) for one in requests))
        assert {one.state for one in found} == {InstanceState.RUNNING}
        assert session.calls == ["GET instances"]

    async def test_a_list_is_old_after_a_while(self, provider, session):
        request = another()
        session.will(a_page(an_instance(request)))
        await provider.get(id_of(request))
        await asyncio.sleep(19)
        await provider.get(id_of(request))
        session.will(a_page(an_instance(request)))
        await asyncio.sleep(2)
        await provider.get(id_of(request))
        assert session.calls == ["GET instances"] * 2

    @pytest.mark.parametrize(
        "extra", [{}, {"unreachables": [f"zones/{ZONE}"]}], ids=["complete", "incomplete"]
    )
    async def test_absence_in_a_list_is_not_gone(self, provider, session, extra):
        request = another()
        session.will(a_page(**extra), ok(an_instance(request)))
        assert (await provider.get(id_of(request))).state is InstanceState.RUNNING

    @pytest.mark.parametrize("status", ["STOPPING", "TERMINATED", "STAGING"])
    async def test_what_a_list_shows_otherwise_is_asked_for(self, provider, session, status):
        request = another()
        session.will(
            a_page(an_instance(request, status=status)), ok(an_instance(request, status=status))
        )
        assert (await provider.get(id_of(request))).state is not InstanceState.RUNNING
        assert session.calls == ["GET instances", f"GET {request.name}"]

    async def test_a_list_from_before_a_delete_does_not_count(self, provider, session):
        request = another()
        document = an_instance(request)
        session.will(a_page(document))
        await provider.get(id_of(request))
        session.will(ok(document), operation())
        await provider.delete(id_of(request))
        session.will(not_found())
        with pytest.raises(InstanceNotFoundError):
            await provider.get(id_of(request))

    async def test_without_a_list_it_asks_by_name_and_does_not_list_at_once_again(
        self, provider, session
    ):
        request = another()
        session.will(refusal(403, "rateLimitExceeded"), ok(an_instance(request)))
        await provider.get(id_of(request))
        session.will(ok(an_instance(request)))
        await provider.get(id_of(request))
        assert session.calls == ["GET instances", *[f"GET {request.name}"] * 2]

    async def test_denied_reads_are_the_surroundings(self, provider, session):
        session.will(refusal(403, "forbidden"), refusal(403, "forbidden"))
        with pytest.raises(EnvironmentProviderError):
            await provider.get(id_of(another()))

    async def test_an_answer_that_is_no_instance_proves_nothing(self, provider, session):
        session.will(a_page(), Reply(200, {}))
        with pytest.raises(TransientProviderError):
            await provider.get(id_of(another()))


class TestDelete:
    async def test_one_get_and_one_delete(self, provider, session):
        request = a_request()
        session.will(ok(an_instance(request)), operation())
        await provider.delete(id_of(request))
        assert session.calls == [f"GET {request.name}", f"DELETE {request.name}"]

    async def test_what_is_foreign_stays(self, provider, session):
        request = a_request()
        session.will(ok(an_instance(foreign(request))))
        with pytest.raises(PermanentProviderError, match="foreign"):
            await provider.delete(id_of(request))
        assert session.calls == [f"GET {request.name}"]

    async def test_what_is_going_is_not_asked_again(self, provider, session):
        request = a_request()
        session.will(ok(an_instance(request, status="STOPPING")))
        await provider.delete(id_of(request))
        assert session.calls == [f"GET {request.name}"]

    async def test_what_is_gone_is_no_error(self, provider, session):
        request = a_request()
        session.will(not_found(), ok(an_instance(request)), not_found())
        await provider.delete(id_of(request))
        await provider.delete(id_of(request))
        await provider.delete("nonsense")

    async def test_a_refused_delete_is_the_surroundings_fault(self, provider, session):
        request = a_request()
        session.will(ok(an_instance(request)), refusal(400, "invalid", message="protected"))
        with pytest.raises(EnvironmentProviderError, match="protected"):
            await provider.delete(id_of(request))


class TestList:
    async def test_pages_are_followed_to_the_end(self, provider, session):
        requests = [another("us-east1-b"), another(), another()]
        session.will(
            a_page(an_instance(requests[0]), token="t1"),
            a_page(an_instance(requests[1]), token="t2"),
            a_page(an_instance(requests[2])),
        )
        found = await provider.list_by_tag()
        assert found.complete
        assert {one.provider_id for one in found.items} == {id_of(one) for one in requests}
        assert {one.path for one in session.sent} == {"/compute/v1/projects/p/aggregated/instances"}
        assert session.sent[0].query == {
            "filter": 'labels.proxy-operator-cluster="cluster-1"',
            "maxResults": "500",
            "returnPartialSuccess": "true",
        }
        assert [one.query.get("pageToken") for one in session.sent] == [None, "t1", "t2"]

    @pytest.mark.parametrize(
        "extra",
        [
            {"unreachables": ["projects/p/zones/us-east1-b"]},
            {"warning": {"code": "UNREACHABLE"}},
            {"warning": {"code": "PARTIAL_SUCCESS"}},
            {"warning": {"code": "SOMETHING_NEW"}},
            {"items": {"zones/us-east1-b": {"warning": {"code": "UNREACHABLE"}}}},
        ],
    )
    async def test_an_incomplete_page_makes_the_list_incomplete(self, provider, session, extra):
        session.will(a_page(token="t1", **extra), a_page())
        assert not (await provider.list_by_tag()).complete

    async def test_a_list_that_breaks_off_is_no_list(self, provider, session):
        session.will(a_page(token="t1"), refusal(503))
        with pytest.raises(TransientProviderError):
            await provider.list_by_tag()

    async def test_pages_in_a_circle_end(self, provider, session):
        session.will(a_page(token="t1"), a_page(token="t1"))
        with pytest.raises(TransientProviderError):
            await provider.list_by_tag()

    async def test_what_a_filter_let_through_by_mistake_is_dropped(self, provider, session):
        session.will(a_page(an_instance(foreign(another()))))
        assert (await provider.list_by_tag()).items == ()

    async def test_an_answer_that_is_no_list_proves_nothing(self, provider, session):
        session.will(Reply(200, {}))
        with pytest.raises(TransientProviderError):
            await provider.list_by_tag()

    async def test_a_survey_asks_for_every_cluster(self, provider, session):
        session.will(a_page(an_instance(a_request()), an_instance(foreign(another()))))
        found = await provider.list_all()
        assert [one.labels["proxy-operator-cluster"] for one in found.items] == [
            CLUSTER,
            "somebody",
        ]
        assert session.sent[0].query["filter"] == "labels.proxy-operator-uid:*"

    async def test_it_is_asked_for_every_time(self, provider, session):
        session.will(a_page(), a_page())
        await provider.list_by_tag()
        await provider.list_by_tag()


async def test_a_check_finds_a_foreign_instance_and_sends_nothing_else(provider, session):
    request = a_request(request_id="")
    session.will(ok(an_instance(foreign(request))))
    with pytest.raises(PermanentProviderError, match="foreign"):
        await provider.check(request)
    assert session.calls == [f"GET {request.name}"]


async def test_it_waits_longer_than_it_asks(provider):
    assert provider.asks_again_after[-1] + timedelta(minutes=3) <= provider.appears_within
