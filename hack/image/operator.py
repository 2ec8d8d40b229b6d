"""The operator's own image: Debian's Python, the hashed runtime requirements and the wheel.

The image's interpreter itself runs pip and compiles, through the image's loader, so wheels and
bytecode fit it whatever Python this machine has.
"""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hack.image import debian, oci

ROOT = Path(__file__).resolve().parents[2]
USER = 65532
SCRIPT = """#!/usr/bin/python3
import sys

from proxy_operator.cli.main import main

sys.exit(main())
"""


def build(work: Path) -> oci.Image:
    """Return the operator's image, made of trees below `work`."""
    base, app = work / "base", work / "app"
    base.mkdir()
    debian.unpack(base, ["python3"], ["ca-certificates"], work)
    debian.add_users(base, {"proxy-operator": USER})
    debian.add_certificates(base)
    python = _Python(base)
    python.compile(base, base / "usr/lib" / python.name)

    packages = app / "usr/local/lib" / python.name / "dist-packages"
    packages.mkdir(parents=True)
    pip = _pip(work)
    requirements = ROOT / "requirements/image.txt"
    for what in (["--require-hashes", "-r", requirements], ["--no-deps", _wheel(work)]):
        python.run(*_INSTALL, "--target", packages, *what, path=pip)
        # Scripts that name this build's interpreter.
        shutil.rmtree(packages / "bin", ignore_errors=True)
    for name in ("RECORD", "direct_url.json"):
        # What installers keep for themselves, with this build's paths.
        for note in packages.glob(f"*.dist-info/{name}"):
            note.unlink()
    python.compile(app, packages)
    script = app / "usr/local/bin/proxy-operator"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return oci.Image(
        name=f"localhost/proxy-operator:{version()}",
        layers=[base, app],
        entrypoint=["proxy-operator"],
        user=f"{USER}:{USER}",
        env={"LANG": "C.UTF-8", "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"},
        created=int(os.environ.get("SOURCE_DATE_EPOCH", "0")),
    )


def version() -> str:
    """Return the version that the sources give themselves."""
    scope: dict[str, str] = {}
    exec((ROOT / "src/proxy_operator/__init__.py").read_text(), scope)
    return scope["__version__"]


_INSTALL = (
    *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
    *("--root-user-action=ignore", "--only-binary=:all:"),
)


class _Python:
    """The interpreter of a root file system, run without entering it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.name = (root / "usr/bin/python3").readlink().name

    def compile(self, root: Path, tree: Path) -> None:
        """Write the bytecode of a tree, as if `root` were the root directory.

        Nothing checks it against the sources at run time: nobody changes an image's files.
        """
        names = ["-s", root, "-p", "/"]
        mode = ["--invalidation-mode", "unchecked-hash"]
        self.run("-m", "compileall", "-q", *names, *mode, tree)

    def run(self, *arguments: str | Path, path: Path | None = None) -> None:
        """Run it with the libraries of its root; `path` is where else it may import from."""
        usr = self._root / "usr"
        loader = next(usr.glob("lib*/ld-linux-*"))
        libraries = next(usr.glob("lib/*-linux-gnu"))
        subprocess.run(
            [loader, "--library-path", libraries, usr / "bin" / self.name, *arguments],
            env={
                **os.environ,
                "PYTHONHOME": str(usr),
                "PYTHONPATH": str(path or ""),
                "PYTHONHASHSEED": "0",
                "PYTHONNOUSERSITE": "1",
            },
            check=True,
        )


def _pip(work: Path) -> Path:
    """Return a directory with this interpreter's pip and nothing else to import."""
    spec = find_spec("pip")
    if spec is None or spec.origin is None:
        raise debian.ImageError(f"{sys.executable} has no pip; run `make image`")
    directory = work / "pip"
    directory.mkdir()
    (directory / "pip").symlink_to(Path(spec.origin).parent)
    return directory


def _wheel(work: Path) -> Path:
    if find_spec("hatchling") is None:
        raise debian.ImageError(f"{sys.executable} has no hatchling; run `make image`")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", work / "wheel"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise debian.ImageError(f"the wheel cannot be built: {done.stderr.strip()}")
    return next((work / "wheel").glob("*.whl"))
