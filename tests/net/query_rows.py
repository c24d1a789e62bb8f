#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of questions, asked once and standing, in InfluxDB and ClickHouse: each value is as in the rows of a file, also when the
server is away meanwhile or lacks the table. ClickHouse's embedded engine takes the table and the INSERT as they are; the server
of Debian 12 lacks the types of times, addresses and booleans, for which others stand. usage: query_rows.py PATHLINE ENGINES"""
import http.server
import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, servers, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import Daemon, jsonl, run, total  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

TOP = ("SELECT dst, proto, count(*) AS n, sum(wire_len) AS bytes, avg(ttl) AS ttl, min(sport) - 40000 AS low, max(sport / (dport % 2)) AS odd "
       "FROM packets TUMBLE(ts, 1s) GROUP BY dst, proto")
SCAN = "packets | where tcp and syn_only | group src over 1s agg n=count(distinct dst, dport) | where n >= 3 | emit first"
LISTS = "SELECT src, topk(dst, 2) AS best, hist(wire_len) AS sizes FROM packets TUMBLE(ts, 1s) GROUP BY src"
OLDER = ((r"DateTime64\(9, 'UTC'\)", "String"), ("IPv6", "String"), ("Bool", "UInt8"),
         (r"PARTITION BY .*\n", ""), ("MergeTree\n", "Memory\n"), ("ORDER BY .*\n", ""), ("SETTINGS .*", ""))
ORDER = lambda r: json.dumps(r, sort_keys=True)  # noqa: E731


def write_config(source, to, query=TOP):
    outs = ", ".join(f"'{t}'" for t in to)
    with open(path("rows.yaml"), "w", encoding="utf-8") as f:
        f.write(f"taps:\n  - {{name: t, sources: ['{source}']}}\nqueries:\n  - {{name: top, query: \"{query}\", from: t, to: [{outs}]}}\n"
                "web:\n  listen: 127.0.0.1:0\n")


def of_file(name):
    """Rows of a file, their columns beside window and the rest."""
    with open(path(name), encoding="utf-8") as f:
        return [{**{k: v for k, v in {**r["key"], **r["val"]}.items() if not k.endswith("_s")}, "w0": r["w0"], "w1": r["w1"], "final": r["final"],
                 "first_ts": r["first_ts"], "late": r["late"], "exp": r["exp"], "incomplete": r["incomplete"]} for r in jsonl(f.read())]


def of_influx(influx, database, measurement="pathline_query_top"):
    rows = influx.rows(f"SELECT * FROM {measurement}", database)
    return [{**r, "w0": r["time"]} for r in rows]


def as_influx(row, tags=("dst", "proto")):
    """Tags are texts, points a text of them; what is absent is null in a table of its lines."""
    out = {k: str(v) if k in tags and v is not None else v for k, v in row.items()}
    out["exp"] = " ".join(map(str, row["exp"]))
    return out


def same(got, want, what):
    got = sorted(({k: r.get(k) for k in want[0]} for r in got), key=ORDER)
    want = sorted(want, key=ORDER)
    ok(len(want) > 20 and got == want, f"{what}: {len(want)} rows, each value as in the file",
       f"{len(got)} rows; missing {[r for r in want if r not in got][:2]}\nextra {[r for r in got if r not in want][:2]}")


def table(question, name):
    printed = run("schema", "clickhouse", "--query", question, "--table", name)
    eq(printed.returncode, 0, f"the table of rows is printed {printed.stderr}")
    return printed.stdout.rstrip().rstrip(";")


def make(clickhouse, question, name):
    statement = table(question, name)
    for new, old in OLDER:
        statement = re.sub(new, old, statement)
    clickhouse.ask(statement.rstrip())


def of_clickhouse(clickhouse, name):
    """With addresses as we print them, and words for what is true."""
    rows = [json.loads(line) for line in clickhouse.ask(f"SELECT * FROM {name} FORMAT JSONEachRow", output_format_json_quote_64bit_integers=0).splitlines()]
    for r in rows:
        r.update({k: int(r[k].replace(".", "")) for k in ("w0", "w1", "first_ts")})
        r.update({k: bool(r[k]) for k in ("final", "incomplete")})
        for k in ("src", "dst"):
            if k in r:
                a = ipaddress.ip_address(r[k])
                r[k] = str(a.ipv4_mapped or a) if a.version == 6 else str(a)
    return rows


def test_standing(influx, clickhouse):
    """A standing query over a capture has the same rows in a file and at both servers."""
    influx.ask("CREATE DATABASE one", "")
    make(clickhouse, TOP, "one")
    write_config(f"pcap:{path('trace.pcap')}", [f"file:{path('one.jsonl')}", f"influx://127.0.0.1:{influx.port}/one",
                                                f"clickhouse://127.0.0.1:{clickhouse.port}/one"])
    eq(run("config", "check", path("rows.yaml")).returncode, 0, "the file is right")
    d = Daemon(path("rows.yaml"))

    def all_delivered():
        page = d.metrics()
        rows, delivered = total(page, "pathline_query_output_rows_total"), total(page, "pathline_query_output_delivered_total")
        return rows > 40 and rows == delivered and page['pathline_query_rows_total{query="top"}'] * 2 == rows and \
            total(page, "pathline_query_windows_total") >= 7
    ok(wait(all_delivered), "all rows are delivered", d.log())
    eq(d.stop(), 0, "it ends well")
    rows = of_file("one.jsonl")
    ok(any(r["odd"] is None for r in rows) and any(r["low"] < 0 for r in rows), "some are absent, some below zero")
    same(of_influx(influx, "one"), [as_influx(r) for r in rows], "InfluxDB")
    same(of_clickhouse(clickhouse, "one"), rows, "ClickHouse")


def test_asked(influx, clickhouse):
    """The same by --into and INTO, a first crossing replaced by the row of its window in InfluxDB, beside it in ClickHouse."""
    influx.ask("CREATE DATABASE two", "")
    make(clickhouse, SCAN, "two")
    given = {}
    for to in (f"file:{path('two.jsonl')}", f"influx://127.0.0.1:{influx.port}/two", f"clickhouse://127.0.0.1:{clickhouse.port}/two"):
        asked = run("query", f"{SCAN} | into '{to}'", "--stats", path("trace.pcap"))
        a = json.loads(asked.stdout.splitlines()[-1])["into"] if asked.returncode == 0 else {}
        given[to] = a.get("delivered")
        ok(asked.returncode == 0 and a["delivered"] == a["rows"] > 0, f"{a.get('rows')} rows into {to[:12]}", asked.stderr)
    rows = of_file("two.jsonl")
    same(of_clickhouse(clickhouse, "two"), rows, "ClickHouse has first crossings and rows of windows")
    final = {(r["w0"], r["src"]): r["n"] for r in rows if r["final"]}
    got = of_influx(influx, "two", "pathline_query_query")
    eq({(r["w0"], r["src"]): r["n"] for r in got}, final, "InfluxDB has the rows of windows")
    ok(len(got) == len(final) and all(r["final"] for r in got), "one for each group and window")


def test_away(influx, clickhouse):
    """Servers that are away, then lack database and table: rows wait in the spool, and none is missing."""
    influx.stop(signal.SIGKILL)
    clickhouse.end()
    spools = [path("spool-i"), path("spool-c")]
    write_config(f"pcap:{path('trace.pcap')}", [f"file:{path('away.jsonl')}", f"influx://127.0.0.1:{influx.port}/away?spool={spools[0]}",
                                                f"clickhouse://127.0.0.1:{clickhouse.port}/away?spool={spools[1]}"])
    d = Daemon(path("rows.yaml"), name="away")
    ok(wait(lambda: total(d.metrics(), "pathline_query_output_spool_held") > 40), "rows are in the spools", d.log())
    page = d.metrics()
    eq(total(page, "pathline_query_output_rows_total"), total(page, "pathline_query_output_waiting") + total(page, "pathline_query_output_spool_held"),
       "rows = waiting + held")
    ok(re.search("influx://127.0.0.1.*onnect", d.log()), "the daemon says so", d.log())
    failing = wait(lambda: d.metrics().get('pathline_condition{part="queries",condition="output_failing"}') == 2)
    ok(failing and d.get("/readyz")[0] == 503, "and it is not ready", d.get("/readyz?verbose")[1])
    # A kill loses rows in memory: all must be in both spools.
    whole = len(run("query", TOP, "-o", "jsonl", path("trace.pcap")).stdout.splitlines())
    ok(wait(lambda: total(d.metrics(), "pathline_query_output_spool_held") == 2 * whole), "all rows are in the spools", d.log())
    d.p.kill()
    d.p.wait()
    influx.start()
    clickhouse.begin()
    influx.ask("CREATE DATABASE away", "")
    write_config("udp://127.0.0.1:0", [f"influx://127.0.0.1:{influx.port}/away?spool={spools[0]}",
                                       f"clickhouse://127.0.0.1:{clickhouse.port}/away?spool={spools[1]}"])
    d = Daemon(path("rows.yaml"), name="back")
    ok(d.wait_for("clickhouse://127.0.0.1.*(UNKNOWN_TABLE|doesn't exist|Code: 60)"), "a table that is missing is told", d.log())
    make(clickhouse, TOP, "away")
    rows = of_file("away.jsonl")
    d.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: len(of_clickhouse(clickhouse, "away")) >= len(rows)), "once it is there it is filled", d.log())
    ok(wait(lambda: total(d.metrics(), "pathline_query_output_spool_held") == 0), "spools are empty", d.log())
    ok(wait(lambda: d.get("/readyz")[0] == 200), "it is ready", d.get("/readyz?verbose")[1])
    eq(d.stop(), 0, "it ends well")
    same(of_influx(influx, "away"), [as_influx(r) for r in rows], "InfluxDB after it was away")
    same([dict(t) for t in {tuple(sorted((k, str(v) if isinstance(v, list) else v) for k, v in r.items())) for r in of_clickhouse(clickhouse, "away")}],
         [{k: str(v) if isinstance(v, list) else v for k, v in r.items()} for r in rows], "ClickHouse after it was away")


def test_series(influx):
    """Groups beyond series= are counted, told, and cost the exit code."""
    influx.ask("CREATE DATABASE few", "")
    asked = run("query", TOP, "--into", f"influx://127.0.0.1:{influx.port}/few?series=3", "--stats", path("trace.pcap"))
    a = json.loads(asked.stdout.splitlines()[-1])["into"]
    ok(asked.returncode == 1 and "more groups than series=" in asked.stderr, "groups beyond are told", asked.stderr)
    eq((a["rows"], a["dropped"]["series"] > 0), (a["delivered"] + a["dropped"]["series"], True), "and counted")
    eq(len(influx.ask("SHOW SERIES", "few")[0]["values"]), 3, "the server has as many series")


def test_reload(influx, clickhouse):
    """A query that changes has the columns of the new one at the same table's address; its output is opened anew."""
    make(clickhouse, TOP, "changed")
    port = lab.free_udp_port()
    to = [f"clickhouse://127.0.0.1:{clickhouse.port}/changed", f"influx://127.0.0.1:{influx.port}/one"]
    write_config(f"udp://127.0.0.1:{port}", to)
    d = Daemon(path("rows.yaml"), name="changed")
    write_config(f"udp://127.0.0.1:{port}", to, TOP.replace("avg(ttl) AS ttl, ", ""))
    d.p.send_signal(signal.SIGHUP)
    ok(d.wait_for("is in use"), "the file is read again", d.log())
    eq(run("tap", "--to", f"udp://127.0.0.1:{port}", path("trace.pcap")).returncode, 0, "records")
    eq(d.stop(), 0, "it ends well")
    rows = of_clickhouse(clickhouse, "changed")
    ok(len(rows) > 20 and all(r["ttl"] is None and r["n"] > 0 for r in rows), "rows of the new columns", d.log())


def test_refused():
    for said, to in (("is a list", "influx://h/d"), ("outputs of records of a fixed form", "region:/r"), ("outputs of records of a fixed form", "http://h"),
                     ("outputs of records of a fixed form", "udp://h:1"), ("influx://HOST:PORT/DATABASE", "influx://h"), ("HOST:PORT/TABLE", "clickhouse://h/"),
                     ("kind", "influx://h/d?kind=pkt64"), ("series", "influx://h/d?series=0"), ("series", "clickhouse://h/t?series=3"),
                     ("needs user=", "clickhouse://h/t?password_file=x"), ("credentials", "influx://u:p@h/d")):
        write_config("udp://:1", [to], LISTS)
        checked = run("config", "check", path("rows.yaml"))
        ok(checked.returncode == 78 and said in checked.stderr, f"refused: {to}", checked.stderr)
    asked = run("query", LISTS, "--into", "influx://h/d", path("trace.pcap"))
    ok(asked.returncode == 2 and "is a list" in asked.stderr, "by --into, too", asked.stderr)
    for words, said in ((("clickhouse", "--query", "SELECT x FROM packets"), "unknown column"), (("flink", "--query", "ddos"), "table of ClickHouse"),
                        (("clickhouse", "pkt64", "--query", "ddos"), "table of ClickHouse"), (("clickhouse", "--query", "ddos", "--kafka", "kafka://h/t"), "--kafka")):
        printed = run("schema", *words)
        ok(printed.returncode == 2 and said in printed.stderr and printed.stdout == "", f"refused: schema {words}", printed.stderr)


class Taker(http.server.BaseHTTPRequestHandler):
    """Takes requests as a server of ClickHouse would."""
    requests = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)["query"][0], body.decode()))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def test_types():
    """The table and the INSERTs as they are, taken by ClickHouse's engine of today: times, addresses, lists."""
    sys.path.insert(0, sys.argv[2])
    try:
        from chdb import session
    except ImportError as e:
        return tap.skip("today's types", f"missing: {e}")
    engine = session.Session(path("chdb"))
    taker = http.server.HTTPServer(("127.0.0.1", 0), Taker)
    threading.Thread(target=taker.serve_forever, daemon=True).start()
    engine.query("CREATE DATABASE d")
    engine.query("USE d")
    for name, question in (("top", TOP), ("scan", SCAN), ("lists", LISTS), ("plain", "SELECT ts, src, syn, tcp_seq FROM packets WHERE tcp and syn")):
        Taker.requests.clear()
        engine.query(table(question, name))
        for to in (f"file:{path(name + '.rows')}", f"clickhouse://127.0.0.1:{taker.server_port}/{name}"):
            eq(run("query", question, "--into", to, path("trace.pcap")).returncode, 0, f"{name}: rows")
        for statement, body in Taker.requests:
            engine.query(statement + "\n" + body)
        got = jsonl(str(engine.query(f"SELECT * REPLACE ({'toUnixTimestamp64Nano(w0) AS w0, toUnixTimestamp64Nano(w1) AS w1, ' if name != 'plain' else ''}"
                                     f"toUnixTimestamp64Nano(first_ts) AS first_ts) FROM {name} SETTINGS output_format_json_quote_64bit_integers=0", "JSONEachRow")))
        want = jsonl(lab.read(name + ".rows"))
        own = ["first_ts", "late", "exp", "incomplete", "final"] + (["w0", "w1"] if name != "plain" else [])
        want = [{**{k: v for k, v in {**r["key"], **r["val"]}.items() if not k.endswith("_s")}, **{k: r[k] for k in own}} for r in want]
        for r in got:
            for k in ("src", "dst"):
                if k in r:
                    a = ipaddress.ip_address(r[k])
                    r[k] = str(a.ipv4_mapped or a)
        for r in want:
            for k in ("best", "sizes"):
                if k in r:
                    r[k] = [{**item, "value": str(item["value"])} for item in r[k]]
        same(got, want, f"{name} in the engine")
    taker.shutdown()


def main():
    eq(run("gen", "packets", "--story", "--duration", "8s", "-w", path("trace.pcap")).returncode, 0, "traffic is made")
    lab.run(test_refused, test_types)
    missing = [name for name in ("influxd", "clickhouse-server") if shutil.which(name) is None]
    if missing:
        tap.skip("rows at servers", f"missing: {', '.join(missing)}")
        return tap.end()
    given = servers.Influx(), servers.ClickHouse()
    lab.run(test_standing, test_asked, test_reload, test_away, given=given)
    lab.run(test_series, given=given[:1])
    return tap.end()


sys.exit(main())
