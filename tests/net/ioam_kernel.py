#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Linux kernel as IOAM transit node: A sends packets with IOAM options through two kernels that fill
them in, B captures what arrives, pathline decodes it, and this script compares it with how the kernels were
configured. The packets are made here byte by byte, from RFC 9197 and RFC 9326.

    usage: ioam_kernel.py PATHLINE

    A -- R1 -- R2 -- B, each a network namespace named plioam-PID-X, removed at the end.

Needs root, network namespaces and a kernel with IPv6 IOAM (5.15 or later); exits 77 without.
"""

import atexit
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

NS = {x: f"plioam-{os.getpid()}-{x}" for x in ("a", "r1", "r2", "b")}
IOAM_NS = 123
MADE = []
COUNT = FAILED = 0


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(77)


def ok(good, name, detail=""):
    global COUNT, FAILED
    COUNT += 1
    FAILED += not good
    print(f"{'ok' if good else 'not ok'} {COUNT} - {name}")
    if not good and detail != "":
        print("# " + str(detail).replace("\n", "\n# "))
    sys.stdout.flush()


def eq(got, want, name):
    ok(got == want, name, f"got    {got!r}\nwanted {want!r}")


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True, timeout=20).stdout


def ip(node, *args):
    return run("ip", "-n", NS[node], *args)


def sysctl(node, name, value):
    run("ip", "netns", "exec", NS[node], "sysctl", "-q", "-w", f"net.ipv6.{name}={value}")


def cleanup():
    for name in reversed(MADE):
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


# ---- the network ----

NODES = {
    "r1": {"id": 0x0A0001, "wide": 0xB0000001, "data": 0xC0000001, "data_wide": 0xD000000000000001,
           "in": (11, 1100), "out": (12, 1200), "schema": (777, "hello9")},
    "r2": {"id": 0x0A0002, "wide": 0xB0000002, "data": 0xC0000002, "data_wide": 0xD000000000000002,
           "in": (21, 2100), "out": (22, 2200), "schema": None},
}


def link(left, left_if, left_addr, right, right_if, right_addr):
    ip(left, "link", "add", left_if, "type", "veth", "peer", "name", right_if, "netns", NS[right])
    for node, dev, addr in ((left, left_if, left_addr), (right, right_if, right_addr)):
        ip(node, "link", "set", dev, "up")
        ip(node, "addr", "add", addr, "dev", dev, "nodad")


def mac(node, dev):
    return re.search(r"link/ether (\S+)", ip(node, "link", "show", dev)).group(1)


def transit(node, dev_in, dev_out):
    n = NODES[node]
    sysctl(node, "conf.all.forwarding", 1)
    sysctl(node, "ioam6_id", n["id"])
    sysctl(node, "ioam6_id_wide", n["wide"])
    sysctl(node, f"conf.{dev_in}.ioam6_enabled", 1)
    for dev, ids in ((dev_in, n["in"]), (dev_out, n["out"])):
        sysctl(node, f"conf.{dev}.ioam6_id", ids[0])
        sysctl(node, f"conf.{dev}.ioam6_id_wide", ids[1])
    ip(node, "ioam", "namespace", "add", str(IOAM_NS), "data", hex(n["data"]), "wide",
       hex(n["data_wide"]))
    if n["schema"]:
        ip(node, "ioam", "schema", "add", str(n["schema"][0]), n["schema"][1])
        ip(node, "ioam", "namespace", "set", str(IOAM_NS), "schema", str(n["schema"][0]))


def setup():
    if os.geteuid() != 0:
        skip("needs root to make network namespaces")
    if not os.path.exists("/proc/sys/net/ipv6/ioam6_id"):
        skip("this kernel has no IPv6 IOAM")
    atexit.register(cleanup)
    try:
        for name in NS.values():
            run("ip", "netns", "add", name)
            MADE.append(name)
        for node in NS:
            ip(node, "link", "set", "lo", "up")
        link("a", "a0", "fd00:1::1/64", "r1", "r1a", "fd00:1::2/64")
        link("r1", "r1b", "fd00:2::1/64", "r2", "r2a", "fd00:2::2/64")
        link("r2", "r2b", "fd00:3::1/64", "b", "b0", "fd00:3::2/64")
        ip("r1", "route", "add", "fd00:3::/64", "via", "fd00:2::2")
        # So that no packet waits for neighbour discovery.
        for node, dev, addr, peer, peer_dev in (("r1", "r1b", "fd00:2::2", "r2", "r2a"),
                                                ("r2", "r2b", "fd00:3::2", "b", "b0")):
            ip(node, "neigh", "add", addr, "lladdr", mac(peer, peer_dev), "dev", dev, "nud", "permanent")
        transit("r1", "r1a", "r1b")
        transit("r2", "r2a", "r2b")
    except (subprocess.CalledProcessError, FileNotFoundError) as e:
        skip("cannot set up the network: " + str(getattr(e, "stderr", e)).strip().replace("\n", " "))


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


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF or 0xFFFF


def packet(index, header, options):
    src = socket.inet_pton(socket.AF_INET6, "fd00:1::1")
    dst = socket.inet_pton(socket.AF_INET6, "fd00:3::2")
    udp = struct.pack("!HHHH", 40000 + index, 9, 12, 0) + b"ioam"
    udp = udp[:6] + struct.pack("!H", checksum(src + dst + struct.pack("!II", 12, 17) + udp)) + udp[8:]
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


# ---- the two ends: this script again, inside their namespaces ----

def send(path):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(("a0", 0))
    with open(path, "rb") as f:
        for frame in json.load(f):
            s.send(bytes.fromhex(frame))
            time.sleep(0.02)


def receive(path):
    """Until the last packet or 10 s."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x86DD))
    s.bind(("b0", 0x86DD))
    s.settimeout(0.2)
    print("ready", flush=True)
    end = time.time() + 10
    seen = 0
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        while time.time() < end and seen < len(PACKETS):
            try:
                frame = s.recv(65535)
            except socket.timeout:
                continue
            if frame[14 + 6] not in (HOP, DST) or frame[-4:] != b"ioam":
                continue
            seen += 1
            now = time.time_ns()
            f.write(struct.pack("<IIII", now // 10**9, now % 10**9, len(frame), len(frame)) + frame)


def exchange(folder):
    frames, capture = os.path.join(folder, "frames.json"), os.path.join(folder, "ioam.pcap")
    ether = bytes.fromhex(mac("r1", "r1a").replace(":", "")) + b"\x02\0\0\0\0\x01\x86\xdd"
    with open(frames, "w", encoding="ascii") as f:
        json.dump([(ether + packet(i, *p)).hex() for i, p in enumerate(PACKETS.values())], f)
    receiver = subprocess.Popen(["ip", "netns", "exec", NS["b"], sys.executable, __file__, "--receive",
                                 capture], stdout=subprocess.PIPE, text=True)
    try:
        receiver.stdout.readline()
        run("ip", "netns", "exec", NS["a"], sys.executable, __file__, "--send", frames)
        receiver.wait(timeout=20)
    finally:
        receiver.kill()
    return capture


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
    if has(5) or has(10):
        h["ns_data"] = n["data"] if has(5) else n["data_wide"]
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
    eq(by_name["edge to edge"].get("flow_seq"), 42, "edge to edge: sequence number")
    eq([h.get("egress_ts_ns") for h in by_name["edge to edge"].get("hops", [])],
       [1700000000250000000], "edge to edge: the source's time")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    setup()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        start = time.time_ns()
        capture = exchange(folder)
        window = (start - 10**9, time.time_ns() + 10**9)
        out = subprocess.run([sys.argv[1], "read", "-o", "jsonl", "--stats", capture],
                             capture_output=True, text=True, timeout=30, check=False)
        if os.environ.get("PATHLINE_KEEP"):
            run("cp", capture, os.environ["PATHLINE_KEEP"])
    eq(out.returncode, 0, "pathline read")
    objects = [json.loads(line) for line in out.stdout.splitlines()]
    check([o for o in objects if o["kind"] == "path"],
          next((o for o in objects if o["kind"] == "stats"), {"verdicts": None}), window)
    print(f"1..{COUNT}")
    sys.exit(FAILED > 0)


if len(sys.argv) == 3 and sys.argv[1] == "--send":
    send(sys.argv[2])
elif len(sys.argv) == 3 and sys.argv[1] == "--receive":
    receive(sys.argv[2])
else:
    main()
