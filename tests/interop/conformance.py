#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What pathline reads, held against the specifications: INT v0.4 to v2.1 and the dialects, telemetry reports
v0.5, v1.0 and v2.0, IOAM, and what is hostile or broken in them. Every packet is made here with struct from
the published layouts, never by pathline; docs/protocols/int.md and ioam.md say how ambiguous places are read.

    usage: conformance.py PATHLINE [NAME…]     (only the cases whose names contain one of these)
"""

import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap  # noqa: E402
from lib.pcap import NOW_NS  # noqa: E402
from lib.roce import ones_sum as checksum  # noqa: E402
from lib.tap import ok  # noqa: E402

NONE32, NONE64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
ABSENT = object()


def words(*values):
    return b"".join(struct.pack("!I", v) for v in values)


def hexes(text):
    return bytes.fromhex(text.replace(" ", "").replace("\n", ""))


# ---- carriers ----

def ip4(proto, payload, src="10.0.0.1", dst="10.0.0.2", dscp=0, options=b"", fragment=0, total=None):
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | (5 + len(options) // 4), dscp << 2,
                       20 + len(options) + len(payload) if total is None else total, 7, fragment, 61, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst)) + options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def ip6(proto, payload, src="2001:db8::1", dst="2001:db8::2", dscp=0):
    return struct.pack("!IHBB16s16s", 6 << 28 | dscp << 22, len(payload), proto, 61,
                       socket.inet_pton(socket.AF_INET6, src), socket.inet_pton(socket.AF_INET6, dst)) + payload


def udp(payload, sport=5000, dport=5001):
    return struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def tcp(payload, sport=5000, dport=5001, options=b""):
    return struct.pack("!HHIIBBHHH", sport, dport, 1, 2, (5 + len(options) // 4) << 4, 0x10, 1024, 0, 0) + options + payload


def tcp_before_options(stack, options, payload, sport=5000, dport=5001):
    """INT behind the first 20 bytes; the data offset still counts the options only."""
    return tcp(b"", sport, dport, options)[:20] + stack + options + payload


def eth(ethertype, payload, vlans=(), dst="020000000002"):
    tags = b"".join(struct.pack("!HH", t, v) for t, v in vlans)
    return bytes.fromhex(dst) + b"\2\0\0\0\0\1" + tags + struct.pack("!H", ethertype) + payload


def eth4(packet, vlans=()):
    return eth(0x0800, packet, vlans)


def datagram(payload, src="10.9.0.1", sport=40000, dport=32766, dscp=0):
    return eth4(ip4(17, udp(payload, sport, dport), src, "10.9.9.9", dscp))


# ---- INT ----

def node1(node, *values):
    return words(node, *values)


def shim05(hops, bitmap, total=None, most=16, count=None, tail=(17, 5001, 46), type_=1, b0=0, extra=b"", length=None):
    """hops: newest first, bytes of equal length."""
    stack = b"".join(hops)
    n = bin(bitmap).count("1")
    end = struct.pack("!BHB", *tail) if tail else b""
    size = 3 + (len(stack) + len(extra) + len(end)) // 4
    return struct.pack("!BBBB BBBB HH", type_, 0, size if length is None else length, 0, b0,
                       n if count is None else count, most, len(hops) if total is None else total, bitmap, 0) + stack + extra + end


def shim10(hops, bitmap, ml, dscp=46, b0=0x10, b1=0, left=6, reserved=0, length=None, type_=1, fourth=None):
    stack = b"".join(hops)
    return struct.pack("!BBBB BBBB HH", type_, 0, 3 + len(stack) // 4 if length is None else length,
                       dscp << 2 if fourth is None else fourth, b0, b1, ml, left, bitmap, reserved) + stack


def shim2x(hops, bitmap, ml, b0=0x10, union=46 << 2, md0=0x20, left=6, ds=0, ds_bits=0, extra=b"", length=None, flags=0):
    stack = b"".join(hops) + extra
    return struct.pack("!BBH BBBB HHHH", b0, 3 + len(stack) // 4 if length is None else length, union,
                       md0, 0, ml, left, bitmap, ds, ds_bits, flags) + stack


def mx(bitmap, own=b"", ds=0, b0=0x30, union=46 << 2, md0=0x20, length=None):
    return struct.pack("!BBH I HHHH", b0, 3 + len(own) // 4 if length is None else length, union, md0 << 24, bitmap, ds, 0, 0) + own


ID2 = [words(2), words(1)]  # node ids only, newest first
D000 = [words(2, 0x00050006, 0x0100012C), words(1, 0x00030004, 0x00000011)]
D000_HOPS = [{"node": 1, "ingress_port": 3, "egress_port": 4, "queue": 0, "queue_depth": 17},
             {"node": 2, "ingress_port": 5, "egress_port": 6, "queue": 1, "queue_depth": 300}]
NODES = [{"node": 1}, {"node": 2}]
V10 = shim10(ID2, 0x8000, 1)
V21 = shim2x(ID2, 0x8000, 1)


def inner(stack, payload=b"data", dscp=0x17, **more):
    return eth4(ip4(17, udp(stack + payload), dscp=dscp, **more))


PLAIN = eth4(ip4(17, udp(b"data"), dscp=10))


# ---- reports ----

def rep05(body, nproto=0, dqf=1, seq=42, ts=1000, hw=5, version=0):
    return words((version << 28) | (nproto << 24) | (dqf << 21) | hw, seq, ts) + body


def rep10(body, bits=0, md=b"", nprot=0, dqf=1, seq=42, ts=1000, hw=5, node=9, length=None, version=1):
    size = 4 + bin(bits).count("1") if length is None else length
    return words(version << 28 | size << 24 | nprot << 21 | bits << 15 | dqf << 6 | hw, node, seq, ts) + md + body


def group(*reports, seq=42, hw=5, node=9, version=2):
    return words(version << 28 | hw << 22 | seq, node) + b"".join(reports)


def rep20(body=b"", intype=3, reptype=0, dqfi=2, bits=0, md=b"", ds=0, length=None, md_length=None):
    fixed = struct.pack("!HHHH", bits, ds, 0, 0) if reptype == 1 else b""
    body += bytes(-len(body) % 4)
    size = (len(fixed) + len(md) + len(body)) // 4
    return struct.pack("!BBBB", reptype << 4 | intype, size if length is None else length,
                       len(md) // 4 if md_length is None else md_length, dqfi << 4) + fixed + md + body


def tlv(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("!BBH", kind << 4, len(body) // 4, 0) + body


# ---- IOAM ----

def ioam6(option, extension=0, option_type=0x31, payload=b"data"):
    """Hop-by-Hop (0) or Destination Options (60) with one IOAM option behind a PadN of two."""
    body = b"\1\0" + struct.pack("!BBBB", option_type, 2 + len(option) - 1, 0, option[0]) + option[1:]
    body += {0: b"", 1: b"\0"}.get(-(len(body) + 2) % 8, b"\1" + bytes([max(0, -(len(body) + 2) % 8 - 2)]) + bytes(max(0, -(len(body) + 2) % 8 - 2)))
    ext = struct.pack("!BB", 17, (len(body) + 2) // 8 - 1) + body
    return eth(0x86DD, ip6(extension, ext + udp(payload)))


def trace(type_, nodes, free=0, ns=123, flags=0, node_len=None, kind=0, remaining=None, tail=b""):
    """nodes: newest first."""
    length = sum(2 if 8 <= b <= 10 else 1 for b in range(22) if type_ & 0x800000 >> b) if node_len is None else node_len
    left = free if remaining is None else remaining
    head = struct.pack("!HBB", ns, length << 3 | flags >> 1, (flags & 1) << 7 | left) + struct.pack("!I", type_ << 8)
    return bytes([kind]) + head + (bytes(4 * free) if kind == 0 else b"") + b"".join(nodes) + tail


LINUX_2 = hexes("""3e0a0002 00150016 6b000d60 0005efb4 ffffffff c0000002 00000000 ffffffff
3e000000 b0000002 00000834 00000898 d0000000 00000002 ffffffff 00ffffff""")
LINUX_1 = hexes("""3f0a0001 000b000c 6b000d60 0005ef00 ffffffff c0000001 00000000 ffffffff
3f000000 b0000001 0000044c 000004b0 d0000000 00000001 ffffffff 02000309 68656c6c 6f393900""")


# ---- running and comparing ----

def differs(got, want, where="record"):
    """What differs, as text, or None: dictionaries may hold more than is wanted, nothing else may."""
    if want is ABSENT:
        return f"{where}: there is {got!r}"
    if isinstance(want, dict):
        for key, value in want.items():
            if key not in got:
                if value is not ABSENT:
                    return f"{where}.{key}: missing"
                continue
            text = differs(got[key], value, f"{where}.{key}")
            if text:
                return text
        return None
    if isinstance(want, list):
        if len(got) != len(want):
            return f"{where}: {len(got)} instead of {len(want)}: {got}"
        for i, (g, w) in enumerate(zip(got, want)):
            text = differs(g, w, f"{where}[{i}]")
            if text:
                return text
        return None
    if got != want or type(got) is not type(want):
        return f"{where}: {got!r} instead of {want!r}"
    return None


PATH_KEYS = {"kind", "ts_ns", "exporter", "exporter_port", "report_version", "dialect", "mode", "hw_id", "drop_reason",
             "hop_count", "seq", "flags", "int_version", "node", "flow", "path_id", "latency_ns", "flow_seq", "flow_id",
             "lost_count", "namespace", "e2e_ts_ns", "pot", "report_id", "hops"}


def run(case):
    name, frames, args, verdicts, records, more = case
    path = pcap.write(lab.path("case.pcap"), frames)
    p = pathline.run("read", "-o", "jsonl", "--stats", *args, path)
    objects = pathline.jsonl(p.stdout)
    problem = None
    if p.returncode != 0 or not objects:
        problem = f"exit code {p.returncode}: {p.stderr}"
    else:
        stats, got = objects[-1], objects[:-1]
        seen = {k: v for k, v in stats["verdicts"].items() if v}
        if stats["packets"] != sum(stats["verdicts"].values()) or stats["packets"] != len(frames):
            problem = f"packets {stats['packets']}, verdicts {stats['verdicts']}, frames {len(frames)}"
        elif stats["paths"] != len(got) or stats["hops"] != sum(len(r["hops"]) for r in got):
            problem = f"paths {stats['paths']}, hops {stats['hops']} do not agree with the records"
        elif seen != verdicts:
            problem = f"verdicts {seen} instead of {verdicts}"
        elif any(set(r) - PATH_KEYS for r in got):
            problem = f"keys nobody knows: {[set(r) - PATH_KEYS for r in got]}"
        else:
            problem = differs(got, records, "records") or differs(stats, more, "stats")
    ok(problem is None, name, f"{problem}\n{p.stdout}{p.stderr}")


CASES = []


def case(name, frames, records=(), verdict=None, args=(), notes=(), **stats):
    """One row: frames in, records out. verdict: a name for all frames, or how many of which; default "ok". notes:
    names that are each counted once, or how often which."""
    frames = frames if isinstance(frames, list) else [frames]
    records = records if isinstance(records, (list, tuple)) else [records]
    if not isinstance(verdict, dict):
        verdict = {verdict or "ok": len(frames)}
    if notes:
        stats["notes"] = notes if isinstance(notes, dict) else {n: 1 for n in notes}
    CASES.append((name, frames, args, verdict, list(records), stats))


def flow(**more):
    return {"src": "10.0.0.1", "dst": "10.0.0.2", "proto": 17, "sport": 5000, "dport": 5001, **more}


# ---- the reports themselves (reference: Telemetry Report Format 0.5, 1.0, 2.0) ----

ALL_FLAGS = {"dropped": False, "congested": False, "tracked": True, "partial": False, "copy": False}


def reports():
    case("keys, types and what is absent: v1.0 with a stack", datagram(rep10(inner(V10))), {
        "kind": "path", "ts_ns": NOW_NS, "exporter": "10.9.0.1", "exporter_port": 40000, "report_version": "1.0",
        "dialect": "spec", "mode": "md", "seq": 42, "node": 9, "hw_id": 5, "flags": ALL_FLAGS, "drop_reason": ABSENT,
        "flow": flow(dscp=46, vlan=ABSENT, vni=ABSENT), "hop_count": 2,
        "hops": [{"node": 1, "ingress_port": ABSENT, "egress_port": ABSENT, "ingress_ts_ns": ABSENT,
                  "egress_ts_ns": ABSENT, "hop_latency_ns": ABSENT, "link_latency_ns": ABSENT, "queue": ABSENT,
                  "queue_depth": ABSENT, "buffer": ABSENT, "buffer_depth": ABSENT, "tx_util": ABSENT, "clock": ABSENT},
                 {"node": 2}]}, reports=1, paths=1, hops=2)
    case("v0.5 over Ethernet: no node, no hop of its own", datagram(rep05(PLAIN)), {
        "report_version": "0.5", "mode": "xd", "node": ABSENT, "seq": 42, "hw_id": 5, "dialect": ABSENT,
        "path_id": ABSENT, "flow": flow(dscp=10), "hops": []},
        exporters=[{"exporter": "10.9.0.1", "report_version": "0.5", "node": ABSENT, "hw_id": 5, "reports": 1}])
    case("v0.5 drop report (vector 10.2)", datagram(hexes("01a00005 0000002a 075bcd15 00000007 0009000a 03500000") + PLAIN), {
        "node": 7, "hw_id": 5, "seq": 42, "drop_reason": 80, "flags": {"dropped": True, "congested": False, "tracked": True},
        "hops": [{"node": 7, "ingress_port": 9, "egress_port": 10, "queue": 3, "queue_depth": ABSENT,
                  "ingress_ts_ns": 0x075BCD15, "time_bits": 32}], "flow": flow()})
    case("v0.5 drop report: all-ones reason is none", datagram(rep05(words(7, NONE32, NONE32) + PLAIN, 1, 4)), {
        "node": 7, "drop_reason": ABSENT, "hops": [{"node": 7, "ingress_port": ABSENT, "queue": ABSENT}]})
    case("v0.5 local report", datagram(rep05(words(7, 0x0009000A, 0x03001000, 1500) + PLAIN, 2, 3)), {
        "node": 7, "flags": {"dropped": False, "congested": True, "tracked": True},
        "hops": [{"node": 7, "ingress_port": 9, "egress_port": 10, "queue": 3, "queue_depth": 4096,
                  "ingress_ts_ns": 1000, "egress_ts_ns": 1500, "hop_latency_ns": 500}]})
    case("v0.5 local report with a stack: the reporter is last",
         datagram(rep05(words(7, 0x0009000A, 0x03001000, 1500) + inner(shim05(ID2, 0x8000)), 2)),
         {"hops": [{"node": 1}, {"node": 2}, {"node": 7, "index": 2}], "mode": "md"})
    case("v0.5 without a header's metadata: the stack is the path", datagram(rep05(inner(shim05(ID2, 0x8000)))), {
        "hops": NODES, "int_version": "0.5"})
    case("v0.5 NProto 5 is reserved", datagram(rep05(PLAIN, 5)), verdict="report_proto")
    case("v1.0 header metadata (vector 10.2)", datagram(hexes("161400c5 00000007 0000002a 075bcd15 0009000a 03001000") + PLAIN), {
        "report_version": "1.0", "node": 7, "hw_id": 5, "seq": 42, "flags": {"dropped": False, "congested": True, "tracked": True},
        "mode": "xd", "hops": [{"node": 7, "ingress_port": 9, "egress_port": 10, "queue": 3, "queue_depth": 4096}]})
    md = words(0x00090008, 333, 0x0500000C, 1400, 0x07210000, 77)
    case("v1.0, all six metadata", datagram(rep10(PLAIN, 0x3F, md, dqf=7)), {
        "drop_reason": 0x21, "flags": {"dropped": True, "congested": True, "tracked": True},
        "hops": [{"node": 9, "ingress_port": 9, "egress_port": 8, "hop_latency_ns": 333, "queue": 5, "queue_depth": 12,
                  "ingress_ts_ns": 1000, "egress_ts_ns": 1400, "tx_util": 77}], "latency_ns": 333})
    for bit, wanted in enumerate([{"ingress_port": 3, "egress_port": 4}, {"hop_latency_ns": 0x30004},
                                  {"queue": 0, "queue_depth": 0x30004}, {"egress_ts_ns": 0x30004}, {"queue": 0},
                                  {"tx_util": 0x30004}]):
        reason = {"drop_reason": 3} if bit == 4 else {"drop_reason": ABSENT}
        case(f"v1.0, RepMdBits {bit} alone", datagram(rep10(PLAIN, 0x20 >> bit, words(0x00030004))),
             {**reason, "hops": [{"node": 9, **wanted}]})
        names = {"ingress_port", "egress_port", "hop_latency_ns", "queue", "queue_depth", "tx_util", "egress_ts_ns"}
        case(f"v1.0, RepMdBits {bit}: all ones is absent", datagram(rep10(PLAIN, 0x20 >> bit, words(NONE32))),
             {"drop_reason": ABSENT, "hops": [{"node": 9, **{n: ABSENT for n in names}}]})
    for bad in (0, 1, 5, 15):
        case(f"v1.0 Length {bad}: the computed one counts", datagram(rep10(inner(V10), length=bad)),
             {"hops": NODES, "report_version": "1.0"}, notes=["report_length_lies"])
    case("v1.0 NProt 1: IPv4", datagram(rep10(ip4(17, udp(V10), dscp=0x17), nprot=1)), {"hops": NODES, "flow": flow(dscp=46)})
    case("v1.0 NProt 2: IPv6", datagram(rep10(ip6(17, udp(V10), dscp=0x17), nprot=2)), {
        "hops": NODES, "flow": flow(src="2001:db8::1", dst="2001:db8::2", dscp=46)})
    case("v1.0 NProt 3 is reserved", datagram(rep10(PLAIN, nprot=3)), verdict="report_proto")
    case("v1.0 NProt 1 but Ethernet", datagram(rep10(inner(V10), nprot=1)), {"hops": NODES}, notes=["inner_type_lies"])
    mac4 = eth(0x0800, ip4(17, udp(V10), dscp=0x17), dst="45000030ffff")
    case("v1.0 NProt 1 but Ethernet whose address looks like IPv4", datagram(rep10(mac4, nprot=1)), {"hops": NODES},
         notes=["inner_type_lies"])
    for mac in ("48df37001122", "600102030405", "4c0102030405"):
        arp = eth(0x0806, hexes("0001080006040002") + bytes(20) + bytes(18), dst=mac)
        case(f"a dropped ARP frame to {mac} is no flow", datagram(rep10(arp, 2, words(0x03500000), dqf=4)),
             {"drop_reason": 80, "flow": ABSENT, "node": 9}, notes=["inner_cut"])
    case("v1.0 NProt 0 but a bare IPv4 packet", datagram(rep10(ip4(17, udp(V10), dscp=0x17))), {"hops": NODES},
         notes=["inner_type_lies"])
    case("v1.0 NProt 0 but a bare IPv6 packet", datagram(rep10(ip6(17, udp(V10), dscp=0x17))), {"hops": NODES},
         notes=["inner_type_lies"])
    case("v1.0 without an inner packet", datagram(rep10(b"", 0x20, words(0x00010002))), {
        "flow": ABSENT, "hops": [{"node": 9, "ingress_port": 1, "egress_port": 2}]})
    case("v1.0 without metadata or stack: the node is all that is known", datagram(rep10(PLAIN)), {"hops": [{"node": 9}]})
    for cut, verdict in ((15, "report_short"), (3, "report_short"), (0, "report_short")):
        case(f"v1.0 of {cut} bytes", datagram(rep10(PLAIN)[:cut]), verdict=verdict)
    case("v1.0 cut in its metadata", datagram(rep10(b"", 0x30, words(1))), verdict="report_short")
    for nibble in (3, 9, 15):
        case(f"report version nibble {nibble}", datagram(rep10(PLAIN, version=nibble)), verdict="report_version")
    case("the reporter in stack and header is listed once, the header wins",
         datagram(rep10(inner(shim10(D000, 0xD000, 3)), 0x28, words(0x00070008, 0x02000009), node=2)),
         {"hops": [D000_HOPS[0], {"node": 2, "ingress_port": 7, "egress_port": 8, "queue": 2, "queue_depth": 9}]},
         notes=["node_twice"])
    case("the reporter's metadata come last", datagram(rep10(inner(V10), 0x20, words(0x00070008))),
         {"hops": [{"node": 1, "index": 0}, {"node": 2, "index": 1}, {"node": 9, "index": 2, "ingress_port": 7, "egress_port": 8}]})
    case("a node that the stack has further back is a loop, not the reporter",
         datagram(rep10(inner(V10), 0x20, words(0x00070008), node=1)), {"hops": [{"node": 1}, {"node": 2}, {"node": 1}]})
    case("v1.0 over an exporter's IPv6", eth(0x86DD, ip6(17, udp(rep10(inner(V10)), 40000, 54321))),
         {"exporter": "2001:db8::1", "hops": NODES, "flow": flow()})
    case("the liar that says 1 and writes v0.5 (INTCollector's generator)",
         datagram(rep05(inner(shim05(ID2, 0x8000, tail=(17, 5001, 0))), version=1), dport=54321),
         {"report_version": "0.5", "node": ABSENT, "hops": NODES, "seq": 42}, notes=["report_version_lies"])
    for v, first in (("0.5", 2), ("1.0", 0)):
        body = rep05(PLAIN, version=first) if v == "0.5" else rep10(PLAIN, version=first)
        case(f"--report-version {v} against the nibble", datagram(body), {"report_version": v, "flow": flow()},
             args=["--report-version", v], notes=["report_version_lies"])


def reports_v20():
    case("v2.0: two reports in one datagram (vector 10.2)", datagram(hexes("""2140002a 00000007
        04050020 4500001c 00010000 40110000 0a000001 0a000002
        10040260 50000000 00000000 0009000a 03001000""")),
         [{"report_version": "2.0", "hw_id": 5, "seq": 42, "node": 7, "flow": {"src": "10.0.0.1", "sport": ABSENT},
           "hops": [{"node": 7}], "flags": {"tracked": True, "congested": False}},
          {"seq": 42, "node": 7, "flow": ABSENT, "flags": {"tracked": True, "congested": True},
           "hops": [{"node": 7, "ingress_port": 9, "egress_port": 10, "queue": 3, "queue_depth": 4096}]}], reports=2,
         exporters=[{"reports": 1, "lost": 0}])
    md = words(0x00090008, 333, 0x0500000C) + struct.pack("!QQII", 1 << 60, (1 << 60) + 400, 70001, 70002) + words(77, 0x04000063)
    case("v2.0: all baseline metadata, 64-bit times", datagram(group(rep20(PLAIN, 3, 1, bits=0x7F80, md=md))),
         {"drop_reason": ABSENT, "hops": [{"node": 9, "ingress_port": 9, "egress_port": 8, "hop_latency_ns": 333,
          "queue": 5, "queue_depth": 12, "ingress_ts_ns": 1 << 60, "egress_ts_ns": (1 << 60) + 400,
          "ingress_port2": 70001, "egress_port2": 70002, "tx_util": 77, "buffer": 4, "buffer_depth": 99, "time_bits": 64}]})
    md = words(0x00090008, 0x03500000)
    case("v2.0 drop report: bit 15", datagram(group(rep20(PLAIN, 3, 1, 8, 0x4001, md))),
         {"flags": {"dropped": True, "tracked": False}, "drop_reason": 80, "hops": [{"node": 9, "queue": 3, "queue_depth": ABSENT}]})
    case("v2.0: bit 0 is reserved, a word is skipped", datagram(group(rep20(PLAIN, 3, 1, bits=0xC000, md=words(0xBAD, 0x00010002)))),
         {"node": 9, "hops": [{"node": 9, "ingress_port": 1, "egress_port": 2}]}, notes=["reserved_bits"])
    case("v2.0: bits 9-14 are a word each", datagram(group(rep20(PLAIN, 3, 1, bits=0x017E, md=words(5, *range(6))))),
         {"hops": [{"node": 9, "tx_util": 5}]}, notes=["reserved_bits"])
    md = words(NONE32, NONE32, NONE32) + struct.pack("!QQQ", NONE64, NONE64, NONE64) + words(NONE32, NONE32, NONE32)
    case("v2.0: all ones are absent", datagram(group(rep20(PLAIN, 3, 1, bits=0x7F81, md=md))),
         {"drop_reason": ABSENT, "hops": [{"node": 9, **{k: ABSENT for k in (
             "ingress_port", "hop_latency_ns", "queue", "ingress_ts_ns", "egress_ts_ns", "ingress_port2", "tx_util", "buffer", "time_bits")}}]})
    case("v2.0: words beyond the baseline are domain specific",
         datagram(group(rep20(PLAIN, 3, 1, bits=0x4000, md=words(0x00010002, 0xAA, 0xBB), ds=7))),
         {"hops": [{"ingress_port": 1}], "flow": flow()}, notes=["report_ds_raw"])
    case("v2.0: metadata bits need more than MDLength", datagram(group(rep20(PLAIN, 3, 1, bits=0x6000, md=words(1)))),
         verdict="report_md_length")
    good, other = rep20(inner(V21)), rep20(inner(shim2x([words(5)], 0x8000, 1)))
    case("v2.0: ReportLength past the end; earlier reports stay", datagram(group(good, rep20(PLAIN[:-4], length=99))),
         [{"hops": NODES}], "report_length", reports=1)
    case("v2.0: ReportLength past the end, the inner packet ends with the datagram", datagram(group(good, rep20(PLAIN, length=99))),
         [{"hops": NODES}, {"flow": flow()}], reports=2, notes=["report_length_inner"])
    case("v2.0: ReportLength short, the inner packet ends with the datagram", datagram(group(rep20(inner(V21), length=9))),
         {"hops": NODES}, reports=1, notes=["report_length_inner"])
    case("v2.0: ReportLength short, another report follows: its bytes are not made of the packet", datagram(group(rep20(inner(V21), length=9), other)),
         {"path_id": ABSENT, "flags": {"partial": True}}, "report_length", reports=1)
    case("v2.0: MDLength above the bits, without a domain", datagram(group(rep20(PLAIN, 3, 1, bits=0x4000, md=words(1, 2, 3)))),
         verdict="report_md_length")
    case("v2.0: MDLength past the report; earlier reports stay",
         datagram(group(good, rep20(PLAIN, 3, 1, bits=0x4000, md=words(1), md_length=90))), [{"hops": NODES}], "report_md_length")
    case("v2.0: a bad inner INT in the middle; those around it stay",
         datagram(group(good, rep20(inner(shim2x(ID2, 0x8000, 3))), other)), [{"hops": NODES}, {"hops": [{"node": 5}]}],
         "int_hop_ml", reports=3)
    case("v2.0: a bad TLV in the middle; those around it stay",
         datagram(group(good, rep20(hexes("10ff0000"), 1), other)), [{"hops": NODES}, {"hops": [{"node": 5}]}], "report_tlv")
    case("v2.0: reserved types are stepped over by their length",
         datagram(group(rep20(b"\xFF" * 12, 0, 2), good, rep20(b"\xFF" * 8, 9, 11))), [{"hops": NODES}],
         notes={"report_type_skipped": 2}, reports=1)
    case("v2.0: reserved inner type: the metadata stay",
         datagram(group(rep20(b"\xFF" * 8, 9, 1, bits=0x4000, md=words(0x00010002)))),
         {"flow": ABSENT, "hops": [{"node": 9, "ingress_port": 1}]}, notes=["report_type_skipped"])
    case("v2.0: inner type none", datagram(group(rep20(b"", 0, 1, bits=0x4000, md=words(0x00010002)))), {"flow": ABSENT, "hops": [{"node": 9}]})
    case("v2.0: DS extension data", datagram(group(rep20(b"\1" * 8, 2, 1, bits=0x4000, md=words(0x00010002)))),
         {"flow": ABSENT, "hops": [{"node": 9}]}, notes=["report_ds_raw"])
    case("v2.0: IPv4 inner", datagram(group(rep20(ip4(17, udp(V21), dscp=0x17), 4))), {"hops": NODES, "flow": flow(dscp=46)})
    case("v2.0: IPv6 inner", datagram(group(rep20(ip6(6, tcp(V21), dscp=0x17), 5))),
         {"hops": NODES, "flow": flow(src="2001:db8::1", dst="2001:db8::2", proto=6)})
    case("v2.0: InType says IPv4, the bytes are Ethernet", datagram(group(rep20(inner(V21), 4))), {"hops": NODES}, notes=["inner_type_lies"])
    case("v2.0: InType says IPv6, the bytes are Ethernet", datagram(group(rep20(inner(V21), 5))), {"hops": NODES}, notes=["inner_type_lies"])
    case("v2.0: InType says IPv6, Ethernet to an address that begins with 6",
         datagram(group(rep20(eth(0x0800, ip4(17, udp(V21), dscp=0x17), dst="600102030405"), 5))), {"hops": NODES}, notes=["inner_type_lies"])
    case("v2.0: TLVs, a packet among others",
         datagram(group(rep20(tlv(0, b"\1" * 4) + tlv(9, b"\2" * 4) + tlv(1, inner(V21)), 1))), {"hops": NODES, "flow": flow()})
    case("v2.0: TLV of IPv4", datagram(group(rep20(tlv(2, ip4(17, udp(V21), dscp=0x17)), 1))), {"hops": NODES})
    case("v2.0: TLV of IPv6", datagram(group(rep20(tlv(3, ip6(17, udp(V21), dscp=0x17)), 1))), {"hops": NODES})
    case("v2.0: an empty TLV list", datagram(group(rep20(b"", 1, 1, bits=0x4000, md=words(0x00010002)))), {"flow": ABSENT, "hops": [{"node": 9}]})
    case("v2.0: a TLV that overruns its report", datagram(group(rep20(hexes("10090000") + PLAIN, 1))), verdict="report_tlv")
    case("v2.0: I set, an intermediate report is partial", datagram(group(rep20(inner(V21), 3, dqfi=3))),
         {"flags": {"partial": True, "intermediate": True, "tracked": True}, "path_id": ABSENT, "hops": NODES}, notes=["partial"])
    case("v2.0: ReportLength 0xff runs to the end", datagram(group(rep20(inner(V21, bytes(1020)), length=255))), {"hops": NODES})
    case("v2.0: ReportLength 0 with RepType 1", datagram(group(rep20(inner(V21), 4, 1, length=0, md_length=0))),
         {"hops": NODES}, notes=["report_length_zero"])
    own = words(11, 0x00010002, 300, 0x01000005) + struct.pack("!QQII", 5000, 5300, 1, 2) + words(66)
    liar = words(1 << 28 | 42, 9) + hexes("14000030") + bytes(8) + inner(mx(0xFF00, own, b0=0x30))
    case("the liar that says 1 and writes v2.0 (10.3)", datagram(liar),
         {"report_version": "2.0", "mode": "mx", "node": 9, "seq": 42, "flags": {"tracked": True, "intermediate": True, "partial": True},
          "hops": [{"node": 11, "ingress_port": 1, "egress_port": 2, "hop_latency_ns": 300, "ingress_ts_ns": 5000, "egress_ts_ns": 5300,
                    "ingress_port2": 1, "egress_port2": 2, "tx_util": 66}]}, notes=["report_version_lies", "report_length_zero"])
    case("v2.0: MX inside, metadata in the report: mode mx, one hop",
         datagram(group(rep20(inner(mx(0x4000)), 3, 1, bits=0x4000, md=words(0x00010002)))),
         {"mode": "mx", "hops": [{"node": 9, "ingress_port": 1}], "flow": flow(dscp=46)})
    case("v2.0: MX with domain words of the source", datagram(group(rep20(inner(mx(0x4000, words(1, 2), ds=5)), 3, 1, bits=0x4000, md=words(0x00010002)))),
         {"mode": "mx", "hops": [{"node": 9, "ingress_port": 1}]}, notes=["ds_unknown"])
    case("v2.0: postcard: mode xd", datagram(group(rep20(PLAIN, 3, 1, bits=0x4000, md=words(0x00010002)))),
         {"mode": "xd", "dialect": ABSENT, "hops": [{"node": 9}]})
    case("v2.0: IOAM in the inner packet", datagram(group(rep20(ioam6(trace(0x800000, [words(0x3E000002), words(0x3F000001)]))))),
         {"mode": "ioam-trace", "hops": [{"node": 1}, {"node": 2}], "flow": flow(src="2001:db8::1", dst="2001:db8::2")})
    case("v2.0: a group without a report", datagram(group()), verdict="report_short")
    case("v2.0: cut in the group header", datagram(group()[:7]), verdict="report_short")
    case("v2.0: cut in a report's first word", datagram(group(good) + b"\x10\x01"), [{"hops": NODES}], "report_short")
    cut = datagram(group(rep20(inner(shim2x(D000, 0xD000, 3), bytes(40)))))
    case("v2.0: a capture that cut the datagram inside the stack", (cut[:-50], len(cut)),
         {"flags": {"partial": True}, "hops": [D000_HOPS[1]]}, "int_truncated")
    case("v2.0: a capture that cut the datagram behind the stack", (cut[:-8], len(cut)), {"hops": D000_HOPS})


# ---- sequence numbers ----

def sequences():
    def many(numbers, make=lambda n: rep10(PLAIN, seq=n)):
        return [datagram(make(n)) for n in numbers]

    def books(name, numbers, make=lambda n: rep10(PLAIN, seq=n), **want):
        frames = many(numbers, make)
        case(f"sequence: {name}", frames, [{"seq": n & 0xFFFFFFFF} for n in numbers], lost=want.get("lost", 0),
             exporters=[{"reports": len(frames), "lost": 0, "reordered": 0, "duplicates": 0, "restarts": 0, **want}])
    v20 = lambda n: group(rep20(PLAIN), seq=n)  # noqa: E731
    books("in order", range(10, 20))
    books("a gap", [1, 2, 5, 6], lost=2)
    books("a late one takes its loss back", [1, 2, 4, 3, 5], reordered=1)
    books("a duplicate", [1, 2, 2, 3], duplicates=1)
    books("64 late is within the window", [1, 2] + list(range(4, 68)) + [3], reordered=1)
    books("wrap at 2^32", [0xFFFFFFFE, 0xFFFFFFFF, 0, 1])
    books("a gap over the wrap", [0xFFFFFFFE, 1, 2], lost=2)
    books("wrap at 2^22 in v2.0", [0x3FFFFE, 0x3FFFFF, 0, 1], v20)
    books("a gap over the wrap of v2.0", [0x3FFFFE, 1, 2], v20, lost=2)
    books("a restart", [5000, 5001, 5002, 1, 2, 3], restarts=1)
    books("v0.5 counts too", [7, 8, 10], lambda n: rep05(PLAIN, seq=n), lost=1)
    case("sequence: a space per node, hw_id and address",
         [datagram(rep10(PLAIN, seq=s, node=n, hw=h), src=a) for s, n, h, a in
          ((1, 1, 1, "10.9.0.1"), (100, 2, 1, "10.9.0.1"), (200, 1, 2, "10.9.0.1"), (300, 1, 1, "10.9.0.2"),
           (2, 1, 1, "10.9.0.1"), (101, 2, 1, "10.9.0.1"), (201, 1, 2, "10.9.0.1"), (301, 1, 1, "10.9.0.2"))],
         [{}] * 8, lost=0, exporters=[{"node": n, "hw_id": h, "exporter": a, "reports": 2, "last_seq": s} for n, h, a, s in
                                      ((1, 1, "10.9.0.1", 2), (2, 1, "10.9.0.1", 101), (1, 2, "10.9.0.1", 201), (1, 1, "10.9.0.2", 301))])
    case("sequence: a report that does not decode has arrived all the same",
         [datagram(rep10(inner(V10), seq=1)), datagram(rep10(PLAIN, nprot=5, seq=2)),
          datagram(rep10(inner(shim10(ID2, 0x8000, 7)), seq=3)), datagram(rep10(inner(V10), seq=4))],
         [{"seq": 1}, {"seq": 4}], {"ok": 2, "report_proto": 1, "int_hop_ml": 1}, lost=0, exporters=[{"reports": 4}])
    case("sequence: a v2.0 datagram whose report is too long has arrived",
         [datagram(group(rep20(PLAIN), seq=1)), datagram(group(rep20(PLAIN[:-4], length=200), seq=2)), datagram(group(rep20(PLAIN), seq=3))],
         [{"seq": 1}, {"seq": 3}], {"ok": 2, "report_length": 1}, lost=0, exporters=[{"reports": 3}])
    case("sequence: an exporter that never counts is told from loss", many([0] * 5), [{}] * 5, lost=0, duplicates=0,
         exporters=[{"unsequenced": True, "reports": 5}])


# ---- INT: versions, dialects, carriers ----

def versions():
    tracked = lambda stack, **more: datagram(rep10(inner(stack, **more)))  # noqa: E731
    case("v0.5 (vector 10.1)", tracked(hexes("01000800 00021002 90000000 00000002 00000140 00000001 0000000a 11138800")),
         {"int_version": "0.5", "dialect": "spec", "flow": flow(dport=5000, dscp=0),
          "hops": [{"node": 1, "queue": 0, "queue_depth": 10}, {"node": 2, "queue": 0, "queue_depth": 320}]})
    case("v1.0 (vector 10.1)", tracked(hexes("01000900 10000306 d0000000 00000002 00050006 0100012c 00000001 00030004 00000011")),
         {"int_version": "1.0", "dialect": "spec", "hops": D000_HOPS, "flow": flow(dscp=0)})
    case("v2.1 (vector 10.1)", tracked(hexes("""101100b8 20000706 dc000000 00000000
        00000002 00050006 0100012c 17979cfe362a03e8 17979cfe362a09c4
        00000001 00030004 00000011 17979cfe362a0000 17979cfe362a0190""")),
         {"int_version": "2.1", "flow": flow(dscp=46), "latency_ns": 1900, "hops": [
             {**D000_HOPS[0], "ingress_ts_ns": 0x17979CFE362A0000, "egress_ts_ns": 0x17979CFE362A0190, "hop_latency_ns": 400,
              "time_bits": 64, "link_latency_ns": ABSENT},
             {**D000_HOPS[1], "hop_latency_ns": 1500, "link_latency_ns": 600, "clock": "ok"}]})
    full = words(1, 0x00030004, 500, 0x01000011, 100, 600, 0x02000033, 88)
    case("v0.5, all eight instructions: bit 6 is the queue's congestion", tracked(shim05([full], 0xFF00)),
         {"hops": [{"node": 1, "hop_latency_ns": 500, "queue": 1, "queue_depth": 17, "ingress_ts_ns": 100, "egress_ts_ns": 600,
                    "congestion_queue": 2, "congestion": 0x33, "tx_util": 88, "ingress_port2": ABSENT, "time_bits": 32}]})
    full9 = words(1, 0x00030004, 500, 0x01000011, 100, 600, 70001, 70002, 88)
    case("v1.0 as specified, 0xFF00: HopML 9", tracked(shim10([full9], 0xFF00, 9)),
         {"dialect": "spec", "hops": [{"queue": 1, "queue_depth": 17, "ingress_port2": 70001, "egress_port2": 70002, "tx_util": 88,
                                       "ingress_ts_ns": 100, "egress_ts_ns": 600, "hop_latency_ns": 500}]})
    full8 = words(1, 0x00030004, 500, 0x00010011, 100, 600, 0x00050006, 88)
    case("INTCollector, 0xFF00: HopML 8, 16+16 halves", tracked(shim10([full8], 0xFF00, 8)),
         {"dialect": "intcollector", "hops": [{"queue": 1, "queue_depth": 17, "ingress_port2": 5, "egress_port2": 6, "tx_util": 88}]})
    full10 = words(1, 0x00030004, 500, 0x01000011) + struct.pack("!QQ", 1 << 50, (1 << 50) + 500) + words(0x00050006, 88)
    case("GEANT, 0xFF00: HopML 10, 64-bit times, sequence", tracked(shim10([full10], 0xFF00, 10, reserved=0xBEEF)),
         {"dialect": "geant", "flow_seq": 0xBEEF, "hops": [{"queue": 1, "queue_depth": 17, "ingress_ts_ns": 1 << 50,
          "egress_ts_ns": (1 << 50) + 500, "ingress_port2": 5, "egress_port2": 6, "tx_util": 88, "time_bits": 64}]})
    case("GEANT, 0xFC00: HopML 8", tracked(shim10([full10[:32]], 0xFC00, 8, reserved=1)),
         {"dialect": "geant", "flow_seq": 1, "hops": [{"ingress_ts_ns": 1 << 50, "egress_ts_ns": (1 << 50) + 500}]})
    case("v1.0 as specified has no flow sequence", tracked(shim10([full9[:24]], 0xFC00, 6, reserved=7)),
         {"dialect": "spec", "flow_seq": ABSENT, "hops": [{"node": 1}]})
    noviflow = words(1, 0x00030004, NONE32, 0x01000011, 100, 600)
    case("NoviFlow: 0xFC00, latency all ones, then computed", tracked(shim10([noviflow], 0xFC00, 6)),
         {"hops": [{"node": 1, "hop_latency_ns": 500, "queue": 1, "queue_depth": 17}]}, notes=["values_missing"])
    case("NoviFlow pinned", tracked(shim10([noviflow], 0xFC00, 6)), {"dialect": "noviflow", "hops": [{"hop_latency_ns": 500}]},
         args=["--dialect", "noviflow"])
    case("a pinned dialect refuses what does not fit it", tracked(shim10([full9], 0xFF00, 9)), verdict="int_hop_ml",
         args=["--dialect", "geant"])
    case("INTCollector pinned: the queue word of 0xFC00 is 16+16", tracked(shim10([full8[:24]], 0xFC00, 6)),
         {"dialect": "intcollector", "hops": [{"queue": 1, "queue_depth": 17}]}, args=["--dialect", "intcollector"])
    case("the queue word is 8+24 unless told", tracked(shim10([full8[:24]], 0xFC00, 6)), {"dialect": "spec", "hops": [{"queue": 0, "queue_depth": 0x10011}]})
    case("--queue-word 16+16", tracked(shim10([full8[:24]], 0xFC00, 6)), {"dialect": "spec", "hops": [{"queue": 1, "queue_depth": 17}]},
         args=["--queue-word", "16+16"])
    host = words(3, 0x00010002, 1000, 1500)
    flow_seq = words(77)
    case("Host-INT: shim type 3, Length 9, flow sequence, tail", tracked(shim05([host], 0xCC00, tail=(17, 443, 10), type_=3, extra=flow_seq)),
         {"dialect": "host-int", "flow_seq": 77, "flow": flow(dport=443, dscp=10),
          "hops": [{"node": 3, "ingress_port": 1, "egress_port": 2, "ingress_ts_ns": 1000, "egress_ts_ns": 1500, "hop_latency_ns": 500}]})
    stack = shim05([words(4, 0x00050006, 2000, 2200), host], 0xCC00, tail=(17, 443, 10), type_=3, extra=flow_seq)
    case("Host-INT report NProto 4: node word, IPv4, the sink's hop on top",
         datagram(rep05(words(4) + ip4(17, udp(stack), dscp=1), 4)),
         {"node": 4, "dialect": "host-int", "flow_seq": 77, "hops": [{"node": 3}, {"node": 4, "link_latency_ns": 500}], "flow": flow(dport=443)})
    for proto, behind in ((6, tcp(b"x", 1000, 443)), (17, udp(b"x", 1000, 443))):
        head = shim05([host], 0xCC00, tail=(proto, 443, 10), type_=3, extra=flow_seq)
        case(f"Host-INT in a UDP header of its own (33122), original protocol {proto}",
             datagram(rep05(words(4) + ip4(17, udp(head + behind, 40001, 33122)), 4)),
             {"dialect": "host-int", "flow": flow(proto=proto, sport=1000, dport=443, dscp=10), "hops": [{"node": 3}]})
    case("Host-INT drop summary: NProto 3",
         datagram(rep05(words(3, 4, 0x00010002, 999, 70, 5) + ip4(17, struct.pack("!HHHH", 5000, 443, 8, 0)), 3, 4)),
         {"mode": "drop-summary", "node": 3, "flow_seq": 70, "lost_count": 5, "flow": flow(dport=443), "flags": {"dropped": True},
          "hops": [{"node": 3, "egress_port": 1}, {"node": 4, "ingress_port": 2}]})
    v04 = shim05([words(2, 20), words(1, 0x80000000 | 10)], 0x9000, b0=0x0C)
    case("v0.4 pinned: flags in their place, bottom bit cleared", tracked(v04),
         {"dialect": "v0.4", "hops": [{"node": 1, "queue_depth": 10}, {"node": 2, "queue_depth": 20}],
          "flags": {"copy": True, "partial": True}}, args=["--dialect", "v0.4"], notes=["copy", "hop_limit"])
    ones31 = shim05([words(2, 0x7FFFFFFF), words(1, NONE32)], 0x9000)
    case("v0.4 pinned: 31 ones are missing", tracked(ones31), {"hops": [{"node": 1, "queue_depth": ABSENT}, {"node": 2, "queue_depth": ABSENT}]},
         args=["--dialect", "v0.4"], notes=["values_missing"])
    full11 = words(1, 0x00030004, 500, 0x01000011) + struct.pack("!QQII", 1 << 60, (1 << 60) + 500, 70001, 70002) + words(88)
    case("v2.x, 0xFF00: HopML 11", tracked(shim2x([full11], 0xFF00, 11)),
         {"int_version": "2.1", "hops": [{"ingress_ts_ns": 1 << 60, "ingress_port2": 70001, "egress_port2": 70002, "tx_util": 88}]})
    case("v2.x, bit 8: buffer; bit 15: checksum complement last", tracked(shim2x([full11 + words(0x05000007, 0xC0FFEE)], 0xFF81, 13)),
         {"hops": [{"tx_util": 88, "buffer": 5, "buffer_depth": 7}]})
    case("v1.0, bit 15: checksum complement", tracked(shim10([words(1, 5), words(2, 6)], 0x8001, 2)), {"hops": [{"node": 2}, {"node": 1}]})
    case("v1.0: bit 8 is reserved", tracked(shim10([words(1, 0xDEAD)], 0x8080, 2)), {"hops": [{"node": 1, "buffer": ABSENT}]}, notes=["reserved_bits"])
    case("reserved bits take a word each", tracked(shim10([words(1, *range(7), 9)], 0x80FF, 9)), {"hops": [{"node": 1}]}, notes=["reserved_bits"])
    case("v2.x: a domain id's words behind the baseline", tracked(shim2x([words(2, 9, 9), words(1, 8, 8)], 0x8000, 3, ds=5, ds_bits=0xC000)),
         {"hops": NODES}, notes=["ds_unknown"])
    case("v2.x: source-only words in the last block", tracked(shim2x([words(2, 9), words(1, 8)], 0x8000, 2, ds=5, ds_bits=0xC000, extra=words(3))),
         {"hops": NODES}, notes=["source_metadata", "ds_unknown"], args=["--source-words", "1"])
    case("v2.x: source-only words, it is not known how many", tracked(shim2x([words(2, 9), words(1, 8)], 0x8000, 2, ds=5, ds_bits=0xC000, extra=words(3))),
         {"hops": [{"node": 2}], "path_id": ABSENT}, notes=["source_unknown", "partial"])
    case("v2.x NPT 1: the port is restored", tracked(shim2x(ID2, 0x8000, 1, b0=0x14, union=8080), ), {"flow": flow(dport=8080), "hops": NODES})
    for proto, behind in ((6, tcp(b"x", 1000, 443)), (17, udp(b"x", 1000, 443))):
        case(f"v2.x NPT 2: the original header {proto} follows", tracked(shim2x(ID2, 0x8000, 1, b0=0x18, union=proto), payload=behind),
             {"flow": flow(proto=proto, sport=1000, dport=443), "hops": NODES})
    case("v2.x NPT 2: ICMP behind it", tracked(shim2x(ID2, 0x8000, 1, b0=0x18, union=1), payload=b"\x08\x00\xf7\xff" + bytes(4)),
         {"flow": flow(proto=1, sport=8, dport=0), "hops": NODES})
    case("v2.x NPT 2: the original header is cut off: no ports, least of all wrong ones",
         datagram(rep10(inner(shim2x(ID2, 0x8000, 1, b0=0x18, union=17), payload=udp(b"x", 1000, 443))[:-8])),
         {"flow": flow(sport=ABSENT, dport=ABSENT), "hops": NODES})
    case("v2.x NPT 2: there is no room for the original header",
         tracked(shim2x(ID2, 0x8000, 1, b0=0x18, union=17), payload=b"\0"), verdict="int_next")
    for delta in (-1, 2, 3):
        case(f"v2.x NPT 2: a length {delta} words off", tracked(shim2x(ID2, 0x8000, 1, b0=0x18, union=17, length=5 + delta),
                                                               payload=udp(b"x" * 40, 1000, 443)), verdict="int_next")
    case("v2.x NPT 3 is reserved", tracked(shim2x(ID2, 0x8000, 1, b0=0x1C)), verdict="shim_type")
    case("v2.x NPT 3 where INT is announced", tracked(shim2x(ID2, 0x8000, 1, b0=0x1C)), verdict="shim_type", args=["--dscp", "0x17"])
    case("v2.1 MX in a data packet", inner(mx(0x4000)), {"mode": "mx", "hops": [], "exporter": ABSENT, "report_version": ABSENT, "seq": ABSENT,
                                                         "path_id": ABSENT, "flow": flow(dscp=46)})
    case("MX with D", inner(mx(0x4000, md0=0x28)), {"flags": {"copy": True}}, notes=["copy"])
    case("MX cannot have NPT 3", inner(mx(0x4000, b0=0x3C)), verdict="shim_type", args=["--dscp", "0x17"])


def carriers():
    as_flow = {"hops": NODES, "mode": "md"}
    data = lambda l4, **more: eth4(ip4(l4[0], l4[1], dscp=0x17, **more))  # noqa: E731
    timestamps = hexes("080a00000001000000020101")
    for name, stack in (("v0.5", shim05(ID2, 0x8000, tail=(6, 443, 46))), ("v1.0", V10), ("v2.x", V21)):
        port = 443 if name == "v0.5" else 5001
        case(f"{name} over TCP without options", data((6, tcp(stack + b"x"))), {**as_flow, "flow": flow(proto=6, dscp=46, dport=port)})
        case(f"{name} over TCP behind the options", data((6, tcp(stack + b"x", options=timestamps))), as_flow)
        case(f"{name} over TCP before the options", data((6, tcp_before_options(stack, timestamps, b"x"))), as_flow)
    behind = data((6, tcp(V10 + b"x", options=timestamps)))
    case("--tcp-placement before-options refuses what is behind them", behind, verdict="shim_type",
         args=["--tcp-placement", "before-options", "--dscp", "0x17"])
    case("--tcp-placement after-options takes it", behind, as_flow, args=["--tcp-placement", "after-options", "--dscp", "0x17"])
    case("DSCP by value and mask", eth4(ip4(17, udp(V10), dscp=0x21)), as_flow, args=["--dscp", "0x20/0x20"])
    case("another DSCP announces nothing", eth4(ip4(17, udp(V10), dscp=1)), verdict="not_telemetry")
    case("announced by DSCP, but no INT", eth4(ip4(17, udp(b"\xAA" * 30), dscp=0x17)), verdict="shim_type", args=["--dscp", "0x17"])
    case("the customary DSCP, but no INT: an ordinary packet", eth4(ip4(17, udp(b"\xAA" * 30), dscp=0x17)), verdict="not_telemetry")
    case("by UDP port", eth4(ip4(17, udp(shim2x(ID2, 0x8000, 1, b0=0x14, union=53), dport=4444))), {**as_flow, "flow": flow(dport=53)},
         args=["--int-port", "4444"])
    marker = hexes("1122334455667788")
    case("by probe marker", eth4(ip4(17, udp(marker + V10))), as_flow, args=["--marker", "1122334455667788"])
    case("by H3C's marker", eth4(ip4(17, udp(hexes("aaaaaaaabbbbbbbb") + V10))), as_flow)
    case("a marker over TCP before the options", eth4(ip4(6, tcp_before_options(marker + V10, timestamps, b"x"))), as_flow,
         args=["--marker", "1122334455667788"])
    case("IPv6: the traffic class announces", eth(0x86DD, ip6(17, udp(V21), dscp=0x17)),
         {**as_flow, "flow": flow(src="2001:db8::1", dst="2001:db8::2", dscp=46)})
    case("VLAN", eth4(ip4(17, udp(V21), dscp=0x17), [(0x8100, 100)]), {**as_flow, "flow": flow(vlan=100)})
    case("QinQ: the inner id", eth4(ip4(17, udp(V21), dscp=0x17), [(0x88A8, 5), (0x8100, 200)]), {**as_flow, "flow": flow(vlan=200)})
    case("IPv4 options", eth4(ip4(17, udp(V21), dscp=0x17, options=b"\1" * 8)), as_flow)

    def gpe(next_, body, flags=0x0C):
        return eth4(ip4(17, udp(struct.pack("!BBBB", flags, 0, 0, next_) + words(77 << 8) + body, dport=4790), "192.0.2.1", "192.0.2.2"))
    original = ip4(17, udp(b"data"), dscp=10)
    case("VXLAN-GPE v0.5: no tail", gpe(5, shim05(ID2, 0x8000, tail=None)[:3] + b"\1" + shim05(ID2, 0x8000, tail=None)[4:] + original),
         {**as_flow, "flow": flow(vni=77, dscp=10)})
    case("VXLAN-GPE v1.0", gpe(8, shim10(ID2, 0x8000, 1, fourth=1) + original), {**as_flow, "flow": flow(vni=77)})
    case("VXLAN-GPE v2.x", gpe(0x82, shim2x(ID2, 0x8000, 1, union=3) + eth4(original)), {**as_flow, "flow": flow(vni=77)})
    case("VXLAN-GPE v2.x, low nibble 8 is no NPT", gpe(0x82, shim2x(ID2, 0x8000, 1, b0=0x18, union=0x8001) + original), {**as_flow, "flow": flow(vni=77)})
    case("VXLAN-GPE: two INT shims chained: the first is the path",
         gpe(0x82, shim2x(ID2, 0x8000, 1, union=0x82) + shim2x([words(5)], 0x8000, 1, union=1) + original), {**as_flow, "flow": flow(vni=77)})
    case("VXLAN-GPE: a destination shim before the hop-by-hop one",
         gpe(0x82, hexes("20020082 00000001 00000002") + shim2x(ID2, 0x8000, 1, union=1) + original), {**as_flow, "flow": flow(vni=77)},
         notes=["destination_shim"])
    case("VXLAN-GPE: a destination shim behind it",
         gpe(0x82, shim2x(ID2, 0x8000, 1, union=0x82) + hexes("20020001 00000001 00000002") + original), {**as_flow, "flow": flow(vni=77)},
         notes=["destination_shim"])

    def geneve(options, body=original, type_=0x0800):
        return eth4(ip4(17, udp(struct.pack("!BBHI", len(options) // 4, 0, type_, 78 << 8) + options + body, dport=6081), "192.0.2.1", "192.0.2.2"))

    def option(body, class_=0x0103, type_=1):
        return struct.pack("!HBB", class_, type_, len(body) // 4) + body
    case("Geneve v2.x", geneve(option(V21[4:])), {**as_flow, "flow": flow(vni=78)})
    case("Geneve v1.0", geneve(option(V10[4:])), {**as_flow, "flow": flow(vni=78)})
    case("Geneve v0.5", geneve(option(shim05(ID2, 0x8000, tail=None)[4:])), {**as_flow, "flow": flow(vni=78)})
    case("Geneve MX, type 3", geneve(option(mx(0x4000)[4:], type_=3)), {"mode": "mx", "hops": [], "flow": flow(vni=78)})
    case("Geneve: the class of the older documents", geneve(option(V10[4:], 0x00AB)), {**as_flow, "flow": flow(vni=78)},
         args=["--geneve-class", "0xab"])
    case("Geneve: other options are stepped over", geneve(option(words(1, 2), 0x0108) + option(V21[4:])), as_flow)
    case("Geneve: an INT option below its header", geneve(option(words(0x20000106))), verdict="int_geneve_option")
    case("Geneve: unassigned INT type", geneve(option(V21[4:], type_=4)), verdict="shim_type")

    def gre(type_, body, flags=0):
        optional = b"".join(words(v) for bit, v in ((0x8000, 0xABCD0000), (0x2000, 99), (0x1000, 7)) if flags & bit)
        return eth4(ip4(47, struct.pack("!HH", flags, type_) + optional + body, "192.0.2.1", "192.0.2.2"))
    for flags in (0, 0x8000, 0x2000, 0x1000, 0xB000):
        case(f"GRE v2.x, flags {flags:#06x}", gre(0x9999, shim2x(ID2, 0x8000, 1, union=0x0800) + original, flags),
             {**as_flow, "flow": flow(vni=99 if flags & 0x2000 else ABSENT)}, args=["--gre-type", "0x9999"])
    case("GRE v2.x: type 1 with G", gre(0x9999, shim2x(ID2, 0x8000, 1, b0=0x18, union=0x0800) + original), as_flow, args=["--gre-type", "0x9999"])
    case("GRE: v1.0 has no such shim", gre(0x9999, V10 + original), verdict="shim_type", args=["--gre-type", "0x9999"])

    def vxlan(frame):
        return eth4(ip4(17, udp(words(0x08000000, 79 << 8) + frame, dport=4789), "192.0.2.1", "192.0.2.2"))
    case("VXLAN inside a report: the flow is one level deeper", datagram(rep10(vxlan(inner(V10)))), {**as_flow, "flow": flow(vni=79, dscp=46)})
    case("VXLAN inside a report, no INT", datagram(rep10(vxlan(PLAIN))), {"mode": "xd", "flow": flow(vni=79, dscp=10)})
    case("Geneve inside a report: INT in its option", datagram(rep10(geneve(option(V10[4:])))), {**as_flow, "flow": flow(vni=78)})
    for name, packet, want in (
            ("VLAN", eth4(ip4(17, udp(V10)), [(0x8100, 7)]), {"flow": flow(vlan=7)}),
            ("QinQ", eth4(ip4(17, udp(V10)), [(0x88A8, 7), (0x8100, 8)]), {"flow": flow(vlan=8)}),
            ("IPv6", eth(0x86DD, ip6(17, udp(V10))), {"flow": flow(src="2001:db8::1", dst="2001:db8::2")}),
            ("IP options", eth4(ip4(17, udp(V10), options=b"\1" * 4)), {"flow": flow()}),
            ("TCP options", eth4(ip4(6, tcp(V10, options=timestamps))), {"flow": flow(proto=6)})):
        case(f"inner {name}", datagram(rep10(packet)), {**want, "hops": NODES})
    case("inner ICMP: type and code", datagram(rep10(eth4(ip4(1, b"\x08\x03" + bytes(6))))), {"flow": flow(proto=1, sport=8, dport=3), "hops": [{"node": 9}]})
    case("inner later fragment: no ports, no INT", datagram(rep10(eth4(ip4(17, V10 + b"data", fragment=40)))),
         {"flow": flow(sport=ABSENT, dport=ABSENT), "hops": [{"node": 9}]}, notes=["fragment"])
    case("inner first fragment: ports and INT", datagram(rep10(eth4(ip4(17, udp(V10), fragment=0x2000)))), {"flow": flow(), "hops": NODES})
    case("inner IPv6 later fragment", datagram(rep10(eth(0x86DD, ip6(44, struct.pack("!BBHI", 17, 0, 40 << 3, 1) + b"data")))),
         {"flow": flow(src="2001:db8::1", dst="2001:db8::2", sport=ABSENT, dport=ABSENT)}, notes=["fragment"])
    case("inner packet cut before its ports", datagram(rep10(PLAIN[:34], dqf=4)), {"flow": flow(sport=ABSENT, dport=ABSENT)}, notes=["inner_cut"])
    case("an instrumented report: DSCP on the outer header",
         datagram(V21 + rep10(inner(V10), 0x20, words(0x00010002)), dscp=0x17), {"flags": {"instrumented": True}, "hops": [*NODES, {"node": 9}]},
         notes=["instrumented"])
    case("an instrumented report: INT took its port (NPT 1)",
         datagram(shim2x([words(77)], 0x8000, 1, b0=0x14, union=32766) + rep10(inner(V10)), dport=4444),
         {"flags": {"instrumented": True}, "hops": NODES, "exporter": "10.9.0.1", "exporter_port": 40000}, args=["--int-port", "4444"], notes=["instrumented"])
    case("an instrumented report: a UDP header of INT's own (NPT 2)",
         datagram(shim2x([words(77)], 0x8000, 1, b0=0x18, union=17) + udp(rep10(inner(V10)), 40000, 32766), sport=9, dport=4444),
         {"flags": {"instrumented": True}, "hops": NODES, "exporter_port": 40000}, args=["--int-port", "4444"], notes=["instrumented"])
    case("F = 0: INT is not looked for", datagram(rep10(inner(V10), dqf=4)), {"mode": "xd", "hops": [{"node": 9}], "flow": flow(dscp=0x17)})
    case("F = 0 but announced: the bytes decide", datagram(rep10(inner(V10), dqf=4)), {"mode": "md", "hops": NODES}, args=["--dscp", "0x17"],
         notes=["f_bit_lies"])
    case("F = 0, announced, no INT: the promise was kept", datagram(rep10(inner(b"\xAA" * 30), dqf=4)), {"mode": "xd", "hops": [{"node": 9}]},
         args=["--dscp", "0x17"])
    for name, payload in (("a WireGuard handshake", hexes("01000000 04aabbcc 00112233") + bytes(range(136))),
                          ("a DNS query with id 0x0100", hexes("01000100 00010000 00000000 03777777 00000100 01")),
                          ("encrypted bytes that begin like a 2.x shim", hexes("10055533 29aa7101 80001122 33445566") + bytes(range(64))),
                          ("encrypted bytes that begin like a 1.0 shim", hexes("01aa0533 1933ff01 80001122 33445566") + bytes(range(64)))):
        frame = eth4(ip4(17, udp(payload)))
        case(f"F = 1: {name} is a payload", datagram(rep10(frame)), {"mode": "xd", "hops": [{"node": 9}], "flow": flow()})
        case(f"F = 1: {name}, cut, is a payload", datagram(rep10(frame[:62])), {"mode": "xd", "hops": [{"node": 9}], "flow": flow()})
    case("F = 1, cut: bytes that begin like a 2.x shim and have a block's size, but reserved bits",
         datagram(rep10(eth4(ip4(17, udp(hexes("103055332faae1068000112233445566778899aabbccddeeff") + bytes(range(200)))))[:90])),
         {"mode": "xd", "hops": [{"node": 9}]})
    case("F = 1 without INT", datagram(rep10(PLAIN)), {"mode": "xd", "hops": [{"node": 9}], "flow": flow(dscp=10)})


# ---- section 3: hostile and broken ----

def hostile():
    inside = lambda stack, **more: datagram(rep10(inner(stack, **more)))  # noqa: E731
    for name, stack, verdict in (
            ("v0.5 Length 3", shim05([], 0x8000, length=3), "shim_length_min"), ("v1.0 Length 2", shim10([], 0x8000, 1, length=2), "shim_length_min"),
            ("v1.0 Length 0", shim10([], 0x8000, 1, length=0), "shim_length_min"), ("v2.x Length 2", shim2x([], 0x8000, 1, length=2), "shim_length_min"),
            ("v1.0 Length past the end", shim10(ID2, 0x8000, 1, length=90), "shim_length_max"), ("v2.x Length past the end", shim2x(ID2, 0x8000, 1, length=90), "shim_length_max"),
            ("v1.0 Length 255 past the end", shim10(ID2, 0x8000, 1, length=255), "shim_length_max"),
            ("v1.0 stack of one word more", shim10([words(2, 5), words(1, 6), words(3)], 0x9000, 2), "int_stack_words"),
            ("v2.x stack of one word more, no domain", shim2x([words(2, 5), words(1, 6)], 0x9000, 2, extra=words(3)), "int_stack_words"),
            ("v1.0 HopML 0", shim10(ID2, 0x8000, 0), "int_hop_ml"), ("v2.x HopML 0", shim2x(ID2, 0x8000, 0), "int_hop_ml"),
            ("v1.0 HopML of no dialect", shim10([bytes(28)], 0xFF00, 7), "int_hop_ml"), ("v2.x HopML of no layout", shim2x([bytes(40)], 0xFF00, 10), "int_hop_ml"),
            ("v0.5 InsCnt is not the bitmap's", shim05(ID2, 0x8000, count=2), "int_ins_count"),
            ("v0.5 TotalHopCnt is not the stack's", shim05(ID2, 0x8000, total=1), "int_hop_count"),
            ("v0.5 TotalHopCnt above MaxHopCnt", shim05(ID2, 0x8000, most=1), "int_hop_count"),
            ("v0.5 tail of another protocol", shim05(ID2, 0x8000, tail=(99, 1, 0)), "int_tail"),
            ("v1.0 shim, version 2 header", shim10(ID2, 0x8000, 1, b0=0x20), "int_shim_version"),
            ("v2.x shim, version 1 header", shim2x(ID2, 0x8000, 1, md0=0x10), "int_shim_version"),
            ("version 3", shim10(ID2, 0x8000, 1, b0=0x30), "int_version"), ("shim type 4", shim10(ID2, 0x8000, 1, type_=4), "shim_type"),
            ("shim type 0x40", shim2x(ID2, 0x8000, 1, b0=0x40), "shim_type")):
        case(f"hostile, announced: {name}", inside(stack), verdict=verdict, args=["--dscp", "0x17"])
        case(f"hostile, in a data packet: {name}", inner(stack), verdict=verdict, args=["--dscp", "0x17"])
    for name, stack, verdict in (("Length 2", shim10([], 0x8000, 1, length=2), "shim_length_min"), ("HopML 0", shim10(ID2, 0x8000, 0), "int_hop_ml"),
                                 ("v2.x HopML", shim2x([bytes(40)], 0xFF00, 10), "int_hop_ml"), ("InsCnt", shim05(ID2, 0x8000, count=2), "int_ins_count")):
        case(f"hostile, not announced, but F and the bytes resemble INT: {name}", inside(stack, dscp=0), verdict=verdict)
    many = [words(i) for i in range(252, 0, -1)]
    case("Length 255 is legal: 252 hops", inside(shim10(many, 0x8000, 1)), {"hop_count": 252, "hops": [{"node": i} for i in range(1, 253)]}, hops=252)
    case("v2.x Length 255 is legal: 252 hops", inside(shim2x(many, 0x8000, 1)), {"hop_count": 252, "hops": [{"node": i} for i in range(1, 253)]})
    packet = inner(shim10(D000, 0xD000, 3))
    cut = packet[:14 + 20 + 8 + 12 + 12 + 4]
    case("stack past the captured end: whole hops, partial", datagram(rep10(cut)),
         {"flags": {"partial": True}, "path_id": ABSENT, "hops": [D000_HOPS[1]], "flow": flow(dscp=46)}, "int_truncated", notes=["partial"])
    case("cut before the first hop: the flow alone", datagram(rep10(cut[:-8], 0x20, words(0x00010002))),
         {"flags": {"partial": True}, "hops": [{"node": 9}]}, "int_truncated")
    case("zero hops (v1.0): the flow without a path", inside(shim10([], 0x8000, 1)), {"mode": "md", "hops": [{"node": 9}], "flow": flow(dscp=46)}, notes=["no_hops"])
    case("zero hops in a data packet", inner(shim2x([], 0x8000, 1)), {"hops": [], "path_id": ABSENT, "flow": flow(dscp=46)}, notes=["no_hops"])
    case("zero hops (v0.5)", inside(shim05([], 0x8000)), {"hops": [{"node": 9}], "flow": flow(dscp=46)}, notes=["no_hops"])
    for name, stack, note in (("E (v0.5)", shim05(ID2, 0x8000, b0=0x01), "hop_limit"), ("E (v1.0)", shim10(ID2, 0x8000, 1, b0=0x11), "hop_limit"),
                              ("E (v2.x)", shim2x(ID2, 0x8000, 1, md0=0x24), "hop_limit"), ("M (v1.0)", shim10(ID2, 0x8000, 1, b1=0x80), "mtu_limit"),
                              ("M (v2.x)", shim2x(ID2, 0x8000, 1, md0=0x22), "mtu_limit")):
        case(f"{name}: partial, no identity", inside(stack), {"flags": {"partial": True, "copy": False}, "path_id": ABSENT, "hops": NODES}, notes=[note, "partial"])
    for name, stack in (("C (v0.5)", shim05(ID2, 0x8000, b0=0x02)), ("C (v1.0)", shim10(ID2, 0x8000, 1, b0=0x12)), ("D (v2.x)", shim2x(ID2, 0x8000, 1, md0=0x28))):
        case(f"{name}: a copy", inside(stack), {"flags": {"partial": False, "copy": True}, "hops": NODES}, notes=["copy"])
    for rep in (4, 8, 12):
        case(f"Rep {rep >> 2} changes nothing", inside(shim10(ID2, 0x8000, 1, b0=0x10 | rep)), {"flags": {"copy": False, "partial": False}, "hops": NODES})
    missing = words(2, NONE32, NONE32, NONE32, NONE32, NONE32, NONE32, NONE32, NONE32)
    case("all ones are missing, every field", inside(shim10([missing], 0xFF00, 9)),
         {"hops": [{"node": 2, **{k: ABSENT for k in ("ingress_port", "egress_port", "hop_latency_ns", "queue", "queue_depth", "ingress_ts_ns",
                                                      "egress_ts_ns", "ingress_port2", "egress_port2", "tx_util", "time_bits")}}]}, notes=["values_missing"])
    case("an unknown node has no identity in the path", inside(shim10([words(NONE32), words(1)], 0x8000, 1)),
         {"path_id": ABSENT, "hops": [{"node": 1}, {"node": ABSENT}]}, notes=["values_missing"])
    case("half a word of ones is a value", inside(shim10([words(1, 0xFFFF0004)], 0xC000, 2)), {"hops": [{"ingress_port": 65535, "egress_port": 4}]})
    half = struct.pack("!I", 1) + struct.pack("!QQ", 0xFFFFFFFF, 0xFFFFFFFF00000001)
    case("half a 64-bit value of ones is a value", inside(shim2x([half], 0x8C00, 5)), {"hops": [{"ingress_ts_ns": 0xFFFFFFFF, "egress_ts_ns": 0xFFFFFFFF00000001}]})
    case("a destination shim before (v1.0)", inside(hexes("02000300 0000000100000002") + V10), {"hops": NODES}, notes=["destination_shim"])
    case("a destination shim before (v2.x)", inside(hexes("20020000 0000000100000002") + V21), {"hops": NODES}, notes=["destination_shim"])
    case("a destination shim alone is no path", inside(hexes("20020000 0000000100000002")), {"hops": [{"node": 9}]},
         notes=["destination_shim"])
    ids = words(2, 900, 1500), words(1, 100, 400)
    case("times modulo 2^32: latency over the wrap", inside(shim10([words(1, 0xFFFFFF00, 0x100)], 0x8C00, 3)),
         {"hops": [{"hop_latency_ns": 0x200, "ingress_ts_ns": 0xFFFFFF00, "egress_ts_ns": 0x100, "time_bits": 32}]})
    case("link latency between neighbours", inside(shim10(ids, 0x8C00, 3)), {"latency_ns": 900, "hops": [
        {"hop_latency_ns": 300, "link_latency_ns": ABSENT}, {"hop_latency_ns": 600, "link_latency_ns": 500, "clock": "ok"}]})
    case("link latency over the wrap", inside(shim10([words(2, 0x10, 0x20), words(1, 0xFFFFFFE0, 0xFFFFFFF0)], 0x8C00, 3)),
         {"hops": [{}, {"link_latency_ns": 0x20, "clock": "ok"}]})
    case("M set: neighbours in the stack need not be neighbours", inside(shim10(ids, 0x8C00, 3, b1=0x80)),
         {"hops": [{"hop_latency_ns": 300}, {"hop_latency_ns": 600, "link_latency_ns": ABSENT, "clock": ABSENT}]})
    case("E set: the reporter need not be the next node", datagram(rep10(inner(shim10(ids, 0x8C00, 3, b0=0x11)), 0x04, words(2100), ts=2000)),
         {"hops": [{}, {"link_latency_ns": 500}, {"node": 9, "ingress_ts_ns": 2000, "link_latency_ns": ABSENT}]})
    case("clocks that disagree: no link latency, and said so", inside(shim10([words(2, 300, 350), words(1, 100, 400)], 0x8C00, 3)),
         {"hops": [{}, {"link_latency_ns": ABSENT, "clock": "skewed"}]}, notes=["clock_skewed"])
    back = [words(2) + struct.pack("!QQ", 5000, 4000), words(1) + struct.pack("!QQ", 1000, 2000)]
    case("64-bit times that go backwards: raw values stay, no latency", inside(shim2x(back, 0x8C00, 5)),
         {"latency_ns": ABSENT, "hops": [{"hop_latency_ns": 1000}, {"ingress_ts_ns": 5000, "egress_ts_ns": 4000, "hop_latency_ns": ABSENT}]},
         notes=["latency_implausible"])
    case("a hop of two seconds is plausible, more is not", inside(shim2x([words(2) + struct.pack("!QQ", 0, 2000000001), words(1) + struct.pack("!QQ", 0, 2000000000)], 0x8C00, 5)),
         {"hops": [{"hop_latency_ns": 2000000000}, {"hop_latency_ns": ABSENT, "egress_ts_ns": 2000000001}]}, notes=["latency_implausible"])
    micro = [words(2, 7, 3000, 3600), words(1, 5, 1000, 1400)]
    case("units per exporter: times in us, latency in us", inside(shim10(micro, 0xAC00, 4)),
         {"latency_ns": 12000, "hops": [{"hop_latency_ns": 5000, "ingress_ts_ns": 1000000, "egress_ts_ns": 1400000},
                                        {"hop_latency_ns": 7000, "link_latency_ns": 1600000}]}, args=["--time-unit", "us", "--latency-unit", "us"])
    case("units mixed in a stack: times in ns, latency in us", inside(shim10(micro, 0xAC00, 4)),
         {"hops": [{"hop_latency_ns": 5000, "ingress_ts_ns": 1000}, {"hop_latency_ns": 7000, "link_latency_ns": 1600}]}, args=["--latency-unit", "us"])
    case("not a report port, not announced", eth4(ip4(17, udp(rep10(inner(V10)), dport=5999))), verdict="not_telemetry")
    case("--report-port", eth4(ip4(17, udp(rep10(inner(V10)), dport=5900))), {"hops": NODES}, args=["--report-port", "5900"])
    case("ARP is an ordinary packet", eth(0x0806, bytes(46)), verdict="not_telemetry")
    case("a frame of ten bytes", bytes(10), verdict="short")
    case("an IPv4 total length below its header", eth4(ip4(17, udp(b""), total=10)), verdict="ip_length")
    case("a UDP length below 8", eth4(ip4(17, struct.pack("!HHHH", 1, 32766, 3, 0))), verdict="l4_length")


# ---- IOAM ----

def ioam():
    six = {"src": "2001:db8::1", "dst": "2001:db8::2", "proto": 17, "sport": 5000, "dport": 5001}
    case("trace as Linux fills it (5.4)", ioam6(trace(0xFFF002, [LINUX_2, LINUX_1], 18)), {
        "mode": "ioam-trace", "flow": six, "dialect": ABSENT, "hops": [
            {"node": 0x0A0001, "hop_limit": 63, "ingress_port": 11, "egress_port": 12, "schema_id": 777, "node_wide": 0xB0000001},
            {"node": 0x0A0002, "hop_limit": 62, "ingress_port": 21, "egress_port": 22, "ingress_ts_ns": 1795165536389044000,
             "hop_latency_ns": ABSENT, "queue_depth": 0, "ns_data": 0xC0000002, "ns_data_wide": 0xD000000000000002, "node_wide": 0xB0000002, "ingress_port2": 2100,
             "egress_port2": 2200, "buffer_depth": ABSENT, "schema_id": ABSENT, "namespace": 123, "queue": ABSENT}]})
    for extension in (0, 60):
        for option_type in (0x31, 0x11):
            case(f"trace in extension {extension}, option type {option_type:#x}", ioam6(trace(0x800000, [words(0x3E000002), words(0x3F000001)]), extension, option_type),
                 {"mode": "ioam-trace", "hops": NODES})
    case("incremental trace", ioam6(trace(0x800000, [words(0x3E000002), words(0x3F000001)], 9, kind=1)), {"mode": "ioam-trace", "hops": NODES})
    case("a trace nobody filled", ioam6(trace(0x800000, [], 4)), {"hops": []}, notes=["no_hops"])
    case("overflow: partial", ioam6(trace(0x800000, [words(0x3F000001)], flags=8)), {"flags": {"partial": True}, "path_id": ABSENT}, notes=["ioam_overflow"])
    case("active: kept out of traffic", ioam6(trace(0x800000, [words(0x3F000001)], flags=2)), {"flags": {"copy": True}}, notes=["ioam_active"])
    case("loopback", ioam6(trace(0x800000, [words(0x3F000001)], flags=4)), {"flags": {"partial": False}}, notes=["ioam_loopback"])
    case("NodeLen lies", ioam6(trace(0x800000, [words(1)], node_len=2)), verdict="ioam_node_len")
    case("RemainingLen past the option", ioam6(trace(0x800000, [words(1)], remaining=9)), verdict="ioam_remaining")
    case("nodes do not end with the option", ioam6(trace(0xC00000, [words(1, 2), words(3)])), verdict="ioam_walk")
    case("bit 23 is ignored", ioam6(trace(0x800001, [words(0x3F000001)])), {"hops": [{"node": 1}]})
    case("bits 12-21 take a word each", ioam6(trace(0x800004, [words(0x3F000001, NONE32)])), {"hops": [{"node": 1}]}, notes=["unassigned"])
    case("unassigned option type", ioam6(b"\x2A" + bytes(11)), verdict="ioam_option")
    case("option shorter than its header", ioam6(b"\0" + bytes(3)), verdict="ioam_short")
    case("direct export (10.4)", ioam6(hexes("04 007b00c0 80000000 00000015 00000007")), {"mode": "ioam-dex", "namespace": 123, "flow_id": 21, "flow_seq": 7, "hops": [], "flow": six})
    case("direct export, early flags", ioam6(hexes("04 007b0003 80000000 00000015 00000007")), {"flow_id": 21, "flow_seq": 7}, notes=["ioam_legacy_dex"])
    case("direct export, flow id only", ioam6(hexes("04 007b0080 80000000 00000015")), {"flow_id": 21, "flow_seq": ABSENT})
    case("direct export of the wrong length", ioam6(hexes("04 007b00c0 80000000 00000015")), verdict="ioam_length")
    case("edge to edge (10.4)", ioam6(hexes("03 007b7000 0000002a 6553f100 0003d090"), 60, 0x11),
         {"mode": "ioam-e2e", "namespace": 123, "flow_seq": 42, "e2e_ts_ns": 1700000000250000000, "hops": [{"egress_ts_ns": 1700000000250000000, "node": ABSENT}]})
    case("edge to edge of the wrong length", ioam6(hexes("03 007b7000 0000002a 6553f100"), 60), verdict="ioam_length")
    case("proof of transit", ioam6(hexes("02 007b0000 0000000000000001 0000000000000002")), {"mode": "ioam-pot", "namespace": 123, "hops": [],
          "pot": {"packet_id": "0000000000000001", "cumulative": "0000000000000002"}})
    delay = words(0x3F000001, 1700000000, 250000, 0x80000000 | 5)
    case("transit delay that overflowed", ioam6(trace(0xB80000, [delay])), {"hops": [{"hop_latency_ns": ABSENT, "egress_ts_ns": ABSENT}]}, notes=["latency_implausible"])
    delay = words(0x3F000001, 1700000000, 250000, 5)
    for args, ns in (((), 1700000000250000000), (("--ioam-time", "123=posix"), 1700000000250000000), (("--ioam-time", "123=ptp"), 1700000000000250000),
                     (("--ioam-time", "0x7b=ptp"), 1700000000000250000), (("--ioam-time", "124=ptp"), 1700000000250000000),
                     (("--ioam-time", "124=ntp", "--ioam-time", "123=ptp"), 1700000000000250000)):
        case(f"namespace times {' '.join(args)}", ioam6(trace(0xB80000, [delay])), {"hops": [{"ingress_ts_ns": ns, "egress_ts_ns": ns + 5, "hop_latency_ns": 5}]}, args=args)
    ntp = words(0x3F000001, 1700000000 + 2208988800, 0x40000000, 5)
    case("namespace times NTP", ioam6(trace(0xB80000, [ntp])), {"hops": [{"ingress_ts_ns": 1700000000250000000}]}, args=("--ioam-time", "123=ntp"))
    case("a time that its format does not have", ioam6(trace(0xB80000, [ntp])), {"hops": [{"ingress_ts_ns": ABSENT, "egress_ts_ns": ABSENT}]}, notes=["ioam_time"])


def main():
    for fill in (reports, reports_v20, sequences, versions, carriers, hostile, ioam):
        fill()
    wanted = [c for c in CASES if len(sys.argv) < 3 or any(w in c[0] for w in sys.argv[2:])]
    for c in wanted:
        run(c)
    return tap.end()


sys.exit(main())
