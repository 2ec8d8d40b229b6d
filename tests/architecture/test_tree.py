"""What the tree promises as a whole: who imports whom, what is generated, what is never in it."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

# A table of rows, not logic.
LONG = {"app/options.py"}


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked() -> list[Path]:
    """Files of a checkout; in an export without git, whatever is there."""
    if not (ROOT / ".git").exists():
        return [p for p in ROOT.rglob("*") if p.is_file() and ".venv" not in p.parts]
    return [ROOT / name for name in run("git", "ls-files").splitlines()]


def test_imports_point_inward():
    run(f"{sysconfig.get_path('scripts')}/lint-imports", "--no-cache")


def test_generated_files_are_fresh():
    run(sys.executable, "hack/generate", "--check")


def test_lock_files_hold_hashes_and_no_addresses():
    for name in ("runtime", "dev", "oracle"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        assert "://" not in text
        pins = re.findall(r"^([a-z0-9][^=\s]*)==", text, re.MULTILINE)
        assert len(pins) > 10
        assert len(re.findall(r"--hash=sha256:", text)) >= len(pins)


def test_every_runtime_pin_is_a_development_pin_too_and_those_are_the_oracles():
    pins = {
        name: set(re.findall(r"^\S+==\S+", (ROOT / f"requirements/{name}.txt").read_text(), re.M))
        for name in ("runtime", "dev", "oracle")
    }
    assert pins["runtime"] <= pins["dev"] <= pins["oracle"]


def test_modules_stay_within_one_room():
    lengths = {
        str(path.relative_to(ROOT / "src/proxy_operator")): len(path.read_text().splitlines())
        for path in SOURCES
    }
    too_long = {
        name: n
        for name, n in lengths.items()
        if n > 320 and name not in LONG and not name.startswith("testing/")
    }
    assert too_long == {}


def test_every_source_module_says_what_lives_there():
    for path in SOURCES:
        text = path.read_text()
        assert text.startswith(('"""', "#!")), path
        assert "TBD" not in text, path


def test_nothing_names_the_machine_it_was_written_on():
    home = re.compile(r"(^|[^A-Za-z0-9_.])/(root|Users)/[a-z]")
    for path in tracked():
        if path.suffix in {".js", ".css", ".png"} or not path.is_file():
            continue
        assert not home.search(path.read_text(errors="replace")), path
