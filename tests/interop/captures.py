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
from lib.pathline import PATHLINE, jsonl, run  # noqa: E402
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
    lab.run(test_lengths, test_times, test_link_types, test_two_traces, test_hint, test_as_it_comes)
    return tap.end()


sys.exit(main())
