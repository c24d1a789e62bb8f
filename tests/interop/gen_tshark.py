# SPDX-License-Identifier: BSD-2-Clause
"""What `pathline gen` writes, read by tshark: an independent witness that the carriers are as their
specifications say. Nothing may be malformed and every checksum must be right, in the outer packets and in
the inner packets of reports, which this program cuts out by its own reading of the report headers.

usage: gen_tshark.py PATHLINE
"""
import itertools
import os
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap  # noqa: E402
from lib.tap import ok  # noqa: E402

COUNT = 40
CHECKS = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
          "-o", "tcp.analyze_sequence_numbers:FALSE"]
KNOWN = {"frame", "eth", "ethertype", "vlan", "ieee8021ad", "ip", "ipv6", "udp", "tcp", "gre", "vxlan", "vxlan_gpe",
         "geneve", "data", "_ws.malformed", "_ws.expert", "pkt_comment", "_ws.unreassembled", "_ws.short"}
FIELDS = ["_ws.malformed", "ip.checksum.status", "udp.checksum.status", "tcp.checksum.status", "frame.protocols",
          "_ws.expert.severity", "_ws.expert.message", "vxlan.vni"]
PI_ERROR = 0x00800000


def use_carriers_only(folder):
    """The payloads are zeros and no application's, whatever their ports; and VXLAN-GPE's next protocol 5, which
    announces INT 0.5, is MPLS elsewhere."""
    names = subprocess.run(["tshark", "-G", "protocols"], capture_output=True, text=True, check=True).stdout
    with open(os.path.join(folder, "disabled_protos"), "w") as f:
        for line in names.splitlines():
            if line.split("\t")[2] not in KNOWN:
                f.write(line.split("\t")[2] + "\n")
    os.environ["WIRESHARK_CONFIG_DIR"] = folder


def generate(path, *options):
    return pathline.run("gen", "int", "-n", COUNT, "-w", path, *options)


def dissect(path):
    args = ["tshark", "-r", path, "-T", "fields", "-E", "separator=\t", "-E", "occurrence=a", *CHECKS]
    for f in FIELDS:
        args += ["-e", f]
    out = subprocess.run(args, capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(out.stderr)
    return [dict(zip(FIELDS, line.split("\t"))) for line in out.stdout.splitlines()]


def complaints(packets):
    found = []
    for n, p in enumerate(packets, 1):
        for f in ("ip.checksum.status", "udp.checksum.status", "tcp.checksum.status"):
            if "0" in p[f].split(","):
                found.append(f"packet {n}: bad {f}")
        if p["_ws.malformed"]:
            found.append(f"packet {n}: malformed, {p['frame.protocols']}")
        severities = [int(s, 0) for s in p["_ws.expert.severity"].split(",") if s]
        if any(s >= PI_ERROR for s in severities):
            found.append(f"packet {n}: {p['_ws.expert.message']}")
    return "\n".join(found[:5])


def inner_packets(frame):
    """(link type, bytes) of every inner packet of a report in an Ethernet frame."""
    ethertype, = struct.unpack_from("!H", frame, 12)
    payload = frame[14 + (20 if ethertype == 0x0800 else 40) + 8:]
    version = payload[0] >> 4
    if version == 0:
        skip = {0: 12, 1: 24, 2: 28}[payload[0] & 15]
        yield 1, payload[skip:]
    elif version == 1:
        w0, = struct.unpack_from("!I", payload)
        yield 1 if (w0 >> 21) & 7 == 0 else 101, payload[4 * (w0 >> 24 & 15):]
    else:
        at = 8
        while at < len(payload):
            kinds, length, md, _ = struct.unpack_from("!BBBB", payload, at)
            body = payload[at + 4:at + 4 + 4 * length]
            skip = 8 + 4 * md if kinds >> 4 == 1 else 0
            yield 1 if kinds & 15 == 3 else 101, body[skip:]
            at += 4 + 4 * length


def check_packets(tmp, name, *options, want=()):
    path = os.path.join(tmp, "p.pcap")
    r = generate(path, *options)
    if r.returncode != 0:
        return ok(False, name, r.stderr)
    packets = dissect(path)
    why = complaints(packets)
    if len(packets) != COUNT:
        why += f"\n{len(packets)} packets"
    for w in want:
        if not all(w in p["frame.protocols"].split(":") or p.get(w) for p in packets):
            why += f"\nno {w}: {packets[0]['frame.protocols']}"
    ok(not why, name, why)


def check_reports(tmp, name, *options):
    path, inner = os.path.join(tmp, "r.pcap"), os.path.join(tmp, "i.pcap")
    r = generate(path, *options)
    if r.returncode != 0:
        return ok(False, name, r.stderr)
    why = complaints(dissect(path))
    found = [i for frame in pcap.frames_of(path) for i in inner_packets(frame)]
    links = {link for link, _ in found}
    if len(links) != 1 or len(found) < COUNT:
        why += f"\n{len(found)} inner packets of link types {links}"
    else:
        pcap.write(inner, [p for _, p in found], links.pop())
        why += complaints(dissect(inner))
    ok(not why, name, why)


def main():
    if shutil.which("tshark") is None:
        tap.skip_all("missing: tshark")
    tmp = lab.DIR
    use_carriers_only(tmp)
    shape = ["-t", "fat-tree:4", "--flows", "20"]
    quick = "quick" in sys.argv[2:]
    seen = {"udp": [], "tcp": ["tcp"], "gre": ["gre"], "vxlan-gpe": ["vxlan.vni"], "geneve": ["geneve"]}
    for (carrier, want), ip in itertools.product(seen.items(), "4" if quick else "46"):
        for version in ("0.5", "1.0", "2.1"):
            if carrier == "gre" and version != "2.1":
                continue
            check_packets(tmp, f"instrumented packets: INT {version} over {carrier}, IPv{ip}", *shape,
                          "--report", "none", "--int", version, "--carrier", carrier, "--inner-ip", ip,
                          want=want)
    for inner, want in (("vlan", ["vlan"]), ("qinq", ["ieee8021ad", "vlan"]), ("vxlan", ["vxlan"])):
        check_packets(tmp, f"instrumented packets: {inner}", *shape, "--report", "none", "--inner", inner)
    check_packets(tmp, "instrumented packets: INT before TCP options", *shape, "--report", "none",
                  "--carrier", "tcp", "--tcp-options", "3", "--tcp-before-options")
    for npt in "12":
        check_packets(tmp, f"instrumented packets: NPT {npt}", *shape, "--report", "none", "--npt", npt)
    for report, outer, inner, mode in itertools.product(("0.5", "1.0", "2.0"), "4" if quick else "46", "6" if quick else "46", ("md", "xd")):
        check_reports(tmp, f"report {report} over IPv{outer} about IPv{inner}, {mode}", *shape,
                      "--report", report, "--outer-ip", outer, "--inner-ip", inner, "--mode", mode)
    for inner in ("vlan", "qinq", "vxlan", "ip"):
        for report in ("1.0", "2.0"):
            check_reports(tmp, f"report {report}: inner {inner}", *shape, "--report", report, "--inner", inner)
    for carrier in ("tcp", "gre", "vxlan-gpe", "geneve"):
        check_reports(tmp, f"report 2.0: inner INT over {carrier}", *shape, "--carrier", carrier)
    check_reports(tmp, "report 2.0: four reports per datagram", *shape, "--reports-per-datagram", "4")
    check_reports(tmp, "report 2.0: drop reports", *shape, "--drop", "0.5")
    # the witness is awake: what is damaged is noticed
    path = os.path.join(tmp, "p.pcap")
    for kind in ("l4_length", "ip_length"):
        generate(path, "--malform", kind)
        ok(complaints(dissect(path)), f"tshark notices {kind}")
    generate(path)
    bad = [p[:-1] + bytes([p[-1] ^ 1]) for p in pcap.frames_of(path)]
    pcap.write(path, bad, 1)
    ok("udp.checksum" in complaints(dissect(path)), "tshark notices a changed bit")
    for n in range(1, 2 if quick else 9):
        check_packets(tmp, f"INTCollector test {n}", "--preset", f"intcollector-test{n}", "--port", "40000")
    return tap.end()


sys.exit(main())
