"""The CRD document, for the command that prints it."""

from proxy_operator.adapters.admission.crd import render


def crd_yaml() -> str:
    """Return the document that deploy/crd.yaml holds."""
    return render()
