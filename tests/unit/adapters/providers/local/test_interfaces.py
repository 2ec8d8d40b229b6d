"""The kernel's answer about this machine's own addresses."""

import ipaddress
import socket
import struct

import pytest

from proxy_operator.adapters.providers.local import interfaces
from proxy_operator.adapters.providers.local.interfaces import own_addresses


def test_the_addresses_of_this_machine_are_told():
    found = own_addresses()
    assert "127.0.0.1" in found
    assert list(found) == sorted(set(found))
    for text in found:
        # Only an address of the machine can be bound to; link-local ones need an interface too.
        address = ipaddress.ip_address(text)
        if not address.is_link_local:
            family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
            with socket.socket(family) as one:
                one.bind((text, 0))


def test_a_refusal_of_the_kernel_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interfaces, "_GET_ADDRESSES", 1000)  # there is no such question
    with pytest.raises(OSError, match="rtnetlink"):
        own_addresses()


def test_parts_are_aligned_and_a_broken_one_ends_them():
    header = struct.Struct("=HH")
    data = header.pack(5, 1) + b"a\0\0\0" + header.pack(6, 2) + b"bc\0\0" + header.pack(0, 3)
    assert list(interfaces._parts(data, header)) == [(1, b"a"), (2, b"bc")]


def test_of_a_point_to_point_link_our_end_counts():
    ours, theirs, header = b"\x0a\0\0\1", b"\x0a\0\0\2", struct.Struct("=HH")
    both = header.pack(8, 1) + theirs + header.pack(8, 2) + ours
    assert interfaces._own_of(both) == ours
    assert interfaces._own_of(header.pack(8, 1) + theirs) == theirs
    assert interfaces._own_of(b"") is None
