#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Questions over telemetry reports: in captures, decoded by the options of pathline read, as they arrive at a port, and
out of a running daemon, with its events. The witness is a count in Python over what pathline read prints. usage: query_reports.py PATHLINE"""
import collections
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.lab import free_udp_port, path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

NODES = "SELECT node, count(*) AS n, max(queue_depth) AS deepest FROM hops GROUP BY node"


def model(*words):
    """By node, how many hops it has in what read prints, and its deepest queue."""
    found = collections.defaultdict(lambda: [0, 0])
    for record in jsonl(run("read", "-o", "jsonl", *words).stdout):
        for hop in record["hops"]:
            found[hop["node"]][0] += 1
            found[hop["node"]][1] = max(found[hop["node"]][1], hop.get("queue_depth", 0))
    return {node: tuple(values) for node, values in found.items()}


def answer(*words):
    return {r["node"]: (r["n"], r["deepest"]) for r in jsonl(run("query", "-o", "jsonl", NODES, *words).stdout)}


def test_options():
    for name, made, options in (("another port", ["--port", "9999"], ["--report-port", "9999"]),
                                ("GRE", ["--report", "none", "--carrier", "gre", "--int", "2.1"], ["--gre-type", "0x88b5"]),
                                ("units", [], ["--time-unit", "us", "--latency-unit", "us"])):
        file = path(f"{name.replace(' ', '-')}.pcap")
        run("gen", "int", "-w", file, "-n", "300", "--flows", "9", *made)
        want, got = model(*options, file), answer(*options, file)
        ok(len(want) > 3, f"{name}: there are {len(want)} nodes")
        eq(got, want, f"{name}: the rows are those of what read prints with the same options")
    ok(len(model("--report-port", "9999", path("another-port.pcap"))) > 3 and answer(path("another-port.pcap")) == {},
       "which change what there is to read")
    latency = "SELECT max(latency_ns) AS l FROM paths"
    plain, micro = (jsonl(run("query", "-o", "jsonl", latency, path("units.pcap"), *more).stdout)[0]["l"]
                    for more in ([], ["--latency-unit", "us", "--time-unit", "us"]))
    ok(plain != micro, "a unit changes values", f"{plain} {micro}")


def test_live():
    port, file = free_udp_port(), path("live.pcap")
    run("gen", "int", "-w", file, "-n", "2000", "-r", "1000", "--flows", "20")
    question = NODES.replace("FROM hops", "FROM hops TUMBLE(ts, 1s)")
    out = open(path("live.out"), "w", encoding="utf-8")
    process = lab.start([PATHLINE, "query", "--from", f"udp://127.0.0.1:{port}", "--stats", "-o", "jsonl", question], stdout=out,
                        stderr=subprocess.PIPE, text=True)
    ok("asking udp://" in process.stderr.readline(), "it begins")
    sent = run("gen", "int", "-n", "2000", "-r", "1000", "--flows", "20", f"udp://127.0.0.1:{port}")
    ok(sent.returncode == 0, "reports are sent", sent.stderr)
    want = {node: n for node, (n, _) in model(file).items()}

    def counted():
        """the hops in windows that have closed, by node"""
        counts = collections.Counter()
        for row in jsonl(lab.read("live.out")):
            if "node" in row:
                counts[row["node"]] += row["n"]
        return dict(counts)

    # Nobody sends any more: the clock closes the last window.
    wait(lambda: counted() == want)
    eq(counted(), want, "windows close while it runs, and their rows have every hop that was sent")
    process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=60)[1]
    eq((process.returncode, "2000 packets, 2000 reports" in err), (0, True), "it ends well, with its account")
    tail = [json.loads(line) for line in lab.read("live.out").splitlines()[-2:]]
    eq((tail[0]["packets"], tail[1]["query"]["records"], tail[1]["query"]["late"]), (2000, sum(want.values()), 0), "and its counters")


def test_daemon():
    """Events, and hops by way of their paths, of a running daemon: the counts are those of its file."""
    port = free_udp_port()
    config = lab.write("daemon.yaml", f"sources: [{{uri: 'udp://127.0.0.1:{port}'}}]\nweb: {{listen: '127.0.0.1:0'}}\n"
                       f"outputs: [{{type: jsonl, path: {path('daemon.jsonl')}, queue: 1048576}}]\n")
    daemon = Daemon(config)
    questions = {"events": "SELECT event, count(*) AS n FROM events TUMBLE(ts, 1s) GROUP BY event",
                 "hops": "SELECT node, count(*) AS n FROM hops GROUP BY node"}
    asked = {}
    for name, question in questions.items():
        out = open(path(name + ".out"), "w", encoding="utf-8")
        asked[name] = lab.start([PATHLINE, "query", "-o", "jsonl", question, daemon.web], stdout=out, stderr=subprocess.PIPE, text=True)
    ok(wait(lambda: len(json.loads(daemon.get("/api/v1/status")[1]).get("streams", [])) == 2), "both are connected")
    run("gen", "int", "-n", "2000", "-r", "1000", "--drop", "0.05", "--flows", "20", f"udp://127.0.0.1:{port}")

    def written(kind):
        return [r for r in jsonl(lab.read("daemon.jsonl")) if r["kind"] == kind]

    def told():
        """the events of windows that have closed"""
        return sum(r["n"] for r in jsonl(lab.read("events.out")))
    ok(wait(lambda: len(written("path")) == 2000 and told() == len(written("event")) > 0), "windows of events close while it runs",
       f"{told()} of {len(written('event'))}")
    for name, process in asked.items():
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=60)[1]
        eq((process.returncode, err.count("\n")), (0, 1), f"the question over {name} ends well" + (": " + err if process.returncode else ""))
    want = collections.Counter(hop["node"] for r in written("path") for hop in r["hops"])
    eq({r["node"]: r["n"] for r in jsonl(lab.read("hops.out"))}, dict(want), "every hop of every path is counted")
    eq(daemon.stop(), 0, "the daemon ends well")
    gone = run("query", questions["hops"], daemon.web)
    ok(gone.returncode == 69 and "connect" in gone.stderr, "without a daemon it says so", gone.stderr)


def test_history():
    """A join of a stream that never comes: what waits for partners is what its time asks for, not the whole history."""
    file = path("joined.pcap")
    run("gen", "int", "-w", file, "-n", "20000", "-r", "2000", "--flows", "20")
    config = lab.write("joined.yaml", f"sources: [{{uri: 'pcap:{file}'}}]\nweb: {{listen: '127.0.0.1:0'}}\noutputs: [{{type: region, path: {path('joined')}, "
                       "queue: 1048576, keep: {events: 4096, paths: 32768, hops: 262144}}]\n")
    daemon = Daemon(config)

    def kept():
        return [r["n"] for r in jsonl(run("query", "-o", "jsonl", "SELECT count(*) AS n FROM paths", path("joined")).stdout)]
    ok(wait(lambda: kept() == [20000]), "a history is made of a capture", kept())
    eq(daemon.stop(), 0, "its daemon ends well")
    question = ("SELECT p.flow.proto, count(*) AS n FROM paths TUMBLE(ts, 1s) AS p LEFT JOIN events AS e ON p.path_id = e.path_id "
                "WITHIN 100ms GROUP BY p.flow.proto")
    asked = run("query", "-o", "jsonl", "--stats", "--groups", "2000", question, path("joined"))
    rows = list(jsonl(asked.stdout))
    ok(asked.returncode == 0 and len(rows) > 10, "the join is answered", asked.stderr or asked.stdout)
    eq((sum(r["n"] for r in rows if "n" in r), [r["query"]["held_refused"] for r in rows if "query" in r]), (20000, [0]),
       "every path has its row, with 2000 that wait at most")


def test_refused():
    for words, said in ((["SELECT count(*) AS n FROM packets", path("units.pcap"), "--dialect", "spec"], "reads no paths or hops"),
                        (["SELECT count(*) AS n FROM events", "udp://:1"], "events are read from a daemon"),
                        (["SELECT count(*) AS n FROM paths", "udp://:1", path("units.pcap")], "together with what is stored"),
                        (["events", path("."), "--dialect", "spec"], "decoded already"),
                        (["SELECT count(*) AS n FROM paths", path("units.pcap"), "--dscp", "99"], "--dscp")):
        refused = run("query", *words)
        ok(refused.returncode == 2 and said in refused.stderr, f"refused: {said}", refused.stderr)


lab.run(test_options, test_live, test_daemon, test_history, test_refused)
sys.exit(tap.end())
