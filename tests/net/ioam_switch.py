#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Linux kernel and our switch as IOAM nodes of one path: s1 puts a trace into what a sends, the kernel of r fills it in, s2 takes
it out; the other way the kernel of b puts the trace in, s2 and r fill it in, s1 takes it out; and a trace that no switch takes out ends in
the kernel of b. Sniffers see what the last switch saw; pathline reads it, and this script compares it with how the nodes were
configured. A kernel that encapsulates (CONFIG_IPV6_IOAM6_LWTUNNEL) is the first node of its trace itself; another one sends the
empty trace that the socket gives it.

usage: ioam_switch.py PATHLINE

    a --- s1 --- r --- s2 --- b     each a network namespace, r and b kernels
           \\             \\
          x1            x2          sniffers: mirrors of what leaves with its trace

Needs root, network namespaces and a kernel with IPv6 IOAM (5.15 or later); is skipped without."""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, pcap, tap  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.roce import packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NS = {}
IOAM_NS = 123
TYPE = 0xF00000  # node and hop limit, interfaces, both halves of the time: 16 bytes of a node
ID = {"s1": 0x51, "s2": 0x52, "r": 0x0A0001, "b": 0x0B0001}
A, B = "fd00:a::2", "fd00:b::2"
PACKETS = 20
IPV6_HOPOPTS = 54
ENDS_AT_HOST = 9000  # UDP port of datagrams that keep their trace


def setup():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make network namespaces")
    if not os.path.exists("/proc/sys/net/ipv6/ioam6_id"):
        tap.skip_all("this kernel has no IPv6 IOAM")
    for node in ("a", "s1", "r", "s2", "b", "x1", "x2"):
        NS[node] = network.Namespace("is-" + node)
    for left, right in (("a", "s1"), ("s1", "r"), ("r", "s2"), ("s2", "b"), ("s1", "x1"), ("s2", "x2")):
        network.join(NS[left], f"to-{right}", NS[right], f"to-{left}")
    for node in ("s1", "s2", "x1", "x2"):
        NS[node].sysctl("ipv6.conf.all.disable_ipv6", 1)
        NS[node].sysctl("ipv6.conf.default.disable_ipv6", 1)
    NS["a"].up("to-s1", A + "/64")
    NS["b"].up("to-s2", B + "/64")
    NS["r"].up("to-s1", "fd00:1::2/64")
    NS["r"].up("to-s2", "fd00:2::2/64")
    for node, ends in (("s1", ("a", "r", "x1")), ("s2", ("r", "b", "x2")), ("x1", ("s1",)), ("x2", ("s2",))):
        for end in ends:
            NS[node].up(f"to-{end}")
    network.wait_for_carrier((NS["a"], "to-s1"), (NS["r"], "to-s1"), (NS["r"], "to-s2"), (NS["b"], "to-s2"))
    kernel_node("r", ("to-s1", 11), ("to-s2", 12))
    kernel_node("b", ("to-s2", 21))
    NS["r"].sysctl("ipv6.conf.all.forwarding", 1)
    for to, via in (("fd00:a::/64", "fd00:1::1 dev to-s1"), ("fd00:b::/64", "fd00:2::1 dev to-s2")):
        NS["r"].ip(f"-6 route add {to} via {via}")
    NS["a"].ip("-6 route add default via fd00:a::1")
    NS["b"].ip("-6 route add default via fd00:b::1")


def kernel_node(node, *interfaces):
    NS[node].sysctl("ipv6.ioam6_id", ID[node])
    NS[node].ip(f"ioam namespace add {IOAM_NS}")
    for interface, number in interfaces:
        NS[node].sysctl(f"ipv6.conf.{interface}.ioam6_enabled", 1)
        NS[node].sysctl(f"ipv6.conf.{interface}.ioam6_id", number)


def mac(node, interface):
    return NS[node].mac(interface).hex(":")


def start_switch(name, left, right, sniffer, addresses, egress):
    """A router between two nodes; it has an address at both sides, by which they find it."""
    path = lab.write(name + ".yaml", f"""
name: {name}
id: {ID[name]}
ports:
  - {{ number: 1, uri: "packet:to-{left}", addresses: [ "{addresses[0]}" ] }}
  - {{ number: 2, uri: "packet:to-{right}", addresses: [ "{addresses[1]}" ] }}
  - {{ number: 3, uri: "packet:to-{sniffer}" }}
tables:
  - name: routes
    key: [ ip.dst prefix ]
    entries:
      - ip.dst=fd00:a::/64 -> route 1 {mac(left, 'to-' + name)}
      - ip.dst=fd00:b::/64 -> route 2 {mac(right, 'to-' + name)}
  - name: trace
    stage: egress
    key: [ port.out exact, l4.dst ternary ]
    entries:
{egress}""")
    log = lab.path(name + ".log")
    process = lab.start(NS[name].command(PATHLINE, "switch", "-c", path), log=log)
    ok(wait(lambda: "forwards between" in lab.read(name + ".log") or process.poll() is not None) and process.poll() is None,
       f"{name} runs", lab.read(name + ".log"))
    return process


def switches():
    takes_out = f"ioam_transit ns={IOAM_NS}; mirror 3; ioam_decap ns={IOAM_NS}"
    # What a sends gets its trace at s1 and loses it at s2; what b's kernel sends with one loses it at s1.
    return [start_switch("s1", "a", "r", "x1", ("fd00:a::1", "fd00:1::1"),
                         f"      - port.out=1 -> {takes_out}\n"
                         f"      - port.out=2 -> ioam_encap ns={IOAM_NS} type={TYPE:#x} nodes=4\n"),
            start_switch("s2", "r", "b", "x2", ("fd00:2::1", "fd00:b::1"),
                         f"      - port.out=1 -> ioam_transit ns={IOAM_NS}\n"
                         f"      - port.out=2 -> {takes_out}\n"
                         f"      - priority 1 port.out=2 l4.dst={ENDS_AT_HOST} -> ioam_transit ns={IOAM_NS}; mirror 3\n")]


class Frames:
    """Those of our UDP port at an interface."""

    def __init__(self, node, interface):
        self.socket = packet_socket(NS[node], interface, 0x86DD)
        self.socket.setblocking(False)
        self.got = []

    def take(self):
        while True:
            try:
                frame = self.socket.recv(65535)
            except BlockingIOError:
                return self.got
            if b"pathline-ioam" in frame:
                self.got.append(frame)


def empty_trace():
    """A hop-by-hop header with a pre-allocated trace of the type, room for four nodes, written by definition (RFC 9197 4.4.1)."""
    trace = struct.pack("!BBII", 0, 0, IOAM_NS << 16 | 4 << 11 | 16, TYPE << 8) + bytes(64)
    options = b"\x01\x00" + bytes([0x31, len(trace)]) + trace
    options += b"\x01\x02\0\0" if (len(options) + 2) % 8 == 4 else b""
    return bytes([0, (len(options) + 2) // 8 - 1]) + options


def exchange(sender, receiver, sniffer, last, port=0, options=None, headers=frozenset({17})):
    """So many datagrams from host to host: what arrived, its frames at the host, and those of the sniffer."""
    to = {"a": A, "b": B}[receiver]
    with NS[receiver]:
        server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.bind((to, port))
    server.settimeout(LIMIT)
    with NS[sender]:
        client = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    if options:
        client.setsockopt(socket.IPPROTO_IPV6, IPV6_HOPOPTS, options)
    arriving, copies = Frames(receiver, last), Frames(*sniffer)
    texts = [f"pathline-ioam {sender} {i}".encode() for i in range(PACKETS)]
    got = []
    for text in texts:
        client.sendto(text, server.getsockname()[:2])
        got.append(server.recv(2000))
    eq(got, texts, f"{sender} to {receiver}: every datagram arrives as it was sent")
    ok(wait(lambda: len(copies.take()) >= PACKETS and len(arriving.take()) >= PACKETS), f"{sender} to {receiver}: frames of all",
       (len(copies.got), len(arriving.got)))
    eq({frame[20] for frame in arriving.got}, set(headers), f"{sender} to {receiver}: the headers that the host sees")
    return copies.got


def check(frames, name, nodes, first, window):
    """nodes: id, and ingress and egress interface, None: not looked at."""
    r = pathline.run("read", "-o", "jsonl", pcap.write(lab.path(name + ".pcap"), frames, start_ns=time.time_ns()))
    ok(r.returncode == 0, f"{name}: pathline reads it", r.stderr)
    paths = [o for o in pathline.jsonl(r.stdout) if o["kind"] == "path"]
    eq(len(paths), PACKETS, f"{name}: a path for every packet")
    for path in paths[:1]:
        print("# " + name + ": " + str(path["hops"]))
    ids = {tuple(h.get("node") for h in p["hops"]) for p in paths}
    eq(ids, {tuple(n[0] for n in nodes)}, f"{name}: every node of the path, in order")
    limits = {tuple(h.get("hop_limit") for h in p["hops"]) for p in paths}
    eq(limits, {tuple(first - i for i in range(len(nodes)))}, f"{name}: hop limits fall by one")
    for i, (_, ingress, egress) in enumerate(nodes):
        ports = {(p["hops"][i].get("ingress_port"), p["hops"][i].get("egress_port")) for p in paths}
        want = {(ingress, egress)}
        eq(ports, want, f"{name}: interfaces of node {i + 1}")
    times = [[h["ingress_ts_ns"] for h in p["hops"]] for p in paths]
    ok(all(t == sorted(t) and window[0] <= t[0] and t[-1] <= window[1] for t in times), f"{name}: times of this run, in order",
       times[:1])
    ok(all(p["flow"].get("dst") in (A, B) and not p.get("flags", {}).get("partial") for p in paths), f"{name}: whole, with its flow")


def test_switch_encapsulates():
    start = time.time_ns() - 10**9
    frames = exchange("a", "b", ("x2", "to-s2"), "to-s2")
    check(frames, "s1-r-s2", [(ID["s1"], 1, 2), (ID["r"], 11, 12), (ID["s2"], 1, 2)], 63, (start, time.time_ns() + 10**9))


def encapsulates():
    """inline: the kernel puts the header into packets of its own."""
    try:
        NS["b"].ip(f"-6 route add fd00:a::/64 encap ioam6 mode inline trace prealloc type {TYPE:#x} ns {IOAM_NS} size 64 "
                   "via fd00:b::1 dev to-s2")
    except RuntimeError as e:
        tap.comment("the kernel of b does not encapsulate by itself: " + str(e).splitlines()[-1])
        return False
    return True


def test_kernel_encapsulates():
    by_route = encapsulates()
    start = time.time_ns() - 10**9
    frames = exchange("b", "a", ("x1", "to-s1"), "to-s1", options=None if by_route else empty_trace())
    nodes = [(ID["s2"], 2, 1), (ID["r"], 12, 11), (ID["s1"], 2, 1)]
    if by_route:
        nodes.insert(0, (ID["b"], None, 21))
    check(frames, "b-s2-r-s1", nodes, 64 if by_route else 63, (start, time.time_ns() + 10**9))


def test_kernel_is_the_end():
    """The trace stays in; b's kernel gives its socket what was sent."""
    start = time.time_ns() - 10**9
    frames = exchange("a", "b", ("x2", "to-s2"), "to-s2", port=ENDS_AT_HOST, headers={0})
    check(frames, "s1-r-s2-b", [(ID["s1"], 1, 2), (ID["r"], 11, 12), (ID["s2"], 1, 2)], 63, (start, time.time_ns() + 10**9))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    setup()
    running = switches()
    lab.run(test_switch_encapsulates, test_kernel_encapsulates, test_kernel_is_the_end)
    for process in running:
        process.terminate()
        eq(process.wait(LIMIT), 0, "a switch ends well")
    return tap.end()


sys.exit(main())
