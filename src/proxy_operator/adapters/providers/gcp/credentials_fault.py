"""What is wrong with Google credentials that cannot be loaded, in one sentence.

The rule: nothing that a file holds reaches a message. The library's text is taken where it is known
to name the file and fields only; its causes quote values, a private key among them.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
_NOTHING: Final = (
    f"there are no usable Google credentials: set {_VARIABLE}, or"
    " run gcloud auth application-default login"
)
_NO_PATH: Final = (
    f"{_VARIABLE} must hold the path of a file: what it holds looks like the content of one"
)
_LONGEST_PATH: Final = 255
_STARTS: Final = ("File ", "The file ", "Failed to load ")
_MISSING_FIELDS: Final = re.compile(r"missing\s+fields ([a-z_]+(?:, [a-z_]+)*)")
_QUOTED_TYPE: Final = re.compile(r"Type is .*, expected", re.DOTALL)


def credentials_fault(err: Exception, environ: Mapping[str, str]) -> str:
    """Name the file that is to blame and its fault, or say that no credentials were given.

    `err` is what `google.auth.default` raised, which reads the file of the variable, else the one
    that gcloud writes.
    """
    file = environ.get(_VARIABLE, "")
    if file and _is_content(file):
        return _NO_PATH
    if file:
        return f"{_VARIABLE} gives no usable Google credentials: {_in_file(err, file)}"
    file = _file_of_gcloud(environ)
    if os.path.isfile(file):
        return (
            f"gcloud gives no usable Google credentials: {_in_file(err, file)};"
            " run gcloud auth application-default login"
        )
    return _NOTHING


def _is_content(value: str) -> bool:
    """Tell whether somebody gave a key, bare or in base64, in place of a path."""
    if os.path.exists(value):
        return False
    return len(value) > _LONGEST_PATH or any(mark in value for mark in '{"\n')


def _file_of_gcloud(environ: Mapping[str, str]) -> str:
    home = os.path.join(os.path.expanduser("~"), ".config", "gcloud")
    return os.path.join(
        environ.get("CLOUDSDK_CONFIG") or home, "application_default_credentials.json"
    )


def _in_file(err: Exception, file: str) -> str:
    if isinstance(err, OSError):
        return f"{file}: {(err.strerror or 'it cannot be read').lower()}"
    text = str(err.args[0]) if err.args else ""
    if file not in text or not text.startswith(_STARTS):
        return f"{file} holds no credentials of a known form"
    text = " ".join(_QUOTED_TYPE.sub("Expected", text).split()).rstrip(".")
    if not text.startswith("Failed"):
        return text
    missing = _MISSING_FIELDS.search(str(err.__cause__))
    if missing is None:
        return f"{text}: its private key or another value is missing or malformed"
    # They come from a set: in another order each time.
    fields = ", ".join(sorted(missing[1].split(", ")))
    return f"{text}: missing fields {fields}"
