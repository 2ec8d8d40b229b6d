"""Rights as Kubernetes checks them: what rules grant, and what an audit log shows in use."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hack.deploy.rbac import Rule


class Right(NamedTuple):
    """One verb on one resource; `name` where a rule is restricted to it."""

    group: str
    resource: str
    verb: str
    name: str = ""


def granted(rules: Iterable[Rule]) -> set[Right]:
    return {
        Right(rule.group, rule.resource, verb, name)
        for rule in rules
        for verb in rule.verbs
        for name in rule.names or ("",)
    }


class AuditTrail:
    """The requests of one user from now on."""

    def __init__(self, log: Path, user: str) -> None:
        self._log = log
        self._user = user
        self._offset = log.stat().st_size
        self.events: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        """Return the events so far."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            whole, _, _ = log.read().rpartition(b"\n")
        self._offset += len(whole) + 1 if whole else 0
        user = self._user.encode()
        for line in whole.split(b"\n"):
            if user in line and (event := json.loads(line))["user"]["username"] == self._user:
                self.events.append(event)
        return self.events

    def used(self, rules: Iterable[Rule]) -> set[Right]:
        """Return the rights in use; names only where a rule restricts to names."""
        restricted = {
            (rule.group, rule.resource, verb) for rule in rules if rule.names for verb in rule.verbs
        }
        found = set()
        for event in self.read():
            for group, resource, verb in _asked(event):
                is_named = (group, resource, verb) in restricted
                name = event["objectRef"].get("name", "") if is_named else ""
                found.add(Right(group, resource, verb, name))
        return found

    def refused(self) -> list[str]:
        """Return what was answered with 403, in words."""
        return [
            f"{event['verb']} {event['requestURI']}: {event['responseStatus'].get('message')}"
            for event in self.read()
            if event.get("responseStatus", {}).get("code") == 403
        ]


def _asked(event: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield group, resource and verb of all that a request was checked for."""
    about = event["objectRef"]
    subresource = about.get("subresource")
    resource = f"{about['resource']}/{subresource}" if subresource else about["resource"]
    group = about.get("apiGroup", "")
    yield group, resource, event["verb"]
    if event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == 201:
        # An apply that makes the object is checked for this too, which no log shows.
        yield group, resource, "create"
