"""The images that Pods of a test cluster run: squid, and the pause program of every Pod."""

import shutil
from pathlib import Path

from hack.image import debian, oci

# The name that the operator asks for by default. The test cluster's nodes have no way out, so
# this stands in for it: Debian's squid behind an entry point that is used alike.
SQUID = "docker.io/ubuntu/squid:6.6-24.04_edge"
SQUID_USER = 13
PAUSE = "localhost/pause:1"
ENTRYPOINT = """#!/bin/sh
exec /usr/sbin/squid "$@"
"""


def squid(work: Path) -> oci.Image:
    """Return an image with squid, its helpers and a shell with the common tools."""
    root = work / "root"
    root.mkdir()
    debian.unpack(root, ["squid", "dash", "coreutils"], ["ca-certificates"], work)
    debian.add_users(root, {"proxy": SQUID_USER})
    debian.add_certificates(root)
    for path in ("var/log/squid", "var/spool/squid", "run"):
        (root / path).mkdir(parents=True, exist_ok=True)
    script = root / "usr/local/bin/entrypoint.sh"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(ENTRYPOINT)
    script.chmod(0o755)
    return oci.Image(
        name=SQUID,
        layers=[root],
        entrypoint=["entrypoint.sh"],
        command=["-f", "/etc/squid/squid.conf", "-NYC"],
        user="",
        owners={"var/log/squid": SQUID_USER, "var/spool/squid": SQUID_USER},
    )


def pause(work: Path, program: Path) -> oci.Image:
    """Return the image with one static program."""
    root = work / "root"
    root.mkdir()
    shutil.copy(program, root / "pause")
    return oci.Image(name=PAUSE, layers=[root], entrypoint=["/pause"], user="65535:65535")
