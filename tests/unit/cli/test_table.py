"""Alignment, and text that cannot steer a terminal."""

from proxy_operator.cli.table import Table, cell


def test_later_rows_keep_the_columns():
    table = Table(["NAME", "PHASE"])
    assert table.lines([["a", "Ready"], ["longer-name", "x"]]) == [
        "NAME          PHASE",
        "a             Ready",
        "longer-name   x",
    ]
    assert table.lines([["b", "Pending"]]) == ["b             Pending"]
    assert table.lines([]) == []


def test_absent_values_are_said():
    assert [cell(value) for value in (None, "", 0, "x")] == ["<none>", "<none>", "0", "x"]
