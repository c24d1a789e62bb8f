# SPDX-License-Identifier: BSD-2-Clause
"""Messages of RDMA-CM by struct, from the specification (InfiniBand architecture 1.x, 12.6 and annex A11) and not from our C."""
import struct

from .roce import bth, gid, raw

QKEY = 0x80010000
REQ, MRA, REJ, REP, RTU, DREQ, DREP = range(0x10, 0x17)


def mad(kind, transaction, local, body, head=0x01070203):
    """A management datagram of communication management."""
    return (struct.pack(">I4xQH6xI", head, transaction, kind, local) + body).ljust(256, b"\0")


def req(src, dst, qpn, name, port, mtu=3, transport=0, ip=True):
    """What a REQ says behind the local communication id."""
    version = 6 if ":" in src else 4
    body = struct.pack(">4xQQ8x", 0x01060000 | port, 0x77)
    body += struct.pack(">II", qpn << 8 | 4, 4)
    body += struct.pack(">I", 20 << 3 | transport << 1) + struct.pack(">I", 0x123 << 8 | 20 << 3 | 7)
    body += struct.pack(">HBB", 0xffff, mtu << 4 | 7, 15 << 4)
    body += struct.pack(">HH", 0xffff, 0xffff) + gid(src) + gid(dst)
    body += struct.pack(">IBBBB", 0, 0, 64, 0, 14 << 3) + b"\0" * 44
    private = bytes([0, (version if ip else 3) << 4]) + struct.pack(">H", 0xc000)
    private += raw(src).rjust(16, b"\0") + raw(dst).rjust(16, b"\0")
    return body + private + name.encode()


def datagram(message, number=0, qkey=QKEY):
    """To queue pair 1, from its BTH on."""
    return bth(0x64, 1, number) + struct.pack(">II", qkey, 1) + message
