#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A switch that writes records into a collector's list by itself, as the P4-to-RDMA collector has it: this script is the
controller, which is told where by 34 bytes and sends them back, and the switch, which writes RoCEv1 frames byte by byte by
definitions of its own, loses some, comes to the end of its 16-bit packet numbers and begins the list again.
usage: switch.py PATHLINE"""
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, roce, tap  # noqa: E402
from lib.pathline import region  # noqa: E402
from lib.roce import Collector, gid  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NS, MAC = {}, {}
IP = {"a": "10.1.1.1", "b": "10.1.1.2"}
SLOTS, RECORD, BATCH = 64, 48, 16


def make_wire():
    for side in "ab":
        NS[side] = network.Namespace("sw-" + side, ipv6=False)
    network.join(NS["a"], "plsa", NS["b"], "plsb")
    for side in "ab":
        NS[side].up("pls" + side, IP[side] + "/24")
        MAC[side] = NS[side].mac("pls" + side)
    network.wait_for_carrier((NS["a"], "plsa"), (NS["b"], "plsb"))


# ---- the switch ----

class Switch:
    def __init__(self, told):
        self.va, self.key, self.qpn = struct.unpack(">QII", told[:16])
        self.psn = self.number = 0
        self.socket = roce.packet_socket(NS["a"], "plsa", 0)

    def record(self):
        return struct.pack(">12x4s12x4sHHIII", b"\x0a\0\0\1", b"\x0a\0\0\2", 1000 + self.number % 1000, 443,
                           self.number * 100, 0, self.number)

    def frame(self, slot, imm=None, damage=False):
        data = self.record()
        rest = struct.pack(">QII", self.va + slot * RECORD, self.key, len(data))
        rest += (struct.pack(">I", imm) if imm is not None else b"") + data
        bth = roce.bth(0x0a if imm is None else 0x0b, self.qpn, self.psn, ack=True)
        grh = struct.pack(">IHBB", 0x60000000, 12 + len(rest) + 4, 0x1b, 64) + gid(IP["a"]) + gid(IP["b"])
        return MAC["b"] + MAC["a"] + b"\x89\x15" + roce.with_icrc(grh + bth + rest, grh=True, damaged=damage)

    def write(self, n=1, sent=True, **kwargs):
        """The next n records, or their loss."""
        for _ in range(n):
            if sent:
                self.socket.send(self.frame(self.number % SLOTS, **kwargs))
            self.number += 1
            self.psn = (self.psn + 1) & 0xffff


# ---- the collector ----

def entries():
    return {x["number"]: bytes.fromhex(x["value"]) for x in region("dump", lab.path("records.plr")) if "number" in x}


def number_of(value):
    return struct.unpack(">I", value[44:])[0]


def listen():
    with NS["a"]:
        s = socket.create_server((IP["a"], 19876))
    s.settimeout(LIMIT)
    return s


def start(uri, *args):
    """A collector, which says nothing before it is told."""
    return Collector(NS["b"], "--controller", IP["a"] + ":19876", *args, uri, lab.path("records.plr"), until=None)


def told(server, answer=None):
    """What the collector says to the controller, which answers."""
    c, _ = server.accept()
    c.settimeout(LIMIT)
    data = b""
    while len(data) < 34 and (more := c.recv(64)):
        data += more
    c.sendall(data if answer is None else answer)
    return data


def run(uri):
    roce.make_regions(records=f"--primitive append --unsealed --lists 1 --slots {SLOTS} --batch {BATCH} --value-bytes {RECORD}")
    with listen() as server:
        c = start(uri, "--on-immediate")
        data = told(server)
    ok("collecting on" in c.first_word(), f"{uri}: collects once the controller has answered", c.line)
    eq((len(data), data[16:18], data[18:]), (34, b"\0\0", gid(IP["b"])), "34 bytes: no LID, the collector's GID")
    s = Switch(data)
    s.write(20)
    ok(wait(lambda: len(entries()) == 20), "records are entries", len(entries()))
    eq([number_of(entries()[i]) for i in range(20)], list(range(20)), "each in its place")
    s.write(3, sent=False)
    s.write(2)
    ok(wait(lambda: len(entries()) >= 25), "after a loss the next record counts again", len(entries()))
    got = entries()
    eq([number_of(got[i]) for i in (23, 24)], [23, 24], "in its place")
    eq([got.get(i, b"\0" * RECORD) for i in (20, 21, 22)], [b"\0" * RECORD] * 3, "where a record was lost there is none")
    s.psn = 0xffff
    s.write(5)
    ok(wait(lambda: 29 in entries()), "packet numbers of 16 bits begin again", sorted(entries()))

    before = entries()
    s.socket.send(s.frame(29, damage=True))
    s.socket.send(s.frame(SLOTS + 1000))
    s.key ^= 1
    s.socket.send(s.frame(28))
    s.key ^= 1
    s.write(1)
    ok(wait(lambda: 30 in entries()), "what is right is taken after what is wrong")
    after = entries()
    eq({k: v for k, v in after.items() if k < 30}, before, "damage, another key and a place outside change nothing")
    s.write(1, imm=0x41414141)
    ok(wait(lambda: 31 in entries()), "a record with immediate")
    s.write(50)
    ok(wait(lambda: 81 in entries()), "the list begins again at its end", sorted(entries()))
    got = entries()
    eq({k: number_of(v) for k, v in got.items()}, {k: k for k in got}, "and every entry is its record")
    stats = c.stop()
    causes = stats["causes"]
    eq((causes["ok"], causes["bounds"], causes["key"], causes["icrc"]), (79, 1, 1, 1), "every frame has its cause")
    ok(any(number_of(bytes.fromhex(x["value"])) == 31 for x in c.lines if "value" in x), "the immediate woke a worker", c.out)


def by_configuration():
    """The daemon announces a region to the switch's controller, as pathline collect does."""
    roce.make_regions(records=f"--primitive append --unsealed --lists 1 --slots {SLOTS} --batch {BATCH} --value-bytes {RECORD}")
    with open(lab.path("switch.yaml"), "w", encoding="utf-8") as f:
        f.write(f"rdma: {{interface: 'packet:plsb', listen: none, cm_port: 0, allow: [10.1.1.0/24],\n"
                f"  switch: {{controller: '{IP['a']}:19876', gid: {IP['a']}, queue_pair: 0x263}}}}\n"
                f"regions: [{{name: records, path: {lab.path('records.plr')}, writer: rdma}}]\nweb: {{listen: 'off'}}\n")
    with listen() as server:
        with NS["b"]:
            d = pathline.Daemon(lab.path("switch.yaml"), ready=False)
        data = told(server)
    eq((len(data), data[18:]), (34, gid(IP["b"])), "rdma.switch: the controller is told")
    s = Switch(data)
    ok(d.wait_for("serving memory on") is not None, "the daemon serves", d.log())
    s.write(20)
    ok(wait(lambda: len(entries()) == 20), "the switch's records are entries of the daemon's region", d.log())
    eq([number_of(entries()[i]) for i in range(20)], list(range(20)), "each in its place")
    eq(d.stop(), 0, "it ends well")


def refusals():
    c = start("packet:plsb")
    ok(c.wait() > 0 and "controller" in c.err, "without a controller it does not begin", c.err)
    with listen() as server:
        c = start("packet:plsb")
        told(server, b"x" * 34)
        code = c.wait()
    ok(code > 0 and "did not return the announcement unchanged" in c.err, "nor when it answers something else", c.err)
    r = pathline.run("collect", "--controller", "10.1.1.1:1", "--switch-gid", "10.1.1", "packet:lo", "x")
    ok(r.returncode == 2 and "--switch-gid" in r.stderr, "a GID that is none is refused", r.stderr)


def test_switch():
    run("packet:plsb")
    if "afxdp" in pathline.run("help", "collect").stdout:
        run("afxdp:plsb")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    make_wire()
    lab.run(test_switch, by_configuration, refusals)
    return tap.end()


sys.exit(main())
