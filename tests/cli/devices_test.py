#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures with what devices of others put on the wire (devices/*.pcap), and what 'pathline read' must make of them. What is
right was told from the specifications before the program was run.
usage: devices_test.py PATHLINE"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

PATHLINE = sys.argv[1]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "devices")

INT_PORT = ["--int-port", "555"]
ICMP = ["--report-port", "6000", "--dscp", "0x20"]

# A capture, options, what the verdicts are, notes that there must be, and each path: ports, protocol, nodes, whether it has
# an id.
ROWS = (
    # Source-only metadata of INT 2.1: two words under the stack, the specification's example. How many they are is not known.
    ("source-only-example", INT_PORT, {"ok": 1}, {"source_unknown": 1, "partial": 1}, [(40000, 5000, 17, [3], False)]),
    ("source-only-two-words", INT_PORT, {"ok": 1}, {"source_unknown": 1, "partial": 1}, [(40000, 5000, 17, [3], False)]),
    ("source-only-example", INT_PORT + ["--source-words", "2"], {"ok": 1}, {"source_metadata": 1},
     [(40000, 5000, 17, [1, 2, 3], True)]),
    ("source-only-two-words", INT_PORT + ["--source-words", "2"], {"ok": 1}, {"source_metadata": 1},
     [(40000, 5000, 17, [1, 2, 3], True)]),
    # A number of words that leaves no whole hops.
    ("source-only-two-words", INT_PORT + ["--source-words", "12"], {"int_stack_words": 1}, {}, []),
    # The length of a 2.1 shim counts the shim.
    ("shim-counts-itself", INT_PORT, {"ok": 2}, {"shim_length_rule": 2},
     [(51515, 80, 6, [1, 2], True), (51515, 53, 17, [1, 2], True)]),
    ("shim-right", INT_PORT, {"ok": 2}, {}, [(51515, 80, 6, [1, 2], True), (51515, 53, 17, [1, 2], True)]),
    # INT-MD behind the shim type of INT-MX.
    ("md-stack-in-type-3", [], {"ok": 3}, {"int_type_lies": 3},
     [(40000, 8080, 17, nodes, True) for nodes in ([1, 2], [1, 2, 3], [1])]),
    ("md-stack-in-type-1", [], {"ok": 3}, {}, [(40000, 8080, 17, nodes, True) for nodes in ([1, 2], [1, 2, 3], [1])]),
    # A node added INT and left the UDP length as it was.
    ("udp-length-short", [], {"ok": 1}, {"udp_length_short": 1}, [(40000, 5432, 17, [5, 4, 3], True)]),
    ("udp-length-short-wire", [], {"ok": 1}, {"udp_length_short": 1}, [(40000, 5432, 17, [5, 4, 3], True)]),
    ("udp-length-right", [], {"ok": 1}, {}, [(40000, 5432, 17, [5, 4, 3], True)]),
    # Reports 2.0 whose lengths contradict each other: no path is made of the bytes of a packet.
    ("report-type-0", INT_PORT + ["--report-port", "556"], {"report_length": 3}, {}, []),
    # INT behind the eight bytes of ICMP.
    ("int-over-icmp-report", ICMP, {"ok": 1}, {}, [(8, 0, 1, [1, 2, 3], True)]),
    ("int-over-icmp-wire", ICMP, {"ok": 1}, {}, [(8, 0, 1, [1, 2, 3], True)]),
    # A word of the vendor behind each hop's words.
    ("extra-word-per-hop", ICMP, {"int_hop_ml": 1}, {}, []),
    ("extra-word-per-hop", ICMP + ["--trailing-words", "1"], {"ok": 1}, {}, [(4607, 8959, 17, [1, 2, 3], True)]),
    ("extra-word-per-hop", ICMP + ["--trailing-words", "4"], {"int_hop_ml": 1}, {}, []),
)


def read(name, options):
    run = subprocess.run([PATHLINE, "read", "-o", "jsonl", "--stats"] + options + [os.path.join(FOLDER, name + ".pcap")],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return lines[:-1], lines[-1], run.stderr


def path_of(record):
    nodes = [hop["node"] for hop in record.get("hops", [])]
    flow = record["flow"]
    return flow["sport"], flow["dport"], flow["proto"], nodes, "path_id" in record


def main():
    for name, options, verdicts, notes, paths in ROWS:
        what = " ".join([name] + options)
        records, stats, errors = read(name, options)
        eq({k: v for k, v in stats["verdicts"].items() if v}, verdicts, what + ": verdicts")
        told = stats.get("notes", {})
        ok(all(told.get(note, 0) == n for note, n in notes.items()), what + ": notes", "%s\n%s" % (told, errors))
        eq([path_of(r) for r in records], paths, what + ": paths")
    text = subprocess.run([PATHLINE, "read", "--stats"] + ICMP + [os.path.join(FOLDER, "extra-word-per-hop.pcap")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    ok("--trailing-words" in text.stdout + text.stderr, "the refusal names the setting", text.stdout + text.stderr)
    tap.end()


main()
