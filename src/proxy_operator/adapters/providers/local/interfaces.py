"""The addresses of this machine, asked of the kernel (rtnetlink(7)).

Imports nothing heavy, because every process with squid carries it.
"""

import ipaddress
import socket
import struct
from collections.abc import Iterator
from typing import Final

_GET_ADDRESSES: Final = 22  # RTM_GETADDR
_DONE: Final = 3
_ERROR: Final = 2
_DUMP: Final = 0x301  # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH
_HEADER: Final = struct.Struct("=IHHII")
_ADDRESS: Final = struct.Struct("=BBBBI")
_ATTRIBUTE: Final = struct.Struct("=HH")
_IFA_ADDRESS: Final = 1
_IFA_LOCAL: Final = 2


def own_addresses() -> tuple[str, ...]:
    """Return every address of every interface, sorted. OSError when the kernel does not tell."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(5)
        kernel.bind((0, 0))
        kernel.send(
            _HEADER.pack(_HEADER.size + _ADDRESS.size, _GET_ADDRESSES, _DUMP, 1, 0)
            + _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        )
        found: set[str] = set()
        while True:
            for kind, body in _parts(kernel.recv(1 << 17), _HEADER):
                if kind == _DONE:
                    return tuple(sorted(found))
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", body)[0], "rtnetlink")
                own = _own_of(body[_ADDRESS.size :])
                if own:
                    found.add(str(ipaddress.ip_address(own)))


def _own_of(attributes: bytes) -> bytes | None:
    """Return the address of this end: on a point-to-point link IFA_ADDRESS is the other one's."""
    known = dict(_parts(attributes, _ATTRIBUTE))
    return known.get(_IFA_LOCAL, known.get(_IFA_ADDRESS))


def _parts(data: bytes, header: struct.Struct) -> Iterator[tuple[int, bytes]]:
    """Yield kind and body of each message or attribute; both are aligned to four bytes."""
    while len(data) >= header.size:
        length, kind = header.unpack_from(data)[:2]
        if length < header.size:
            return
        yield kind, data[header.size : length]
        data = data[(length + 3) & ~3 :]
