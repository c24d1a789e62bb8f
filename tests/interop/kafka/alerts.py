#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of a question that members of a group answer become alerts of a daemon, which reads their topic (reads: rows): in its
events, at a receiver of webhooks and as gauges. They have to be those of a slow count, and of one process that asks alone.

    usage: alerts.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import collections
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.kafka import Broker  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

from members import FAST, PATHLINE, QUESTION, Member, begin, server_or_skip  # noqa: E402

ONLY = sys.argv[4:]
pathline.PATHLINE = PATHLINE
# Quiet partitions close nothing: the windows that count are those that later records close.
IDLE = "5m"
LIMIT = "&transaction.timeout.ms=4000&delivery.timeout.ms=3000"


class Receiver(http.server.ThreadingHTTPServer):
    """In the place of an Alertmanager: the alerts that were posted."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.alerts = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def told(self):
        """Query and key of each alert."""
        return {(a["labels"]["query"], a["labels"]["key"]) for a in self.alerts if "query" in a["labels"]}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.alerts += json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def configure(table, receiver, name, question, group=True):
    """A daemon's file, which is all that is in it."""
    topic = f"kafka://127.0.0.1:{table.server.port}/{table.topic}.rows?auto.offset.reset=earliest&{FAST}"
    return lab.write(f"{table.topic}.yaml", f"""queries:
  - name: {name}
    query: "{question}"
    from: "{topic}&session.timeout.ms=6000&heartbeat.interval.ms=300"
    reads: rows
    {'group: alerts' if group else ''}
    to: [events, metrics, "file:{lab.path(table.topic + '.jsonl')}"]
    value: n
web:
  listen: 127.0.0.1:0
outputs:
  - {{name: events, type: jsonl, path: {lab.path(table.topic + '.events')}}}
  - {{name: hook, type: webhook, url: "http://127.0.0.1:{receiver.server_port}/api/v2/alerts"}}
""")


def lines(name):
    return pathline.jsonl(lab.read(name)) if os.path.exists(lab.path(name)) else []


def counted(found):
    """How often each row is there."""
    return collections.Counter((m["w0"], m["key"]["sport"], tuple(m["val"].values())) for m in found)


def closed(table):
    """Rows of the windows that all partitions have gone past."""
    last = max(w0 for w0, _ in table.want())
    return {(w0, sport): values for (w0, sport), values in table.want().items() if w0 < last}


def wanted(table):
    return collections.Counter({(w0, sport, values): 1 for (w0, sport), values in closed(table).items()})


class Members:
    """Two of them. One whose transaction the broker refuses while partitions move ends, and is started again, as a manager of
    services does (docs/guide/kafka.md)."""

    def __init__(self, table):
        self.table = table
        self.all = [self.new(), self.new()]

    def new(self):
        return Member(self.table, QUESTION, "--transactions", "--idle", IDLE, uri=LIMIT)

    def tend(self):
        self.all = [m if m.process.poll() is None else self.new() for m in self.all]


def check(table, members, what):
    want, name = wanted(table), table.topic + ".jsonl"

    def there():
        members.tend()
        return set(counted(lines(name))) >= set(want)

    wait(there, 90)
    got = counted(lines(name))
    eq((list((want - got).items())[:3], list((got - want).items())[:3]), ([], []), f"{what}: {len(want)} rows of the slow count, each once")


def values_told(table):
    return collections.Counter((e["key"], e["value"]) for e in lines(table.topic + ".events") if e["event"] == "query")


def test_group(server):
    """A member is killed, and the daemon ended and started again: each row is an alert once. A daemon that is killed gives none
    too few."""
    table, receiver = begin(server, "watch", 21), Receiver()
    members = Members(table)
    daemon = pathline.Daemon(configure(table, receiver, "watch", QUESTION), name="watch")
    table.send(3)
    members.all[0].kill()
    table.send(3)
    check(table, members, "a member was killed")
    eq(daemon.stop(), 0, "the daemon ends well")
    table.send(2)
    daemon.start()
    check(table, members, "the daemon ended, and goes on")
    want = closed(table)
    told = collections.Counter((str(sport), n) for (_, sport), (n, _, _) in want.items())
    wait(lambda: values_told(table) >= told)
    eq(values_told(table), told, f"{len(want)} events, as many as rows, with their values")
    posted = {("watch", str(sport)) for _, sport in want}
    wait(lambda: receiver.told() >= posted)
    eq(receiver.told(), posted, "the receiver of alerts has one of each group")
    alone(table, want)
    last = max(w0 for w0, _ in want)
    gauges = {f'pathline_query_value{{query="watch",column="n",key="{sport}"}}': float(n)
              for (w0, sport), (n, _, _) in want.items() if w0 == last}
    page = daemon.metrics()
    eq({k: page.get(k) for k in gauges}, gauges, "gauges have the rows of the latest window")
    daemon.p.kill()
    daemon.p.wait()
    table.send(2)
    daemon.start()
    want = set(wanted(table))

    def all_there():
        members.tend()
        return set(counted(lines("watch.jsonl"))) >= want

    wait(all_there, 90)
    eq(set(counted(lines("watch.jsonl"))), want, "a daemon that was killed misses none, and makes none up")
    eq(daemon.stop(), 0, "it ends well")
    for m in members.all:
        m.kill()


def alone(table, want):
    """One process over the same topic gives the same rows."""
    for duration in "3s", "20s":  # how long reading takes is the machine's matter
        run = pathline.run("query", QUESTION, table.server.uri("watch", "auto.offset.reset=earliest"), "--duration", duration, "--lateness",
                           "1h", "-o", "jsonl")
        found = {(r["window_start"], r["sport"]): (r["n"], r["b"], r["d"]) for r in pathline.jsonl(run.stdout)
                 if r["window_start"] <= max(w0 for w0, _ in want)}
        if found == want:
            break
    eq(found == want, True, "one process that asks alone has the same rows")


ROW = ('{"q":"hand","v":1,"w0":%d,"w1":%d,"key":{"sport":%d},"val":{"n":%d,"b":1,"d":1},"final":true,"incomplete":false,'
       '"approx":false}')


def test_messages(server):
    """Rows that come again, of other questions, and none: counted, and no alert."""
    table, receiver = begin(server, "hand", 22), Receiver()
    daemon = pathline.Daemon(configure(table, receiver, "hand", QUESTION, group=False), name="hand")
    rows = [ROW % (1000, 2000, 7, 1), ROW % (1000, 2000, 8, 1), ROW % (1000, 2000, 7, 1), ROW % (2000, 3000, 7, 1)]
    others = [rows[0].replace('"hand"', '"foot"'), "alert!", "{}", rows[0].replace('"n"', '"m"'), '{"q":' * 3000, rows[0][:-1]]
    again = [rows[1], ROW % (2000, 3000, 8, 5)]
    subprocess.run(["kcat", "-P", "-b", server.address, "-t", "hand.rows"], input="\n".join(rows + others + again), text=True, check=True)
    counters = {"read": 4, "repeated": 2, "other": 1, "bad": 5}

    def of(page):
        return {k: page.get(f'pathline_query_rows_{k}_total{{query="hand"}}') for k in counters}

    wait(lambda: of(daemon.metrics()) == counters)
    page = daemon.metrics()
    eq(of(page), counters, "each message is counted once")
    eq(sum(counters.values()), page['pathline_kafka_received_total{query="hand"}'], "messages = read + repeated + other + bad")
    wait(lambda: sum(values_told(table).values()) >= 4)
    eq(values_told(table), collections.Counter({("7", 1): 2, ("8", 1): 1, ("8", 5): 1}), "one event for each row")
    eq(daemon.get("/readyz")[0], 200, "it is ready")
    eq(daemon.stop(), 0, "it ends well")
    ok("hand: 4 rows read, 2 repeated, 1 messages of other questions, 5 messages that are no rows" in daemon.log(), "the account",
       daemon.log()[-600:])


def test_away(server):
    """A daemon of rows starts while the brokers are away. A reload that adds topics of records asks for all of them together for
    two seconds at most."""
    table, receiver = begin(server, "away", 23), Receiver()
    text = lab.read(os.path.basename(configure(table, receiver, "away", QUESTION))).replace(f":{server.port}/", f":{lab.free_port()}/")
    daemon = pathline.Daemon(lab.write("away.yaml", text), name="away")
    eq(daemon.get("/metrics")[0], 200, "it starts, with pages")
    added = "".join(f"  - {{name: r{i}, query: ddos, from: 'kafka://127.0.0.1:{lab.free_port()}/packets'}}\n" for i in range(3))
    lab.write("away.yaml", text.replace("web:\n", added + "web:\n"))
    daemon.p.send_signal(signal.SIGHUP)
    asked = daemon.wait_for(r"asked for (\d+) ms")
    ok(asked is not None and int(asked) <= 2000, "a reload asks for a topic no longer than two seconds", daemon.log()[-600:])
    ok(daemon.wait_for("the old configuration stays in use"), "and says that it changed nothing", daemon.log()[-600:])
    eq(daemon.get("/metrics")[0], 200, "pages are there")
    eq(daemon.stop(), 0, "and ends well")


def test_delivered(server):
    """The broker that rows go to stands still, and the daemon is killed: what was not delivered is read again."""
    table = begin(server, "onward", 25)
    onward = Broker(server.jars, name="onward")
    uri = f"kafka://{server.address}/onward.rows?auto.offset.reset=earliest&{FAST}&session.timeout.ms=6000&heartbeat.interval.ms=300"
    config = lab.write("onward.yaml", f"""queries:
  - {{name: hand, query: "{QUESTION}", from: "{uri}", reads: rows, group: onward, to: ["kafka://{onward.address}/there?{FAST}"]}}
web:
  listen: 127.0.0.1:0
""")

    def put(rows):
        subprocess.run(["kcat", "-P", "-b", server.address, "-t", "onward.rows"], input="\n".join(rows), text=True, check=True)

    def there():
        run = subprocess.run(["kcat", "-q", "-C", "-b", onward.address, "-t", "there", "-o", "beginning", "-e"], capture_output=True,
                             text=True, check=False)
        return collections.Counter(run.stdout.splitlines())

    daemon = pathline.Daemon(config, name="onward")
    first = [ROW % (1000, 2000, port, 1) for port in range(100)]
    put(first)
    ok(wait(lambda: sum(there().values()) >= 100), "rows go on", daemon.log()[-600:])
    onward.process.send_signal(signal.SIGSTOP)
    second = [ROW % (2000, 3000, port, 2) for port in range(100)]
    try:
        # The client has five requests on their way at most: behind them rows wait in the daemon.
        for i in range(10, 101, 10):
            put(second[i - 10:i])
            wait(lambda: daemon.metrics().get('pathline_query_rows_read_total{query="hand"}') == 100 + i)
        page = daemon.metrics()
        eq(page['pathline_query_rows_read_total{query="hand"}'], 200, "others are read while their broker stands still")
        time.sleep(3 * 2.5)  # a wrong commit would come at a tick, every two seconds
        daemon.p.kill()
        daemon.p.wait()
    finally:
        onward.process.send_signal(signal.SIGCONT)
    daemon.start()
    want = set(first) | set(second)
    wait(lambda: set(there()) >= want, 60)
    eq((sorted(want - set(there()))[:3], sorted(set(there()) - want)), ([], []), "each row is delivered after a kill")
    ok(wait(lambda: (daemon.metrics().get('pathline_query_rows_read_total{query="hand"}') or 0) >= 100), "it read them again")
    eq(daemon.stop(), 0, "the daemon ends well")
    before = sum(there().values())
    daemon.start()
    put([ROW % (3000, 4000, 1, 3)])
    wait(lambda: sum(there().values()) > before)
    eq(sum(there().values()), before + 1, "after an end in order none comes again")
    eq(daemon.stop(), 0, "it ends well")
    onward.kill()


def test_leave(server):
    """A reload takes queries of topics away while their broker stands still, which lets nobody leave a group: the daemon goes on
    meanwhile, with pages, and with the records of a tap."""
    port, n = lab.free_port(), 8
    server.create("leave", 1)
    keeps = f"taps: [{{name: t, sources: ['udp://127.0.0.1:{port}']}}]\nweb: {{listen: 127.0.0.1:0}}\nqueries:\n  - {{name: stays, query: ddos, from: t}}\n"
    goes = "".join(f"  - {{name: r{i}, query: ddos, from: '{server.uri('leave')}', to: [events]}}\n" for i in range(n))
    daemon = pathline.Daemon(lab.write("leave.yaml", keeps + goes), name="leave")
    assigned = [f'pathline_kafka_assignments_total{{query="r{i}"}}' for i in range(n)]
    ok(wait(lambda: all((daemon.metrics().get(a) or 0) >= 1 for a in assigned)), "each query has its partition", daemon.log()[-600:])
    page = daemon.metrics()
    eq({page.get(f'pathline_kafka_partitions_refused_total{{query="r{i}"}}') for i in range(n)}, {0}, "records of refused partitions are shown")
    server.process.send_signal(signal.SIGSTOP)
    try:
        lab.write("leave.yaml", keeps)
        daemon.p.send_signal(signal.SIGHUP)
        healthy = []

        def reloaded():
            healthy.append(daemon.get("/healthz")[0])
            return "is in use" in daemon.log()

        ok(wait(reloaded), "the reload ends while the broker stands still", daemon.log()[-600:])
        eq(set(healthy), {200}, "the daemon is healthy all the while")
        made = pathline.run("gen", "packets", "--duration", "1s", "-w", lab.path("leave.pcap"))
        sent = pathline.run("tap", "--to", f"udp://127.0.0.1:{port}", lab.path("leave.pcap"))
        eq((made.returncode, sent.returncode), (0, 0), "records are sent")
        ok(wait(lambda: daemon.metrics().get('pathline_query_records_total{query="stays"}', 0) > 0), "and read by the query that stayed")
    finally:
        server.process.send_signal(signal.SIGCONT)
    eq(daemon.stop(), 0, "it ends well")


KEYS = "src, dst, sport, dport, proto, tcp_seq, tcp_ack, ip_id, tcp_flags, wire_len, pay_len"
WAY = (f"SELECT a.proto, count(*) AS sent, count(b.ts) AS arrived FROM packets96 TUMBLE(ts, 1s) AS a LEFT JOIN "
       f"(SELECT * FROM packets96 WHERE point = 2) AS b ON {KEYS} WITHIN 500ms WHERE a.point = 1 GROUP BY a.proto")


def test_wire(server):
    """A tap of the daemon on a veth pair, joined with a topic that has what another tap, of another process, saw of some
    of the packets: the rows are those of a slow count over copies of both."""
    # librdkafka finds no address of IPv4 on a host whose interfaces, loopback aside, have none.
    made = subprocess.run("ip link add way0 type veth peer name way1 && for i in way0 way1; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done && ip addr add 10.9.1.1/30 dev way0 && ip link set way0 up && "
                          "ip link set way1 up", shell=True, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        tap.skip("a tap and a topic in one join", " ".join(made.stderr.split()))
        return
    server.create("way", 2)
    near, far = lab.path("near.jsonl"), lab.path("far.jsonl")
    daemon = pathline.Daemon(lab.write("way.yaml", f"""taps:
  - {{name: near, sources: ['packet:way1'], point: 1}}
queries:
  - {{name: way, query: "{WAY}", from: [near, "{server.uri('way', 'kind=pkt96')}"], to: ['file:{lab.path('way.rows')}'], lateness: 1h}}
  - {{name: copy, query: "SELECT ts, {KEYS} FROM packets96", from: near, to: ['file:{near}']}}
web: {{listen: 127.0.0.1:0}}
"""), name="way")
    ok(wait(lambda: (daemon.metrics().get('pathline_kafka_assignments_total{query="way"}') or 0) >= 2), "it has the topic's partitions",
       daemon.log()[-600:])
    other = lab.start([PATHLINE, "tap", "--point", "2", "--rule", "skip proto=17", "-o", "jsonl", "packet:way1"],
                      log=lab.path("far.log"), stdout=open(far, "w", encoding="utf-8"))
    sink = lab.start([PATHLINE, "tap", "--point", "2", "--rule", "skip proto=17", "--to", server.uri("way", "kind=pkt96&records=256"),
                      "packet:way1"], log=lab.path("sink.log"))
    ok(wait(lambda: "tapping" in lab.read("far.log") and "tapping" in lab.read("sink.log")), "the others tap", lab.read("sink.log"))
    sent = pathline.run("gen", "packets", "--duration", "4s", "packet:way0", timeout=120)
    eq(sent.returncode, 0, "the traffic was sent")
    for p in other, sink:
        p.terminate()
        eq(p.wait(timeout=60), 0, "a tap ends well")
    arrived = pathline.jsonl(lab.read("far.jsonl"))
    wait(lambda: daemon.metrics().get('pathline_query_records_total{query="way"}') ==
         daemon.metrics().get('pathline_query_records_total{query="copy"}') + len(arrived))
    page = daemon.metrics()
    eq((page['pathline_query_late_total{query="way"}'], page['pathline_kafka_read_records_total{query="way"}']), (0, len(arrived)),
       "no record is late, and the topic has what the other tap saw")
    eq(daemon.stop(), 0, "it ends well")
    there = collections.Counter(tuple(r[k] for k in KEYS.split(", ")) for r in arrived)
    want = collections.Counter()
    for line in pathline.jsonl(lab.read("near.jsonl")):
        r = {**line["key"], **line["val"]}
        n = there[tuple(r[k] for k in KEYS.split(", "))]
        want[r["proto"], "sent"] += max(n, 1)
        want[r["proto"], "arrived"] += n
    got = collections.Counter()
    for row in pathline.jsonl(lab.read("way.rows")):
        for name in "sent", "arrived":
            got[row["key"]["proto"], name] += row["val"][name]
    ok(want[6, "arrived"] > 0 and want[17, "sent"] > 0, "some packets are seen by both taps, some by one", dict(want))
    eq(dict(+got), dict(+want), "the rows are those of the slow count")


def test_confined(server):
    """Events of a daemon into a topic, by a command that has given up its rights."""
    table, receiver = begin(server, "held", 24), Receiver()
    server.create("held.out", 1)
    daemon = pathline.Daemon(configure(table, receiver, "held", QUESTION), name="held")
    log = lab.path("held.query.log")
    asker = lab.start([PATHLINE, "query", "SELECT value FROM events", daemon.web, "--into",
                       f"kafka://{server.address}/held.out", "--stats"], log=log)
    ok(wait(lambda: "asking" in lab.read("held.query.log")), "it asks", lab.read("held.query.log"))
    with open(f"/proc/{asker.pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    eq((status["NoNewPrivs"], int(status["CapEff"], 16)), ("1", 0), "its rights are given up")
    subprocess.run(["kcat", "-P", "-b", server.address, "-t", "held.rows"], input=(ROW % (1000, 2000, 7, 3)).replace("hand", "held"), text=True,
                   check=True)

    def out():
        return subprocess.run(["kcat", "-q", "-C", "-b", server.address, "-t", "held.out", "-o", "beginning", "-e"], capture_output=True,
                              text=True, check=False).stdout
    ok(wait(lambda: '"value":3' in out()), "the event is in the topic", lab.read("held.query.log"))
    asker.terminate()
    eq(asker.wait(timeout=60), 0, "it ends well: " + lab.read("held.query.log").strip().splitlines()[-1])
    eq(daemon.stop(), 0, "the daemon, too")


def main():
    server = server_or_skip()
    tests = test_group, test_messages, test_away, test_delivered, test_leave, test_wire, test_confined
    lab.run(*[t for t in tests if not ONLY or t.__name__ in ONLY], given=(server,))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
