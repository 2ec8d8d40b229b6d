"""The page says where there is which provider."""

from proxy_operator.adapters.admission.reference import SERVED, render
from proxy_operator.domain.proxy import ProviderName


def row_of(field: str) -> str:
    [row] = [line for line in render().splitlines() if line.startswith(f"| `{field}` |")]
    return row


def test_where_a_provider_is_served_is_said_at_the_provider_and_at_its_block():
    assert SERVED.keys() == set(ProviderName)
    for provider, where in SERVED.items():
        assert f"`{provider}` is served {where}." in row_of("provider")
        assert row_of(provider).endswith(f" Served {where}. |")
    page = render().splitlines()
    marked = [line for line in page if any(where in line for where in SERVED.values())]
    assert len(marked) == len(SERVED) + 1
