"""`crd`: print the CustomResourceDefinition."""

from proxy_operator.app.schema import crd_yaml
from proxy_operator.cli.invocation import Invocation
from proxy_operator.cli.output import print_text


def run(_: Invocation) -> int:
    """Print the document, for `kubectl apply -f -` or for reading."""
    print_text(crd_yaml())
    return 0
