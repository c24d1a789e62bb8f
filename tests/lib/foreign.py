# SPDX-License-Identifier: BSD-2-Clause
"""Programs of traffic control that are not ours: each gives the same verdict on every packet."""
import ctypes
import os
import struct

OK, DROP, NEXT = 0, 2, -1  # TC_ACT_OK, TC_ACT_SHOT, TCX_NEXT
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
PROG_LOAD, OBJ_PIN, LINK_CREATE = 5, 6, 28
SCHED_CLS, TCX_IN, TCX_OUT = 3, 46, 47


def bpf(command, *parts):
    """The system call, with an attribute of these parts; bytes stand for their address."""
    kept = [ctypes.create_string_buffer(p, len(p) + 1) if isinstance(p, bytes) else p for p in parts]
    attr = b"".join(struct.pack("<Q", ctypes.addressof(k)) if isinstance(p, bytes) else struct.pack("<I", k) for p, k in zip(parts, kept))
    attr = ctypes.create_string_buffer(attr, 144)
    result = LIBC.syscall(SYS_BPF, command, attr, 144)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return result


def program(verdict):
    """The descriptor of a program that returns it."""
    return bpf(PROG_LOAD, SCHED_CLS, 2, struct.pack("<BBhiBBhi", 0xb7, 0, 0, verdict, 0x95, 0, 0, 0), b"BSD")


def link(verdict, ifindex, out):
    """Attaches a program behind those that are there; its link, which takes it away when it is closed."""
    fd = program(verdict)
    try:
        return bpf(LINK_CREATE, fd, ifindex, TCX_OUT if out else TCX_IN)
    finally:
        os.close(fd)


def pin(verdict, path):
    """A program in a file, for tc(8)."""
    fd = program(verdict)
    bpf(OBJ_PIN, path.encode(), fd)
    os.close(fd)
