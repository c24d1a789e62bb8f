#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Standing queries in the configuration of the daemon, over its taps: rows go to a file, to the outputs as events, to gauges, to
the log; a count in Python over the printed records of the same capture says what they must be. A reload adds, removes and
changes queries, and a query that stays keeps its window. usage: one_file_queries.py PATHLINE"""
import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import Daemon, jsonl, run, total  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

PORT = 23760
SECOND = 10**9
ENOUGH = 3  # destinations that a source tries within a second
SYN, ACK = 2, 16
SCAN = f"packets | where tcp and syn_only | group src over 1s agg n=count(distinct dst, dport) | where n >= {ENOUGH} | emit first"
TOP = "SELECT dst, sum(wire_len) AS bytes, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dst"
LONG = "SELECT proto, count(*) AS n FROM packets TUMBLE(ts, 10000h) GROUP BY proto"


def write_config(source, queries, more=""):
    text = f"taps:\n  - {{name: t, sources: ['{source}']}}\nqueries:\n"
    for name, query, keys in queries:
        text += f"  - {{name: {name}, query: \"{query}\", from: t, {keys}}}\n"
    with open(path("queries.yaml"), "w", encoding="utf-8") as f:
        f.write(text + more + f"web:\n  listen: 127.0.0.1:0\noutputs:\n  - {{type: jsonl, path: {path('events.jsonl')}}}\n")


def lines(name):
    with open(path(name), encoding="utf-8") as f:
        return jsonl(f.read())


def scans(records):
    """For each second and source, the destinations and ports that its SYNs name: the model."""
    tried = {}
    for r in records:
        if r["proto"] == 6 and r["tcp_flags"] & (SYN | ACK) == SYN:
            tried.setdefault((r["ts_ns"] // SECOND * SECOND, r["src"]), set()).add((r["dst"], r["dport"]))
    return {key: len(places) for key, places in tried.items() if len(places) >= ENOUGH}


def test_results(records):
    write_config(f"pcap:{path('trace.pcap')}", [("scan", SCAN, f"to: [events, log, 'file:{path('scan.jsonl')}']"),
                                                ("top", TOP, "to: [metrics], series: 3")])
    wanted = scans(records)
    d = Daemon(path("queries.yaml"))
    seconds = {r["ts_ns"] // SECOND for r in records}
    wait(lambda: d.metrics().get('pathline_query_lines_total{query="scan"}') == 2 * len(wanted) and
         d.metrics().get('pathline_query_windows_total{query="top"}') == len(seconds))
    page = d.metrics()
    ok(page['pathline_query_memory_bound_bytes{query="scan"}'] > page['pathline_query_memory_bound_bytes{query="top"}'] > 65536 * 48, "and what memory each can take")
    rows = lines("scan.jsonl")
    final = {(r["w0"], r["key"]["src"]): r["val"]["n"] for r in rows if r["final"]}
    eq(final, wanted, "rows of windows that closed are those of the model")
    first = {(r["w0"], r["key"]["src"]): r["val"]["n"] for r in rows if not r["final"]}
    eq((set(first), all(ENOUGH <= first[key] <= wanted[key] for key in first)), (set(wanted), True), "each was told before, with enough")
    # One event when the group has enough, one more when its value has doubled.
    told = sorted([*first.values(), *(n for key, n in wanted.items() if n >= 2 * first[key])])
    ok(len(told) > len(wanted), "some have doubled")
    wait(lambda: len(lines("events.jsonl")) == len(told))
    events = lines("events.jsonl")
    eq(sorted(e["value"] for e in events), told, "one event for a group and window, one more when it doubles")
    eq({(e["event"], e["query"]) for e in events}, {("query", "scan")}, "they name the query")
    eq({e["key"] for e in events}, {src for _, src in wanted}, "and the group")
    eq({e["address"] for e in events}, {src for _, src in wanted}, "and its address")
    eq((page['pathline_query_told_total{query="scan"}'], page['pathline_query_escalated_total{query="scan"}']),
       (len(wanted), len(told) - len(wanted)), "which are counted")
    eq(total(page, "pathline_query_told_total") + total(page, "pathline_query_escalated_total") + total(page, "pathline_query_limited_total"),
       page['pathline_query_rows_total{query="scan"}'], "rows = told + escalated + limited")
    ok(re.search(r'subject=query msg="scan: [0-9.]+: n \d+ so far"', d.log()), "the log has them", d.log())
    table = json.loads(d.get("/api/v1/events")[1])["rows"]
    eq({(r["query"], r["key"]) for r in table} <= {("scan", src) for _, src in wanted}, True, "the table of events has them")

    last = max(r["ts_ns"] for r in records) // SECOND * SECOND
    of_last = {}
    for r in records:
        if r["ts_ns"] >= last:
            n, size = of_last.get(r["dst"], (0, 0))
            of_last[r["dst"]] = (n + 1, size + r["wire_len"])
    gauges = {key: value for key, value in page.items() if key.startswith("pathline_query_value")}
    eq(len(gauges), 6, "three groups have gauges, of two columns")
    for series, value in gauges.items():
        column, key = re.search(r'column="(\w+)",key="([^"]+)"', series).groups()
        eq(value, of_last[key][column == "bytes"], f"{column} of {key} in the last window")
    groups = {(r["ts_ns"] // SECOND, r["dst"]) for r in records}
    eq(page['pathline_query_series_refused_total{query="top"}'], len(groups) - 3 * len(seconds), "the others are counted")
    eq(d.get("/readyz")[0], 200, "it is ready")
    eq(d.stop(), 0, "it ends well")
    ok(re.search(rf"stopped: scan: {len(records)} records, {2 * len(wanted)} rows", d.log()), "the account", d.log())


def send(d, n, capture="trace.pcap"):
    before = total(d.metrics(), "pathline_tap_packets_total")
    sent = run("tap", "--to", f"udp://127.0.0.1:{PORT}", path(capture))
    ok(sent.returncode == 0, "records are sent", sent.stderr)
    ok(wait(lambda: total(d.metrics(), "pathline_tap_packets_total") == before + n), "and received")


def reload(d, words):
    count = len(re.findall("is in use|stays in use", d.log()))
    d.p.send_signal(signal.SIGHUP)
    d.wait_for("is in use|stays in use", count=count + 1)
    return ok(words in d.log(), f"a reload: {words}", d.log())


def counts(name):
    return {r["key"]["proto"]: r["val"]["n"] for r in lines(name)}


def test_reload(records):
    source = f"udp://127.0.0.1:{PORT}"
    stays = ("stays", LONG, f"lateness: 1h, to: ['file:{path('stays.jsonl')}']")
    goes = ("goes", LONG, f"lateness: 1h, to: ['file:{path('goes.jsonl')}']")
    comes = ("comes", LONG, f"lateness: 1h, to: ['file:{path('comes.jsonl')}']")
    write_config(source, [goes, stays])
    d = Daemon(path("queries.yaml"), name="reloaded")
    send(d, len(records))
    write_config(source, [("bad", "SELECT nothing FROM packets", "to: [log]")])
    reload(d, "the old configuration stays in use")
    write_config(source, [("dns", "SELECT count(*) AS n FROM dns TUMBLE(ts, 1s)", "to: [log]")])
    reload(d, "a query of dns needs a restart")
    os.rename(path("stays.jsonl"), path("moved.jsonl"))
    write_config(source, [(stays[0], stays[1], stays[2] + ", series: 7"), comes])
    reload(d, "query goes is removed")
    send(d, len(records))
    eq(set(re.findall(r'query="(\w+)"', " ".join(d.metrics()))), {"stays", "comes"}, "the page has the queries of the new file")
    eq(d.stop(), 0, "it ends well")
    of_trace = {}
    for r in records:
        of_trace[r["proto"]] = of_trace.get(r["proto"], 0) + 1
    eq(counts("stays.jsonl"), {proto: 2 * n for proto, n in of_trace.items()}, "a query that stays keeps its window")
    eq(counts("comes.jsonl"), of_trace, "one that came counts from then on")
    eq(lines("goes.jsonl"), [], "one that went says nothing of a window that was open")
    eq(lines("moved.jsonl"), [], "a file that was moved is left alone")


def test_back(records):
    """A source whose clock is set back: its records are late for a second, and then windows begin anew."""
    top = ("top", TOP, f"to: ['file:{path('top.jsonl')}']")
    write_config(f"udp://127.0.0.1:{PORT}", [top])
    d = Daemon(path("queries.yaml"), name="back")
    send(d, len(records))
    # The same times without the last ones, again and again.
    run("gen", "packets", "--story", "--duration", "4s", "-w", path("short.pcap"))
    n = len(jsonl(run("tap", "-o", "jsonl", path("short.pcap")).stdout))

    def again():
        send(d, n, "short.pcap")
        return d.metrics()['pathline_query_restarts_total{query="top"}'] > 0
    ok(wait(again), "times that go back begin anew")
    ok(d.metrics()['pathline_query_late_total{query="top"}'] >= n, "what came meanwhile was late")
    ok(wait(lambda: "query top: times of its records went back" in d.get("/readyz?verbose")[1]), "a warning", d.get("/readyz?verbose")[1])
    send(d, n, "short.pcap")
    ok(d.wait_for(r"top: times of its records went back by \d+\.\d+ s: windows begin anew there"), "the log says it", d.log())
    eq(d.stop(), 0, "it ends well")
    ok(re.search(r"stopped: top: .*, \d+ times that the time went back", d.log()), "and the account", d.log())
    windows = [(r["w0"], r["key"]["dst"]) for r in lines("top.jsonl")]
    ok(len(set(windows)) < len(windows), "windows came again")


def test_refused():
    for said, query in (("is neither the name of a tap", "{name: a, query: 'ddos', from: u}"),
                        ("unknown column", "{name: a, query: 'SELECT x FROM packets', from: t}"),
                        ("character 8", "{name: a, query: 'SELECT x FROM packets', from: t}"),
                        ("did you mean \"ddos\"", "{name: a, query: 'dos', from: t}"),
                        ("it reads events", "{name: a, query: 'SELECT count(*) AS n FROM events', from: t}"),
                        ("results go to", "{name: a, query: 'ddos', from: t, to: [evnts]}"),
                        ("no number \"x\"", "{name: a, query: 'ddos', from: t, value: x}"),
                        ("the same name", "{name: a, query: 'ddos', from: t}, {name: a, query: 'ddos', from: t}"),
                        ("the same file", "{name: a, query: 'ddos', from: t, to: ['file:x']}, {name: b, query: 'ddos', from: t, to: ['file:x']}"),
                        ("stands twice", "{name: a, query: 'ddos', from: t, to: ['file:x', 'file:x']}"),
                        ("the same file", "{name: a, query: 'ddos', from: t, to: ['kafka://h/x?spool=s']}, "
                         "{name: b, query: 'ddos', from: t, to: ['kafka://h/y?spool=s']}"),
                        ("the same topic, kafka://h:9092/x: each row", "{name: a, query: 'ddos', from: t, to: ['kafka://h/x?a=b', "
                         "'kafka://h:9092/x?c=d']}"),
                        ("takes one topic", "{name: a, query: 'ddos', from: t, reads: rows}"),
                        ("takes one topic", "{name: a, query: 'ddos', from: 'kafka://h/x,y', reads: rows}"),
                        ("go back into it", "{name: a, query: 'ddos', from: 'kafka://h/x', reads: rows, to: ['kafka://h:9092/x']}"),
                        ("the key group is for", "{name: a, query: 'ddos', from: 'kafka://h/x', group: g}"),
                        ("results are JSON", "{name: a, query: 'ddos', from: t, to: ['kafka://h/x?format=protobuf']}"),
                        ("not in INTO", "{name: a, query: \"packets | where syn | into 'file:x'\", from: t}"),
                        ("EXPLAIN is of 'pathline query'", "{name: a, query: 'EXPLAIN ddos', from: t}"),
                        ("EXPLAIN is of 'pathline query'", "{name: a, query: 'explain packets | where syn', from: t}"),
                        ("add WINDOW 10s", "{name: a, query: 'SELECT src, count(*) AS n FROM packets GROUP BY src', from: t}"),
                        ("or SESSION(ts, 30s)", "{name: a, query: 'SELECT DISTINCT src, sport FROM packets', from: t}"),
                        ("keep its groups and rows until the end", "{name: a, query: 'SELECT count(*) AS n FROM packets', from: t}"),
                        ("keep its groups and rows until the end", "{name: a, query: 'FOLD f (n = 0) STEP { n = n + 1, EMIT } "
                         "SELECT src, f.n FROM packets GROUP BY src', from: t}"),
                        ("has 1 to 15", "{name: a-name-that-is-too-long, query: 'ddos', from: t}")):
        checked = run("config", "check", "-", input=f"taps: [{{name: t, sources: ['udp://:1']}}]\nqueries: [{query}]\n")
        ok(checked.returncode == 78 and said in checked.stderr, f"refused: {said}", checked.stderr)


def test_memory():
    """Queries that have room one by one, but not together; a quantile takes some 7.7 kB of each group."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    groups = min(machine * 6 // 10 // 7680, 1 << 26)
    query = f"query: 'SELECT src, quantile(wire_len, 0.5) AS q FROM packets TUMBLE(ts, 1s) GROUP BY src', from: t, groups: {groups}"
    text = "taps: [{{name: t, sources: ['udp://127.0.0.1:0']}}]\nqueries: [{}]\n"
    checked = run("config", "check", "-", input=text.format(f"{{name: a, {query}}}"))
    told = re.search(r"memory of its queries, at most: (\d+) MiB", checked.stdout)
    ok(checked.returncode == 0 and told and groups * 7680 >> 20 <= int(told[1]) <= groups * 8600 >> 20, "one has room, and its memory is told", checked.stdout)
    plan = run("query", "--groups", groups, "EXPLAIN SELECT src, quantile(wire_len, 0.5) AS q FROM packets TUMBLE(ts, 1s) GROUP BY src")
    eq(re.findall(r"memory, at most: (\d+) MiB", plan.stdout), [told[1]] if told else [], "as the plan tells it")
    with open(path("memory.yaml"), "w", encoding="utf-8") as f:
        f.write(text.format(f"{{name: a, {query}}}, {{name: b, {query}}}"))
    for command in (("config", "check", path("memory.yaml")), ("run", "--config", path("memory.yaml"))):
        refused = run(*command)
        ok(refused.returncode != 0 and re.search(r"together may take \d+ MiB of memory, and this machine has \d+ MiB", refused.stderr),
           f"two have none: {command[0]}", refused.stderr)
    refused = run("config", "check", "-", input=text.format("{name: a, query: 'ddos', from: t, groups: 67108865}"))
    ok(refused.returncode == 78, "nor more groups than may be", refused.stderr)


made = run("gen", "packets", "--story", "--duration", "8s", "-w", path("trace.pcap"))
ok(made.returncode == 0, "traffic is made", made.stderr)
packets = jsonl(run("tap", "-o", "jsonl", path("trace.pcap")).stdout)
test_results(packets)
test_reload(packets)
test_back(packets)
test_refused()
test_memory()
sys.exit(tap.end())
