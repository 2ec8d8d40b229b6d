"""What an error means to the person at the terminal: one sentence each."""

import errno

from proxy_operator.adapters.web.bind import BindError
from proxy_operator.app.manifests import ManifestError
from proxy_operator.provisioning.errors import ProviderError
from proxy_operator.runtime.errors import ObjectError
from proxy_operator.runtime.leader_election import LeadershipLostError


def sentences_of(err: Exception) -> tuple[str, ...]:
    """Return the sentences for an error, known or not."""
    if isinstance(err, ManifestError):
        return err.messages
    if isinstance(err, ObjectError | BindError | LeadershipLostError | ProviderError):
        return (str(err),)
    if isinstance(err, OSError):
        return (_of_os_error(err),)
    text = str(err)
    said = f": {text}" if text else ""
    return (f"unexpected {type(err).__name__}{said} (PROXY_OPERATOR_DEBUG=1 shows where)",)


def _of_os_error(err: OSError) -> str:
    reason = (err.strerror or str(err) or "input/output error").lower()
    if err.errno == errno.EADDRINUSE:
        return f"the address to listen on is taken: {reason}"
    return f"{err.filename}: {reason}" if err.filename else reason
