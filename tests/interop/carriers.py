#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Independent witnesses for the carriers: scapy builds every stack of headers and our walk must report the
same flow; tshark reads what we write and must agree.

    usage: carriers.py CARRIERS     (the program made from carriers.c)

Is skipped when neither scapy nor tshark is there.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import pcap, tap, with_scapy  # noqa: E402
from lib.tap import eq, ok  # noqa: E402


def addr(text):
    if ":" in text:
        return socket.inet_pton(socket.AF_INET6, text).hex()
    return "00000000000000000000ffff" + socket.inet_aton(text).hex()


# ---- scapy writes, we read ----

ETHERNET, RAW, SLL, SLL2 = 0, 1, 2, 3
FRAGMENT, HOP_OPTS, DST_OPTS = 0x01, 0x08, 0x10


def level(src, dst, proto, **more):
    return {"src": addr(src), "dst": addr(dst), "proto": proto, **more}


def stacks():
    """(name, link, packet, what must be among each level's values)"""
    from scapy.all import (ICMP, IP, IPOption_RR, TCP, UDP, AH, CookedLinux, Dot1AD, Dot1Q, Ether, GRE,
                           HBHOptUnknown, ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt,
                           IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, Raw)
    from scapy.contrib.geneve import GENEVE
    from scapy.contrib.mpls import MPLS
    from scapy.layers.vxlan import VXLAN
    a, b, a6, b6 = "10.1.2.3", "10.4.5.6", "2001:db8::1", "2001:db8::2"
    i4, i6 = IP(src=a, dst=b, tos=46 << 2, ttl=61), IPv6(src=a6, dst=b6, tc=46 << 2, hlim=61)
    u, t, d = UDP(sport=1234, dport=5678), TCP(sport=1234, dport=5678), Raw(b"payload")
    e = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    inner = IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=7, dport=8) / d
    udp4 = level(a, b, 17, sport=1234, dport=5678, dscp=46, ttl=61, payload=7)
    udp6 = level(a6, b6, 17, sport=1234, dport=5678, dscp=46, ttl=61, payload=7)
    tcp4 = level(a, b, 6, sport=1234, dport=5678, dscp=46, ttl=61, payload=7)
    in4 = level("192.0.2.1", "192.0.2.2", 17, sport=7, dport=8, payload=7)

    def ext(*headers):
        p = i6
        for h in headers:
            p = p / h
        return e / p / u / d
    tcp_options = [("MSS", 1460), ("NOP", None), ("WScale", 7), ("Timestamp", (1, 2)), ("SAckOK", b"")]
    yield "udp", ETHERNET, e / i4 / u / d, [udp4]
    yield "udp over ipv6", ETHERNET, e / i6 / u / d, [udp6]
    yield "tcp with options", ETHERNET, e / i4 / TCP(sport=1234, dport=5678, options=tcp_options) / d, [tcp4]
    yield "icmp", ETHERNET, e / i4 / ICMP(type=8, code=0), [level(a, b, 1, sport=8, dport=0)]
    yield "icmpv6", ETHERNET, e / i6 / ICMPv6EchoRequest(), [level(a6, b6, 58, sport=128, dport=0)]
    yield "vlan", ETHERNET, e / Dot1Q(vlan=100, prio=3) / i4 / u / d, [{**udp4, "vlan": 100}]
    yield "qinq", ETHERNET, e / Dot1AD(vlan=5) / Dot1Q(vlan=200) / i6 / u / d, [{**udp6, "vlan": 200}]
    yield "three tags", ETHERNET, e / Dot1Q(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / i4 / t / d, [
        {**tcp4, "vlan": 3}]
    yield "mpls", ETHERNET, e / MPLS(label=16, s=0) / MPLS(label=17, s=1) / i4 / u / d, [udp4]
    yield "mpls ipv6", ETHERNET, e / MPLS(label=16, s=1) / i6 / u / d, [udp6]
    yield "raw ip", RAW, i4 / u / d, [udp4]
    yield "raw ipv6", RAW, i6 / u / d, [udp6]
    yield "cooked", SLL, CookedLinux(proto=0x0800) / i4 / u / d, [udp4]
    yield "cooked, vlan", SLL, CookedLinux(proto=0x8100) / Dot1Q(vlan=9) / i4 / u / d, [
        {**udp4, "vlan": 9}]
    yield "cooked v2", SLL2, Raw(struct.pack("!HHIHBB8s", 0x86DD, 0, 3, 1, 0, 6, b"\2\0\0\0\0\1")) / i6 / u / d, [
        udp6]
    yield "ipv4 options", ETHERNET, e / IP(src=a, dst=b, tos=46 << 2, ttl=61, options=[
        IPOption_RR(routers=["0.0.0.0"] * 3)]) / u / d, [udp4]
    yield "hop-by-hop", ETHERNET, ext(IPv6ExtHdrHopByHop(options=[HBHOptUnknown(otype=0x3e, optdata=b"abcd")])), [
        {**udp6, "flags": HOP_OPTS}]
    yield "four extension headers", ETHERNET, ext(IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(
        addresses=["2001:db8::9"]), IPv6ExtHdrDestOpt()), [{**udp6, "flags": HOP_OPTS | DST_OPTS}]
    yield "authentication header", ETHERNET, e / i4 / AH(spi=1, seq=1, icv=b"0123456789ab", payloadlen=4) / u / d, [
        level(a, b, 51)]
    yield "ipv6 first fragment", ETHERNET, ext(IPv6ExtHdrFragment(m=1, id=3)), [udp6]
    yield "ipv6 later fragment", ETHERNET, ext(IPv6ExtHdrFragment(m=0, offset=40, id=3)), [
        {"proto": 17, "flags": FRAGMENT}]
    first, *later = (IP(src=a, dst=b, tos=46 << 2, ttl=61, id=7) / UDP(sport=1234, dport=5678) / Raw(
        bytes(300))).fragment(fragsize=128)
    yield "ipv4 first fragment", ETHERNET, e / first, [{**udp4, "payload": 120}]
    for i, f in enumerate(later):
        yield f"ipv4 fragment {i + 1}", ETHERNET, e / f, [level(a, b, 17, flags=FRAGMENT)]
    yield "gre with key", ETHERNET, e / i4 / GRE(key_present=1, key=99) / inner, [
        level(a, b, 47, vni=99), in4]
    yield "gre, all words", ETHERNET, e / i6 / GRE(chksum_present=1, key_present=1, key=98, seqnum_present=1) / inner, [
        level(a6, b6, 47, vni=98), in4]
    yield "gre of ethernet", ETHERNET, e / i4 / GRE(proto=0x6558) / e / inner, [level(a, b, 47), in4]
    yield "ip in ip", ETHERNET, e / i4 / inner, [level(a, b, 4), in4]
    yield "ip in ipv6", ETHERNET, e / i6 / inner, [level(a6, b6, 4), in4]
    yield "vxlan", ETHERNET, e / i4 / UDP(sport=9, dport=4789) / VXLAN(vni=42, flags="Instance") / e / Dot1Q(vlan=7) / inner, [
        level(a, b, 17, dport=4789, vni=42), {**in4, "vlan": 7}]
    yield "vxlan-gpe", ETHERNET, e / i4 / UDP(sport=9, dport=4790) / VXLAN(
        vni=43, flags="Instance+NextProtocol", NextProtocol=1) / inner, [level(a, b, 17, dport=4790, vni=43), in4]
    yield "geneve", ETHERNET, e / i6 / UDP(sport=9, dport=6081) / GENEVE(vni=44, proto=0x6558) / e / inner, [
        level(a6, b6, 17, dport=6081, vni=44), in4]
    yield "geneve of ip", ETHERNET, e / i4 / UDP(sport=9, dport=6081) / GENEVE(
        vni=45, proto=0x0800, optionlen=2, options=b"\1\3\1\1abcd") / inner, [level(a, b, 17, vni=45), in4]


def scapy_to_us(program):
    cases = list(stacks())
    lines = "".join(f"{link} {bytes(p).hex()}\n" for _, link, p, _ in cases)
    out = subprocess.run([program, "walk"], input=lines, capture_output=True, text=True, check=True,
                         timeout=60).stdout.splitlines()
    eq(len(out), len(cases), "an answer for each")
    for (name, _, _, want), line in zip(cases, out):
        got = json.loads(line)
        seen = [{k: g.get(k) for k in w} for g, w in zip(got["levels"], want)]
        ok(got["verdict"] == "ok" and len(got["levels"]) == len(want) and seen == want,
           f"scapy: {name}", f"got    {got}\nwanted {want}")


# ---- we write, tshark reads ----

FIELDS = ["ip.checksum.status", "udp.checksum.status", "tcp.checksum.status", "icmp.checksum.status",
          "icmpv6.checksum.status", "vlan.id", "gre.key", "vxlan.vni", "geneve.vni", "ip.dsfield.dscp",
          "ipv6.tclass.dscp", "udp.dstport", "tcp.dstport", "_ws.malformed", "ipv6.opt.ioam.trace.ns",
          "ipv6.opt.ioam.trace.type", "frame.protocols"]


def tshark_on(path, *args):
    checks = [x for p in ("ip", "udp", "tcp") for x in ("-o", f"{p}.check_checksum:TRUE")]
    r = subprocess.run(["tshark", "-r", path, *checks, *args], capture_output=True, text=True, timeout=60,
                       check=True)
    return r.stdout


def us_to_tshark(program):
    out = subprocess.run([program, "put"], capture_output=True, text=True, check=True, timeout=60).stdout
    frames = [(line.split()[0], bytes.fromhex(line.split()[1])) for line in out.splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "put.pcap")
        pcap.write(path, [frame for _, frame in frames])
        known = set(subprocess.run(["tshark", "-G", "fields"], capture_output=True, text=True, timeout=120,
                                   check=True).stdout.split("\t"))
        fields = [x for x in FIELDS if x in known or x.startswith("_ws")]
        table = tshark_on(path, "-T", "fields", "-E", "occurrence=a",
                          *(x for name in fields for x in ("-e", name))).splitlines()
        details = tshark_on(path, "-O", "ipv6", "-Y", "ipv6.opt.ioam.trace.ns")
    eq(len(table), len(frames), "tshark: every frame")
    want = {"gre": ("gre.key", "77"), "vxlan": ("vxlan.vni", "78"), "geneve": ("geneve.vni", "0x000050"),
            "gpe": ("vxlan.vni", "79")}
    for (name, _), row in zip(frames, table):
        got = dict(zip(fields, row.split("\t")))
        ok(got["_ws.malformed"] == "", f"tshark: {name}: nothing malformed", got)
        # Checksum status 1 is good, 0 bad, 2 unverified, 3 not present.
        sums = {k: v for k, v in got.items() if k.endswith("checksum.status") and v}
        ok(sums and all(set(v.split(",")) == {"1"} for v in sums.values()), f"tshark: {name}: checksums", got)
        if name in want and want[name][0] in got and got[want[name][0]]:
            key, value = want[name]
            eq(int(got[key], 0), int(value, 0), f"tshark: {name}: {key}")
        if "vlan" in name:
            eq(got["vlan.id"], "100", f"tshark: {name}: id")
    if "ipv6.opt.ioam.trace.ns" in known:
        ioam_details(details)


def ioam_details(text):
    """Every value that tshark shows of the pre-allocated trace of two nodes, newest first."""
    lines = [line.strip() for line in text.splitlines()]
    ok("Namespace ID: 123" in lines, "tshark: ioam: namespace")
    for n, (hop_limit, node, schema) in enumerate(((62, "0x0000a2", "0xffffff"), (63, "0x0000a1", "0x000309"))):
        want = [f"Node {n + 1}", "Hop_Lim and Node ID (short)", f"Hop Limit: {hop_limit}", f"ID: {node}",
                "Ingress and Egress IDs (short)", "Ingress ID: 0x0001", "Egress ID: 0x0002",
                "Timestamp Seconds: 0x6553f100", "Timestamp Fraction: 0x0003d090",
                "Transit Delay: 0x00000384", "Namespace Data (short): 0x000000c1",
                "Queue Depth: 0x00000005", "Checksum Complement: 0x00000006",
                "Hop_Lim and Node ID (wide)", f"Hop Limit: {hop_limit}", "ID: 0x000000000000b1",
                "Ingress and Egress IDs (wide)", "Ingress ID: 0x0000000b", "Egress ID: 0x0000000c",
                "Namespace Data (wide): 0x00000000000000d1", "Buffer Occupancy: 0x00000007",
                "Opaque State Snapshot", f"Length: {0 if n == 0 else 2}", f"Schema ID: {schema}"]
        at = lines.index(want[0]) if want[0] in lines else 0
        eq(lines[at:at + len(want)], want, f"tshark: ioam: node {n + 1}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    have_scapy = with_scapy.there()
    have_tshark = shutil.which("tshark") is not None
    if not have_scapy and not have_tshark:
        tap.skip_all("missing: scapy and tshark")
    if have_scapy:
        scapy_to_us(sys.argv[1])
    if have_tshark:
        us_to_tshark(sys.argv[1])
    return tap.end()


sys.exit(main())
