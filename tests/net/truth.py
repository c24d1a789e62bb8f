#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The truth of `pathline simulate` as a history: a question that reads it together with the reports, from a capture and from a
daemon's history, names the link that loses and the link that is slow, and no other; hops of both are paired packet by packet;
faults begin when they are to. usage: truth.py PATHLINE"""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import answer, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

START = 1700000000 * 10**9
# Of leaf-spine:3x2x2: leaves are 1 to 3, with their hosts at ports 1 and 2 and the spines 4 and 5 behind these.
LEAF1, LEAF3, SPINE1, SPINE2 = 1, 3, 4, 5
SHAPE = "leaf-spine:3x2x2"
FAULTS = ("--impair", "leaf1>spine2:loss=0.03@1s", "--impair", "spine1>leaf3:delay=300us")
# What a link is called by: the node that it leads to, and the port there. Spines have the leaves at ports 1 to 3.
LOSES, SLOW = (SPINE2, LEAF1), (LEAF3, 3)

LINKS = """SELECT r.node AS node, r.ingress_port AS ingress_port, r.packets AS packets, r.latency AS latency,
    t.latency AS true_latency, l.lost AS lost
FROM (SELECT node, ingress_port, count(*) AS packets, avg(link_latency_ns) AS latency
      FROM hops WHERE exists(exporter) GROUP BY node, ingress_port) AS r
JOIN (SELECT node, ingress_port, avg(link_latency_ns) AS latency
      FROM hops WHERE missing(exporter) GROUP BY node, ingress_port) AS t ON node, ingress_port
LEFT JOIN (SELECT node, ingress_port, count(*) AS lost
      FROM events WHERE event = 'packet_drop' and missing(exporter) and exists(peer.node)
      GROUP BY node, ingress_port) AS l ON node, ingress_port
WHERE l.lost > 0 or r.latency > 50us"""

# The books of links beside what was reported: of each direction of a link that lost or dropped, and no report has what was
# lost; what was dropped in a queue of a switch is reported.
BOOKS = """SELECT l.node AS node, l.port AS port, l.lost AS lost, l.dropped AS dropped, l.arrived AS arrived,
    r.reported AS reported, e.events AS events, h.packets AS packets
FROM (SELECT node, port, peer_node, peer_port, sum(lost) AS lost, sum(dropped) AS dropped, sum(out_packets) AS arrived
      FROM truth_links GROUP BY node, port, peer_node, peer_port) AS l
LEFT JOIN (SELECT node, egress_port AS port, count(*) AS reported
      FROM hops WHERE exists(exporter) and flags.dropped GROUP BY node, egress_port) AS r ON l.node = r.node and l.port = r.port
LEFT JOIN (SELECT node, ingress_port, count(*) AS events
      FROM events WHERE event = 'packet_drop' and missing(exporter) and exists(peer.node)
      GROUP BY node, ingress_port) AS e ON l.peer_node = e.node and l.peer_port = e.ingress_port
JOIN (SELECT node, ingress_port, count(*) AS packets FROM hops WHERE missing(exporter)
      GROUP BY node, ingress_port) AS h ON l.peer_node = h.node and l.peer_port = h.ingress_port
WHERE l.lost > 0 or l.dropped > 0"""

PACKETS = """SELECT t.node AS node, count(*) AS n, sum(abs(t.hop_latency_ns - r.hop_latency_ns)) AS latency,
    sum(abs(t.queue_depth - r.queue_depth)) AS depth
FROM hops AS t JOIN hops AS r ON t.flow.src = r.flow.src and t.flow.sport = r.flow.sport
    and t.node = r.node and t.ingress_ts_ns = r.ingress_ts_ns WITHIN 1s
WHERE missing(t.exporter) and exists(r.exporter) GROUP BY t.node"""


def ask(question, *sources):
    r = run("query", "-o", "jsonl", question, *sources)
    eq((r.returncode, r.stderr), (0, ""), f"an answer from {' and '.join(os.path.basename(s) for s in sources)}")
    return answer(r.stdout)


def simulate(*args):
    """Packets that links lost, by the account that it prints."""
    r = run("simulate", SHAPE, *FAULTS, *args)
    eq(r.returncode, 0, f"it ends: {r.stderr.strip()}")
    return int(re.search(r"lost on links: (\d+)", r.stderr).group(1))


def check_links(rows, lost, what):
    links = {(r["node"], r["ingress_port"]): r for r in rows}
    eq(set(links), {LOSES, SLOW}, f"{what}: the link that loses and the slow one, and no other")
    eq((links[LOSES]["lost"], links[SLOW].get("lost")), (lost, None), f"{what}: {lost} packets lost on the one, none on the other")
    slow = links[SLOW]
    eq(slow["latency"] == slow["true_latency"] and slow["latency"] > 300000 > 50000 > links[LOSES]["latency"], True,
       f"{what}: {slow['latency']} ns on the slow one, in reports and in truth")


def test_capture():
    lost = simulate("--duration", "3s", "--rate", "5k", "-w", path("r.pcap"), "--truth-history", path("truth"), "--truth", path("t.jsonl"))
    ok(lost > 20, f"{lost} packets are lost")
    with open(path("t.jsonl"), encoding="utf-8") as f:
        truth = jsonl(f.read())
    for kind, name in (("path", "paths"), ("event", "events")):
        r = run("query", name, path("truth"), "-o", "jsonl")
        eq(jsonl(r.stdout) == [t for t in truth if t["kind"] == kind], True, f"the history has the {name} of --truth")

    for sources in ((path("truth"), path("r.pcap")), (path("r.pcap"), path("truth"))):
        check_links(ask(LINKS, *sources), lost, "a capture")

    reports = [p for p in jsonl(run("read", "-o", "jsonl", path("r.pcap")).stdout) if not p["flags"]["dropped"]]
    hops = collections.Counter(h["node"] for p in reports for h in p["hops"])
    for sources in ((path("truth"), path("r.pcap")), (path("r.pcap"), path("truth"))):
        rows = ask(PACKETS, *sources)
        eq({r["node"]: r["n"] for r in rows}, dict(hops), "each hop of a report is paired with what happened there, and with nothing else")
        eq({(r["latency"], r["depth"]) for r in rows}, {(0, 0)}, "latency and depth are the same")

    events = ask("SELECT min(ts) AS first, count(*) AS n FROM events WHERE exists(peer.node)", path("truth"))
    eq(events[0]["n"], lost, "an event for each")
    ok(START + 10**9 <= events[0]["first"] < START + 15 * 10**8, "the first is after the fault began")


def test_books():
    """What links, queues and flows counted, joined with reports and events by link."""
    r = run("simulate", SHAPE, "--impair", "leaf1>spine2:loss=0.03", "--impair", "leaf3>spine1:rate=500k queue=10kB", "--duration", "2s",
            "--rate", "5k", "-w", path("b.pcap"), "--truth-history", path("books"))
    eq(r.returncode, 0, "a network with a link that loses and a narrow one")
    sent, dropped, lost = (int(re.search(rf"{word}: (\d+)", r.stderr).group(1)) for word in ("sent", "dropped by nodes", "lost on links"))
    for sources in ((path("books"), path("b.pcap")), (path("b.pcap"), path("books"))):
        rows = {(w["node"], w["port"]): w for w in ask(BOOKS, *sources)}
        eq(set(rows), {(LEAF1, 4), (LEAF3, 3)}, "both, and no other")
        eq([rows[LEAF1, 4].get(k) for k in ("lost", "events", "dropped", "reported")], [lost, lost, 0, None], "each packet lost has an event, and no report")
        eq([rows[LEAF3, 3].get(k) for k in ("lost", "events", "dropped", "reported")], [0, None, dropped, dropped], "each packet dropped has a report")
        eq([w["arrived"] - w["packets"] for w in rows.values()], [0, 0], "what arrived is what the truth has of hops there")
    ok(lost > 20 and dropped > 20, f"{lost} lost, {dropped} dropped")
    flows = ask("SELECT count(*) AS n, sum(sent) AS sent, sum(delivered) AS delivered, sum(dropped) AS dropped, sum(lost) AS lost FROM truth_flows",
                path("books"))[0]
    eq([flows[k] for k in ("sent", "dropped", "lost", "delivered")], [sent, dropped, lost, sent - dropped - lost], "books of flows close")
    links = ask("SELECT sum(in_packets) AS i, sum(dropped) AS d, sum(sent) AS s, sum(lost) AS l, sum(out_packets) AS o FROM truth_links", path("books"))[0]
    eq((links["i"] - links["d"] - links["s"], links["s"] - links["l"] - links["o"]), (0, 0), "books of links close")
    for question, source, word in (("SELECT * FROM truth_links", path("b.pcap"), "simulate --truth-history"),
                                   ("SELECT l.node FROM truth_links AS l JOIN events AS e ON l.node = e.node WITHIN 1s", path("seen"), "NAME.link128")):
        r = run("query", question, source)
        eq((r.returncode, word in r.stderr, r.stderr.count("\n")), (2, True, 1), f"where there are none: {r.stderr.strip()}")


def test_daemon():
    port = lab.free_udp_port()
    d = pathline.Daemon(lab.write("d.yaml", f"sources:\n  - uri: udp://127.0.0.1:{port}\n    rcvbuf: 16MiB\n"
                                            f"outputs:\n  - {{type: region, name: history, path: {path('seen')}, queue: 1048576}}\n"
                                            f"web: {{listen: '127.0.0.1:0'}}\n"), "d")
    lost = simulate("--duration", "3s", "--rate", "2k", f"udp://127.0.0.1:{port}", "--truth-history", path("live"))
    with_truth = ask("SELECT count(*) AS n FROM paths WHERE not flags.dropped", path("live"))[0]["n"]

    def all_there():
        """as many paths in the daemon's history as packets arrived"""
        r = run("query", "-o", "jsonl", "SELECT count(*) AS n FROM paths", path("seen"))
        return r.returncode == 0 and answer(r.stdout)[0]["n"] == with_truth
    wait(all_there)
    check_links(ask(LINKS, path("live"), path("seen")), lost, "while it runs")
    d.stop()
    check_links(ask(LINKS, path("seen"), path("live")), lost, "a daemon's history")


def test_refused():
    for args, code, word in ((["--impair", "leaf1-spine9:loss=1"], 78, "leaf1-spine1"), (["--impair", "leaf1-spine1:los=1"], 78, "'loss'"),
                             (["--impair", "leaf1-spine1"], 78, "LINK:KEY=VALUE"), (["--impair", "leaf1-spine1:loss=2"], 78, "'2'"),
                             (["--impair", "leaf1-spine1:loss=1@soon"], 78, "'soon'"), (["--impair", "leaf1-spine1:"], 78, "KEY=VALUE"),
                             (["--impair", "leaf1-spine1:to_bad=0.1"], 78, "to_good"),
                             (["--truth-history", path("truth")], 1, "already"), (["--truth-history", "/dev/null/x"], 1, "/dev/null/x")):
        r = run("simulate", SHAPE, "--duration", "10ms", *args)
        eq((r.returncode, word in r.stderr, r.stderr.count("\n")), (code, True, 1), f"{args}: {r.stderr.strip()}")
    r = run("simulate", "line", "--duration", "10ms", "--truth-history", path("quiet"))
    eq(r.returncode, 0, "a network in which nothing is lost")
    eq(ask("SELECT count(*) AS n FROM paths", path("quiet"))[0]["n"] > 50, True, "has paths")
    r = run("query", "SELECT count(*) AS n FROM events", path("quiet"))
    eq((r.returncode, r.stderr), (3, ""), "and a list of events that is empty")
    r = run("query", "SELECT count(*) AS n FROM events", path("r.pcap"))
    eq((r.returncode, "a capture has paths and hops" in r.stderr), (2, True), "events of a capture alone are refused")


lab.run(test_capture, test_daemon, test_books, test_refused)
sys.exit(tap.end())
