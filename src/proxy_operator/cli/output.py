"""Standard output and standard error, written so that a reader sees each line at once."""

import sys


def print_text(text: str) -> None:
    """Write text that ends its own lines. BrokenPipeError when nobody reads any more."""
    sys.stdout.write(text)
    sys.stdout.flush()


def print_line(line: str) -> None:
    """Write one line."""
    print_text(f"{line}\n")


def say(line: str) -> None:
    """Tell the person, not the pipe: one line on standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
