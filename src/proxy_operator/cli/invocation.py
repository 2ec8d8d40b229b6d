"""One call of a command: what stood on its line, and the environment it was called in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from proxy_operator.app.given import Given, read_options
from proxy_operator.app.settings import Settings, load_settings

O = TypeVar("O")  # noqa: E741 - the options of a command


class UsageError(Exception):
    """The command line does not make sense: exit code 2. The message is one clause."""


class ReaderGoneError(Exception):
    """Nobody reads standard output any more: end without a word."""


class CommandError(Exception):
    """The command could not do its work: exit code 1. Each message is one sentence."""

    def __init__(self, *messages: str) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """Arguments by name, flags by parameter, variables by name."""

    command: str
    arguments: Mapping[str, str | Sequence[str] | None]
    flags: Given
    environ: Mapping[str, str]

    def word(self, name: str) -> str:
        """Return an argument that is one word; empty when absent."""
        value = self.arguments.get(name)
        return value if isinstance(value, str) else ""

    def words(self, name: str) -> list[str]:
        """Return an argument that may be repeated."""
        value = self.arguments.get(name)
        return [] if value is None or isinstance(value, str) else list(value)

    def options(self, cls: type[O]) -> O:
        """Return this command's options as `cls`, a dataclass with a field for each of them."""
        values: dict[str, Any] = {
            place.rpartition(".")[2]: value
            for place, value in read_options(self.command, self.flags, self.environ).items()
        }
        return cls(**values)

    def settings(self) -> Settings:
        """Return the settings of an operator process."""
        return load_settings(self.flags, self.environ, command=self.command)
