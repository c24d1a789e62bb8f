#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Flows of a capture, against tcptrace and argus on the same one: packets, bytes, retransmissions, segments out of order, windows of
zero, handshakes and least round-trip times of each connection. tshark is the witness of tap.py.

usage: tcp_analyzers.py PATHLINE
"""
import csv
import os
import random
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SEED = 20261129
BOTH = (("fwd", "dst"), ("rev", "src"))


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def flows_of(path):
    """By the five parts of their key, of TCP."""
    run = pathline.run("tap", "--flows", "--flow-idle", "1h", "--flow-active", "1h", "-o", "jsonl", path)
    return {(f["src"], f["sport"], f["dst"], f["dport"]): f for f in pathline.jsonl(run.stdout) if f["proto"] == 6}


def paired(flows, src, sport, dst, dport):
    """The flow of a connection, and the words for its two directions as the other program has them."""
    key = (src.strip(), int(sport), dst.strip(), int(dport))
    return (flows[key], BOTH) if key in flows else (flows[key[2:] + key[:2]], BOTH[::-1])


def by_tcptrace(path, flows):
    """Directions of connections: how many there are, and of each number of which it differs how many and the first one."""
    lines = [line for line in output("tcptrace", "-n", "-l", "-r", "--csv", path) if line and not line.startswith("#")]
    rows = list(csv.DictReader(lines, skipinitialspace=True))
    eq(len(rows), len(flows), "tcptrace finds as many connections")
    n, late, different = 0, 0, {}
    for row in rows:
        flow, directions = paired(flows, row["host_a"], row["port_a"], row["host_b"], row["port_b"])
        for way, (direction, far) in zip(("a2b", "b2a"), directions):
            n += 1
            late += flow["ooo_" + direction]
            for theirs, ours in (("total_packets", "pkts"), ("rexmt_data_pkts", "retrans"), ("outoforder_pkts", "ooo"), ("zero_win_adv", "zero_win")):
                pair = int(row[f"{theirs}_{way}"]), flow[f"{ours}_{direction}"]
                if pair[0] != pair[1]:
                    different.setdefault(ours, []).append((row["port_a"], row["port_b"], way, *pair))
            # It prints tenths of a millisecond.
            least, said = flow[f"rtt_seq_{far}_min_us"], float(row[f"RTT_min_{way}"]) * 1000
            if flow[f"rtt_seq_{far}_n"] > 0 and abs(least - said) > 100:
                different.setdefault("rtt", []).append((row["port_a"], row["port_b"], way, said, least))
    return n, late, different


def traffic(*options):
    path = lab.path("traffic.pcap")
    eq(pathline.run("gen", "packets", "--duration", "20s", "--loss", "0.02", "--seed", SEED, *options, "-w", path).returncode, 0, "traffic")
    return path


def test_tcptrace():
    path = traffic()
    flows = flows_of(path)
    n, _, different = by_tcptrace(path, flows)
    eq(different, {}, "packets, retransmissions, order, windows and least round-trip times: tcptrace finds the same")
    again = sum(f["retrans_fwd"] + f["retrans_rev"] for f in flows.values())
    ok(n > 3000 and again > 200, "which are not few", (n, again))


def reordered(path):
    """The same capture with frames that come up to five places later."""
    frames, dice, i = pcap.frames_of(path), random.Random(SEED), 0
    with open(path, "rb") as f:
        data = f.read()
    while i < len(frames) - 6:
        if dice.random() < 0.02:
            j = i + dice.randrange(1, 6)
            frames[i], frames[j] = frames[j], frames[i]
            i = j
        i += 1
    order = ">" if data[0] == 0xA1 else "<"
    out, at = [data[:24]], 24
    for frame in frames:
        head = struct.unpack_from(order + "IIII", data, at)
        out += [struct.pack(order + "IIII", head[0], head[1], len(frame), len(frame)), frame]
        at += 16 + head[2]
    with open(lab.path("reordered.pcap"), "wb") as f:
        f.write(b"".join(out))
    return lab.path("reordered.pcap")


def test_out_of_order():
    """A segment that comes late may be one that was sent again: the two programs judge by other waits, so a few differ."""
    path = reordered(traffic())
    n, late, different = by_tcptrace(path, flows_of(path))
    ok(late > 100 and n > 3000, "segments out of order are not few", (late, n))
    eq(different.get("pkts", []), [], "tcptrace finds as many packets")
    for what in ("ooo", "retrans", "rtt"):
        few = different.get(what, [])
        ok(len(few) <= n // 200, f"{what}: as tcptrace finds in all but {len(few)} of {n} directions", few[:3])


def test_argus():
    path = traffic()
    flows = flows_of(path)
    record = lab.path("traffic.argus")
    output("argus", "-r", path, "-w", record)
    rows = list(csv.DictReader(output("ra", "-n", "-r", record, "-L0", "-c,", "-p6", "-s", "saddr", "sport", "daddr", "dport", "spkts", "dpkts", "sbytes",
                                      "dbytes", "tcprtt", "-", "tcp")))
    eq(len(rows), len(flows), "argus finds as many connections")
    wrong, handshakes = [], 0
    for row in rows:
        flow, directions = paired(flows, row["SrcAddr"], row["Sport"], row["DstAddr"], row["Dport"])
        for side, (direction, _) in zip(("Src", "Dst"), directions):
            # Its bytes are those of frames.
            said = int(row[side + "Pkts"]), int(row[side + "Bytes"]) - 14 * int(row[side + "Pkts"])
            if said != (flow["pkts_" + direction], flow["bytes_" + direction]):
                wrong.append((row, flow))
        took = flow["hs_external_us"] + flow["hs_internal_us"]
        handshakes += flow["hs_external_us"] > 0
        if flow["hs_external_us"] > 0 and abs(float(row["TcpRtt"]) * 1e6 - took) > 3:
            wrong.append((row, flow))
    ok(not wrong, "packets, bytes and handshakes: argus finds the same", wrong[:1])
    ok(handshakes > 1500, "handshakes are not few", handshakes)


for program in ("tcptrace", "argus", "ra"):
    if shutil.which(program, path="/usr/sbin:" + os.environ["PATH"]) is None:
        tap.skip_all(f"missing: {program}")
os.environ["PATH"] += ":/usr/sbin"
lab.run(test_tcptrace, test_out_of_order, test_argus)
sys.exit(tap.end())
