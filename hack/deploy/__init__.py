"""What is installed in a Kubernetes cluster, as documents: `hack/generate` writes deploy/ from it.

The rule: everything here is a pure function of the sources; equal sources give equal bytes.
"""
