#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One sentence, asked of a capture, standing in a daemon over a tap, and exported to DuckDB. A port scan crosses a wire between two
namespaces: Alertmanager gets the alert of the scanner, and the daemon, the command over the records of the same tap, DuckDB and a count
in Python have the same rows. usage: syn_alert.py PATHLINE FOLDER     (FOLDER: tools/engines makes it)"""
import calendar
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, answer, jsonl, run  # noqa: E402
from lib.promise import promise  # noqa: E402
from lib.servers import Alertmanager  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402

SENTENCE = "SELECT src, count() FROM packets WHERE syn AND NOT ack GROUP BY src WINDOW 1s HAVING count() > 100"
SCANNER = "198.51.100.66"  # as `pathline help gen packets` says
SECOND = 10**9
SYN, ACK = 2, 16
ENGINES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "engines")


def model(records):
    """What the sentence says, by window and source."""
    counts = {}
    for r in records:
        if r["proto"] == 6 and r["tcp_flags"] & (SYN | ACK) == SYN:
            key = r["ts_ns"] // SECOND * SECOND, r["src"]
            counts[key] = counts.get(key, 0) + 1
    return {key: n for key, n in counts.items() if n > 100}


def asked(source):
    """The command's rows, and that a table of them is printed."""
    ran = run("query", "-o", "jsonl", SENTENCE, "--from", source)
    ok(ran.returncode == 0, f"the command answers over {os.path.basename(source)}", ran.stderr)
    return {(r["window_start"], r["src"]): r["count"] for r in answer(ran.stdout)}


def in_duckdb(source, folder):
    """Rows of DuckDB: what is exported is run as it is printed, over the records as JSON lines. None: there is no DuckDB."""
    fetched = subprocess.run([ENGINES, folder], stderr=subprocess.PIPE, text=True, preexec_fn=lab.into_machine_network)
    if fetched.returncode != 0:
        skip("DuckDB", f"missing: {fetched.stderr.strip()}")
        return None
    sys.path.insert(0, folder)
    import duckdb
    with open(path("packets.jsonl"), "w", encoding="utf-8") as f:
        run("query", "-o", "jsonl", "SELECT * FROM packets", source, stdout=f)
    exported = run("query", "--export", "duckdb", SENTENCE)
    ok(exported.returncode == 0, "the sentence is exported", exported.stderr)
    os.chdir(lab.DIR)
    cursor = duckdb.connect().execute(exported.stdout)
    names = [d[0] for d in cursor.description]
    eq(names, ["window_start", "src", "count"], "DuckDB's columns")
    return {(nanoseconds(start), str(src)): n for start, src, n in cursor.fetchall()}


def nanoseconds(value):
    """Of what DuckDB gives for a time: a number, or a time of whole seconds."""
    return value if isinstance(value, int) else calendar.timegm(value.timetuple()) * SECOND


def test_capture(folder):
    capture = path("scan.pcap")
    run("gen", "packets", "--story", "--duration", "9s", "-w", capture)
    rows = asked(capture)
    wanted = model(jsonl(run("tap", "-o", "jsonl", capture).stdout))
    ok(wanted and {src for _, src in wanted} == {SCANNER}, "the scanner, and nobody else, is in the capture", wanted)
    eq(rows, wanted, "the command's rows are those of the count in Python")
    theirs = in_duckdb(capture, folder)
    if theirs is not None:
        eq(theirs, wanted, "and so are DuckDB's")


def make_wire():
    there = network.Namespace("scan", ipv6=False)
    network.sh(f"ip link add scan0 type veth peer name eth0 netns {there}")
    there.up("eth0")
    network.sh("ip link set scan0 up")
    if not wait(lambda: there.has_carrier("eth0")):
        raise RuntimeError("the wire does not come up")
    return there


def write_config(manager):
    return lab.write("standing.yaml", f"""
web: {{listen: "127.0.0.1:0"}}
taps:
  - {{name: wire, sources: ["packet:scan0"], to: ["file:{path('wire.pkt64')}"]}}
queries:
  - {{name: syns, query: "{SENTENCE}", from: wire, to: [events, "file:{path('rows.jsonl')}"]}}
outputs:
  - {{name: am, type: webhook, url: "{manager.url}/api/v2/alerts", batch: {{age: 100ms}}}}
""")


class Standing:
    """The daemon with the sentence, and an Alertmanager that it tells."""

    def __init__(self):
        self.manager = Alertmanager()
        self.there = make_wire()
        self.daemon = Daemon(write_config(self.manager))

    def scan(self):
        return lab.start(self.there.command(PATHLINE, "gen", "packets", "--story", "--duration", "9s", "packet:eth0"), log=path("gen.log"))

    def alerts(self):
        return [a for a in self.manager.alerts("pathline_query") if a["labels"].get("query") == "syns"]

    def stop(self):
        code = self.daemon.stop()
        self.manager.stop()
        network.sh("ip link del scan0")
        network.sh(f"ip netns del {self.there}")
        return code


def test_alert(folder):
    if shutil.which("prometheus-alertmanager") is None:
        skip("Alertmanager", "missing: prometheus-alertmanager")
        return
    s = Standing()
    gen = s.scan()
    ok(wait(s.alerts), "Alertmanager has an alert", s.daemon.log())
    eq(gen.wait(timeout=60), 0, "the traffic passes")
    made = int(re.search(r"(\d+) packets", lab.read("gen.log")).group(1))
    ok(wait(lambda: s.daemon.metrics().get('pathline_tap_packets_total{tap="wire"}', 0) >= made), "and is tapped")
    alerts = s.alerts()
    eq({a["labels"]["key"] for a in alerts}, {SCANNER}, "of the scanner, and of nobody else")
    ok(all(a["labels"]["alertname"] == "pathline_query" and SCANNER in json.dumps(a["annotations"]) for a in alerts), "its words name it", alerts)
    eq(s.stop(), 0, "the daemon ends well")
    wanted = model(jsonl(run("query", "-o", "jsonl", "SELECT * FROM packets", path("wire.pkt64")).stdout))
    rows = {(r["w0"], r["key"]["src"]): r["val"]["count"] for r in jsonl(lab.read("rows.jsonl"))}
    ok(wanted, "the records of the tap have the scan")
    eq(rows, wanted, "the standing query's rows are those of the count in Python over the tap's records")
    eq(asked(path("wire.pkt64")), wanted, "so are the command's over these records")
    theirs = in_duckdb(path("wire.pkt64"), folder)
    if theirs is not None:
        eq(theirs, wanted, "and DuckDB's")


def promise_two_windows(_folder):
    """From the beginning of the first window with the scan to the alert in Alertmanager."""
    def attempt():
        s = Standing()
        gen = s.scan()
        wait(s.alerts, pause=0.005)
        now = time.time_ns()
        gen.wait(timeout=60)
        s.stop()
        begun = min(start for start, _ in model(jsonl(run("query", "-o", "jsonl", "SELECT * FROM packets", path("wire.pkt64")).stdout)))
        for name in ("wire.pkt64", "rows.jsonl"):
            os.remove(path(name))
        return now - begun <= 2 * SECOND, f"{(now - begun) / SECOND:.3f} s after the beginning of its window of 1 s"
    promise("Alertmanager has the alert within two windows", attempt)


lab.run(test_capture, test_alert, promise_two_windows, given=(os.path.abspath(sys.argv[2]),))
sys.exit(tap.end())
