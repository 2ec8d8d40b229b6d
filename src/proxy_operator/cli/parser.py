"""The command line parser, built from the tables of commands and options.

Typer splits the line; it sees neither variables nor defaults, which `app.settings` resolves.
"""

import importlib
import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from proxy_operator import __version__
from proxy_operator.app.given import unknown_variables
from proxy_operator.app.options import Option, options_of
from proxy_operator.cli.commands import COMMANDS, Argument, Command
from proxy_operator.cli.invocation import Invocation, ReaderGoneError
from proxy_operator.cli.output import say

_HELP: Final = """Declare crawl proxies, keep them healthy, lease them out, delete them.

Every option is also an environment variable, named in brackets.
"""
_CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class SectionedCommand(TyperCommand):
    """A command whose help shows its options by section."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - the parser's own type
        """Return what follows the name of the command in its usage line."""
        return ["[OPTIONS]", *(a.metavar for a in _command(self.name).arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - the parser's own types
        """Write arguments, then options under the titles of their sections."""
        sections = {option.parameter: option.section for option in options_of(self.name or "")}
        arguments = [(a.metavar, a.help) for a in _command(self.name).arguments]
        found = {"Arguments": arguments} if arguments else {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and param.param_type_name == "option":
                found.setdefault(sections.get(param.name or "", "Help"), []).append(record)
        for title, records in found.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _command(name: str | None) -> Command:
    return next(command for command in COMMANDS if command.name == name)


def build_parser() -> typer.Typer:
    """Return the application with every command."""
    app = typer.Typer(
        name="proxy-operator",
        help=_HELP,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=_CONTEXT,
        no_args_is_help=True,
    )
    app.callback()(_root)
    for command in COMMANDS:
        app.command(
            name=command.name,
            cls=SectionedCommand,
            help=f"{command.help}\n\n{command.details}",
            short_help=command.help,
            context_settings=_CONTEXT,
        )(_callback(command))
    return app


def _print_version(value: bool) -> None:  # noqa: FBT001 - the parser calls it so
    if value:
        typer.echo(f"proxy-operator {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Take the options before the command."""


def _callback(command: Command) -> Callable[..., int]:
    options = options_of(command.name)

    def invoke(**values: Any) -> int:  # noqa: ANN401 - text, truth or a list of texts
        for sentence in unknown_variables(os.environ):
            say(f"warning: {sentence}")
        module = importlib.import_module(command.module)
        invocation = Invocation(
            command=command.name,
            arguments={a.name: values[a.name] for a in command.arguments},
            flags={o.parameter: values[o.parameter] for o in options if o.has_flag},
            environ=os.environ,
        )
        try:
            code: int = module.run(invocation)
        except BrokenPipeError as err:
            # The parser would make a failure of it.
            raise ReaderGoneError from err
        return code

    parameters = [
        *(_argument_parameter(argument) for argument in command.arguments),
        *(_option_parameter(option) for option in options if option.has_flag),
    ]
    # The parser reads the parameters of a command off its signature.
    invoke.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # set on purpose
    return invoke


def _argument_parameter(argument: Argument) -> inspect.Parameter:
    return inspect.Parameter(
        argument.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=... if argument.is_required else None,
        annotation=Annotated[
            list[str] if argument.is_repeatable else str,
            typer.Argument(metavar=argument.metavar, help=argument.help, show_default=False),
        ],
    )


def _option_parameter(option: Option) -> inspect.Parameter:
    names = [f"{option.flag}/--no-{option.name}"] if option.is_switch else [option.flag]
    if option.short:
        names.append(option.short)
    kind: Any = bool if option.is_switch else str
    if option.is_repeatable:
        kind = list[str]
    return inspect.Parameter(
        option.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            kind | None,
            typer.Option(
                *names,
                metavar=option.kind.metavar or None,
                help=_help_of(option),
                show_default=False,
                show_envvar=False,
            ),
        ],
    )


def _help_of(option: Option) -> str:
    facts = [f"default: {option.shown_default}"] if option.shown_default else []
    if option.variable:
        facts.append(f"env: {option.variable}")
    return option.help + (f" [{'; '.join(facts)}]" if facts else "")
