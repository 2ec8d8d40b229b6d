"""Errors in words."""

import pytest

from proxy_operator.adapters.kube.access import ClusterConfigError
from proxy_operator.app.faults import sentences_of
from proxy_operator.provisioning.errors import EnvironmentProviderError
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.leader_election import LeadershipLostError


@pytest.mark.parametrize(
    "kind",
    [LeadershipLostError, ClusterConfigError, UnavailableError, EnvironmentProviderError],
    ids=lambda kind: kind.__name__,
)
def test_what_the_world_does_to_a_command_is_said_in_its_own_words(kind: type[Exception]):
    assert sentences_of(kind("the leader lock was lost")) == ("the leader lock was lost",)


def test_what_nobody_expected_says_so():
    (said,) = sentences_of(RuntimeError("odd"))
    assert said.startswith("unexpected RuntimeError: odd (")
