"""What can be wrong with a data directory or the store in it."""

from proxy_operator.runtime.errors import ObjectError


class DataDirError(ObjectError):
    """The data directory is not usable by this process: show the sentence and exit."""
