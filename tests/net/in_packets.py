#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""IOAM and INT in the packets of others, live: `also=` has packet: and afxdp: ports copy them, and the sockets that they
are for get every one all the same. Nothing is copied unasked. Direct exports of two namespaces with the same flow ids and
numbers are told apart, and joined with what else was seen of their packet. The packets are made here byte by byte, from RFC
9197, RFC 9326 and the INT specification 1.0.

    usage: in_packets.py PATHLINE [TEST…]

Needs root and network namespaces; is skipped without."""

import json
import os
import signal
import socket
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, pcap, tap  # noqa: E402
from lib.pathline import PATHLINE, Daemon  # noqa: E402
from lib.roce import ones_sum, packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

COUNT = 40
ADDRESSES = {4: {"a": "10.78.0.1", "b": "10.78.0.2"}, 6: {"a": "fd78::1", "b": "fd78::2"}}
NS = {}


# ---- packets ----

def ethernet(kind):
    return NS["b"].mac("eth0") + NS["a"].mac("eth0") + struct.pack("!H", kind)


def udp4(port, payload, dscp=0):
    udp = struct.pack("!HHHH", 40000, port, 8 + len(payload), 0) + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, dscp << 2, 20 + len(udp), 0, 0, 64, 17, 0,
                     *(socket.inet_aton(ADDRESSES[4][side]) for side in "ab"))
    return ethernet(0x0800) + ip[:10] + struct.pack("!H", ones_sum(ip)) + ip[12:] + udp


def udp6(port, payload, header):
    """Behind a header of hop-by-hop options."""
    ends = b"".join(socket.inet_pton(socket.AF_INET6, ADDRESSES[6][side]) for side in "ab")
    udp = struct.pack("!HHHH", 40000, port, 8 + len(payload), 0) + payload
    udp = udp[:6] + struct.pack("!H", ones_sum(ends + struct.pack("!II", len(udp), 17) + udp) or 0xFFFF) + udp[8:]
    return ethernet(0x86DD) + struct.pack("!IHBB", 6 << 28, len(header) + len(udp), 0, 64) + ends + header + udp


# Next header UDP, 2 words of 8 bytes more; a pre-allocated trace of one node, 7, that said hop limit and id.
IOAM = bytes.fromhex("1102" "0100" "310e0000" "007b0800" "80000000" "3e000007" "01020000")
# Shim of 1.0, its header for node ids, two of them, newest first.
INT = bytes.fromhex("01000500" "10000106" "80000000" "0000000b" "0000000a")
# A report 1.0 about a packet that was dropped at node 9, without INT.
REPORT = bytes.fromhex("14000100" "00000009" "00000001" "00000000") + b"\x02" * 12 + bytes.fromhex(
    "0800" "4500001c" "00000000" "40110000" "0a000001" "0a000002" "12340035" "00080000")

KINDS = {"ioam": lambda i: udp6(9000, b"ioam %d" % i, IOAM), "int": lambda i: udp4(9001, INT + b"int %d" % i, dscp=0x17),
         "plain": lambda i: udp4(9002, b"plain %d" % i),
         "report": lambda i: udp4(32766, REPORT[:8] + struct.pack("!I", i + 1) + REPORT[12:])}


def send():
    """COUNT of each kind, in turn."""
    s = packet_socket(NS["a"], "eth0", 0)
    for i in range(COUNT):
        for make in KINDS.values():
            s.send(make(i))
    s.close()


class Host:
    """The sockets of b that the packets are for, and one that keeps the stack from answering what it gets of reports."""

    def __init__(self):
        with NS["b"]:
            self.sockets = {kind: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
                            for kind in ("ioam", "int", "plain", "report")}
            for s, port in zip(self.sockets.values(), (9000, 9001, 9002, 32766)):
                s.bind(("::", port))
                s.settimeout(LIMIT)

    def got(self, kind, prefix=b""):
        return [self.sockets[kind].recv(2000) for i in range(COUNT)] == \
            [prefix + b"%s %d" % (kind.encode(), i) for i in range(COUNT)]

    def check(self, name):
        ok(self.got("ioam"), f"{name}: the host got every packet with IOAM")
        ok(self.got("int", INT), f"{name}: and with INT")
        ok(self.got("plain"), f"{name}: and without either")
        for s in self.sockets.values():
            s.close()


# ---- listen ----

class Listen:
    def __init__(self, uri):
        self.out, self.err = (tempfile.mktemp(dir=lab.DIR, suffix=suffix) for suffix in (".out", ".err"))
        with open(self.out, "w", encoding="utf-8") as out:
            self.p = lab.start(NS["b"].command(PATHLINE, "listen", "-o", "jsonl", "--stats", uri), log=self.err, stdout=out)
        self.up = wait(lambda: "listening on" in self.errors() or self.p.poll() is not None) and self.p.poll() is None

    def errors(self):
        with open(self.err, encoding="utf-8") as f:
            return f.read()

    def rows(self):
        with open(self.out, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def paths(self, mode):
        return [r for r in self.rows() if r["kind"] == "path" and r["mode"] == mode]

    def stop(self):
        self.p.send_signal(signal.SIGINT)
        self.p.wait(timeout=LIMIT)
        return next((r for r in self.rows() if r["kind"] == "stats"), {})


def check_listen(name, uri):
    listen = Listen(uri)
    if not ok(listen.up, f"{name}: listens", listen.errors()):
        return
    host = Host()
    send()
    wait(lambda: all(len(listen.paths(mode)) >= COUNT for mode in ("ioam-trace", "md", "xd")))
    ioam, md, reports = (listen.paths(mode) for mode in ("ioam-trace", "md", "xd"))
    eq([[h["node"] for h in p["hops"]] for p in ioam], [[7]] * COUNT, f"{name}: IOAM, each packet once")
    eq({(p["flow"]["src"], p["flow"]["dport"], p["namespace"]) for p in ioam}, {("fd78::1", 9000, 123)}, f"{name}: its flow")
    eq([[h["node"] for h in p["hops"]] for p in md], [[10, 11]] * COUNT, f"{name}: INT, each packet once")
    eq({(p["flow"]["src"], p["flow"]["dport"]) for p in md}, {("10.78.0.1", 9001)}, f"{name}: its flow")
    eq([p["seq"] for p in reports], list(range(1, COUNT + 1)), f"{name}: reports come by the side of them")
    host.check(name)
    stats = listen.stop()
    # Neighbour discovery and the like have no IOAM.
    eq(stats.get("verdicts", {}).get("ok"), 3 * COUNT, f"{name}: nothing else was read")
    ok(stats.get("packets") == 3 * COUNT, f"{name}: nor copied", stats)


def test_packet():
    check_listen("packet", "packet:eth0?also=ioam,int")


def test_afxdp():
    check_listen("afxdp", "afxdp:eth0?also=ioam,int")


def test_unasked():
    for scheme in ("packet", "afxdp"):
        listen = Listen(f"{scheme}:eth0")
        host = Host()
        send()
        wait(lambda: len(listen.paths("xd")) >= COUNT)
        host.check(f"{scheme}: without also")
        stats = listen.stop()
        eq(stats.get("packets"), COUNT, f"{scheme}: without also only reports are read")


def test_none():
    listen = Listen("packet:eth0?port=none&also=dscp:0x17")
    send()
    wait(lambda: len(listen.paths("md")) >= COUNT)
    stats = listen.stop()
    eq(stats.get("packets"), COUNT, "port=none: no reports, only what is asked for")


# ---- direct export ----

FLOW_ID = 21


def dex(namespace, flow, seq, nodes=()):
    """UDP behind direct export with a flow id and a number (RFC 9326 3.2); beside it a trace of the same namespace, newest node
    first, where the nodes are given."""
    options = struct.pack("!BBBBHBB", 0x31, 18, 0, 4, namespace, 0, 0xC0) + b"\x80\0\0\0" + struct.pack("!II", flow, seq)
    if nodes:
        options += struct.pack("!BBBBHH", 0x31, 10 + 4 * len(nodes), 0, 0, namespace, 0x0800) + b"\x80\0\0\0" + \
            b"".join(struct.pack("!I", 64 - len(nodes) + i << 24 | node) for i, node in enumerate(reversed(nodes)))
    pad = -(4 + len(options)) % 8
    options = b"\x01\0" + options + (b"\x01" + bytes([pad - 2]) + bytes(pad - 2) if pad else b"")
    return udp6(9003, b"dex", struct.pack("!BB", 17, (2 + len(options)) // 8 - 1) + options)


def sights():
    """What is sent: (namespace, flow id, number, nodes of the trace), a row for each place where a packet was seen. Both
    namespaces have the same flow ids and numbers; a packet of the one is seen at two places, one of the other at one, with a
    trace; every fourth packet of the first has a trace too, one node longer at the second place."""
    for seq in range(1, COUNT + 1):
        for flow in (FLOW_ID, FLOW_ID + 1):
            for nodes in ((7,), (7, 8)):
                yield 123, flow, seq, nodes if seq % 4 == 0 else ()
            yield 124, flow, seq, (30 + seq,)


def joined():
    """What was seen of each packet: how often, and how many hops its traces have in all."""
    want = {}
    for namespace, flow, seq, nodes in sights():
        n, hops = want.get((namespace, flow, seq), (0, 0))
        want[namespace, flow, seq] = n + 1, hops + len(nodes)
    return want


def test_dex_live():
    listen = Listen("packet:eth0?also=ioam")
    s = packet_socket(NS["a"], "eth0", 0)
    for sight in sights():
        s.send(dex(*sight))
    s.close()
    sent = sorted(sights())
    wait(lambda: len([r for r in listen.rows() if r["kind"] == "path"]) >= len(sent))
    paths = [r for r in listen.rows() if r["kind"] == "path"]
    eq(sorted((p["namespace"], p["flow_id"], p["flow_seq"], tuple(h["node"] for h in p["hops"])) for p in paths), sent,
       "direct export, live: each record has the namespace, flow id, number and trace that were sent")
    eq([p["mode"] for p in paths if (p["mode"] == "ioam-trace") != bool(p["hops"])], [], "a trace beside it names the mode")
    eq({h["namespace"] for p in paths for h in p["hops"] if p["namespace"] == 124}, {124}, "hops have the namespace of their trace")
    stats = listen.stop()
    eq((stats.get("packets"), stats.get("verdicts")), (len(sent), {"ok": len(sent)}), "direct export, live: all of it, and no more")


def test_dex_joined():
    capture = pcap.write(lab.path("dex.pcap"), [dex(*sight) for sight in sights()])
    rows = pathline.jsonl(pathline.run("query", "-o", "jsonl", "SELECT namespace, flow_id, flow_seq, count(*) AS n, sum(hop_count) "
                                       "AS hops FROM paths GROUP BY namespace, flow_id, flow_seq", capture).stdout)
    eq({(r["namespace"], r["flow_id"], r["flow_seq"]): (r["n"], r["hops"]) for r in rows}, joined(),
       "exports of one packet are joined by namespace, flow id and number")
    eq(len(rows), len(joined()), "each packet is in one row")


# ---- run ----

def check_run(name, uri, where):
    config = lab.write(f"{name}.yaml", f"""
sources: [{{uri: '{uri}'}}]
detect: {{where: {where}}}
web: {{listen: '127.0.0.1:0'}}
outputs: [{{type: jsonl, name: all, path: {lab.path(name + '.jsonl')}}}]
""")
    daemon = Daemon(config, name=name, prefix=NS["b"].command())
    host = Host()
    send()

    def metrics():
        return NS["b"].call(daemon.metrics)
    want = 3 * COUNT
    wait(lambda: pathline.total(metrics(), "pathline_packets_total") >= want)
    values = metrics()
    eq(pathline.total(values, "pathline_packets_total"), want, f"{name}: every packet of the three kinds")
    eq(pathline.total(values, "pathline_packets_decoded_total"), want, f"{name}: all of them decoded")
    host.check(name)
    eq(daemon.stop(), 0, f"{name}: ends well")
    with open(lab.path(name + ".jsonl"), encoding="utf-8") as f:
        modes = [json.loads(line).get("mode") for line in f]
    eq([modes.count(m) for m in ("ioam-trace", "md")], [COUNT, COUNT], f"{name}: the records are in the output")


def test_run():
    check_run("run-packet", "packet:eth0?also=ioam,int", "user")
    check_run("run-afxdp", "afxdp:eth0?also=ioam,int", "user")
    check_run("run-kernel", "afxdp:eth0?also=ioam,int", "kernel")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make network namespaces")
    NS.update(network.pair("inp", ADDRESSES))
    NS["a"].sh("ethtool -K eth0 tx off", check=False)
    lab.run(test_unasked, test_packet, test_afxdp, test_none, test_dex_live, test_dex_joined, test_run)
    return tap.end()


sys.exit(main())
