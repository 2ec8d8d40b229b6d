"""The providers of this operator by name, made when first asked for.

A provider that cannot be made (an extra or a setting is missing) is no reason not to start: the
Proxies that need it say so, and the next ask tries again.
"""

from collections.abc import Callable, Iterator, Mapping

from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import EnvironmentProviderError, NotConfiguredError


class Registry:
    """Implements `controllers.ports.ProviderRegistry`."""

    def __init__(
        self,
        constructors: Mapping[str, Callable[[], Provider]],
        decorate: Callable[[str, Provider], Provider],
    ) -> None:
        self._constructors = dict(constructors)
        self._decorate = decorate
        self._made: dict[str, Provider] = {}

    def get(self, name: str) -> Provider:
        """Return the provider, always the same one.

        EnvironmentProviderError when this operator has none of that name, or its constructor
        says what is missing.
        """
        made = self._made.get(name)
        if made is not None:
            return made
        constructor = self._constructors.get(name)
        if constructor is None:
            known = ", ".join(sorted(self._constructors)) or "none"
            raise EnvironmentProviderError(
                f"this operator has no provider {str(name)!r}; it has: {known}"
            )
        made = self._decorate(name, constructor())
        self._made[name] = made
        return made

    def available(self) -> Iterator[tuple[str, Provider]]:
        """Yield every provider that can be made now, by name."""
        for name in sorted(self._constructors):
            try:
                yield name, self.get(name)
            except EnvironmentProviderError:
                continue

    def unusable(self) -> Iterator[tuple[str, EnvironmentProviderError]]:
        """Yield every provider that was asked for and cannot be made now, and what is missing."""
        for name in sorted(self._constructors):
            try:
                self.get(name)
            except NotConfiguredError:
                continue
            except EnvironmentProviderError as err:
                yield name, err
