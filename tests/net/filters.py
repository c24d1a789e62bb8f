#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Filter expressions (--filter) of read, listen and tap: over captures beside tcpdump, over live ports, and refused.

usage: filters.py PATHLINE CAPTURES [TEST…]
"""
import os
import random
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap, tapping  # noqa: E402
from lib.pathline import jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

CAPTURES = sys.argv[2]
EXPRESSIONS = ("udp", "tcp", "ip6", "udp port 4791", "not udp", "net 10.0.0.0/8", "src net 10.0.0.0/9 and udp", "greater 120",
               "less 100 and not arp", "udp[8:1] & 1 != 0", "vlan", "portrange 1000-1040 or icmp", "tcp[tcpflags] & tcp-syn != 0")
WIRE = tapping.Wire("filters", "10.83.0.1", "10.83.0.2")


def mixed(rng, n):
    """Frames of all kinds, some with a VLAN tag, some cut."""
    made = []
    for i in range(n):
        proto = rng.choice((1, 6, 17))
        head = struct.pack("!HHI", rng.randrange(1000, 1100), rng.choice((53, 4791)), 0)
        head = head + bytes(4) + struct.pack("!BB", 0x50, rng.choice((2, 16, 18))) + bytes(6) if proto == 6 else head
        body = head + rng.randbytes(rng.randrange(8, 200))
        if rng.randrange(4) == 0:
            packet, kind = struct.pack("!IHBB", 6 << 28, len(body), proto, 64) + rng.randbytes(32) + body, b"\x86\xdd"
        else:
            packet, kind = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), i, 0, 64, proto, 0,
                                       bytes((10, rng.randrange(256), 0, 1)), bytes((rng.randrange(1, 224), 0, 0, 2))) + body, b"\x08\0"
        frame = bytes(12) + (struct.pack("!HH", 0x8100, rng.randrange(1, 4095)) if rng.randrange(5) == 0 else b"") + kind + packet
        made.append(frame if rng.randrange(6) else (frame[:rng.randrange(14, len(frame))], len(frame)))
    return made


def by_tcpdump(file, expression):
    r = subprocess.run(["tcpdump", "--nano", "-nnr", file, "-w", "-", expression], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    with open(lab.path("chosen.pcap"), "wb") as f:
        f.write(r.stdout)
    return lab.path("chosen.pcap")


def tapped(file, *options):
    """The records, and how many packets were read."""
    rows = jsonl(run("tap", "-o", "jsonl", "--stats", *options, file).stdout)
    return rows[:-1], rows[-1]["tap"]["packets"]


def test_captures():
    """The packets that tcpdump takes are those of which the tap makes records."""
    files = [pcap.write(lab.path("mixed.pcap"), mixed(random.Random(83), 3000))]
    files += [os.path.join(CAPTURES, name) for name in ("rxe-probe-6.12.pcap", "rxe-rc-ipv6.pcap", "rxe-rc-vlan.pcap")]
    matched = 0
    for file in files:
        for expression in EXPRESSIONS:
            want, got = tapped(by_tcpdump(file, expression)), tapped(file, "--filter", expression)
            eq(got, want, f"{os.path.basename(file)}: {expression}")
            matched += want[1]
    ok(matched > 3000, "the expressions match something", matched)
    for order in (("--packets", "--filter", "udp port 4791"), ("--filter", "udp port 4791", "--packets")):
        eq(jsonl(run("read", "-o", "jsonl", *order, files[0]).stdout), tapped(by_tcpdump(files[0], "udp port 4791"))[0], "read --packets")


def moved(frame, last):
    """The frame as from 192.0.2.LAST; the reader does not check the sum of its header."""
    return frame[:26] + bytes((192, 0, 2, last)) + frame[30:]


def reports():
    """Frames of two exporters with 200 reports each, by turns."""
    pathline.run("gen", "int", "-n", 200, "-w", lab.path("reports.pcap"))
    frames = pcap.frames_of(lab.path("reports.pcap"))
    eq(len(frames), 200, "reports are made")
    return [moved(frame, last) for frame in frames for last in (1, 2)]


def test_reports():
    """Reports of one exporter of two."""
    file = pcap.write(lab.path("both.pcap"), reports())
    for last in (1, 2):
        r = run("read", "-o", "jsonl", "--stats", "--filter", f"src host 192.0.2.{last}", file)
        *paths, stats = jsonl(r.stdout)
        eq((r.returncode, stats["packets"], len(paths), stats["port"]["not_matched"]), (0, 200, 200, 200), f"reports of exporter {last} alone")
    r = run("read", "--stats", "--filter", "src host 192.0.2.3", file)
    eq((r.returncode, "that do not match the filter: 400" in r.stderr), (3, True), "of none")


def test_listen():
    """The same as they arrive."""
    seen = tapping.Printing(WIRE.ns["b"], "listen", "never", "listening", "listen", "-o", "jsonl", "--stats",
                            "--filter", "src host 192.0.2.2", "packet:eth0")
    WIRE.send_frames(reports())
    ok(wait(lambda: len(seen.lines()) >= 200), "reports arrive", seen.errors())
    seen.p.send_signal(signal.SIGTERM)
    eq(seen.p.wait(timeout=60), 0, "listen ends")
    *paths, stats = seen.lines()
    eq((len(paths), stats["packets"], stats["port"]["not_matched"]), (200, 200, 200), "reports of the other exporter are left out, and counted")


def test_live():
    """All that matches has a record, and all else is counted; frames of a ring are given back whether they match or not."""
    for source in ("packet:eth0", "packet:eth0?ring=1024", "afxdp:eth0", "afxdp:eth0?ring=64"):
        t = tapping.Tap(WIRE.ns["b"], source.replace(":", "-").replace("?", "-"), "-o", "jsonl", "--filter", "udp src port 1007", source)
        made = WIRE.frames(5000)
        for at in range(0, len(made), 50):
            WIRE.send_frames(made[at:at + 50])
            wait(lambda at=at: len([r for r in t.lines() if "src" in r]) >= at // 50 + 1)
        stats = t.end()
        eq([r["ip_id"] for r in t.records], list(range(7, 5000, 50)), f"{source}: every 50th frame, in order")
        eq(stats["tap"]["packets"], 100, f"{source}: no other reached the tap")
        ok(stats["ports"]["not_matched"] >= 4900, f"{source}: those that do not match are counted", stats["ports"])
        tapping.closes(stats, source)


def test_refused():
    capture = pcap.write(lab.path("one.pcap"), mixed(random.Random(1), 10))
    loopback = pcap.write(lab.path("loopback.pcap"), [b"\2\0\0\0" + frame[14:] for frame in WIRE.frames(2)], link=0)
    ppp = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop", "captures", "linktype-ppp.pcap")
    for args, code, words in (
            (("read", "--filter", "udp prot 53", capture), 2, "udp prot 53"),
            (("tap", "--filter", "udp prot 53", capture), 2, "udp prot 53"),
            (("read", "--filter", "udp", ppp), 1, "not read"),
            (("read", "--filter", "ether host 02:00:00:00:00:01", loopback), 1, "BSD loopback"),
            (("tap", "--filter", "udp", "--filter", "port 53", capture), 2, "--filter is given twice"),
            (("read", "--filter=udp", "--filter=udp", capture), 2, "--filter is given twice"),
            (("tap", "--filter", "not inbound", capture), 1, "kernel alone"),
            (("tap", "--filter", " or ".join(["udp"] * 1000), capture), 2, "--rules"),
            (("listen", "--filter", "udp"), 2, "whole frames"),
            (("listen", "--filter", "udp", "udp://127.0.0.1:0"), 2, "whole frames"),
            (("tap", "--filter", "udp", "udp://127.0.0.1:0"), 2, "needs whole frames"),
            (("tap", "--filter", "udp", "packet:lo?carries=tmpkt"), 2, "needs whole frames"),
            (("tap", "--drops", "--filter", "udp", "drops:"), 2, "needs whole frames"),
            (("tap", "--filter", "udp", "tc:lo"), 2, "--rule"),
            (("tap", "--filter", "udp", "xdp:lo"), 2, "packet:lo")):
        r = run(*args)
        eq(r.returncode, code, f"{' '.join(args)}: exit code")
        ok(words in r.stderr, f"{' '.join(args)}: {words}", r.stderr)


WIRE.make()
lab.run(test_captures, test_reports, test_listen, test_live, test_refused)
sys.exit(tap.end())
