#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rules that wait (hold times, silence, losses) over captures: the daemon's time is that of the packets, so each event has its
exact time, however fast the file is read, and a second run tells the same.

    usage: replays.py PATHLINE"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pcap, tap  # noqa: E402
from lib.pathline import Daemon, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

MS, SECOND = 10**6, 10**9
START = 1_700_000_000 * SECOND
YEAR = 365 * 86400 * SECOND
LEVEL = "queue_depth: {threshold: 1000, low: 500, begin_hold: 200ms, end_hold: 300ms}\n"


def capture(name, seconds, *events, start_ns=START):
    """One flow over nodes 1 and 2, a report each 10 ms."""
    made = run("gen", "int", "-t", "chain:2", "--flows", "1", "-r", "100", "-d", f"{seconds}s", "--queue", "const:10", "--latency",
               "const:2us", *(word for event in events for word in ("-e", event)), "--start", f"{start_ns}ns", "-w", lab.path(name))
    eq(made.returncode, 0, f"{name} is made")
    return lab.path(name)


def deep(when):
    """A queue of node 1 builds up, above 1000 from the third or fourth report on."""
    return f"queue@{when}:node=1,port=1,queue=0,depth=50000"


def lines_of(file, rules, name):
    """What a daemon with these rules tells of a capture."""
    lab.write(name + ".jsonl", "")
    rules = "".join(f"  {rule}\n" for rule in rules.splitlines())
    d = Daemon(lab.write(name + ".yaml", f"sources:\n  - uri: pcap:{file}\nweb:\n  listen: 127.0.0.1:0\noutputs:\n"
                         f"  - path: {lab.path(name + '.jsonl')}\n    paths: false\ndetect:\n  hop_latency:\n    enabled: false\n{rules}"), name)
    ok(d.wait_for("end of file"), f"{name}: the capture is read")
    eq(d.stop(), 0, f"{name}: the daemon ends well")
    return lab.read(name + ".jsonl")


def told(file, rules, name):
    """(event, phase, milliseconds since START, duration in milliseconds, node) of each event."""
    return [(e["event"], e["phase"], (e["ts_ns"] - START) / MS, e.get("duration_ns", 0) / MS, e.get("node"))
            for e in jsonl(lines_of(file, rules, name))]


def test_levels():
    """What is above for 1 s begins once it was above for 200 ms, and ends once it was below for 300 ms; 150 ms are too short."""
    file = capture("levels.pcap", 12, deep("2s+1s"), deep("10s+150ms"))
    events = told(file, LEVEL, "levels")
    eq(events, [("queue_depth", "begin", 2210, 0, 1), ("queue_depth", "end", 3300, 990, 1)], "levels: begin and end to the millisecond")
    eq(lines_of(file, LEVEL, "again"), lab.read("levels.jsonl"), "levels: a second run tells the same")


def test_gap():
    """A gap in the capture: what is above when packets stop, at 2.99 s, ends after the 5 s of silence, the nodes are silent after
    7 s, the flow ends after 20 s. After five minutes the nodes are back, as the next tick tells; after a year they were forgotten.
    A flow's end is told when the sweep of its table comes to it, within a second and the 64th part of the gap."""
    first = capture("before.pcap", 3, deep("2s+5s"))
    for name, gap, back in (("minutes", 300 * SECOND, True), ("year", YEAR, False)):
        file = pcap.join([first, capture("after.pcap", 1, start_ns=START + gap)], lab.path("gap.pcap"))
        events = told(file, LEVEL + "node_silent: 7s\nflow_end: true\nflow_idle: 20s", name)
        eq(sorted((what, phase, at, node) for what, phase, at, _, node in events if what != "flow_end"),
           [("node_silent", "begin", 10000, 1), ("node_silent", "begin", 10000, 2)] +
           [("node_silent", "end", gap / MS + 100, node) for node in (1, 2) if back] +
           [("queue_depth", "begin", 2230, 1), ("queue_depth", "end", 8000, 1)], f"{name}: levels and silence")
        ends = [e[2] for e in events if e[0] == "flow_end"]
        ok(len(ends) == 1 and 22990 <= ends[0] <= 24400, f"{name}: the flow ends once", ends)


def test_back():
    """A part of the capture that is a year older: time stands still meanwhile, and nobody was silent."""
    file = pcap.join([capture("first.pcap", 3, deep("2s+5s")), capture("older.pcap", 1, start_ns=START - YEAR),
                      capture("third.pcap", 1, start_ns=START + 3 * SECOND)], lab.path("back.pcap"))
    eq(told(file, LEVEL + "node_silent: 7s", "back"), [("queue_depth", "begin", 2230, 0, 1), ("queue_depth", "end", 3290, 960, 1)],
       "back: the level ends by the third part")


def test_loss():
    """Half of the reports are missing for a second. A number is lost when it is missing for a second, as two looks find, at 4 s and
    5 s; after the 10 s of loss_hold it is over."""
    eq(told(capture("loss.pcap", 20, "loss@2s+1s:ratio=0.5"), "report_loss: true", "loss"),
       [("report_loss", "begin", 4000, 0, 2), ("report_loss", "end", 15000, 1000, 2)], "loss: begin and end")


def test_two_senders():
    """Two senders with one address, node and hardware id, in turn: nothing is missing, however far apart they count."""
    frames = pcap.frames_of(capture("one.pcap", 40))
    both = [frame for pair in zip(frames[:3000], frames[1000:4000]) for frame in pair]
    file = pcap.write(lab.path("both.pcap"), both, start_ns=START, step_ns=5 * MS)
    eq(told(file, "report_loss: true", "both"), [], "two senders: no loss is told")
    account = json.loads(run("read", "--stats", "-o", "json", file).stdout.splitlines()[-1])
    eq([(e["shared"], e["reports"], e["lost"]) for e in account["exporters"]], [(True, 6000, 0)], "two senders: the account says so")


def test_ports_missing():
    """Port ids that are missing now and then change no path, though the reports have other path ids; flows that do move are told of
    once as they go and once as they come back."""
    for name, events, per_flow in (("still", (), 0), ("moved", ("-e", "path@2s+2s"), 2)):
        made = run("gen", "int", "--flows", "20", "-r", "2000", "-d", "6s", "--missing", "0.05", *events, "--start", f"{START}ns",
                   "-w", lab.path(name + ".pcap"))
        eq(made.returncode, 0, f"{name}: the capture is made")
        lines = jsonl(lines_of(lab.path(name + ".pcap"), "path_change: true", name))
        flows = {}
        for e in lines:
            if e["event"] == "path_change":
                flows.setdefault(str(e["flow"]), []).append((e["old_path_nodes"], e["path_nodes"]))
        ok(bool(flows) == bool(events), f"{name}: path changes", flows)
        eq([f for f in flows.values() if len(f) != per_flow or any(old == now for old, now in f)], [], f"{name}: of flows that moved")


def test_latency_max():
    """A latency above decode.latency_max is no value and no event, whether the node reported it or its times give it."""
    for fields in ("node,ports,latency", "node,ports,ingress-ts,egress-ts"):
        for limit, there in (("1us", False), ("4s", True)):
            name = f"latency-{fields.count(',')}-{limit}"
            made = run("gen", "int", "-n", "20", "--latency", "const:3s", "--fields", fields, "--start", f"{START}ns", "-w",
                       lab.path(name + ".pcap"))
            eq(made.returncode, 0, f"{name}: the capture is made")
            lab.write(name + ".jsonl", "")
            d = Daemon(lab.write(name + ".yaml", f"sources:\n  - uri: pcap:{lab.path(name + '.pcap')}\nweb:\n  listen: 127.0.0.1:0\n"
                                 f"outputs:\n  - path: {lab.path(name + '.jsonl')}\ndecode: {{latency_max: {limit}}}\n"), name)
            ok(d.wait_for("end of file"), f"{name}: the capture is read")
            eq(d.stop(), 0, f"{name}: the daemon ends well")
            lines = jsonl(lab.read(name + ".jsonl"))
            values = {h.get("hop_latency_ns") for line in lines if line["kind"] == "path" for h in line["hops"]}
            eq(values, {3 * SECOND} if there else {None}, f"{name}: hop latencies")
            eq(any(line.get("event") == "hop_latency" for line in lines), there, f"{name}: the event")
            eq({"latency_ns" in line for line in lines if line["kind"] == "path"}, {there}, f"{name}: the path's latency")


lab.run(test_ports_missing, test_latency_max, test_levels, test_gap, test_back, test_loss, test_two_senders)
sys.exit(tap.end())
