"""Standard output and standard error, written so that a reader sees each line at once.

All that commands print passes here or the `Console`, and is made plain on its way.
"""

import sys

from proxy_operator.runtime.text import plain, plain_lines


def print_text(text: str) -> None:
    """Write text that ends its own lines. BrokenPipeError when nobody reads any more."""
    sys.stdout.write(plain_lines(text))
    sys.stdout.flush()


def print_line(line: str) -> None:
    """Write one line."""
    print_text(f"{plain(line)}\n")


def say(line: str) -> None:
    """Tell the person, not the pipe: one line on standard error."""
    sys.stderr.write(f"{plain(line)}\n")
    sys.stderr.flush()
