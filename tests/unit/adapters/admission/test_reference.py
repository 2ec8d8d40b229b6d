"""The page says what this version does not serve."""

from proxy_operator.adapters.admission.reference import NOT_SERVED, render


def row_of(field: str) -> str:
    [row] = [line for line in render().splitlines() if line.startswith(f"| `{field}` |")]
    return row


def test_values_that_are_not_served_are_marked_and_no_others():
    for field, values in NOT_SERVED.items():
        listed = ", ".join(f"`{value}`" for value in values)
        assert row_of(field).endswith(f" Not served by this version: {listed}. |")
    for block in NOT_SERVED["provider"]:
        assert row_of(block).endswith(" Not served by this version. |")
    marked = [line for line in render().splitlines() if "Not served" in line]
    assert len(marked) == len(NOT_SERVED) + len(NOT_SERVED["provider"])
    assert "Not served" not in row_of("local")
