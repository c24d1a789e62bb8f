#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A lab in namespaces under traffic of real sockets: one question over INT telemetry and truth shows each fault at its link, and
no other; accounts close from the sending socket to the page of the collector, also when reports are lost and when a switch is
killed. usage: lab_faults.py PATHLINE"""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

# A leak is looked for by a process that the sanitizer starts, which cannot see its parent from the PID namespace that
# lab makes for its commands.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import answer, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NAME = f"f{os.getpid()}"
FOLDER = f"/run/pathline/lab/{NAME}"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "examples", "lab")
PORT = 9000
FLOWS, ROUNDS = 64, 20

# Sends rounds of a datagram of each flow, a round after the interval of the switches' reports, as many as it is told, or until
# its input ends; says how many its sockets took.
SEND = f"""
import select, socket, sys, time
sockets = []
for i in range({FLOWS}):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", 20000 + i))
    s.connect((sys.argv[1], {PORT}))
    sockets.append(s)
sent = 0
rounds, done = int(sys.argv[2]), 0
while not (done == rounds if rounds else select.select([sys.stdin], [], [], 0)[0]):
    for s in sockets:
        sent += s.send(b"x" * 200) == 200
    done += 1
    time.sleep(0.012)
print(sent, flush=True)
"""
# Says how many datagrams came whenever it is asked.
COUNT = f"""
import os, select, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
s.bind(("", {PORT}))
s.setblocking(False)
print("bound", flush=True)
n = 0
while True:
    ready = select.select([s, sys.stdin], [], [])[0]
    try:
        while True:
            s.recv(2000)
            n += 1
    except BlockingIOError:
        pass
    if sys.stdin in ready:
        if not os.read(0, 1):
            break
        print(n, flush=True)
"""

# Each direction of a link that lost or dropped packets by the truth, or is slow by the telemetry of the node that it leads to.
FAULTS = """SELECT l.node AS node, l.port AS port, l.peer_node AS peer, l.lost AS lost, l.dropped AS dropped, r.reports AS reports, r.latency AS latency
FROM (SELECT node, port, peer_node, peer_port, sum(lost) AS lost, sum(dropped) AS dropped
      FROM truth_links GROUP BY node, port, peer_node, peer_port) AS l
LEFT JOIN (SELECT node, ingress_port, count(*) AS reports, min(link_latency_ns) AS latency
      FROM hops WHERE exists(exporter) GROUP BY node, ingress_port) AS r ON l.peer_node = r.node and l.peer_port = r.ingress_port
WHERE l.lost > 0 or l.dropped > 0 or r.latency > 500ms"""
# What became of the flows' packets that did not arrive: lost on a link (with its peer), or dropped by a queue or a switch.
CAUSES = f"""SELECT node, port, ingress_port, peer.node AS peer, drop_reason, count(*) AS n FROM events
WHERE event = 'packet_drop' and missing(exporter) and flow.dport = {PORT}
GROUP BY node, port, ingress_port, peer.node, drop_reason"""


def ask(question, *sources):
    r = run("query", "-o", "jsonl", question, *sources)
    return answer(r.stdout) if r.returncode in (0, 3) else r.stderr


def shown():
    return json.loads(run("lab", "show", NAME, "-o", "json").stdout)


def truth():
    """By (from, to); also writes the truth as records."""
    return {(d["from"], d["to"]): d for d in jsonl(run("lab", "truth", NAME).stdout)}


def in_node(node, *words):
    return run("lab", "exec", NAME, node, "--", *words)


def account(node):
    return json.loads(run("switch", "account", "-s", f"{FOLDER}/{node}.sock", "-o", "json").stdout)["account"]


class Connection(http.client.HTTPConnection):
    """To the collector's page, from outside its namespace."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(LIMIT)
        self.sock.connect(f"{FOLDER}/collector.sock")


def page(path):
    connection = Connection("collector")
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def sample(name):
    """The sum of a family on the page of metrics."""
    return sum(int(float(line.split()[-1])) for line in page("/metrics").splitlines() if line.split("{")[0].split(" ")[0] == name)


def exporters():
    """The page's reports of each exporter, by node."""
    return {r["node"]: r for r in json.loads(page("/api/v1/exporters"))["rows"]}


class Receiver:
    """Counts the flows' datagrams in a node."""

    def __init__(self, node):
        self.process = lab.start([sys.argv[1], "lab", "exec", NAME, node, "--", PYTHON, "-c", COUNT], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        eq(self.process.stdout.readline(), "bound\n", f"{node} counts")

    def came(self):
        self.process.stdin.write("?")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def send(to, rounds=ROUNDS):
    return int(in_node("h1", PYTHON, "-c", SEND, to, str(rounds)).stdout)


def start_sending(to):
    """Rounds until it is told to end."""
    return lab.start([sys.argv[1], "lab", "exec", NAME, "h1", "--", PYTHON, "-c", SEND, to, "0"], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, text=True)


def end_sending(sender):
    """How many were sent."""
    return int(sender.communicate(timeout=LIMIT)[0])


def causes(names):
    """Packets that did not arrive by (where, cause): on a link by its direction, else at a node by the reason."""
    rows = ask(CAUSES, f"{FOLDER}/truth", *(f"{FOLDER}/truth-{n}" for n in names if os.path.exists(f"{FOLDER}/truth-{n}")))
    found = {}
    for r in rows:
        if "peer" in r:
            at = (f"{names[r['peer'] - 1]}>{names[r['node'] - 1]}", "link")
        else:
            at = (names[r["node"] - 1], r.get("drop_reason"))
        found[at] = found.get(at, 0) + r["n"]
    return found


def off_page(switches):
    """Reports that each switch sent, by its account, less those on the page, as received or as lost."""
    rows = exporters()
    rest = {}
    for name, node in switches.items():
        row = rows.get(node, {"reports": 0, "lost": 0})
        rest[name] = account(name)["port_sent"][collector_port[name]] - row["reports"] - row["lost"]
    return rest


def closes(switches, unknown):
    """Whether all other reports are on the page: also the first one of an exporter that had sent no more."""
    return all(n in (unknown[name], 0 if unknown[name] == 1 else unknown[name]) for name, n in off_page(switches).items())


def proven(switches):
    """The network has seen some traffic: each exporter that reports is known. Returns what is not on the page: reports in front of
    the first one that came, whose loss nobody can tell, and the only one of an exporter, which is not proven."""
    sent = send("10.1.7.1", 3)
    known, before = {}, None
    while known != before or not known:
        before = known
        time.sleep(0.5)
        known = off_page(switches)
    return sent, known


collector_port = {}  # by switch: as its account calls it


def up(text):
    path = lab.write(f"{NAME}.yaml", text)
    got = run("lab", "up", path)
    eq((got.returncode, got.stderr), (0, ""), "up")
    nodes = shown()["nodes"]
    collector_port.clear()
    for n in nodes:
        if n["kind"] == "switch":
            ports = account(n["name"])["port_sent"]
            collector_port[n["name"]] = list(ports)[-1]
    return [n["name"] for n in nodes]


def test_faults():
    """The network that ships, three faults, traffic, one question."""
    with open(os.path.join(EXAMPLES, "leaf-spine.yaml"), encoding="utf-8") as f:
        names = up(f.read().replace("name: leaf-spine", f"name: {NAME}"))
    switches = {n: i + 1 for i, n in enumerate(names) if n in collector_port}
    for words in (("leaf1>spine2", "loss=0.1"), ("spine1>leaf4", "delay=1s"), ("leaf4>h8", "rate=1M", "queue=8kB")):
        eq(run("lab", "impair", NAME, *words).returncode, 0, f"impair {' '.join(words)}")
    receiver = Receiver("h8")
    first, unknown = proven(switches)
    ok(sum(unknown.values()) < FLOWS and exporters(), "exporters are known", (unknown, exporters()))
    sent = send("10.1.7.1")
    eq(sent, FLOWS * ROUNDS, f"{FLOWS} flows of {ROUNDS} packets")
    sent += first
    # ---- from socket to socket ----
    ok(wait(lambda: receiver.came() + sum(causes(names).values()) == sent), "sent by sockets = received by a socket + lost by cause in the truth",
       (sent, receiver.came(), causes(names)))
    books, by_cause = truth(), causes(names)
    lost, dropped = books["leaf1", "spine2"]["line"]["lost_random"], books["leaf4", "h8"]["queue"]["dropped_bytes_limit"]
    eq({k: v for k, v in by_cause.items() if k[1] == "link"}, {("leaf1>spine2", "link"): lost}, "losses are on the link that loses, as many as its books have")
    eq({k[0]: v for k, v in by_cause.items() if k[1] != "link"}, {"leaf4": dropped}, "drops are at the queue that was full, as many as its books have")
    ok(lost > 0 and dropped > 0, f"{lost} lost, {dropped} dropped")
    # ---- telemetry joined with truth ----
    ok(wait(lambda: closes(switches, unknown)), "each switch: reports sent = reports received", (off_page(switches), unknown, exporters()))
    n = {name: i + 1 for i, name in enumerate(names)}
    rows = {(names[r["node"] - 1], names[r["peer"] - 1]): r for r in ask(FAULTS, f"{FOLDER}/truth", f"{FOLDER}/history")}
    eq(set(rows), {("leaf1", "spine2"), ("spine1", "leaf4"), ("leaf4", "h8")}, "one question shows the three faults at their links, and no other")
    bad, slow, full = (rows.get(at, {}) for at in (("leaf1", "spine2"), ("spine1", "leaf4"), ("leaf4", "h8")))
    eq((bad.get("lost"), bad.get("dropped"), slow.get("lost"), slow.get("dropped"), full.get("lost"), full.get("dropped")),
       (lost, 0, 0, 0, 0, dropped), "with the numbers of the books")
    ok(bad.get("reports", 0) > 0 and slow.get("reports", 0) > 0 and slow.get("latency", 0) >= 10**9, "and the delay that INT measured", rows)
    # ---- reports that are lost ----
    eq(exporters()[n["leaf4"]]["lost"], 0, "no report is missing")
    drop = next(a for a in in_node("collector", "ip", "-o", "-4", "address").stdout.splitlines() if " leaf4 " in a).split()
    address = drop[drop.index("inet") + 1]
    eq(in_node("collector", "ip", "address", "delete", address, "dev", "leaf4").returncode, 0, "the collector has no address at leaf4's link")
    sent += send("10.1.7.1", 5)
    wait(lambda: receiver.came() + sum(causes(names).values()) == sent)
    eq(in_node("collector", "ip", "address", "add", address, "dev", "leaf4").returncode, 0, "it has it again")
    sent += send("10.1.7.1", 5)
    ok(wait(lambda: receiver.came() + sum(causes(names).values()) == sent), "sockets' account closes", (sent, receiver.came(), causes(names)))
    ok(wait(lambda: closes(switches, unknown)), "each switch: reports sent = received + missing on the page", (off_page(switches), unknown, exporters()))
    told = exporters()
    missing = told[n["leaf4"]]["lost"]
    ok(missing > 0, f"{missing} reports of leaf4 are missing")
    eq({names[k - 1] for k, r in told.items() if r["lost"]}, {"leaf4"}, "and none of another switch")
    events = ask("SELECT event, exporter, flow.dport AS dport, max(value) AS n FROM events WHERE exists(exporter) GROUP BY event, exporter, flow.dport",
                 f"{FOLDER}/history")
    loss = [(r["exporter"], 0 < r["n"] <= missing) for r in events if r["event"] == "report_loss"]
    eq(loss, [(told[n["leaf4"]]["exporter"], True)], "an event tells of them")
    eq([r for r in events if r["event"] in ("packet_drop", "path_change") and r.get("dport") == PORT], [],
       "and none takes them for packets dropped, or another path")
    eq(sample("pathline_flow_lost_packets_total"), 0, "nor for packets lost")
    receiver.end()
    eq(run("lab", "down", NAME).returncode, 0, "down")
    ok(wait(is_clean), "nothing is left", left())


# What came to a node by its links and did not leave it: lost within, where hosts neither send nor receive.
WITHIN = """SELECT a.node AS node, a.n - d.n AS n
FROM (SELECT peer_node AS node, sum(out_packets) AS n FROM truth_links GROUP BY peer_node) AS a
JOIN (SELECT node, sum(in_packets) AS n FROM truth_links GROUP BY node) AS d ON node"""


def within(node):
    truth()
    return next(r["n"] for r in ask(WITHIN, f"{FOLDER}/truth") if r["node"] == node)


def test_killed():
    """A switch and the collector are killed under traffic: the others go on, and accounts say what was lost in the dead one."""
    names = up(f"name: {NAME}\nshape: diamond\nevery_link: {{queue: 1MiB}}\n")
    nodes = {n: i + 1 for i, n in enumerate(names)}
    dead, alive = "s2", ("s1", "s3", "s4")
    eq(set(collector_port), {dead, *alive}, "a diamond of four switches")
    receiver = Receiver("h2")
    sender = start_sending("10.1.1.1")
    ok(wait(lambda: truth()["s1", dead]["wire"]["delivered"] > FLOWS and truth()["s1", "s3"]["wire"]["delivered"] > FLOWS),
       "traffic by both ways", truth().keys())
    os.kill(lab.pid_in(FOLDER, f"switch -c {dead}.yaml"), signal.SIGKILL)
    ok(wait(lambda: [e.split(":")[0] for e in shown()["ended"]] == [dead]), "a switch is killed under traffic, and show names it", shown()["ended"])
    ok(wait(lambda: within(nodes[dead]) > FLOWS), "packets come to it still")
    came, by = receiver.came(), truth()["s1", "s3"]["wire"]["delivered"]
    ok(wait(lambda: receiver.came() > came + FLOWS and truth()["s1", "s3"]["wire"]["delivered"] > by + FLOWS), "the others go on")
    os.kill(lab.pid_in(FOLDER, "run -c collector.yaml"), signal.SIGKILL)
    ok(wait(lambda: {e.split(":")[0] for e in shown()["ended"]} == {dead, "collector"}), "the collector is killed, too", shown()["ended"])
    came = receiver.came()
    ok(wait(lambda: receiver.came() > came + FLOWS), "switches forward without it")
    sent = end_sending(sender)
    ok(wait(lambda: receiver.came() + within(nodes[dead]) == sent), "sent = received + lost within the switch that is dead",
       (sent, receiver.came(), within(nodes[dead])))
    eq(causes(names), {}, "and nothing on links, in queues or in the other switches")
    receiver.end()
    eq(run("lab", "down", NAME).returncode, 0, "down")
    ok(wait(is_clean), "nothing is left", left())


PATHS = f"SELECT flow.sport AS sport, path_id, count(*) AS n FROM paths WHERE flow.dport = {PORT} GROUP BY flow.sport, path_id"
PASSED = f"SELECT flow.sport AS sport FROM hops WHERE flow.dport = {PORT} and node = %d GROUP BY flow.sport"
CHANGES = f"SELECT flow.sport AS sport, old_path_id, path_id FROM events WHERE event = 'path_change' and flow.dport = {PORT}"


def test_path_change():
    """The routes of half of the flows move under way: the collector tells of their changes with both paths, and of no other flow; the
    books of the links say that they moved."""
    text = f"name: {NAME}\nnodes: [{{name: h1}}, {{name: h2}}" + "".join(f", {{name: s{i}, kind: switch}}" for i in (1, 2, 3, 4)) + """]
links:
  - {ends: [h1, s1]}
  - {ends: [h2, s4]}
  - {ends: [s1, s2]%s}
  - {ends: [s1, s3]}
  - {ends: [s2, s4]}
  - {ends: [s3, s4]}
"""
    node = {n: i + 1 for i, n in enumerate(up(text % ""))}
    history, rounds = f"{FOLDER}/history", 5
    receiver = Receiver("h2")
    send("10.1.1.1", rounds)
    wait(lambda: len(ask(PATHS, history)) == FLOWS)
    paths = {r["sport"]: r["path_id"] for r in ask(PATHS, history)}
    moving = {r["sport"] for r in ask(PASSED % node["s2"], history)}
    old, new = ({p for sport, p in paths.items() if (sport in moving) == by_s2} for by_s2 in (True, False))
    eq((len(paths), len(old), len(new)), (FLOWS, 1, 1), "each flow has one of two paths")
    eq(truth()["s1", "s2"]["wire"]["received"], rounds * len(moving), f"{len(moving)} flows by s2, as the books of its link have it")
    eq(run("lab", "apply", lab.write(f"{NAME}.yaml", text % ", cost: 3")).returncode, 0, "that link becomes dear")
    before = truth()["s1", "s2"]["wire"]["received"]
    send("10.1.1.1", rounds)
    ok(wait(lambda: len(ask(CHANGES, history)) >= len(moving)), "changes are told", ask(CHANGES, history))
    rows = ask(CHANGES, history)
    eq(sorted(r["sport"] for r in rows), sorted(moving), "one of each flow that moved, and of no other")
    eq({(r["old_path_id"], r["path_id"]) for r in rows}, {(*old, *new)}, "with the path before and the path now")
    eq(truth()["s1", "s2"]["wire"]["received"], before, "and nothing passes the old link")
    receiver.end()
    eq(run("lab", "down", NAME).returncode, 0, "down")


TIMES = f"""SELECT node, min(ingress_ts_ns - ts) AS least, max(ingress_ts_ns - ts) AS most, max(hop_latency_ns) AS latency FROM hops
WHERE exists(exporter) and flow.dport = {PORT} GROUP BY node"""


def test_clock():
    """A switch whose clock is an hour ahead: its times in telemetry are, and the truth of what it drops is not."""
    hour, limit = 3600 * 10**9, 600 * 10**9
    up(f"name: {NAME}\nnodes: [{{name: s1, kind: switch}}, {{name: s2, kind: switch}}, {{name: h1}}, {{name: h2}}]\n"
       "links: [{ends: [h1, s1]}, {ends: [s1, s2]}, {ends: [s2, h2], rate: 1M, queue: 4KiB}]\nclocks: [{node: s2, offset: 1h, drift: 20}]\n")
    receiver = Receiver("h2")
    send("10.1.1.1", 5)
    wait(lambda: len(ask(TIMES, f"{FOLDER}/history")) == 2)
    rows = {r["node"]: r for r in ask(TIMES, f"{FOLDER}/history")}
    ok(set(rows) == {1, 2} and -limit < rows[1]["least"] and rows[1]["most"] < limit, "the clock of s1 is right", rows)
    ok(2 in rows and hour - limit < rows[2]["least"] and rows[2]["most"] < hour + limit, "that of s2 is an hour ahead", rows)
    ok(2 in rows and 0 < rows[2]["latency"] < hour, "and packets are not in s2 for an hour", rows)
    dropped = account("s2")["dropped_egress"]["queue"]
    times = ask(f"SELECT count(*) AS n, min(ts) AS first, max(ts) AS last FROM events WHERE node = 2 and flow.dport = {PORT}", f"{FOLDER}/truth-s2")[0]
    now = time.time_ns()
    ok(dropped > 0 and times["n"] == dropped and now - limit < times["first"] <= times["last"] <= now, f"{dropped} drops are in the truth by true time", times)
    receiver.end()
    eq(run("lab", "down", NAME).returncode, 0, "down")


def left():
    """Names, folder, and processes of the lab."""
    processes = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if NAME in f.read().decode(errors="replace") or os.readlink(f"/proc/{pid}/cwd") == FOLDER:
                    processes.append(pid)
        except OSError:
            continue
    return [n for n in os.listdir("/run/netns") if n.startswith(NAME)], os.path.exists(FOLDER), processes


def is_clean():
    return left() == ([], False, [])


def test_keeper_killed():
    """The lab's own process is killed under traffic: all of the lab ends with it, and the next call removes what it leaves."""
    up(f"name: {NAME}\nshape: diamond\n")
    receiver = Receiver("h2")
    sender = start_sending("10.1.1.1")
    ok(wait(lambda: receiver.came() > FLOWS), "traffic")
    os.kill(shown()["pid"], signal.SIGKILL)
    ok(wait(lambda: sender.poll() is not None and receiver.process.poll() is not None), "when the lab is killed, who sends and who receives end")
    ok(wait(lambda: run("lab", "show", NAME).returncode != 0 and is_clean()), "and the next call leaves nothing of it", left())


os.makedirs("/run/netns", exist_ok=True)
lab.undo(sys.argv[1], "lab", "down", NAME)
lab.run(test_faults, test_path_change, test_clock, test_killed, test_keeper_killed)
sys.exit(tap.end())
