"""Flag, variable, default, documentation: one table, so they cannot disagree."""

import inspect
import re
from collections import Counter

import pytest
from typer.main import get_command

from proxy_operator.app.options import OPTIONS, Option, options_of
from proxy_operator.app.options_page import options_table
from proxy_operator.cli.commands import COMMANDS
from proxy_operator.cli.parser import build_parser

PARSED = {
    name: {param.name: param for param in command.params if param.param_type_name == "option"}
    for name, command in get_command(build_parser()).commands.items()  # type: ignore[attr-defined] # a group
}
OFFERED = [(option, name) for option in OPTIONS for name in option.commands]


def test_every_command_of_the_table_exists():
    assert {name for _, name in OFFERED} <= {command.name for command in COMMANDS}


@pytest.mark.parametrize(("option", "command"), OFFERED, ids=lambda v: getattr(v, "name", v))
def test_the_parser_offers_the_flag_of_the_table(option: Option, command: str):
    param = PARSED[command].get(option.parameter)
    if not option.has_flag:
        assert param is None
        return
    assert param is not None
    assert option.flag in param.opts
    assert not option.short or option.short in param.opts
    assert option.help in param.help
    assert option.variable in param.help
    assert option.shown_default in param.help


def test_the_parser_offers_nothing_else():
    for command, params in PARSED.items():
        known = {option.parameter for option in options_of(command)}
        assert set(params) - known <= {"help"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: f"{o.name}-{o.commands[0]}")
def test_a_default_is_a_value_its_own_parser_accepts(option: Option):
    if option.default is not None:
        option.kind.parse(option.default)
    assert not option.is_switch or option.default in {"true", "false"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: f"{o.name}-{o.commands[0]}")
def test_the_documentation_has_a_row_for_it(option: Option):
    rows = [line for line in options_table().splitlines() if line.startswith("| ")]
    row = [r for r in rows if option.help.replace("|", "\\|") in r]
    assert len(row) == 1
    for fact in (option.flag, option.short, option.variable, option.default or ""):
        assert not fact or f"`{fact}`" in row[0]


def test_a_variable_belongs_to_one_meaning_in_each_command():
    for command in COMMANDS:
        variables = Counter(o.variable for o in options_of(command.name) if o.variable)
        assert max(variables.values(), default=1) == 1
        places = Counter(o.place for o in options_of(command.name))
        assert max(places.values(), default=1) == 1


def test_the_same_variable_is_never_read_in_two_ways():
    kinds: dict[str, set[str]] = {}
    for option in OPTIONS:
        if option.variable:
            kinds.setdefault(option.variable, set()).add(option.kind.metavar)
    assert [v for v, found in kinds.items() if len(found) > 1] == []


def test_no_variable_is_one_that_kubernetes_sets():
    # A Service named proxy-operator puts these into every Pod of its namespace.
    injected = re.compile(r"PROXY_OPERATOR_(PORT|SERVICE_(HOST|PORT))(_.*)?")
    assert [o.variable for o in OPTIONS if injected.fullmatch(o.variable)] == []


def test_every_command_says_who_carries_it_out():
    for command in COMMANDS:
        module = __import__(command.module, fromlist=["run"])
        assert list(inspect.signature(module.run).parameters).__len__() == 1
        assert len(command.help) <= 60
