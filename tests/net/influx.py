#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline run writes to a real InfluxDB 1.6 and a real VictoriaMetrics; what they hold is read back and compared
value by value with what the daemon wrote into a file of JSON lines beside it. The servers are killed and restarted
under load; a point they refuse is set aside; the number of series is counted after a million flows.
usage: influx.py PATHLINE"""

import collections
import json
import os
import shutil
import signal
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faulty import Daemon, config  # noqa: E402
from lib import lab, tap  # noqa: E402
from lib.lab import DIR, free_port, free_udp_port, write  # noqa: E402
from lib.pathline import gen, run, start_gen  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402

LONG_FLOW = "flow288"
TAIL = "    interval: 1s\n    batch:\n      age: 100ms\n"


class Influx:
    def __init__(self):
        self.port, rpc = free_port(), free_port()
        root = os.path.join(DIR, f"influxdb-{self.port}")
        os.mkdir(root)
        self.conf = os.path.join(root, "conf")
        with open(self.conf, "w") as f:
            f.write(f'reporting-disabled = true\nbind-address = "127.0.0.1:{rpc}"\n'
                    f'[meta]\n  dir = "{root}/meta"\n[data]\n  dir = "{root}/data"\n  wal-dir = "{root}/wal"\n'
                    f'[http]\n  bind-address = "127.0.0.1:{self.port}"\n  log-enabled = false\n'
                    '[monitor]\n  store-enabled = false\n[logging]\n  level = "warn"\n')
        self.url = f"http://127.0.0.1:{self.port}"
        self.p = None
        self.start()

    def start(self):
        self.p = lab.start(["influxd", "-config", self.conf], log=self.conf + ".log")
        if not wait(self.up):
            raise RuntimeError("influxd does not come up\n" + lab.said_by(self.p))

    def up(self):
        """influxd answers"""
        with urllib.request.urlopen(self.url + "/ping", timeout=2) as r:
            return r.status == 204

    def kill(self):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()

    def query(self, q, db=None):
        data = urllib.parse.urlencode({"q": q, "epoch": "ns", **({"db": db} if db else {})}).encode()
        with urllib.request.urlopen(self.url + "/query", data=data, timeout=60) as r:
            return json.load(r)["results"][0].get("series", [])

    def rows(self, q, db):
        return [dict(zip(s["columns"], v)) for s in self.query(q, db) for v in s["values"]]

    def write(self, db, line):
        with urllib.request.urlopen(f"{self.url}/write?db={db}&precision=ns", data=line.encode(), timeout=60) as r:
            return r.status


HOP_FIELDS = {"ingress_port": "ingress_port", "hop_latency_ns": "hop_latency_ns", "queue_depth": "queue_depth",
              "tx_util": "tx_util", "ingress_ts_ns": "ingress_ts_ns", "egress_ts_ns": "egress_ts_ns",
              "link_latency_ns": "link_latency_ns", "index": "index"}


def hops_of_file(path):
    """Each hop of each report as the set of its numbers."""
    hops, events = collections.Counter(), collections.Counter()
    with open(path) as f:
        for line in f:
            r = json.loads(line)
            if r["kind"] == "event":
                flow = r.get("flow", {})
                events[(r["event"], r["phase"], r.get("node"), r.get("port"), r.get("queue"), r.get("value"),
                        r.get("threshold"), r.get("path_id"), r.get("report_id"), flow.get("src"), flow.get("dst"),
                        flow.get("sport"), flow.get("dport"), r.get("exporter"))] += 1
                continue
            for h in r["hops"]:
                key = (str(h["node"]), str(h["egress_port"]), str(h["queue"]))
                hops[key + tuple(h.get(n) for n in HOP_FIELDS)] += 1
    return hops, events


def number(text):
    return None if text is None else int(text)


def compare(influx, db, path, what):
    hops, events = hops_of_file(path)
    got = collections.Counter((r["node"], r["port"], r["queue"]) + tuple(r.get(n) for n in HOP_FIELDS)
                              for r in influx.rows("SELECT * FROM pathline_hop", db))
    ok(got == hops, f"{what}: {sum(hops.values())} hops, every value as in the file",
       f"missing {list((hops - got).items())[:3]}\nextra {list((got - hops).items())[:3]}")
    got = collections.Counter(
        (r["event"], r["phase"], number(r.get("node")), number(r.get("port")), number(r.get("queue")), r.get("value"),
         r.get("threshold"), r.get("path_id"), r.get("report_id"), r.get("flow_src"), r.get("flow_dst"),
         r.get("flow_sport"), r.get("flow_dport"), r.get("exporter"))
        for r in influx.rows("SELECT * FROM pathline_event", db))
    ok(got == events and events, f"{what}: {sum(events.values())} events, every value as in the file",
       f"missing {list((events - got).items())[:3]}\nextra {list((got - events).items())[:3]}")


def with_file(name):
    return f"  - path: {DIR}/{name}.jsonl\n    queue: 1048576\n"


def test_values(influx):
    influx.query("CREATE DATABASE one")
    port = free_udp_port()
    d = Daemon(write("one.yaml", config(port, influx.url, f"    database: one\n    paths: true\n{TAIL}" +
                                        with_file("one"))), "one")
    n = gen(port, "--rate", "5000", "--count", "10000", "--loss", "0.005", "--seed", "11")
    ok(d.received(n), "all reports came")
    # The last point of each queue, port and link is what the metrics page says.
    for name, field, metric, tags in (("queue", "packets", "pathline_queue_packets_total", ("node", "port", "queue")),
                                      ("port", "packets", "pathline_port_packets_total", ("node", "port")),
                                      ("link", "packets", "pathline_link_packets_total",
                                       ("node", "port", "peer", "peer_port"))):
        def stored():
            got = {}
            for s in influx.query(f"SELECT last({field}) FROM pathline_{name} GROUP BY *", "one"):
                labels = ",".join(f'{t}="{s["tags"].get(t, "")}"' for t in tags)
                got[f"{metric}{{{labels}}}"] = s["values"][0][1]
            return got

        def on_page():
            return {k: v for k, v in d.metrics().items() if k.startswith(metric + "{")}
        same = wait(lambda: on_page() and stored() == on_page())
        got, want = stored(), on_page()
        ok(same, f"InfluxDB: {len(want)} {name} points as on the page", f"{list(got.items())[:3]}\n{list(want.items())[:3]}")
    d.balanced("InfluxDB")
    sums = influx.rows("SELECT sum(latency_count) AS n, sum(depth_count) AS d FROM pathline_queue", "one")[0]
    eq(sums["n"], 3 * n, "InfluxDB: intervals add up to every hop")
    # A steady state is still told: nothing comes any more, and points all the same.
    now, recent = time.time_ns(), []

    def told():
        recent[:] = influx.rows(f"SELECT count(packets) AS n FROM pathline_queue WHERE time > {now} GROUP BY *", "one")
        return len(recent) >= 10 and all(r["n"] >= 1 for r in recent)
    ok(wait(told), "InfluxDB: idle queues stay in the charts", recent[:3])
    eq(d.stop(), 0, "stops with 0")
    compare(influx, "one", f"{DIR}/one.jsonl", "InfluxDB")
    bounds = influx.rows("SELECT max(latency_bound_ns) AS hop_latency_ns, max(depth_bound) AS queue_depth FROM pathline_queue", "one")[0]
    for i, name in enumerate(HOP_FIELDS):
        if name in bounds:
            largest = max(hop[3 + i] for hop in hops_of_file(f"{DIR}/one.jsonl")[0])
            ok(largest <= bounds[name] < 1.19 * largest, f"InfluxDB: the bound of {name} is near its largest value", (largest, bounds[name]))


def test_killed(influx):
    """kill -9, restart, and a pause, while reports come."""
    influx.query("CREATE DATABASE two")
    port = free_udp_port()
    d = Daemon(write("two.yaml", config(
        port, influx.url, f"    database: two\n    paths: true\n    timeout: 1s\n{TAIL}      size: 16KiB\n"
        f"    memory: 64KiB\n    spool:\n      path: {DIR}/two-spool\n" + with_file("two"))), "two")
    g = start_gen(port, "--rate", "3000", "--duration", "10m", "--seed", "5")

    def delivers():
        before = d.output()["delivered"]
        return wait(lambda: d.output()["up"] == 1 and d.output()["delivered"] > before)
    ok(delivers(), "killed: it works before")
    influx.kill()
    ok(wait(lambda: d.output()["up"] == 0), "killed: it shows", d.output())
    influx.start()
    ok(delivers(), "killed: it goes on")
    errors = d.output()["errors"]
    influx.p.send_signal(signal.SIGSTOP)
    ok(wait(lambda: d.output()["errors"] > errors), "paused: it shows", d.output())
    influx.p.send_signal(signal.SIGCONT)
    ok(delivers(), "paused: it goes on")
    g.terminate()
    g.wait()
    ok(d.drained(), "killed: it recovers", d.output())
    o = d.balanced("killed")
    eq(o["drops"], 0, "killed: nothing dropped")
    ok(o["errors"] > 0, "killed: there were failed attempts")
    d.stop()
    compare(influx, "two", f"{DIR}/two.jsonl", "killed")


def test_missing(influx):
    """A database that is not there is not made; when somebody makes it, nothing is missing in it."""
    port = free_udp_port()
    d = Daemon(write("three.yaml", config(port, influx.url, f"    database: three\n    paths: true\n{TAIL}" +
                                          with_file("three"))), "three")
    gen(port, "--rate", "2000", "--count", "1000")
    ok(wait(lambda: d.output()["up"] == 0), "no database: it shows")
    ok("database not found" in d.get("/readyz?verbose")[1], "no database: in the server's words")
    names = [v[0] for s in influx.query("SHOW DATABASES") for v in s["values"]]
    ok("three" not in names, "no database: none is made", names)
    influx.query("CREATE DATABASE three")
    d.p.send_signal(signal.SIGHUP)
    ok(d.drained(), "made: all is delivered", d.output())
    eq(d.balanced("made")["drops"], 0, "made: nothing dropped")
    d.stop()
    compare(influx, "three", f"{DIR}/three.jsonl", "made")


def test_conflict(influx):
    """Somebody else's point made a field a float: the points with it are refused, no other."""
    influx.query("CREATE DATABASE four")
    eq(influx.write("four", f"pathline_event,event=else threshold=1.5 {time.time_ns()}"), 204, "a float is there first")
    port = free_udp_port()
    # No level ends by itself while events are counted.
    d = Daemon(write("four.yaml", config(
        port, influx.url, f"    database: four\n    dead_letter:\n      path: {DIR}/four.dead\n{TAIL}" +
        with_file("four")).replace("detect:\n", "detect:\n  idle: 1h\n")), "four")
    n = gen(port, "--rate", "4000", "--count", "8000", "--loss", "0.01", "--seed", "3")
    ok(d.received(n), "all reports came")

    def told():
        """the file's events, and how many of them have the field"""
        _, found = hops_of_file(f"{DIR}/four.jsonl")
        return found, sum(n for e, n in found.items() if e[6] is not None)
    wait(lambda: 0 < told()[1] == d.output()["dropped"]["rejected"])
    ok(d.drained(), "a conflict holds up nobody", d.output())
    o = d.balanced("conflict")
    events, bad = told()
    ok(0 < bad < sum(events.values()), "there are both kinds of events", events.most_common(3))
    eq(o["dropped"]["rejected"], bad, "exactly those with the field are refused")
    eq(o["drops"], bad, "nothing else")
    with open(f"{DIR}/four.dead") as f:
        letters = [json.loads(x) for x in f]
    ok(len(letters) == bad and all("field type conflict" in x["answer"] and "threshold=" in x["entry"]
                                   for x in letters), "each with the server's words", letters[:1])
    rows = influx.rows("SELECT * FROM pathline_event WHERE event != 'else'", "four")
    eq(len(rows), sum(events.values()) - bad, "all others are there")
    d.stop()


def test_series(influx):
    """A million flows, and what they cost the server in series."""
    influx.query("CREATE DATABASE five")
    port = free_udp_port()
    d = Daemon(write("five.yaml", config(port, influx.url, f"    database: five\n{TAIL}")), "five")
    n = gen(port, "--flows", "1000000", "--count", "1000000", "--rate", "200000", "--topology", "fat-tree:4", "--seed", "9")
    ok(d.received(n) and d.intervals(2), "all that came is counted")
    ok(d.drained(), "a million flows are digested", d.output())
    m = d.metrics()
    flows = m["pathline_flows"] + m["pathline_flows_evicted_total"]
    series = [v[0] for s in influx.query("SHOW SERIES", "five") for v in s["values"]]
    cells = {f: sum(k.startswith(f"pathline_{f}_packets_total") for k in m) for f in ("queue", "port", "link", "path")}
    ok(flows > 100 * len(series), "there were many more flows than series", flows)
    # Cells, their overflow, and per queue at most begin and end of two kinds of events.
    most = sum(cells.values()) + 4 * cells["queue"] + 64
    ok(0 < len(series) <= most, f"{len(series)} series, at most {int(most)}", series[:5])
    ok(not any(",flow" in x or ",report" in x or ",path_id" in x and "pathline_event" in x for x in series), "none has anything of a flow in its tags")
    d.balanced("a million flows")
    d.stop()


def test_victoria():
    if shutil.which("victoria-metrics") is None:
        skip("VictoriaMetrics", "missing: victoria-metrics")
        return
    port, web = free_udp_port(), free_port()
    lab.start(["victoria-metrics", f"-storageDataPath={DIR}/victoria", f"-httpListenAddr=127.0.0.1:{web}",
               "-retentionPeriod=1"], log=lab.path("victoria.log"))

    def up():
        """VictoriaMetrics answers"""
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/health", timeout=2) as r:
            return r.status == 200
    if not ok(wait(up, 60), "VictoriaMetrics runs"):
        return
    d = Daemon(write("vm.yaml", config(port, f"http://127.0.0.1:{web}",
                                       f"    api: v2\n    bucket: pl\n{TAIL}")), "vm")
    gen(port, "--rate", "5000", "--count", "10000", "--seed", "11")
    ok(d.drained(), "VictoriaMetrics: all is delivered", d.output())
    url = f"http://127.0.0.1:{web}/api/v1/export?" + urllib.parse.urlencode(
        {"match[]": '{__name__=~"pathline_(queue|port)_packets"}'})

    def stored():
        urllib.request.urlopen(f"http://127.0.0.1:{web}/internal/force_flush", timeout=60).close()
        got = {}
        with urllib.request.urlopen(url, timeout=30) as r:
            for line in r:
                s = json.loads(line)
                labels = ",".join(f'{t}="{s["metric"][t]}"' for t in ("node", "port", "queue") if t in s["metric"])
                got[f'{s["metric"]["__name__"]}_total{{{labels}}}'] = s["values"][-1]
        return got

    def on_page():
        return {k: v for k, v in d.metrics().items() if k.startswith(("pathline_queue_packets_total{",
                                                                      "pathline_port_packets_total{"))}
    wait(lambda: len(on_page()) > 0 and stored() == on_page(), pause=0.5)
    got, want = stored(), on_page()
    d.balanced("VictoriaMetrics")
    d.stop()
    ok(got == want and want, f"VictoriaMetrics: {len(want)} series as on the page",
       f"{list(got.items())[:3]}\n{list(want.items())[:3]}")
    with urllib.request.urlopen(f"http://127.0.0.1:{web}/metrics", timeout=60) as r:
        bad = [x for x in r.read().decode().splitlines()
               if x.startswith('vm_rows_invalid_total{type="influx"}')]
    ok(bad and all(x.endswith(" 0") for x in bad), "VictoriaMetrics: no line was invalid", bad)


def test_tap(influx):
    """Flows of a tap: every value as in its file of JSON lines; a database that is missing is told and waited for."""
    trace, tags = lab.path("trace.pcap"), ("proto", "end_reason", "role", "role_by")
    ok(run("gen", "packets", "--story", "--duration", "5s", "-w", trace).returncode == 0, "packets")
    influx.query("CREATE DATABASE taps")
    server = f"influx://127.0.0.1:{influx.port}/taps"
    got = run("tap", "--flows", "--stats", "--to", server + "?community_id=yes&kind=" + LONG_FLOW,
              "--to", "jsonl:" + lab.path("flows.jsonl") + "?community_id=yes", trace)
    outputs = json.loads(got.stdout)["outputs"]
    with open(lab.path("flows.jsonl"), encoding="utf-8") as f:
        want = [json.loads(line) for line in f]
    eq([(o["records"], o["delivered"]) for o in outputs], [(len(want), len(want))] * 2, "both outputs have all flows")
    rows = influx.rows("SELECT * FROM pathline_flow", "taps")

    def flow(row):
        return tuple(str(row[name]) if name in tags else row[name] for name in want[0] if name != "last_ts")
    ok(len(want) > 500 and collections.Counter(map(flow, rows)) == collections.Counter(map(flow, want)), f"{len(want)} flows, every value",
       (len(rows), rows[:1], want[:1]))
    times = {flow(row): row["time"] for row in rows}
    ok(all(0 <= times[flow(w)] - w["last_ts"] < 1_000_000 for w in want), "at the time of their last packets")
    ok(all(w["community_id"].startswith("1:") for w in want), "with its Community ID")
    got = run("tap", "--stats", "--to", server + "2?spool=" + lab.path("spool"), trace)
    o = json.loads(got.stdout)["outputs"][0]
    ok("database not found" in got.stderr and o["delivered"] == 0 and o["spooled"] == o["records"] > 1000, "a missing database is told", (got.stderr, o))
    influx.query("CREATE DATABASE taps2")
    left, there = o["spooled"], 0
    for _ in range(20):
        got = run("tap", "--rule", "skip", "--stats", "--to", server + "2?spool=" + lab.path("spool"), trace)
        now = json.loads(got.stdout.splitlines()[-1])["outputs"][0]
        eq((now["recovered"], sum(now["dropped"].values())), (left, 0), "the next one finds what waited")
        left, there = now["spooled"], there + now["delivered"]
        if left == 0:
            break
    eq((left, there), (0, o["spooled"]), "and brings it")
    eq(len(influx.rows("SELECT * FROM pathline_packet", "taps2")), there, "where it is")


def test_influx():
    if shutil.which("influxd") is None:
        skip("InfluxDB", "missing: influxd (package influxdb)")
        return
    server = Influx()
    test_values(server)
    test_killed(server)
    test_missing(server)
    test_conflict(server)
    test_series(server)
    test_tap(server)


def main():
    lab.run(test_influx, test_victoria)
    return tap.end()


sys.exit(main())
