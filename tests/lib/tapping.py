# SPDX-License-Identifier: BSD-2-Clause
"""`pathline tap` under test: started, looked at, ended, its accounts added up."""
import json
import os
import signal
import socket
import struct
import threading

from . import lab, network
from .pathline import PATHLINE
from .roce import packet_socket
from .tap import eq, ok
from .wait import LIMIT, wait


class Printing:
    """`pathline` in a namespace, up: it prints JSON lines into NAME.out of the test's folder. Its counters are in lines that have the
    member `word`; `up` is what it says when it is ready."""

    def __init__(self, namespace, name, word, up, *args):
        self.name, self.word = name, word
        self.out, self.err = lab.path(name + ".out"), lab.path(name + ".err")
        open(self.err, "w", encoding="utf-8").close()
        with open(self.out, "w", encoding="utf-8") as out:
            self.p = lab.start(namespace.command(PATHLINE, *args), log=self.err, stdout=out)
        ok(wait(lambda: up in self.errors() or self.p.poll() is not None) and self.p.poll() is None, f"{name} is up", self.errors())

    def errors(self):
        with open(self.err, encoding="utf-8") as f:
            return f.read()

    def lines(self):
        with open(self.out, encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().splitlines() if line.endswith("}")]

    def stats_lines(self):
        return [line for line in self.lines() if self.word in line]

    def look(self):
        """The line of its counters now."""
        before = len(self.stats_lines())
        self.p.send_signal(signal.SIGUSR1)
        wait(lambda: len(self.stats_lines()) > before)
        return self.stats_lines()[-1]


class Tap(Printing):
    """`pathline tap`."""

    def __init__(self, namespace, name, *args):
        super().__init__(namespace, name, "tap", "tapping", "tap", "--stats", *args)

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        self.code = self.p.wait(timeout=2 * LIMIT)
        self.stats = self.lines()[-1]
        self.records = [line for line in self.lines() if "src" in line]
        return self.stats


def closes(s, what):
    t = s["tap"]
    eq(t["packets"], sum(t[k] for k in ("records", "not_ip", "broken", "skipped", "not_sampled", "ring_full")), f"{what}: packets are accounted for")
    eq(t["records"], sum(t["clocks"].values()), f"{what}: every record is counted by its clock")
    for o in s["outputs"]:
        eq(o["records"], o.get("sent", o.get("written")) + o["failed"], f"{what}: records of {o['output']} are accounted for")


class Wire:
    """Two namespaces, `ns` by "a" and "b", joined by their eth0, with traffic from a to b."""

    def __init__(self, name, a, b):
        self.name, self.addresses, self.ns = name, {"a": a, "b": b}, {}

    def make(self):
        for side in "ab":
            self.ns[side] = network.Namespace(f"{self.name}-{side}", ipv6=False)
        network.join(self.ns["a"], "eth0", self.ns["b"], "eth0")
        for side, address in self.addresses.items():
            self.ns[side].up("eth0", address + "/24")
        network.wait_for_carrier(*[(self.ns[side], "eth0") for side in "ab"])

    def single(self):
        """From now on every frame is one packet, as tcpdump on the same host has it: nothing is left to a NIC to take apart."""
        for side in "ab":
            self.ns[side].sh("ethtool -K eth0 tso off gso off tx-udp-segmentation off")

    def tcp_transfer(self, n_bytes, port=5000, address=None):
        """As tcp_send, of so many random bytes."""
        return self.tcp_send(os.urandom(n_bytes), port, address)

    def tcp_send(self, sent, port=5000, address=None):
        """Over the stacks of both namespaces, to an address of b; whether all came."""
        to = address or self.addresses["b"], port
        family = socket.AF_INET6 if ":" in to[0] else socket.AF_INET

        def serve():
            with self.ns["b"]:
                with socket.create_server(to, family=family) as server:
                    ready.set()
                    s, _ = server.accept()
                    with s:
                        while (data := s.recv(1 << 16)):
                            got.append(data)

        got, ready = [], threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        ready.wait(LIMIT)
        with self.ns["a"]:
            with socket.create_connection(to) as s:
                s.sendall(sent)
        thread.join(LIMIT)
        return b"".join(got) == sent

    def udp_send(self, n, size=100, port=6000):
        with self.ns["a"]:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                for i in range(n):
                    s.sendto(struct.pack(">I", i) + bytes(size - 4), (self.addresses["b"], port))

    def frames(self, n):
        """Of UDP, between addresses that neither side has."""
        mac = {side: self.ns[side].mac("eth0") for side in "ab"}
        src, dst = socket.inet_aton("10.9.0.1"), socket.inet_aton("10.9.0.2")
        made = []
        for i in range(n):
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 64, i & 0xffff, 0, 64, 17, 0, src, dst)
            made.append(mac["b"] + mac["a"] + b"\x08\0" + ip + struct.pack(">HHHH", 1000 + i % 50, 53, 44, 0) + bytes(36))
        return made

    def send_frames(self, made):
        s = packet_socket(self.ns["a"], "eth0", 0)
        for frame in made:
            while True:
                try:
                    s.send(frame)
                    break
                except OSError:
                    pass
        s.close()


def received():
    """Packets of eth0 in the namespace of the calling thread."""
    with open("/proc/thread-self/net/dev", encoding="ascii") as f:
        return next(int(line.split(":")[1].split()[1]) for line in f if line.strip().startswith("eth0:"))
