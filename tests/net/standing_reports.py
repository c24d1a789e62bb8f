#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Standing queries over the paths, hops and events that the daemon itself collects, and joins of these with each other and with
packets. A count in Python over what the daemon writes to a file says what the rows must be. A reload keeps windows of queries that
stay, and the end of the daemon loses none of what it had received. usage: standing_reports.py PATHLINE"""
import collections
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.lab import free_udp_port, path  # noqa: E402
from lib.pathline import Daemon, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

SECOND = 10**9
HOUR = 3600 * SECOND
QUERIES = {
    "hops": ("SELECT node, count(*) AS n, max(queue_depth) AS deepest FROM hops TUMBLE(ts, 1s) GROUP BY node", "hops"),
    "paths": ("SELECT count(*) AS n, max(latency_ns) AS slowest FROM paths TUMBLE(ts, 1s)", "paths"),
    "events": ("SELECT event, count(*) AS n FROM events TUMBLE(ts, 1s) GROUP BY event", "events"),
    # Of each path the events of the same exporter shortly before and after it.
    "near": ("SELECT count(*) AS n, count(e.ts) AS near FROM paths TUMBLE(ts, 1h) AS p LEFT JOIN events AS e "
             "ON p.exporter = e.exporter WITHIN 200ms", "[paths, events]"),
}


def write_config(name, source, queries, more="", lateness=None):
    text = f"sources: [{{uri: '{source}'}}]\nweb: {{listen: '127.0.0.1:0'}}\n{more}"
    text += f"outputs: [{{name: all, type: jsonl, path: '{path(name)}.jsonl', queue: 1048576}}]\nqueries:\n"
    for query, (question, of) in queries.items():
        # Reports come in the order of their times, events a moment behind these: their windows wait for the end.
        late = lateness or ("1h" if "events" in of else "500ms")
        to = ["events"] if query == "events" else []
        text += (f"  - {{name: {query}, query: \"{question}\", from: {of}, lateness: {late}, "
                 f"to: {[*to, 'file:' + path(f'{name}-{query}.jsonl')]}}}\n")
    return lab.write(f"{name}.yaml", text)


def rows(name, query):
    return list(jsonl(lab.read(f"{name}-{query}.jsonl")))


class Witness:
    """What the daemon wrote to its file."""

    def __init__(self, name):
        written = list(jsonl(lab.read(f"{name}.jsonl")))
        self.paths = [r for r in written if r["kind"] == "path"]
        self.events = [r for r in written if r["kind"] == "event" and r["event"] != "query"]
        self.told = [r for r in written if r["kind"] == "event" and r["event"] == "query"]

    def hops(self):
        """Of each second and node the number of hops, and the deepest queue."""
        found = {}
        for p in self.paths:
            for hop in p["hops"]:
                n, deepest = found.get(key := (p["ts_ns"] // SECOND * SECOND, hop["node"]), (0, None))
                depths = [d for d in (deepest, hop.get("queue_depth")) if d is not None]
                found[key] = (n + 1, max(depths) if depths else None)
        return found

    def counts(self, records, key=lambda _: None):
        return collections.Counter((r["ts_ns"] // SECOND * SECOND, key(r)) for r in records)

    def near(self):
        """Pairs of a path and an event, or paths without one; and the pairs."""
        by = collections.defaultdict(list)
        for e in self.events:
            if "exporter" in e:
                by[e["exporter"]].append(e["ts_ns"])
        partners = [sum(abs(ts - p["ts_ns"]) <= 200_000_000 for ts in by[p["exporter"]]) for p in self.paths]
        return sum(max(n, 1) for n in partners), sum(partners)


def send(port, n, *more):
    sent = run("gen", "int", "-n", n, "-r", "1000", "--flows", "20", *more, f"udp://127.0.0.1:{port}")
    ok(sent.returncode == 0, "reports are sent", sent.stderr)


def received(d):
    return d.metrics().get('pathline_output_delivered_total{output="all"}', 0)


def check(name):
    w = Witness(name)
    eq({(r["w0"], r["key"]["node"]): (r["val"]["n"], r["val"]["deepest"]) for r in rows(name, "hops")}, w.hops(), "hops: the rows are the model's")
    eq({r["w0"]: r["val"]["n"] for r in rows(name, "paths")}, {ts: n for (ts, _), n in w.counts(w.paths).items()}, "paths: likewise")
    eq({(r["w0"], r["key"]["event"]): r["val"]["n"] for r in rows(name, "events")}, dict(w.counts(w.events, lambda e: e["event"])),
       "events: likewise, without those of queries")
    near = rows(name, "near")
    eq((sum(r["val"]["n"] for r in near), sum(r["val"]["near"] for r in near)), w.near(), "paths with events near them: likewise")
    ok(w.near()[1] > 0 and len(w.events) > 0, f"there are {len(w.events)} events, {w.near()[1]} pairs")
    return w


def test_live():
    port = free_udp_port()
    d = Daemon(write_config("live", f"udp://127.0.0.1:{port}", QUERIES), name="live")
    send(port, 2000, "--drop", "0.05")
    ok(wait(lambda: received(d) >= 2000), "they are written")
    # Windows close by the clock.
    ok(wait(lambda: sum(r["val"]["n"] for r in rows("live", "paths")) == 2000), "windows close while it runs")
    page = d.metrics()
    eq(page['pathline_query_records_total{query="paths"}'], 2000, "every report came")
    eq([page[f'pathline_query_late_total{{query="{q}"}}'] for q in QUERIES], [0] * len(QUERIES), "none was late")
    eq(page['pathline_output_offered_total{output="standing queries"}'],
       sum(page[f'pathline_output_{what}{{output="standing queries"}}'] for what in ("delivered_total", "waiting")),
       "the account of the way to the queries closes")
    eq(d.stop(), 0, "it ends well")
    w = check("live")
    ok(len(w.told) > 0, "rows become events", w.told[:2])


def test_end():
    """What was received before the end is in the rows."""
    port = free_udp_port()
    d = Daemon(write_config("end", f"udp://127.0.0.1:{port}", QUERIES), name="end")
    send(port, 500, "--drop", "0.05")
    eq(d.stop(), 0, "it ends well")
    check("end")


def test_packets():
    """The collector reads a capture of reports, and a tap its packets: each report is a packet, of the same time."""
    made = run("gen", "int", "-w", path("both.pcap"), "-n", "500", "-r", "1000", "--flows", "20")
    ok(made.returncode == 0, "reports are made", made.stderr)
    queries = {"pairs": ("SELECT count(*) AS n, sum(k.wire_len) AS bytes FROM paths TUMBLE(ts, 1h) AS p JOIN packets AS k "
                         "ON p.exporter = k.src AND p.exporter_port = k.sport AND p.ts_ns = k.ts_ns WITHIN 1ms", "[paths, t]"),
               "groups": ("WITH r AS (SELECT exporter, count(*) AS reports FROM paths TUMBLE(ts, 1h) GROUP BY exporter), "
                          "k AS (SELECT src, count(*) AS packets FROM packets TUMBLE(ts, 1h) WHERE udp GROUP BY src) "
                          "SELECT r.exporter, r.reports, k.packets FROM r JOIN k ON r.exporter = k.src", "[t, paths]")}
    d = Daemon(write_config("joined", f"pcap:{path('both.pcap')}", queries, f"taps: [{{name: t, sources: ['pcap:{path('both.pcap')}']}}]\n",
                            lateness="1h"), name="joined")
    ok(wait(lambda: d.metrics()['pathline_query_records_total{query="pairs"}'] == 1000), "reports and packets came", d.log())
    eq(d.stop(), 0, "it ends well")
    packets = list(jsonl(run("tap", "-o", "jsonl", path("both.pcap")).stdout))
    eq([(r["val"]["n"], r["val"]["bytes"]) for r in rows("joined", "pairs")], [(500, sum(r["wire_len"] for r in packets))],
       "every report has its packet")
    of = collections.Counter(p["exporter"] for p in Witness("joined").paths)
    eq({r["key"]["exporter"]: (r["val"]["reports"], r["val"]["packets"]) for r in rows("joined", "groups")}, {e: (n, n) for e, n in of.items()},
       "and every exporter as many packets as reports")


def test_reload():
    port = free_udp_port()
    source = f"udp://127.0.0.1:{port}"
    stays = {"stays": ("SELECT count(*) AS n FROM hops TUMBLE(ts, 1h)", "hops")}
    goes = {"goes": ("SELECT count(*) AS n FROM paths TUMBLE(ts, 1h)", "paths")}
    comes = {"comes": ("SELECT count(*) AS n FROM events TUMBLE(ts, 1h)", "events")}
    d = Daemon(write_config("reload", source, stays | goes), name="reload")
    send(port, 300)
    ok(wait(lambda: d.metrics()['pathline_query_records_total{query="goes"}'] == 300), "the queries have the first reports")
    before = d.metrics()['pathline_query_records_total{query="stays"}']
    write_config("reload", source, stays | comes)
    d.p.send_signal(signal.SIGHUP)
    ok(d.wait_for("is in use"), "the new file is in use", d.log())
    send(port, 300, "--drop", "0.1")
    ok(wait(lambda: received(d) >= 600), "the second reports came")
    eq(d.stop(), 0, "it ends well")
    w = Witness("reload")
    ok(sum(r["val"]["n"] for r in rows("reload", "stays")) == sum(len(p["hops"]) for p in w.paths) > before,
       "a query that stays has the hops from before and behind the reload in its window", rows("reload", "stays"))
    eq(rows("reload", "goes"), [], "a query that goes leaves its windows out")
    ok(0 < sum(r["val"]["n"] for r in rows("reload", "comes")) <= len(w.events), "a query that comes has the events since", w.events)


def test_refused():
    for said, query in (("it reads hops, and the key from does not name them: add hops to it", "{query: 'SELECT node FROM hops', from: t}"),
                        ("the key from names paths, which it does not read", "{query: 'SELECT node FROM hops', from: [hops, paths]}"),
                        ("names no tap and no topic", "{query: 'SELECT p.node FROM paths AS p JOIN packets AS k ON p.exporter = k.src WITHIN 1s', from: paths}"),
                        ("the key from names paths, which it does not read", "{query: 'SELECT src FROM packets', from: [paths, t]}"),
                        ("it reads nothing that \"t\"", "{query: 'SELECT node FROM hops', from: [hops, t]}"),
                        ("\"hops\" stands twice", "{query: 'SELECT node FROM hops', from: [hops, hops]}"),
                        ("members of a group have the records of topics", "{query: 'SELECT node FROM hops', reads: rows, from: 'kafka://h/x'}")):
        checked = run("config", "check", "-", input=f"taps: [{{name: t, sources: ['udp://:1']}}]\nqueries: [{query.replace('{', '{name: a, ', 1)}]\n")
        ok(checked.returncode == 78 and said in checked.stderr, f"refused: {said}", checked.stderr)
    named = run("config", "check", "-", input="taps: [{name: hops, sources: ['udp://:1']}]\n")
    ok(named.returncode == 78 and "no tap is called" in named.stderr, "no tap has such a name", named.stderr)


lab.run(test_live, test_end, test_packets, test_reload, test_refused)
sys.exit(tap.end())
