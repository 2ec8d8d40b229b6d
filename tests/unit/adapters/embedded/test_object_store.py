import sqlite3

import pytest

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.errors import InvalidError, UnavailableError
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions, key_of
from proxy_operator.testing.object_client_contract import a_manifest, a_proxy, a_secret_manifest

KEY = ObjectKey("default", "p1")


def damage(database: Database, document: str) -> None:
    connection = sqlite3.connect(database.path)
    connection.execute("UPDATE objects SET document = ?", (document,))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("document", ["{", "[]", '{"metadata": {"name": "p1"}, "spec": 5}'])
async def test_a_damaged_object_is_never_passed_over(
    database: Database, client: SqliteObjectClient, document: str
):
    made = await client.create(a_proxy("default"))
    damage(database, document)
    with pytest.raises(UnavailableError, match="a stored Proxy cannot be read"):
        await client.get(Proxy, KEY)
    with pytest.raises(UnavailableError, match="a stored Proxy cannot be read"):
        await client.list(Proxy)
    with pytest.raises(UnavailableError, match="the stored Proxy default/p1 cannot be read"):
        await client.patch_metadata(
            Proxy, KEY, Preconditions(made.metadata.uid), MetadataPatch({"a": "1"})
        )


async def test_half_a_character_is_refused(client: SqliteObjectClient):
    made = await client.create(a_proxy("default"))
    patch = MetadataPatch(annotations={"note": "\ud800"})
    with pytest.raises(InvalidError, match="JSON"):
        await client.patch_metadata(Proxy, KEY, Preconditions(made.metadata.uid), patch)
    assert await client.get(Proxy, KEY) == made


async def test_the_history_is_bounded(tmp_path):
    database = Database(tmp_path / "s", history_limit=50)
    await database.open(create=True)
    client = SqliteObjectClient(database, Admission(), SystemClock())
    made = await client.create(a_proxy("default"))
    for number in range(120):
        patch = MetadataPatch({"n": str(number)})
        await client.patch_metadata(Proxy, KEY, Preconditions(made.metadata.uid), patch)
    kept = await database.read(lambda c: c.execute("SELECT count(*) FROM history").fetchone())
    await database.close()
    assert 50 <= kept[0] <= 55


async def test_both_defaults_and_rules_of_admission_hold(database: Database):
    client = SqliteObjectClient(database, Admission(), SystemClock())
    applied = await client.apply(a_manifest("default"))
    assert isinstance(applied.object, Proxy)
    assert (await client.create(a_proxy("default", "p2"))).spec.health_check.interval == "30s"
    managed = a_manifest("default", mode="Managed", provider="local")
    del managed["spec"]["endpoint"]
    with pytest.raises(InvalidError, match="mode is immutable"):
        await client.apply(managed)
    with pytest.raises(InvalidError, match="must be a known kind"):
        await client.apply({**managed, "kind": "Proxies"})


async def test_no_secret_value_in_an_error(client: SqliteObjectClient):
    manifest = a_secret_manifest("default", data={"password": "hunter2!"})
    with pytest.raises(InvalidError) as caught:
        await client.apply(manifest)
    assert "hunter2" not in str(caught.value)
    await client.apply(a_secret_manifest("default", stringData={"password": "hunter2!"}))
    stored = await client.get(Secret, ObjectKey("default", "s1"))
    assert "hunter2" not in repr(stored)
    with pytest.raises(TypeError):
        await client.patch_status(stored)


async def test_names_with_quotes_are_data(client: SqliteObjectClient):
    made = await client.create(a_proxy("default", "x' OR '1'='1"))
    await client.create(a_proxy("default", "p2"))
    await client.delete(Proxy, key_of(made))
    assert [o.metadata.name for o in (await client.list(Proxy)).items] == ["p2"]
