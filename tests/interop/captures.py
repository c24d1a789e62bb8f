#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures as other tools and devices write them (tests/interop/captures), read by `pathline read`: lengths, link types and times
that a capture lacks, and packets in the carriers through which they are mirrored. What is right was decided by the formats'
documents before it was read.

    usage: captures.py PATHLINE"""
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE, Daemon, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "captures")


def capture(name):
    return os.path.join(FOLDER, name)


def read(name, *options):
    """Its paths, and how the command ended, with what it said."""
    r = run("read", "-o", "jsonl", *options, capture(name))
    return jsonl(r.stdout), r


def notes(name, *options):
    r = run("read", "-o", "json", "--stats", *options, capture(name))
    return jsonl(r.stdout)[-1]["notes"]


def flow(path):
    f = path["flow"]
    return f'{f["src"]}:{f["sport"]}>{f["dst"]}:{f["dport"]}'


def nodes(path):
    return [h["node"] for h in path["hops"]]


def test_lengths():
    """One record of five says that more was captured than the packet had."""
    paths, r = read("caplen-over-len.pcap")
    eq((r.returncode, [p["ts_ns"] // 10**9 for p in paths]), (0, list(range(1700000000, 1700000005))), "lengths: all five are read")
    ok("1 packet has more bytes captured than it had" in r.stderr, "lengths: the odd one is told of", r.stderr)


def test_times():
    paths, r = read("simple-packet-block.pcapng")
    eq(len(paths), 1, "times: a simple packet block")
    ok("ts_ns" not in paths[0], "times: has no time", r.stdout)
    rows = run("read", capture("simple-packet-block.pcapng")).stdout.splitlines()
    eq(rows[1].split()[0], "-", "times: in the table neither")


def test_link_types():
    paths, r = read("linktype-ppp.pcap")
    eq((paths, r.returncode), ([], 1), "link types: one that is not read is a failure")
    ok("link type 9 (PPP) is not read: 1 packet" in r.stderr, "link types: by number and name", r.stderr)
    r = run("read", "-o", "jsonl", capture("linktype-ppp.pcap"), capture("erspan-plain.pcap"), "--int-port", "8080")
    eq((len(jsonl(r.stdout)), r.returncode), (1, 0), "link types: beside another file it is told of")
    ok("link type 9" in r.stderr, "link types: there too", r.stderr)


def test_two_traces():
    paths, _ = read("ioam-two-traces.pcap")
    eq([nodes(p) for p in paths], 6 * [[1, 2]] + [[9]], "IOAM: the outermost trace")
    eq(notes("ioam-two-traces.pcap"), {"ioam_more": 1}, "IOAM: the second one is noted")


USER = "203.0.113.10:51000>203.0.113.20:443"


def test_mirrors():
    """An INT packet mirrored by ERSPAN I, II, III, and III with the platform's subheader: the path of the packet itself."""
    plain, _ = read("erspan-plain.pcap")
    paths, r = read("erspan.pcap")
    eq(r.stderr, "", "mirrors: all is read")
    eq(len(paths), 4, "mirrors: four packets")
    left_out = ("ts_ns", "report_id")
    eq([{k: v for k, v in p.items() if k not in left_out} for p in paths],
       4 * [{k: v for k, v in plain[0].items() if k not in left_out}], "mirrors: each as the packet that was mirrored")
    eq(nodes(paths[0]), [1, 2], "mirrors: its nodes")


def test_tunnels():
    """Reports of packets in GTP-U, GTP-U with a PDU session header, VXLAN on its port and on the one that Linux used before: the
    user's flow each time; whose port is not VXLAN's by what is set, the tunnel's."""
    paths, _ = read("tunnels-gtpu-vxlan8472.pcap")
    eq([flow(p) for p in paths], 4 * [USER], "tunnels: the user's flow")
    outer = "198.51.100.1:2152>198.51.100.2:8472"
    for options, want in ((("--vxlan-port", "4789"), outer), (("--vxlan-port", "8473"), outer),
                          (("--vxlan-port", "8473", "--vxlan-port", "8472"), USER)):
        paths, _ = read("tunnels-gtpu-vxlan8472.pcap", *options)
        eq([flow(p) for p in paths], 3 * [USER] + [want], f"tunnels: {' '.join(options)}")
    for options in (("--vxlan-port", "0"), ("--vxlan-port", "x"), 4 * ("--vxlan-port", "1")):
        eq(read("erspan.pcap", *options)[1].returncode, 2, f"tunnels: {' '.join(options)} is refused")


def test_daemon():
    """The same by a daemon, with detection over records and its setting."""
    for setting, want in (("", USER), ("decode: {vxlan_ports: [4789]}\n", "198.51.100.1:2152>198.51.100.2:8472")):
        lab.write("tunnels.jsonl", "")
        d = Daemon(lab.write("tunnels.yaml", f"{setting}sources: [{{uri: 'pcap:{capture('tunnels-gtpu-vxlan8472.pcap')}'}}]\n"
                             f"outputs: [{{path: {lab.path('tunnels.jsonl')}}}]\nweb: {{listen: 127.0.0.1:0}}\n"), "tunnels")
        ok(d.wait_for("end of file"), "daemon: the capture is read")
        eq(d.stop(), 0, "daemon: ends well")
        paths = [p for p in jsonl(lab.read("tunnels.jsonl")) if p["kind"] == "path"]
        eq([flow(p) for p in paths], 3 * [USER] + [want], f"daemon: flows, {setting.strip() or 'by default'}")
    r = run("config", "check", lab.write("bad.yaml", "decode: {vxlan_ports: [0]}\n"))
    ok(r.returncode == 78 and "port" in r.stderr, "daemon: a port that is none is refused", r.stderr)


def tapped(name, *options):
    rows = jsonl(run("tap", "-o", "jsonl", "--inner", *options, name).stdout)
    return [(r["src"], r["sport"], r["dst"], r["dport"]) for r in rows]


def test_tap():
    """The same packets by the tap, with --inner."""
    plain = tapped(capture("erspan-plain.pcap"))
    eq(plain, [("198.51.100.1", 40000, "198.51.100.2", 8080)], "tap: a packet")
    eq(tapped(capture("erspan.pcap")), 4 * plain, "tap: mirrored by ERSPAN")
    # The packets reported on, behind Ethernet, IPv4, UDP and the report's header with its metadata.
    with open(capture("tunnels-gtpu-vxlan8472.pcap"), "rb") as f:
        data = f.read()
    packets, at = data[:24], 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        packets += data[at:at + 8] + struct.pack("<II", size - 74, size - 74) + data[at + 16 + 74:at + 16 + size]
        at += 16 + size
    with open(lab.path("wire.pcap"), "wb") as f:
        f.write(packets)
    user, outer = ("203.0.113.10", 51000, "203.0.113.20", 443), ("198.51.100.1", 2152, "198.51.100.2", 8472)
    eq(tapped(lab.path("wire.pcap")), 4 * [user], "tap: in GTP-U and VXLAN")
    eq(tapped(lab.path("wire.pcap"), "--vxlan-port", "4789"), 3 * [user] + [outer], "tap: VXLAN on its own port only")
    eq(run("tap", "-o", "jsonl", "--vxlan-port", "x", lab.path("wire.pcap")).returncode, 2, "tap: a port that is none is refused")


def test_tap_unread():
    """Packets of a link type that the tap does not read: it says so, once."""
    r = run("tap", "--stats", "-o", "jsonl", capture("linktype-ppp.pcap"))
    stats = jsonl(r.stdout)[-1]["tap"]
    eq((stats["packets"] > 0, stats["not_ip"], stats["broken"]), (True, stats["packets"], 0), "tap: PPP has no records, and is not called broken")
    eq(r.stderr.count("link type 9 (PPP) is not read"), 1, "tap: and it is told")


def reports_to(port, n):
    """A capture of so many reports to a port."""
    made = run("gen", "int", "-n", n, "--port", port, "-w", lab.path("reports.pcap"))
    eq(made.returncode, 0, f"reports to {port} are made")
    return lab.path("reports.pcap")


def test_hint():
    r = run("read", reports_to(6000, 50))
    eq(r.returncode, 0, "hint: reports to a port that is not expected")
    ok("--report-port 6000 would read 50 packets" in r.stderr, "hint: the port that reads them", r.stderr)
    r = run("read", "--report-port", 6000, lab.path("reports.pcap"))
    eq(r.stderr, "", "hint: with it nothing is told")


def test_as_it_comes():
    """From a pipe each record is shown when its packet has come, in every form, plain and compressed."""
    with open(reports_to(32766, 3), "rb") as f:
        data = f.read()
    packets, at = [], 24
    while at < len(data):
        size = 16 + struct.unpack_from("<I", data, at + 8)[0]
        packets.append(data[at:at + size])
        at += size
    for form in ("table", "jsonl", "json", "csv", "text"):
        out = lab.path(f"came-{form}")
        with open(out, "wb") as to, lab.start([PATHLINE, "read", "-o", form, "-"], stdin=subprocess.PIPE, stdout=to,
                                              stderr=subprocess.DEVNULL) as p:
            before = 0
            for i, packet in enumerate(packets):
                p.stdin.write((data[:24] if i == 0 else b"") + packet)
                p.stdin.flush()
                wait(lambda: os.path.getsize(out) > before)
                before = os.path.getsize(out)
            p.stdin.close()
            eq(p.wait(60), 0, f"as it comes: {form}: three records, each before the next packet came")
        eq(lab.read(f"came-{form}"), run("read", "-o", form, lab.path("reports.pcap")).stdout, f"as it comes: {form}: the same as of the file")


def main():
    lab.run(test_lengths, test_times, test_link_types, test_two_traces, test_mirrors, test_tunnels, test_daemon, test_tap, test_tap_unread, test_hint, test_as_it_comes)
    return tap.end()


sys.exit(main())
