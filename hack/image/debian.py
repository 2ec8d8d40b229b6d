"""Root file systems from Debian packages, of the release and the sources that this machine has.

No maintainer script runs: a caller adds what it needs of what they would have done. Lists are
those of the last `apt-get update`.
"""

import re
import shutil
import subprocess
from pathlib import Path


class ImageError(Exception):
    """An image that cannot be built; the text says what is missing and what to do."""


# Nothing of this serves a program.
USELESS = (
    "usr/lib/*/gconv",
    *("usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug"),
    *("usr/share/doc-base", "usr/share/perl5/debconf", "usr/lib/systemd", "etc/init.d"),
)
# What maintainer scripts need, and nobody else.
INSTALLERS = {"adduser", "debconf", "dpkg", "tar"}
MERGED = ("bin", "sbin", "lib", "lib64")


def unpack(root: Path, closures: list[str], alone: list[str], work: Path) -> None:
    """Fill `root` with packages: `closures` with all they depend on, `alone` by themselves."""
    for tool in ("apt-get", "dpkg-deb", "tar"):
        if not shutil.which(tool):
            raise ImageError(f"{tool} was not found: images are built on Debian and its kin")
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    archives = work / "archives"
    archives.mkdir()
    names = sorted({*_closure(closures, work), *alone} - INSTALLERS)
    _apt("download", *names, cwd=archives)
    for archive in sorted(archives.glob("*.deb")):
        _extract(archive, root)
        _record(archive, root)
    for path in (found for pattern in USELESS for found in root.glob(pattern)):
        shutil.rmtree(path)
    _keep_licences_only(root / "usr/share/doc")
    for path in ("tmp", "var/tmp"):
        (root / path).mkdir(parents=True, exist_ok=True)
        (root / path).chmod(0o1777)


def add_users(root: Path, users: dict[str, int]) -> None:
    """Write the user and group files: root, nobody and these, each with a group of its own."""
    everybody = {"root": 0, **users, "nobody": 65534}
    passwd = "".join(
        f"{name}:x:{uid}:{uid}::/{'root' if uid == 0 else 'nonexistent'}:/usr/sbin/nologin\n"
        for name, uid in everybody.items()
    )
    etc = root / "etc"
    (etc / "passwd").write_text(passwd)
    (etc / "group").write_text("".join(f"{name}:x:{uid}:\n" for name, uid in everybody.items()))
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")


def add_certificates(root: Path) -> None:
    """Write the bundle that ca-certificates makes of its files when it is installed."""
    files = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(file.read_text().rstrip() + "\n" for file in files))


def _closure(packages: list[str], work: Path) -> list[str]:
    """Return the packages that apt would install on an empty system."""
    status = work / "status"
    status.touch()
    plan = _apt(
        *("-o", f"Dir::State::status={status}", "-o", "Debug::NoLocking=1"),
        *("-o", "APT::Install-Recommends=false", "--simulate", "install", *packages),
    )
    return re.findall(r"^Inst (\S+)", plan, re.MULTILINE)


def _apt(*arguments: str, cwd: Path | None = None) -> str:
    # As root apt would fetch as another user, who may not write here.
    run = subprocess.run(
        ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        said = run.stderr.strip().splitlines() or ["it said nothing"]
        raise ImageError(f"apt-get: {said[0]}; as root: apt-get update")
    return run.stdout


def _extract(archive: Path, root: Path) -> None:
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE
    ) as content:
        # Debian's /lib is a link, which a package's directory of that name must not replace.
        subprocess.run(
            ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", root],
            stdin=content.stdout,
            check=True,
        )
    if content.returncode:
        raise ImageError(f"dpkg-deb cannot read {archive.name}")


def _record(archive: Path, root: Path) -> None:
    """Leave a package's description where scanners for known faults look in small images."""
    fields = subprocess.run(["dpkg-deb", "--field", archive], capture_output=True, check=True)
    status = root / "var/lib/dpkg/status.d" / archive.name.split("_")[0]
    status.parent.mkdir(parents=True, exist_ok=True)
    status.write_bytes(fields.stdout)


def _keep_licences_only(docs: Path) -> None:
    for path in docs.rglob("*"):
        if path.name != "copyright" and (path.is_symlink() or path.is_file()):
            path.unlink()
