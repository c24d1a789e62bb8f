# SPDX-License-Identifier: BSD-2-Clause
"""Network namespaces and virtual wires between them, which go with the test."""
import ctypes
import os
import subprocess
import threading

from . import lab
from .wait import LIMIT, wait

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
HOMES = threading.local()


def sh(command, check=True):
    """What a line of shell prints."""
    run = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=2 * LIMIT)
    if check and run.returncode != 0:
        raise RuntimeError(f"{command}: {run.stderr.strip()}")
    return run.stdout


class Namespace:
    """With it in a `with`, the calling thread is there. Its text is its name."""

    def __init__(self, word, ipv6=True):
        self.name = f"pl{word}-{os.getpid()}"
        sh(f"ip netns add {self.name}")
        lab.undo("ip", "netns", "del", self.name)
        self.ip("link set lo up")
        if not ipv6:
            self.sysctl("ipv6.conf.default.disable_ipv6", 1, check=False)

    def __str__(self):
        return self.name

    def __enter__(self):
        home, there = (os.open(name, os.O_RDONLY) for name in ("/proc/thread-self/ns/net", "/run/netns/" + self.name))
        moved = LIBC.setns(there, CLONE_NEWNET) == 0
        os.close(there)
        if not moved:
            os.close(home)
            raise OSError(ctypes.get_errno(), "setns")
        HOMES.stack = [*getattr(HOMES, "stack", []), home]

    def __exit__(self, *_):
        home = HOMES.stack.pop()
        LIBC.setns(home, CLONE_NEWNET)
        os.close(home)

    def call(self, what):
        with self:
            return what()

    def command(self, *args):
        return ["ip", "netns", "exec", self.name, *args]

    def sh(self, command, check=True):
        return sh(f"ip netns exec {self.name} {command}", check)

    def ip(self, command, check=True):
        return sh(f"ip -n {self.name} {command}", check)

    def sysctl(self, name, value, check=True):
        self.sh(f"sysctl -qw net.{name}={value}", check)

    def up(self, interface, *addresses):
        for address in addresses:
            self.ip(f"addr add {address} dev {interface}" + (" nodad" if ":" in address else ""))
        self.ip(f"link set dev {interface} up")

    def has_carrier(self, interface):
        return "LOWER_UP" in self.ip(f"link show {interface}")

    def mac(self, interface):
        words = self.ip(f"link show {interface}").split()
        return bytes.fromhex(words[words.index("link/ether") + 1].replace(":", ""))


def join(left, left_interface, right, right_interface, queues=None):
    """A wire with an end in each of two namespaces."""
    queues = f"numtxqueues {queues} numrxqueues {queues}" if queues else ""
    sh(f"ip link add {left_interface} {queues} netns {left} type veth peer name {right_interface} {queues} netns {right}")


def wait_for_carrier(*ends):
    """(namespace, interface) of each."""
    if not wait(lambda: all(namespace.has_carrier(interface) for namespace, interface in ends)):
        raise RuntimeError("a wire does not come up")


def pair(word, addresses):
    """Two namespaces, a and b, whose eth0 are the ends of a wire that is up. addresses: {4: {"a": …, "b": …}, 6: …}"""
    sides = {side: Namespace(f"{word}-{side}") for side in "ab"}
    join(sides["a"], "eth0", sides["b"], "eth0")
    for side, namespace in sides.items():
        namespace.up("eth0", addresses[4][side] + "/24", addresses[6][side] + "/64")
    wait_for_carrier(*((namespace, "eth0") for namespace in sides.values()))
    return sides
