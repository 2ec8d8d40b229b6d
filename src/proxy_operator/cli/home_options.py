"""The options by which every command on objects finds them."""

import functools
from dataclasses import dataclass
from pathlib import Path

from proxy_operator.app.client import default_namespace
from proxy_operator.app.settings import HomeAddress


@dataclass(frozen=True, kw_only=True)
class HomeOptions:
    """Where objects are, and in which namespace."""

    data_dir: Path
    kubeconfig: Path | None
    context: str | None
    namespace: str | None

    @property
    def home(self) -> HomeAddress:
        """The home that is meant."""
        return HomeAddress(data_dir=self.data_dir, kubeconfig=self.kubeconfig, context=self.context)

    @functools.cached_property
    def named_namespace(self) -> str:
        """The namespace given, or the home's default. ClusterConfigError."""
        return self.namespace or default_namespace(self.home)
