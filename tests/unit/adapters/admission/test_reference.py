"""The page says what this version does not serve."""

from proxy_operator.adapters.admission.reference import NOT_SERVED, ONE_HOME, render


def row_of(field: str) -> str:
    [row] = [line for line in render().splitlines() if line.startswith(f"| `{field}` |")]
    return row


def test_values_that_are_not_served_are_marked_and_no_others():
    for field, values in NOT_SERVED.items():
        listed = ", ".join(f"`{value}`" for value in values)
        assert f" Not served by this version: {listed}." in row_of(field)
    for block in NOT_SERVED["provider"]:
        assert row_of(block).endswith(" Not served by this version. |")
    marked = [line for line in render().splitlines() if "Not served" in line]
    assert len(marked) == len(NOT_SERVED) + len(NOT_SERVED["provider"])


def test_what_only_one_home_serves_is_said_at_the_provider_and_at_its_block():
    for provider, where in ONE_HOME.items():
        assert f"`{provider}` is served {where}." in row_of("provider")
        assert row_of(provider).endswith(f" Served {where}. |")
    page = render().splitlines()
    marked = [line for line in page if any(where in line for where in ONE_HOME.values())]
    assert len(marked) == len(ONE_HOME) + 1
