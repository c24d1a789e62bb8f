#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What standing queries have their taps in the kernel do: taps that one query alone counts by, that several filter by, and one with
a rule of its own, of which every packet becomes a record, over the same packets. The rows are the same. A reload that brings another
query has a tap go back to records without losing counts. usage: standing_push.py PATHLINE"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap, tapping  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

WIRE = tapping.Wire("stpush", "10.81.0.1", "10.81.0.2")
FLOW = "src, dst, sport, dport, proto"
# Name, question, the tap that has it done in the kernel, and how far (pathline_query_in_kernel).
QUERIES = (
    ("flows", f"SELECT {FLOW}, count(*) AS n, sum(wire_len) AS b FROM packets TUMBLE(ts, 1h) GROUP BY {FLOW}", "counting", 2),
    ("ports", "packets | where udp and dport = 6001 | group src, dport over 1h agg n=count(), b=sum(pay_len)", "counting2", 2),
    ("fields", "SELECT src, dst, sport, dport, pay_len FROM packets WHERE udp and dport = 6002 and pay_len * 2 > wire_len", "filtering", 1),
    ("syns", "packets | where syn_only | group dst, dport over 1h agg n=count(), s=count(distinct src)", "filtering", 1),
)
COMES = ("comes", "SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1h) WHERE udp GROUP BY dst", "counting", 0)


def write_config(queries):
    text = "web: {listen: '127.0.0.1:0'}\ntaps:\n"
    for name in ("counting", "counting2", "filtering"):
        text += f"  - {{name: {name}, sources: ['tc:eth0?ring=8MiB']}}\n"
    text += "  - {name: whole, sources: ['tc:eth0?ring=8MiB'], rules: ['take']}\nqueries:\n"
    for name, question, of, _ in queries:
        for query, source in ((name, of), (name + ".w", "whole")):
            text += f"  - {{name: {query}, query: \"{question}\", from: {source}, to: ['file:{lab.path(query + '.jsonl')}']}}\n"
    return lab.write("push.yaml", text)


def metrics(d):
    with WIRE.ns["b"]:
        return d.metrics()


def of_tap(page, what, name):
    return page[f'pathline_tap_{what}_total{{tap="{name}"}}']


def settled(d):
    """Every tap has seen all packets of IP, and nothing more comes."""
    def seen():
        page = metrics(d)
        return tuple(of_tap(page, "packets", t) - of_tap(page, "not_ip", t) for t in ("counting", "counting2", "filtering", "whole"))
    return wait(lambda: len(set(now := seen())) == 1 and now[0] > 0 and seen() == now)


def traffic():
    ok(WIRE.tcp_transfer(200_000), "a TCP transfer is whole")
    for port in (6001, 6002, 6003):
        WIRE.udp_send(50, size=40 + port % 10 * 100, port=port)
    WIRE.udp_send(10, size=5000, port=6001)
    WIRE.send_frames(WIRE.frames(200))


def rows(query):
    """But for the name, and the time of the first packet: two taps stamp it one after the other."""
    found = [json.loads(line) for line in lab.read(query + ".jsonl").splitlines()]
    return sorted(json.dumps({k: v for k, v in r.items() if k not in ("q", "first_ts", "first_ts_s")}, sort_keys=True) for r in found)


def test_push():
    d = pathline.Daemon(write_config(QUERIES), prefix=WIRE.ns["b"].command())
    said = d.wait_for(r"flows: the kernel counts its packets by (src, dst, sport, dport, proto and window)")
    ok(said and d.wait_for("syns: the kernel filters its packets"), "the log says what the kernel does", d.log())
    traffic()
    ok(settled(d), "all taps have seen all")
    page = metrics(d)
    eq({n: (page[f'pathline_query_in_kernel{{query="{n}"}}'], page[f'pathline_query_in_kernel{{query="{n}.w"}}']) for n, *_ in QUERIES},
       {n: (how, 0) for n, _, _, how in QUERIES}, "the page says it too")
    for t in ("counting", "counting2"):
        ok(of_tap(page, "counted", t) > 0 and of_tap(page, "records", t) == 0, f"{t}: packets are counted", page)
    ok(of_tap(page, "skipped", "filtering") > 0 and 0 < of_tap(page, "records", "filtering") < of_tap(page, "records", "whole"),
       "filtering: fewer records", page)
    eq(of_tap(page, "skipped", "whole"), 0, "a tap with a rule of its own does as that says")
    # Another query of the same tap: packets become records again, and what was counted stays.
    write_config((*QUERIES, COMES))
    d.p.send_signal(signal.SIGHUP)
    ok(d.wait_for("flows: the kernel makes records of all packets"), "a second query ends the counting", d.log())
    traffic()
    ok(settled(d), "all taps have seen all again")
    page = metrics(d)
    ok(of_tap(page, "records", "counting") > 0 and page['pathline_query_in_kernel{query="flows"}'] == 0, "records come", page)
    eq(page['pathline_query_late_total{query="flows"}'], 0, "none was late")
    eq(d.stop(), 0, "it ends well")
    ok("packets counted in the kernel" in d.wait_for(r"stopped: (flows: .*)"), "its account says so", d.log())
    for name, question, *_ in (*QUERIES, COMES):
        ok(rows(name) == rows(name + ".w") and rows(name), f"{len(rows(name))} rows: {question[:70]}", (rows(name)[:3], rows(name + ".w")[:3]))


def ask_packets(d, name):
    with open(lab.path(name + ".rows"), "w", encoding="utf-8") as out:
        return lab.start([*WIRE.ns["b"].command(), pathline.PATHLINE, "query", "-o", "jsonl", "SELECT count() AS n FROM packets TUMBLE(ts, 10000h)", d.web],
                         log=lab.path(name + ".err"), stdout=out)


def test_asked_packets():
    """Who asks a daemon for packets gets all of them: a tap that leaves some to the kernel has none to give, and one that is being
    watched leaves none to it."""
    def config(rules, question=QUERIES[1][1]):
        return lab.write("asked.yaml", f"web: {{listen: '127.0.0.1:0'}}\ntaps:\n  - {{name: t, sources: ['tc:eth0'], rules: [{rules}]}}\nqueries:\n"
                         f"  - {{name: q, query: \"{question}\", from: t, to: ['file:{lab.path('asked.jsonl')}']}}\n")
    for how in (QUERIES[1][1], QUERIES[2][1]):
        d = pathline.Daemon(config("", how), prefix=WIRE.ns["b"].command(), name="asked")
        p = ask_packets(d, "refused")
        ok(p.wait(60) != 0 and "leaves to the kernel what standing queries" in lab.read("refused.err"), "packets of the tap are refused", lab.read("refused.err"))
        if how is QUERIES[1][1]:
            d.stop()
    config("take", how)
    d.p.send_signal(signal.SIGHUP)
    ok(d.wait_for("is in use") and wait(lambda: metrics(d)['pathline_query_in_kernel{query="q"}'] == 0), "with a rule of its own it makes records of all", d.log())
    p = ask_packets(d, "watched")
    with WIRE.ns["b"]:
        ok(wait(lambda: len(json.loads(d.get("/api/v1/status")[1])["streams"]) == 1), "then they are given", lab.read("watched.err"))
    config("", how)
    d.p.send_signal(signal.SIGHUP)
    ok(d.wait_for("is in use", count=2), "the rule is taken away", d.log())
    eq(metrics(d)['pathline_query_in_kernel{query="q"}'], 0, "while somebody watches the kernel leaves nothing out")
    WIRE.udp_send(20, size=100, port=6003)
    with WIRE.ns["b"]:
        ok(wait(lambda: json.loads(d.get("/api/v1/status")[1])["streams"][0]["sent"] >= 20), "which no query wants")
    p.send_signal(signal.SIGINT)
    ok(p.wait(60) == 0, "the watcher ends well", lab.read("watched.err"))
    eq(d.stop(), 0, "and so does the daemon")


WIRE.make()
lab.run(test_push, test_asked_packets)
sys.exit(tap.end())
