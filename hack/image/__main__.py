"""Build an image archive: python -m hack.image operator|squid|pause FILE [PROGRAM]."""

import argparse
import sys
import tempfile
from pathlib import Path

from hack.image import debian, oci, operator, parts


def main() -> int:
    """Build what the command line names and say its size."""
    parser = argparse.ArgumentParser(prog="hack.image", description=__doc__)
    parser.add_argument("image", choices=["operator", "squid", "pause"])
    parser.add_argument("file", type=Path)
    parser.add_argument("program", type=Path, nargs="?", help="of pause: the program itself")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="image-") as work:
        try:
            if given.image == "operator":
                image = operator.build(Path(work))
            elif given.image == "squid":
                image = parts.squid(Path(work))
            else:
                image = parts.pause(Path(work), given.program)
            oci.write(image, given.file)
        except debian.ImageError as err:
            print(f"image: {err}", file=sys.stderr)
            return 1
    print(f"image: {image.name}, {given.file.stat().st_size / 1e6:.0f} MB in {given.file}")
    return 0


sys.exit(main())
