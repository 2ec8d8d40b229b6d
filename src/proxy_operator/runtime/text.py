"""Foreign text made fit for a terminal: whatever a file, an object or a server said.

Everything that ends up before a person passes here, at the last step before it is written.
"""


def plain(text: str) -> str:
    """Return text with its control characters escaped: it steers no terminal and adds no line.

    Doing it twice changes nothing more.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def plain_lines(text: str) -> str:
    """Return text with all control characters escaped but the ends of its lines."""
    return "\n".join(map(plain, text.split("\n")))
