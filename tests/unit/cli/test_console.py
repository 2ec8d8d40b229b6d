"""Lines that stay and the line that does not."""

import io

from proxy_operator.cli.console import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_the_lines_only():
    stream = io.StringIO()
    console = Console(stream)
    console.live("1 of 2")
    console.line("done\x1b[2J")
    assert stream.getvalue() == "done\\x1b[2J\n"


def test_on_a_terminal_the_live_line_is_replaced(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    stream = Terminal()
    console = Console(stream)
    console.live("0123456789 and more")
    console.live("b")
    console.live("b")
    console.line("done")
    console.line("next")
    assert stream.getvalue() == "012345678\r\x1b[Kb\r\x1b[Kdone\nnext\n"
