"""What the lease commands share: where the API is, and errors as the terminal wants them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proxy_operator.app.lease_client import Api, ApiError, read_token
from proxy_operator.cli.invocation import CommandError


@dataclass(frozen=True, kw_only=True)
class ApiOptions:
    """Options of every lease command."""

    api: str
    token: str | None = field(repr=False)
    token_file: Path | None


@contextmanager
def connect(options: ApiOptions) -> Iterator[Api]:
    """Give the API to speak to; what goes wrong in the block ends the command."""
    try:
        yield Api(url=options.api, token=read_token(options.token_file, options.token))
    except ApiError as err:
        raise CommandError(str(err)) from err
