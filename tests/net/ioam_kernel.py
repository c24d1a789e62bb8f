#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Linux kernel as IOAM transit node: A sends packets with IOAM options through two kernels that fill
them in, B captures what arrives, pathline decodes it, and this script compares it with how the kernels were
configured. The packets are made here byte by byte, from RFC 9197 and RFC 9326.

    usage: ioam_kernel.py PATHLINE

    A -- R1 -- R2 -- B, each a network namespace.

Needs root, network namespaces and a kernel with IPv6 IOAM (5.15 or later); is skipped without.
"""

import json
import os
import shutil
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, pcap, tap  # noqa: E402
from lib.roce import ones_sum, packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NS = {}
IOAM_NS = 123


# ---- the network ----

NODES = {
    "r1": {"id": 0x0A0001, "wide": 0xB0000001, "data": 0xC0000001, "data_wide": 0xD000000000000001,
           "in": (11, 1100), "out": (12, 1200), "schema": (777, "hello9")},
    "r2": {"id": 0x0A0002, "wide": 0xB0000002, "data": 0xC0000002, "data_wide": 0xD000000000000002,
           "in": (21, 2100), "out": (22, 2200), "schema": None},
}


def link(left, left_if, left_addr, right, right_if, right_addr):
    network.join(NS[left], left_if, NS[right], right_if)
    NS[left].up(left_if, left_addr)
    NS[right].up(right_if, right_addr)


def transit(node, dev_in, dev_out):
    n, ns = NODES[node], NS[node]
    ns.sysctl("ipv6.conf.all.forwarding", 1)
    ns.sysctl("ipv6.ioam6_id", n["id"])
    ns.sysctl("ipv6.ioam6_id_wide", n["wide"])
    ns.sysctl(f"ipv6.conf.{dev_in}.ioam6_enabled", 1)
    for dev, ids in ((dev_in, n["in"]), (dev_out, n["out"])):
        ns.sysctl(f"ipv6.conf.{dev}.ioam6_id", ids[0])
        ns.sysctl(f"ipv6.conf.{dev}.ioam6_id_wide", ids[1])
    ns.ip(f"ioam namespace add {IOAM_NS} data {n['data']:#x} wide {n['data_wide']:#x}")
    if n["schema"]:
        ns.ip("ioam schema add %d %s" % n["schema"])
        ns.ip(f"ioam namespace set {IOAM_NS} schema {n['schema'][0]}")


def setup():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make network namespaces")
    if not os.path.exists("/proc/sys/net/ipv6/ioam6_id"):
        tap.skip_all("this kernel has no IPv6 IOAM")
    try:
        for node in ("a", "r1", "r2", "b"):
            NS[node] = network.Namespace("ioam-" + node)
        link("a", "a0", "fd00:1::1/64", "r1", "r1a", "fd00:1::2/64")
        link("r1", "r1b", "fd00:2::1/64", "r2", "r2a", "fd00:2::2/64")
        link("r2", "r2b", "fd00:3::1/64", "b", "b0", "fd00:3::2/64")
        NS["r1"].ip("route add fd00:3::/64 via fd00:2::2")
        # So that no packet waits for neighbour discovery.
        for node, dev, addr, peer, peer_dev in (("r1", "r1b", "fd00:2::2", "r2", "r2a"),
                                                ("r2", "r2b", "fd00:3::2", "b", "b0")):
            NS[node].ip(f"neigh add {addr} lladdr {NS[peer].mac(peer_dev).hex(':')} dev {dev} nud permanent")
        transit("r1", "r1a", "r1b")
        transit("r2", "r2a", "r2b")
    except RuntimeError as e:
        tap.skip_all("cannot set up the network: " + str(e).replace("\n", " "))


# ---- packets ----

def option(kind, body, option_type=0x31):
    data = bytes([0, kind]) + body
    return bytes([option_type, len(data)]) + data


def words_of(trace_type):
    return sum((2 if 8 <= bit <= 10 else 1) for bit in range(22) if trace_type >> (23 - bit) & 1)


def trace(trace_type, words, ns=IOAM_NS, flags=0):
    w0 = ns << 16 | words_of(trace_type) << 11 | flags << 7 | words
    return option(0, struct.pack("!II", w0, trace_type << 8) + bytes(4 * words))


def options_header(next_header, options):
    # A PadN of two bytes puts the option on a word; one at the end fills the header to eight bytes.
    area = b"\x01\x00" + options
    pad = -(len(area) + 2) % 8
    if pad == 1:
        area += b"\0"
    elif pad:
        area += bytes([1, pad - 2]) + bytes(pad - 2)
    return bytes([next_header, (len(area) + 2) // 8 - 1]) + area


def packet(index, header, options):
    src = socket.inet_pton(socket.AF_INET6, "fd00:1::1")
    dst = socket.inet_pton(socket.AF_INET6, "fd00:3::2")
    udp = struct.pack("!HHHH", 40000 + index, 9, 12, 0) + b"ioam"
    udp = udp[:6] + struct.pack("!H", ones_sum(src + dst + struct.pack("!II", 12, 17) + udp) or 0xFFFF) + udp[8:]
    body = options_header(17, options) + udp
    return struct.pack("!IHBB", 6 << 28, len(body), header, 64) + src + dst + body


HOP, DST = 0, 60
ALL = 0xFFF002
PACKETS = {
    "every field": (HOP, trace(ALL, 52)),
    "node, ports and time": (HOP, trace(0xF00000, 20)),
    "wide forms only": (HOP, trace(0x00E000, 24)),
    "unassigned bits": (HOP, trace(0x8000FC, 21)),
    "room for one": (HOP, trace(0xF00000, 4)),
    "no room": (HOP, trace(0xF00000, 3)),
    "overflow on arrival": (HOP, trace(0xF00000, 8, flags=8)),
    "loopback and active": (HOP, trace(0x800000, 2, flags=6)),
    "unknown namespace": (HOP, trace(0xF00000, 8, ns=999)),
    "destination options": (DST, trace(0xF00000, 8)),
    "direct export": (HOP, option(4, struct.pack("!HBBIII", IOAM_NS, 0, 0xC0, 0x80000000, 21, 7))),
    "edge to edge": (DST, option(3, struct.pack("!HHIII", IOAM_NS, 0x7000, 42, 1700000000, 250000),
                                 0x11)),
    "proof of transit": (HOP, option(2, struct.pack("!HBBQQ", IOAM_NS, 0, 0, 1, 2))),
}


# ---- the two ends ----

def exchange():
    """One packet after the other, each until it has come through; their capture."""
    out, back, frames = packet_socket(NS["a"], "a0", 0), packet_socket(NS["b"], "b0", 0x86DD), []
    back.settimeout(LIMIT)
    ether = NS["r1"].mac("r1a") + b"\x02\0\0\0\0\x01\x86\xdd"
    for i, (header, options) in enumerate(PACKETS.values()):
        out.send(ether + packet(i, header, options))
        frame = back.recv(65535)
        while frame[14 + 6] not in (HOP, DST) or frame[-4:] != b"ioam":
            frame = back.recv(65535)
        frames.append(frame)
    return pcap.write(lab.path("ioam.pcap"), frames, start_ns=time.time_ns())


# ---- what must come out ----

def hop(node, index, trace_type):
    """What the kernel of `node` is to have written, but for times."""
    n = NODES[node]

    def has(bit):
        return trace_type >> (23 - bit) & 1
    h = {"namespace": IOAM_NS}
    if has(0) or has(8):
        h["hop_limit"] = 63 - index
        h["node"] = n["id"] if has(0) else n["wide"]
    if has(8):
        h["node_wide"] = n["wide"]
    if has(1) or has(9):
        h["ingress_port"] = n["in"][0 if has(1) else 1]
        h["egress_port"] = n["out"][0 if has(1) else 1]
    if has(9):
        h["ingress_port2"], h["egress_port2"] = n["in"][1], n["out"][1]
    if has(5):
        h["ns_data"] = n["data"]
    if has(10):
        h["ns_data_wide"] = n["data_wide"]
    if has(6):
        h["queue_depth"] = 0  # veth without a queue
    if has(22) and n["schema"]:
        h["schema_id"] = n["schema"][0]
    return h


TIMES = ("ingress_ts_ns", "time_bits", "index")


def check_hops(name, path, trace_type, nodes, window):
    hops = path.get("hops", [])
    eq([{k: v for k, v in h.items() if k not in TIMES} for h in hops],
       [hop(node, i, trace_type) for i, node in enumerate(nodes)], f"{name}: hops as configured")
    if not trace_type >> 20 & 3 == 3:
        ok(all("ingress_ts_ns" not in h for h in hops), f"{name}: no times")
        return
    times = [h.get("ingress_ts_ns", 0) for h in hops]
    ok(all(window[0] <= t <= window[1] for t in times) and times == sorted(times),
       f"{name}: times of this run, in order", f"{times} in {window}")
    ok(all(t % 1000 == 0 for t in times), f"{name}: microseconds")


def check(paths, stats, window):
    by_name = dict(zip(PACKETS, paths))
    eq(len(paths), len(PACKETS), "every packet was decoded")
    eq(stats["verdicts"], {"ok": len(PACKETS)}, "verdicts")
    for i, (name, p) in enumerate(by_name.items()):
        ok(p["flow"].get("sport") == 40000 + i and p["flow"]["src"] == "fd00:1::1" and
           p["flow"]["dst"] == "fd00:3::2" and p["flow"]["proto"] == 17, f"{name}: flow", p["flow"])
    both = ["r1", "r2"]
    check_hops("every field", by_name["every field"], ALL, both, window)
    check_hops("node, ports and time", by_name["node, ports and time"], 0xF00000, both, window)
    check_hops("wide forms only", by_name["wide forms only"], 0x00E000, both, window)
    check_hops("unassigned bits", by_name["unassigned bits"], 0x8000FC, both, window)
    check_hops("room for one", by_name["room for one"], 0xF00000, ["r1"], window)
    check_hops("loopback and active", by_name["loopback and active"], 0x800000, both, window)
    for name in ("no room", "overflow on arrival", "unknown namespace", "destination options"):
        eq(by_name[name].get("hops", []), [], f"{name}: nothing was filled in")
    for name, p in by_name.items():
        want = name in ("room for one", "no room", "overflow on arrival")
        eq(p.get("flags", {}).get("partial", False), want, f"{name}: partial")
    eq(by_name["loopback and active"]["flags"].get("copy", False), True, "active: kept out of traffic")
    same = {by_name[n].get("path_id") for n in ("every field", "node, ports and time")}
    ok(len(same) == 1 and None not in same, "the same path has the same id", same)
    ok("path_id" not in by_name["room for one"], "a part of a path has no id")
    for name, mode in (("direct export", "ioam-dex"), ("edge to edge", "ioam-e2e"),
                       ("proof of transit", "ioam-pot"), ("every field", "ioam-trace")):
        eq(by_name[name]["mode"], mode, f"{name}: mode")
    eq((by_name["direct export"].get("flow_id"), by_name["direct export"].get("flow_seq")), (21, 7),
       "direct export: flow and sequence number")
    eq([by_name[n].get("namespace") for n in ("direct export", "edge to edge", "proof of transit", "every field")], [IOAM_NS] * 4,
       "the path's namespace")
    ok("pot" in by_name["proof of transit"], "proof of transit: its values", by_name["proof of transit"])
    eq(by_name["edge to edge"].get("e2e_ts_ns"), 1700000000250000000, "edge to edge: the source's time at the path")
    eq(by_name["edge to edge"].get("flow_seq"), 42, "edge to edge: sequence number")
    eq([h.get("egress_ts_ns") for h in by_name["edge to edge"].get("hops", [])],
       [1700000000250000000], "edge to edge: the source's time")


# ---- what the kernel tells itself ----

def test_events():
    """r2, a transit node, tells each trace that it filled in; `ioam6:` reads them there."""
    out, log = lab.path("events.out"), lab.path("events.err")
    with open(out, "w", encoding="utf-8") as f:
        listen = lab.start(NS["r2"].command(pathline.PATHLINE, "listen", "-o", "jsonl", "--stats", "ioam6:"), log=log, stdout=f)

    def said():
        with open(log, encoding="utf-8") as f:
            return f.read()

    def rows():
        with open(out, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]
    wait(lambda: "listening on" in said() or listen.poll() is not None)
    if "no IOAM trace events" in said():
        tap.skip("the kernel's own events", "this kernel has none (before Linux 6.9)")
        return
    ok("listening on ioam6:" in said(), "listens on ioam6:", said())
    start = time.time_ns()
    exchange()
    window = (start - 10**9, time.time_ns() + 10**9)

    def traces(bit):
        return [r for r in rows() if r["kind"] == "path" and r["mode"] == "ioam-trace" and r.get("hops") and bit(r["hops"][0])]
    wait(lambda: len(traces(lambda h: "schema_id" in h)) > 0 and len(traces(lambda h: h.get("node") == NODES["r1"]["wide"])) > 0)
    listen.send_signal(signal.SIGINT)
    listen.wait(timeout=LIMIT)
    paths = [r for r in rows() if r["kind"] == "path"]
    every = traces(lambda h: "schema_id" in h)
    eq(len(every), 1, "each trace once")
    check_hops("event, every field", every[0], ALL, ["r1", "r2"], window)
    eq(every[0].get("namespace"), IOAM_NS, "event: its namespace")
    ok("src" not in every[0].get("flow", {}), "event: no flow, which the kernel does not tell", every[0].get("flow"))
    eq({p["mode"] for p in paths}, {"ioam-trace"}, "events are of traces only")
    stats = next(r for r in rows() if r["kind"] == "stats")
    eq(stats["verdicts"].get("ok", 0), stats["packets"], "all of them decode")


def test_transit():
    start = time.time_ns()
    capture = exchange()
    window = (start - 10**9, time.time_ns() + 10**9)
    r = pathline.run("read", "-o", "jsonl", "--stats", capture)
    if os.environ.get("PATHLINE_KEEP"):
        shutil.copy(capture, os.environ["PATHLINE_KEEP"])
    eq(r.returncode, 0, "pathline read")
    objects = pathline.jsonl(r.stdout)
    check([o for o in objects if o["kind"] == "path"],
          next((o for o in objects if o["kind"] == "stats"), {"verdicts": None}), window)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    setup()
    lab.run(test_transit, test_events)
    return tap.end()


sys.exit(main())
