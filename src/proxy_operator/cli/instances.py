"""`instances`: what providers have, this operator's and others', and whose it is."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from proxy_operator.app.client import open_home
from proxy_operator.app.given import read_options
from proxy_operator.app.settings import Settings
from proxy_operator.app.survey import Survey, open_survey
from proxy_operator.cli.age import format_age
from proxy_operator.cli.invocation import CommandError, Invocation
from proxy_operator.cli.output import print_line, say
from proxy_operator.cli.table import Table, cell
from proxy_operator.domain.instance import Instance
from proxy_operator.domain.names import CLUSTER_LABEL, UID_LABEL
from proxy_operator.domain.proxy import Proxy
from proxy_operator.provisioning.errors import ProviderError
from proxy_operator.runtime.clock import SystemClock


class Found(NamedTuple):
    """An instance, and the Proxy here that it was made for, if there is one."""

    provider: str
    instance: Instance
    owner: str | None

    @property
    def cluster_id(self) -> str | None:
        """The operator that made it."""
        return self.instance.labels.get(CLUSTER_LABEL)


class Looked(NamedTuple):
    """The instances of each provider that could be asked."""

    seen: Mapping[str, Sequence[Instance]]
    complete: Sequence[str]
    """The providers whose every instance was seen."""
    faults: Sequence[str]
    """What kept some from being seen."""


def run(invocation: Invocation) -> int:
    """Print the instances; fail when some could not be seen."""
    options = read_options("instances", invocation.flags, invocation.environ)
    asyncio.run(_list(invocation.settings(), is_foreign_only=options["foreign"]))
    return 0


async def _list(settings: Settings, *, is_foreign_only: bool) -> None:
    async with open_survey(settings) as survey:
        looked = await _look(survey)
        # After the instances: what was made meanwhile has its Proxy in this list.
        async with open_home(settings.home) as home:
            proxies = (await home.client.list(Proxy)).items
    names = {p.metadata.uid: f"{p.metadata.namespace}/{p.metadata.name}" for p in proxies}
    found = [
        Found(provider, instance, names.get(instance.labels.get(UID_LABEL, "")))
        for provider, instances in looked.seen.items()
        for instance in instances
    ]
    shown = [one for one in found if not is_foreign_only or one.cluster_id != survey.cluster_id]
    say(f"this operator's cluster id is {survey.cluster_id}")
    if shown:
        _print(shown, survey.cluster_id, SystemClock().now())
    elif looked.complete:
        kind = "instances of others" if is_foreign_only else "instances"
        say(f"No {kind} found at {', '.join(sorted(looked.complete))}.")
    if looked.faults:
        raise CommandError(*looked.faults)


async def _look(survey: Survey) -> Looked:
    seen: dict[str, Sequence[Instance]] = {}
    complete = []
    faults = [_fault(*one) for one in survey.unusable.items()]
    for provider, surveyor in survey.surveyors.items():
        try:
            listing = await surveyor.list_all()
        except ProviderError as err:
            faults.append(_fault(provider, err))
            continue
        seen[provider] = sorted(listing.items, key=lambda one: one.provider_id)
        if listing.complete:
            complete.append(provider)
        else:
            faults.append(f"some instances of {provider} could not be read")
    return Looked(seen, complete, faults)


def _fault(provider: str, err: ProviderError) -> str:
    return f"instances of {provider} cannot be listed: {err}"


def _print(found: Sequence[Found], cluster_id: str, now: datetime) -> None:
    header = ("PROVIDER", "INSTANCE", "STATE", "IP", "AGE", "CLUSTER-ID", "OURS", "PROXY")
    rows = [
        (
            cell(one.provider),
            cell(one.instance.provider_id),
            cell(one.instance.state),
            cell(one.instance.ip),
            format_age(one.instance.created_at, now),
            cell(one.cluster_id),
            "yes" if one.cluster_id == cluster_id else "no",
            cell(one.owner),
        )
        for one in found
    ]
    for line in Table(header).lines(rows):
        print_line(line)
