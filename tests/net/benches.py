#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks run, their rows are whole, and unknown names are refused. No figure is judged, but by the promise that standing queries
are at least as fast as other engines in the same run. One case of a benchmark stands for the others that it prepares alike, so that
short runs stay short. usage: benches.py PATHLINE"""
import json
import math
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE, run  # noqa: E402
from lib.promise import promise  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SHORTEST = ("-o", "jsonl", "--pairs", "5", "--seconds", "0.001")

# Name, options, the rows that it prints.
RATES = (
    ("packet/tcp", (), {"packet/tcp"}),
    ("packet/udp", (), {"packet/udp"}),
    ("flow/64k-udp", (), {"flow/64k-udp"}),
    ("flow/capture", ("--size", "1MiB"), {"flow/capture"}),
    ("packet/tmpkt-20", (), {"packet/tmpkt-20"}),
    ("tap/xdp-tcp", (), {"tap/xdp-tcp"}),
    ("tap/tc-skip", (), {"tap/tc-skip"}),
    ("tap/xdp-count", (), {"tap/xdp-count"}),
    ("tap/ring", (), {"tap/ring"}),
    ("int-host/stream", (), {"int-host/stream"}),
    ("tap/live", (), {"tap/live"}),
    ("kafka/packets-none", (), {"kafka/packets-none"}),
    ("kafka/afxdp-none", (), {"kafka/afxdp-none"}),
    ("query/filter", ("--size", "1MiB"), {"query/filter"}),
    ("query/least-5-tuple", ("--size", "1MiB"), {"query/least-5-tuple"}),
    ("query/sonata", ("--size", "1MiB"), {"query/sonata"}),
    ("send", (), {"send/packet", "send/afxdp", "send/udp", "send/udp-segments", "send/packet-segments", "send/packet-ring"}),
)


def rows_of(name, options):
    result = run("bench", *SHORTEST, *options, name, timeout=120)
    ok(result.returncode == 0, f"{name} runs", result.stderr)
    return {row["name"]: row for row in map(json.loads, result.stdout.splitlines())}


def finite(row, *keys):
    return all(isinstance(row.get(key), (int, float)) and math.isfinite(row[key]) and row[key] > 0 for key in keys)


def test_rates():
    listed = run("bench", "--list").stdout
    for name, options, names in RATES:
        if f"\n{name.partition('/')[0]} " not in "\n" + listed:
            tap.skip(f"{name} runs", "not built in")
            continue
        rows = rows_of(name, options)
        eq(set(rows), names, f"{name}: its rows")
        for row in rows.values():
            ok(finite(row, "items", "seconds", "rate", "ns_per_item", "ceiling_rate", "ratio", "ratio_min", "ratio_max"),
               f"{row['name']}: every number is there", row)
            ok(row["ratio_min"] <= row["ratio"] <= row["ratio_max"], f"{row['name']}: the ratio is between its bounds", row)


def test_asked():
    """A question of the caller's over records of the caller's."""
    made = run("gen", "packets", "--duration", "1s", "-w", lab.path("asked.pcap"))
    ok(made.returncode == 0, "packets are made", made.stderr)
    kept = run("tap", "--to", f"file:{lab.path('asked.pkt64')}", lab.path("asked.pcap"))
    ok(kept.returncode == 0, "and their records kept", kept.stderr)
    rows = rows_of("query/asked", ("--records", lab.path("asked.pkt64"), "--question", "packets | group dst over 1s agg n=count()"))
    eq(set(rows), {"query/asked"}, "asked: its row")
    ok(all(finite(row, "items", "rate", "ratio") and row["lost"] == 0 for row in rows.values()), "asked: every number is there", rows)


def test_absent():
    """A program to compare with that is not there is named, and its row left out."""
    result = run("bench", *SHORTEST, "--size", "1MiB", "flow/capture-softflowd", env={**os.environ, "PATH": lab.path(".")}, timeout=120)
    eq((result.returncode, result.stdout), (0, ""), "no row of a program that is not there")
    ok("flow/capture-softflowd is left out: softflowd is not installed" in result.stderr, "which is named", result.stderr)


def check_times(name, names):
    """Rows of times that something took, one by one."""
    rows = rows_of(name, ())
    eq(set(rows), names, f"{name}: the rows that were asked for")
    for row in rows.values():
        ok(finite(row, "items", "median_ns", "p99_ns", "max_ns"), f"{row['name']}: every number is there", row)
        ok(row["median_ns"] <= row["p99_ns"] <= row["max_ns"], f"{row['name']}: the times are in order", row)
    return rows


def test_alert():
    for row in check_times("alert/first-50%", {"alert/first-50%"}).values():
        ok(finite(row, "load_rate"), "alert: with its load", row)
        ok(row["lost"] == 0 or row["items"] > row["lost"], "alert: most alerts came", row)


def test_web():
    rows = check_times("web", {"web/alone", "web/idle-1000", "web/scrapers-100", "web/stalled-8"})
    eq([name for name, row in rows.items() if row["lost"]], [], "web: each health check was answered")
    ok(finite(rows.get("web/scrapers-100", {}), "load_rate"), "web: pages were scraped", rows)


def test_unknown():
    for name, words in (("pakcet", "unknown benchmark 'pakcet', did you mean 'packet'?"),
                        ("alert/frist-50%", "benchmark alert has no case 'alert/frist-50%'"),
                        ("zzzzzzzzzz", "unknown benchmark 'zzzzzzzzzz'; 'pathline bench --list' lists them")):
        result = run("bench", *SHORTEST, name)
        ok(result.returncode != 0 and words in result.stderr, f"{name} is refused: {words}", result.stderr)


PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "bench-peers")
# They have no window, so they do not stand; docs/benchmarks.md has their figures.
NO_WINDOW = ("count by destination", "bytes by 5-tuple")


def promise_peers():
    """How many times as fast as each engine a standing query is: all three have the records in memory, one thread and processor time,
    and take turns."""
    def attempt():
        ran = subprocess.run([sys.executable, PEERS, "--packets", "1000000", "--rounds", "5", "--pathline", PATHLINE], capture_output=True,
                             text=True, check=False, preexec_fn=lab.into_machine_network)
        found = re.findall(r"^(.{28}) (\S+) .* ours is ([\d.]+) times as fast$", ran.stdout, re.M)
        times = {(name.strip(), engine): float(ratio) for name, engine, ratio in found if name.strip() not in NO_WINDOW}
        if len(times) < 24:
            return False, f"{len(times)} figures: {(ran.stdout + ran.stderr)[-500:]}"
        return min(times.values()) >= 1, ", ".join(f"{name}, {engine}: {ratio}" for (name, engine), ratio in sorted(times.items(), key=lambda t: t[1]))
    promise("each standing query is at least as fast as DuckDB and ClickHouse's engine", attempt)


lab.run(test_rates, test_asked, test_absent, test_alert, test_web, test_unknown, promise_peers)
sys.exit(tap.end())
