"""One named entry of a kubeconfig, with the file it stands in."""

import base64
import binascii
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from proxy_operator.adapters.kube.access import ClusterConfigError
from proxy_operator.adapters.kube.material import Material

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A cluster, a user or a context."""

    file: Path
    kind: str
    name: str
    value: T = field(repr=False)

    def where(self, member: str) -> str:
        """Return what a message calls the place of a member."""
        return f'{self.file}, {self.kind} "{self.name}", {member}'

    def fault(self, member: str, rule: str) -> ClusterConfigError:
        """Return the error that a member is."""
        return ClusterConfigError(f"{self.where(member)}: {rule}")

    def path(self, text: str) -> Path:
        """Return the path a member means: relative ones start at the file's directory."""
        return (self.file.parent / text).absolute()

    def material(self, member: str, path: str | None, data: str | None) -> Material | None:
        """Return what `member` (a file) or `member`-data (Base64, which wins) holds, if any."""
        if data:
            where = self.where(f"{member}-data")
            try:
                # As Go decodes: line breaks within do not matter.
                return Material(where, base64.b64decode("".join(data.split()), validate=True))
            except (binascii.Error, ValueError) as err:
                raise ClusterConfigError(f"{where}: must be Base64") from err
        return Material(self.where(member), self.path(path)) if path else None
