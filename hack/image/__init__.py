"""Container images without a container engine: Debian packages and wheels, packed as OCI archives.

Works as an ordinary user, since owners exist in the archive only; equal inputs give equal bytes.
"""
