#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Standing queries that join the records of two taps: packets of two observation points, one of which sees them 3 ms later and
not all of them. A count in Python over the printed records of both captures says what the rows must be. A reload keeps the
records that wait for partners, and records beyond the bound are counted. usage: standing_joins.py PATHLINE"""
import os
import re
import signal
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import Daemon, jsonl, run, total  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

PORTS = (23764, 23765)
SECOND = 10**9
WAY_NS = 3_000_000
KEYS = "src, dst, sport, dport, proto, tcp_seq, tcp_ack, ip_id, tcp_flags, wire_len, pay_len"
LEFT = (f"SELECT a.proto, count(*) AS sent, count(b.ts) AS arrived, max(b.ts - a.ts) AS slowest FROM packets96 TUMBLE(ts, 1s) AS a "
        f"LEFT JOIN (SELECT * FROM packets96 WHERE point = 2) AS b ON {KEYS} WITHIN 50ms WHERE a.point = 1 GROUP BY a.proto")
ANTI = (f"SELECT a.proto, count(*) AS lost FROM packets96 TUMBLE(ts, 1s) AS a ANTI JOIN (SELECT * FROM packets96 WHERE point = 2) AS b "
        f"ON {KEYS} WITHIN 50ms WHERE a.point = 1 GROUP BY a.proto")


def shift(source, target, every):
    """The capture 3 ms later, without every so-manieth of its packets."""
    with open(source, "rb") as f:
        data = f.read()
    magic = struct.unpack_from(">I", data)[0]
    unit = {0xa1b23c4d: 1, 0xa1b2c3d4: 1000}[magic]
    out, at, n = [data[:24]], 24, 0
    while at < len(data):
        seconds, part, kept, length = struct.unpack_from(">IIII", data, at)
        ns = seconds * SECOND + part * unit + WAY_NS
        frame = data[at + 16:at + 16 + kept]
        at += 16 + kept
        n += 1
        if n % every != 0:
            out.append(struct.pack(">IIII", ns // SECOND, ns % SECOND // unit, kept, length) + frame)
    with open(target, "wb") as f:
        f.write(b"".join(out))


def write_config(name, sources, queries):
    text = "taps:\n"
    for i, source in enumerate(sources):
        text += f"  - {{name: t{i}, sources: ['{source}'], point: {i + 1}}}\n"
    text += "queries:\n"
    for query, question, keys in queries:
        text += f"  - {{name: {query}, query: \"{question}\", from: [t0, t1], to: ['file:{path(query + '.jsonl')}'], {keys}}}\n"
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text + "web:\n  listen: 127.0.0.1:0\n")


def rows(query):
    with open(path(f"{query}.jsonl"), encoding="utf-8") as f:
        return jsonl(f.read())


def identity(r):
    return tuple(r[key] for key in KEYS.split(", "))


def model(left, right):
    """Of each second and protocol: packets of the left, pairs or packets without one, and packets without one. A packet that is
    there several times has several partners, as the join has."""
    there = {}
    for r in right:
        there.setdefault(identity(r), []).append(r["ts_ns"])
    sent, lost = {}, {}
    for r in left:
        key = (r["ts_ns"] // SECOND * SECOND, r["proto"])
        partners = [ts for ts in there.get(identity(r), []) if abs(ts - r["ts_ns"]) <= 50_000_000]
        n, arrived, slowest = sent.get(key, (0, 0, None))
        late = [ts - r["ts_ns"] for ts in partners] + ([slowest] if slowest is not None else [])
        sent[key] = (n + max(len(partners), 1), arrived + len(partners), max(late) if late else None)
        if not partners:
            lost[key] = lost.get(key, 0) + 1
    return sent, lost


def sent_of(query):
    return {(r["w0"], r["key"]["proto"]): (r["val"]["sent"], r["val"]["arrived"], r["val"]["slowest"]) for r in rows(query)}


def lost_of(query):
    return {(r["w0"], r["key"]["proto"]): r["val"]["lost"] for r in rows(query)}


def test_captures(sent, lost, n):
    write_config("captures.yaml", [f"pcap:{path('a.pcap')}", f"pcap:{path('b.pcap')}"],
                 [("left", LEFT, "groups: 65536"), ("anti", ANTI, "groups: 65536"), ("tight", LEFT, "groups: 64")])
    d = Daemon(path("captures.yaml"))
    wait(lambda: d.metrics().get('pathline_query_windows_total{query="anti"}') == len({w for w, _ in lost}))
    page = d.metrics()
    eq(page['pathline_query_records_total{query="left"}'], n, "it reads the records of both taps")
    eq(page['pathline_query_late_total{query="left"}'], 0, "no tap makes the records of the other late")
    eq(page['pathline_query_pairs_total{query="left"}'], sum(s for s, _, _ in sent.values()), "pairs are counted")
    ok(page['pathline_query_held_refused_total{query="tight"}'] > 0, "records beyond the bound are counted")
    eq(d.stop(), 0, "it ends well")
    eq(sent_of("left"), sent, "LEFT JOIN: the rows are those of the model")
    eq(lost_of("anti"), lost, "ANTI JOIN: the rows are those of the model")
    ok(any(r["incomplete"] for r in rows("tight")), "rows that lack records say so")
    ok(not any(r["incomplete"] for r in rows("left")), "the others do not")
    ok(re.search(r"stopped: .*tight: \d+ records, \d+ rows, .*\d+ records of a join without room", d.log()), "the account", d.log())


def send(d, i, name, n):
    before = total(d.metrics(), "pathline_tap_packets_total")
    sent = run("tap", "--point", i + 1, "--to", f"udp://127.0.0.1:{PORTS[i]}?kind=pkt96", path(name))
    ok(sent.returncode == 0, "records are sent", sent.stderr)
    ok(wait(lambda: total(d.metrics(), "pathline_tap_packets_total") == before + n), "and received")


def test_reload(sent, lost, n_left, n_right):
    sources = [f"udp://127.0.0.1:{port}" for port in PORTS]
    queries = [("stays", LEFT, "lateness: 1h")]
    write_config("live.yaml", sources, queries)
    d = Daemon(path("live.yaml"), name="live")
    send(d, 0, "a.pcap", n_left)
    write_config("live.yaml", sources, queries + [("comes", ANTI, "lateness: 1h")])
    d.p.send_signal(signal.SIGHUP)
    d.wait_for("is in use")
    send(d, 1, "b.pcap", n_right)
    eq(d.stop(), 0, "it ends well")
    eq(sent_of("stays"), sent, "records that waited before a reload find partners behind it")
    eq(rows("comes"), [], "a query that came has none of the records before it")
    ok(lost, "packets were lost")


def test_clocks():
    """Records of a capture, and of a tap elsewhere: the log says once that their clocks may differ."""
    write_config("clocks.yaml", [f"pcap:{path('a.pcap')}", f"udp://127.0.0.1:{PORTS[1]}"], [("clocks", LEFT, "lateness: 1h")])
    d = Daemon(path("clocks.yaml"), name="clocks")
    for _ in range(2):
        before = d.metrics().get('pathline_tap_records_total{tap="t1"}', 0)
        sent = run("tap", "--point", 2, "--to", f"udp://127.0.0.1:{PORTS[1]}?kind=pkt96", path("b.pcap"))
        ok(sent.returncode == 0, "records are sent", sent.stderr)
        ok(wait(lambda: d.metrics()['pathline_tap_records_total{tap="t1"}'] > before), "and received")
    ok(d.wait_for(r"clocks: the records have times of different clocks \(capture, sender\)"), "the log tells of two clocks", d.log())
    eq(d.stop(), 0, "it ends well")
    eq((d.log().count("times of different clocks"), d.log().count("times of the clocks capture, sender")), (1, 1), "once, and again in the account")


def test_refused():
    for said, query in (("\"t\" stands twice in the key from", "{name: a, query: 'ddos', from: [t, t]}"),
                        ("neither the name of a tap", "{name: a, query: 'ddos', from: [t, u]}"),
                        ("must be from 1 to 8, not 0 entries", "{name: a, query: 'ddos', from: []}"),
                        ("records of one kind, and it reads several", "{name: a, query: 'SELECT a.client FROM dns AS a JOIN packets AS b "
                         "ON a.client = b.src WITHIN 1s', from: [t, 'kafka://h/x']}"),
                        ("none of its topics has them (kind=pkt64)", "{name: a, query: 'SELECT a.client FROM dns AS a JOIN packets AS b "
                         "ON a.client = b.src WITHIN 1s', from: 'kafka://h/x?kind=dns64'}"),
                        ("'kind=dns' in the URI: pkt64", "{name: a, query: 'ddos', from: ['kafka://h/x?kind=dns']}"),
                        ("which it does not read", "{name: a, query: 'ddos', from: ['kafka://h/x?kind=dns64']}")):
        checked = run("config", "check", "-", input=f"taps: [{{name: t, sources: ['udp://:1']}}]\nqueries: [{query}]\n")
        ok(checked.returncode == 78 and said in checked.stderr, f"refused: {said}", checked.stderr)


made = run("gen", "packets", "--loss", "0.02", "--duration", "6s", "-w", path("a.pcap"))
ok(made.returncode == 0, "traffic is made", made.stderr)
shift(path("a.pcap"), path("b.pcap"), 7)
records = [jsonl(run("tap", "-o", "jsonl", path(name)).stdout) for name in ("a.pcap", "b.pcap")]
of_left, of_lost = model(*records)
test_captures(of_left, of_lost, len(records[0]) + len(records[1]))
test_reload(of_left, of_lost, len(records[0]), len(records[1]))
test_clocks()
test_refused()
sys.exit(tap.end())
