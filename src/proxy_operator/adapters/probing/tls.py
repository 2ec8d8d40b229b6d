"""The TLS context of all probes: the system's authorities, and those a user adds."""

import ssl
from pathlib import Path


def probe_tls_context(ca_file: Path | None = None) -> ssl.SSLContext:
    """Build the context; once, for it is costly. Peers are always verified, names included.

    `ca_file` holds further authorities as PEM. ValueError when it cannot be read or holds none.
    """
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=ca_file)
        except ssl.SSLError as err:
            raise ValueError(f"probe CA file {ca_file} holds no PEM certificate") from err
        except OSError as err:
            raise ValueError(f"probe CA file {ca_file} cannot be read: {err.strerror}") from err
    return context
