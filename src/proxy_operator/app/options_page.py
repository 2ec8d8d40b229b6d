"""The page that documents every option, made from the table of them."""

from typing import Final

from proxy_operator.app.options import OPTIONS, Option


def options_table() -> str:
    """Return the documentation of every option: Markdown, one table for each section."""
    sections: dict[str, list[Option]] = {}
    for option in OPTIONS:
        sections.setdefault(option.section, []).append(option)
    parts = [_INTRODUCTION]
    for title, rows in sections.items():
        parts.append(f"## {title}\n")
        parts.append("| Option | Variable | Value | Default | Meaning | Commands |")
        parts.append("|---|---|---|---|---|---|")
        parts.extend(_table_row(option) for option in rows)
        parts.append("")
    return "\n".join(parts)


def _table_row(option: Option) -> str:
    flags = f"`{option.flag}`" if option.flag else "none"
    if option.short:
        flags += f", `{option.short}`"
    default = f"`{option.default}`" if option.default is not None else option.default_note or "none"
    if option.cluster_default is not None:
        default += f"; `{option.cluster_default}` in a cluster"
    cells = (
        flags,
        f"`{option.variable}`" if option.variable else "none",
        "`true` or `false`" if option.is_switch else f"`{option.kind.metavar}`",
        default,
        option.help + (" May be repeated." if option.is_repeatable else ""),
        ", ".join(f"`{command}`" for command in option.commands),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_INTRODUCTION: Final = """# Options

Every option of every command. A flag wins over its environment variable, and the variable over
the default; an empty variable counts as absent. An option that may be repeated takes several
values from its variable, separated by commas. A switch is turned off by `--no-` and its name.
Durations are numbers with units: `250ms`, `90s`, `5m`, `1h30m`. Addresses to listen on are
`host:port`, `[::1]:port`, or `:port` for every address of the machine; port 0 lets the system
choose.

What a command acts on when it deletes has no variable: it is said on the command line.
`PROXY_OPERATOR_DEBUG=1` lets an unexpected error show its traceback.
"""
