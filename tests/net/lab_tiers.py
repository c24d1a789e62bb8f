#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Labs whose network is simulated, which is what a machine without rights has; and stories, in namespaces and simulated alike.
What hosts sent, what telemetry in the collector's history says and what the lab's own books and records of the truth say are
one. usage: lab_tiers.py PATHLINE [stories]"""
import json
import os
import signal
import socket
import subprocess
import sys

# A leak is looked for by a process that the sanitizer starts, which cannot see its parent from the PID namespace that
# lab makes for its commands.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE, answer, jsonl  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

NAME = f"s{os.getpid()}"
# Packets of the truth and of reports, hop by hop.
PAIRS = """SELECT t.node AS node, count(*) AS n, sum(abs(t.hop_latency_ns - r.hop_latency_ns)) AS latency,
    sum(abs(t.queue_depth - r.queue_depth)) AS depth
FROM hops AS t JOIN hops AS r ON t.flow.src = r.flow.src and t.flow.sport = r.flow.sport
    and t.node = r.node and t.ingress_ts_ns = r.ingress_ts_ns WITHIN 1s
WHERE missing(t.exporter) and exists(r.exporter) GROUP BY t.node"""
LOST = """SELECT node, ingress_port, peer.node AS peer, count(*) AS n FROM events
WHERE event = 'packet_drop' and missing(exporter) and flow.dport = 5201 GROUP BY node, ingress_port, peer.node"""
STORY = """shape: line:2
every_link: {queue: 2MiB}
int: {version: %s, fields: [node, ports, latency, queue, ingress-ts, egress-ts]}
story:
  - {at: 0s, impair: 'h1>s1 loss=1'}
  - {at: 0s, traffic: udp h1 h2, rate: 800k, for: 500ms}
  - {at: 0s, traffic: udp h2 h1, rate: 800k, name: back}
  - {at: 2s, stop: back}
  - {at: %ds, restore: h1-s1}
"""


def run(*words, **more):
    return subprocess.run([PATHLINE, *words], capture_output=True, text=True, timeout=120, check=False, **more)


def shown():
    return json.loads(run("lab", "show", NAME, "-o", "json").stdout)


def truth():
    """Links by (from, to), and flows."""
    lines = jsonl(run("lab", "truth", NAME).stdout)
    return {(d["from"], d["to"]): d for d in lines if d["kind"] == "link"}, [d for d in lines if d["kind"] == "flow"]


def ask(question, *sources):
    r = run("query", "-o", "jsonl", question, *sources)
    return answer(r.stdout) if r.returncode == 0 else r.stderr


def is_down(folder, pid):
    eq(run("lab", "down", NAME).returncode, 0, "down")
    ok(wait(lambda: not os.path.exists(folder) and not os.path.exists(f"/proc/{pid}")), "its folder and its process are gone")


def processes():
    """Of the lab's folder: the collector's path of the configuration is relative, its current folder is not."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(f"/run/pathline/lab/{NAME}"):
                found.append(int(pid))
        except OSError:
            continue
    return found


def test_simulated():
    path = lab.write("net.yaml", f"name: {NAME}\nshape: line:2\n")
    up = run("lab", "up", path, "--tier", "simulated", "-o", "json")
    eq((up.returncode, json.loads(up.stdout)["tier"]), (0, "simulated"), f"up, simulated {up.stderr}")
    said = shown()
    folder = said["folder"]
    eq((said["tier"], sorted(n["name"] for n in said["nodes"])), ("simulated", ["collector", "h1", "h2", "s1", "s2"]), "show says so")
    eq(run("lab", "exec", NAME, "h1", "--", "true").returncode, 69, "no program runs in its nodes")
    eq(run("lab", "exec", NAME, "collector", "--", "sh", "-c", "exit 5").returncode, 5, "but at the collector, which is this machine")
    eq(run("lab", "impair", NAME, "s1>s2", "lose=3,4,50").returncode, 0, "three packets are to be lost")
    bad = run("lab", "impair", NAME, "s1>s2", "los=1")
    ok(bad.returncode == 2 and "did you mean 'loss'" in bad.stderr, "what is wrong is told", bad.stderr)
    sent = run("lab", "traffic", NAME, "udp", "h1", "h2", "--rate", "800k", "--duration", "2s", "-o", "json")
    account = json.loads(sent.stdout)
    eq((account["senders"][0]["sent"], account["receiver"]["came"]), (200, 197), "200 packets sent, 197 came")
    links, flows = truth()
    eq((links["s1", "s2"]["line"]["lost_listed"], links["h1", "s1"]["queue"]["in_packets"], links["s2", "h2"]["line"]["out_packets"]),
       (3, 200, 197), "the books of links agree")
    eq([(f["dport"], f["packets"]["sent"], f["packets"]["delivered"], f["packets"]["lost"]) for f in flows], [(5201, 200, 197, 3)],
       "and those of the flow")
    eq([[r[k] for k in ("dport", "sent", "delivered", "lost")] for r in ask("SELECT dport, sent, delivered, lost FROM truth_flows", f"{folder}/truth")],
       [[5201, 200, 197, 3]], "and a question reads them as records")
    node = {n["name"]: i + 1 for i, n in enumerate(said["nodes"])}
    history, true = f"{folder}/history", f"{folder}/truth"
    eq(wait(lambda: len(jsonl(run("query", "paths", history, "-o", "jsonl").stdout)) == 197 and 197), 197, "the collector has a report of each that came")
    pairs = ask(PAIRS, true, history)
    eq(sorted((r["node"], r["n"], r["latency"], r["depth"]) for r in pairs), sorted((node[s], 197, 0, 0) for s in ("s1", "s2")),
       "each hop of a report is one of the truth, to the nanosecond and byte")
    port = links["s1", "s2"]["to_port"]
    eq([(r["node"], r["ingress_port"], r["peer"], r["n"]) for r in ask(LOST, true)], [(node["s2"], port, node["s1"], 3)],
       "and the truth has the losses at their link")
    request = json.loads(run("lab", "traffic", NAME, "request", "h1", "h2", "--duration", "100ms", "-o", "json").stdout)
    ok(request["senders"][0]["sent"] == request["receiver"]["came"] > 10, "requests and answers", request)
    bulk = run("lab", "traffic", NAME, "bulk", "h1", "h2", "--duration", "1s")
    ok(bulk.returncode != 0 and "bulk is TCP" in bulk.stderr, "bulk is refused", bulk.stderr)
    nobody = run("lab", "traffic", NAME, "udp", "h1", "s1", "--duration", "1s")
    ok(nobody.returncode != 0 and "only hosts" in nobody.stderr, "and so is what is no host", nobody.stderr)
    for request in (b"", b"\0", b"traffic\0", b"traffic\0" + b"9\0" * 9, b"traffic\x000\x001000\x00100\x00-1\x001\x001\x000\x001\0", b"x" * 5000,
                    b"flows\x000\x001\0", b"flows\x001\x0018446744073709551615\0", b"flows\x0018446744073709551615\x002\0", b"impair\0s1-s2\0\0",
                    b"truth\0truth\0", b"traffic\0" + b"1\0" * 90):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(LIMIT)
            s.connect(f"{folder}/control")
            s.send(request or b" ")
            ok(len(s.recv(4096)) > 1, f"refused with words: {request[:24]}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect(f"{folder}/control")
        eq(run("lab", "truth", NAME).returncode, 0, "who says nothing holds nobody up")
    again = run("lab", "up", path, "--tier", "simulated")
    ok(again.returncode == 1 and "is up already" in again.stderr, "it is up once only", again.stderr)
    is_down(folder, said["pid"])


def test_behind():
    """Simulated time that falls behind, by more packets than any machine makes: traffic is over when it is over there."""
    path = lab.write("net.yaml", f"name: {NAME}\nshape: line:2\nstory: [{{at: 0s, traffic: udp h2 h1, rate: 10G, size: 64B}}]\n")
    eq(run("lab", "up", path, "--tier", "simulated").returncode, 0, "up")
    said = shown()
    account = json.loads(run("lab", "traffic", NAME, "udp", "h1", "h2", "--rate", "800k", "--duration", "100ms", "-o", "json").stdout)
    eq((account["senders"][0]["sent"], account["receiver"]["came"]), (10, 10), "all of it is in its account")
    is_down(said["folder"], said["pid"])


def test_killed():
    path = lab.write("net.yaml", f"name: {NAME}\nshape: diamond\n")
    eq(run("lab", "up", path, "--tier", "simulated").returncode, 0, "up")
    pids = processes()
    ok(len(pids) >= 2, "with a process of its own and a collector")
    os.kill(shown()["pid"], signal.SIGKILL)
    # A process whose first thread has ended has no current folder, but the lab's lock until its last one ends.
    ok(wait(lambda: not processes() and not any(os.path.exists(f"/proc/{pid}") for pid in pids)),
       "when it is killed the collector ends, too")
    r = run("lab", "up", path, "--tier", "simulated")
    eq(r.returncode, 0, f"and it comes up again {r.stderr}")
    said = shown()
    is_down(said["folder"], said["pid"])


def test_no_rights():
    path = lab.write("net.yaml", f"name: {NAME}\nshape: diamond\n")

    def without(command):
        inner = f"echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all {command}"
        return subprocess.run(["unshare", "-Ur", "sh", "-c", inner], capture_output=True, text=True, check=False, timeout=120)

    for tier in ("root", "unprivileged"):
        got = without(f"{PATHLINE} lab up --tier {tier} {path}")
        ok(got.returncode == 77 and "run as root" in got.stderr, f"without any right {tier} is refused, and how to have it told", got.stderr)
    got = without(f"{PATHLINE} lab up {path}")
    ok(got.returncode == 0 and "tier  simulated" in got.stdout and "the network is simulated" in got.stderr,
       "and the lab is simulated by itself", got.stdout + got.stderr)
    said = shown()
    eq(json.loads(run("lab", "traffic", NAME, "udp", "h1", "h2", "--duration", "200ms", "-o", "json").stdout)["receiver"]["came"], 25, "it carries packets")
    is_down(said["folder"], said["pid"])
    for words in (("show", NAME, "--tier", "root"), ("up", path, "--tier", "best")):
        eq(run("lab", *words).returncode, 2, f"{' '.join(words)} is refused")


def tell_story(tier, version, steps, end_s):
    path = lab.write("story.yaml", f"name: {NAME}\n" + STORY % (version, end_s))
    up = run("lab", "up", path, "--tier", tier)
    eq(up.returncode, 0, f"up, {tier} {up.stderr}")
    lines = wait(lambda: (s := shown()["story"]) and len(s) == steps and s)
    ok(lines, f"all of the story happens, {tier}", shown()["story"])
    said = shown()
    links, flows = truth()
    eq((links["h1", "s1"]["set"]["loss"], links["s1", "h1"]["set"]["loss"]), (0, 0), "the link is restored")
    return lines or [], said, links, flows


def test_story_simulated():
    lines, said, links, flows = tell_story("simulated", "0.5", 5, 3)
    eq([line.split(" ", 1) for line in lines], [["0.000s", "impair h1>s1 loss=1"], ["0.000s", "traffic udp h1 h2"], ["0.000s", "traffic udp h2 h1"],
                                                 ["2.000s", "stop back"], ["3.000s", "restore h1-s1"]], "in its order")
    eq([(f["packets"]["sent"], f["packets"]["lost"]) for f in flows], [(50, 50), (200, 0)], "traffic is as long, and lost, as told")
    eq(links["h1", "s1"]["line"]["lost_random"], 50, "on that link")
    check_telemetry(said, 200)
    is_down(said["folder"], said["pid"])


def test_story_in_namespaces():
    lines, said, links, _ = tell_story("root", "1.0", 7, 5)
    ended = {line.split(" ended ", 1)[0].split(" ", 1)[1]: json.loads(line.split(" ended ", 1)[1]) for line in lines if " ended " in line}
    there, back = ended["traffic udp h1 h2"], ended["traffic udp h2 h1"]
    # The kernel sends a few packets of its own, which are no traffic: no loss is counted for those but in the books.
    lost = ask(LOST, f"{said['folder']}/truth")
    node = {n["name"]: i + 1 for i, n in enumerate(said["nodes"])}
    n = there["senders"][0]["sent"] - there["receiver"]["came"]
    ok(n > 0 and back["senders"][0]["sent"] > 0, "there is traffic, and loss", ended)
    eq([(r["node"], r["ingress_port"], r["peer"], r["n"]) for r in lost], [(node["s1"], links["h1", "s1"]["to_port"], node["h1"], n)],
       "sent = came + lost, of which each has a record with its link")
    eq(back["senders"][0]["sent"] - back["receiver"]["came"], 0, "nothing is lost in the other direction")
    check_telemetry(said, 1)
    eq(run("lab", "down", NAME).returncode, 0, "down")


def test_same_receiver():
    """Traffic to one host at the same time: each has its own packets in its account."""
    path = lab.write("same.yaml", f"""name: {NAME}
nodes: [{{name: h1}}, {{name: h2}}, {{name: h3}}, {{name: r1, kind: router}}]
every_link: {{queue: 2MiB}}
links: [{{ends: [h1, r1]}}, {{ends: [h2, r1]}}, {{ends: [h3, r1]}}]
story:
  - {{at: 0s, traffic: bulk h1 h3, for: 300ms}}
  - {{at: 0s, traffic: bulk h2 h3, for: 300ms}}
  - {{at: 2s, traffic: udp h1 h3, rate: 800k, for: 1s}}
  - {{at: 2300ms, traffic: udp h2 h3, rate: 800k, for: 300ms}}
""")
    eq(run("lab", "up", path, "--tier", "root").returncode, 0, "up")
    lines = wait(lambda: (s := shown()["story"]) and len(s) == 8 and s) or shown()["story"]
    ended = {line.split(" ended ", 1)[0].split(" ", 1)[1]: json.loads(line.split(" ended ", 1)[1]) for line in lines if " ended " in line}
    eq(sorted(ended), [f"traffic {t}" for t in ("bulk h1 h3", "bulk h2 h3", "udp h1 h3", "udp h2 h3")], f"all of it is carried out: {lines}")
    for what, account in ended.items():
        n = "sent_bytes" if "bulk" in what else "sent"
        ok(account["senders"][0][n] > 0, f"{what}: something is sent", account)
        eq(account["receiver"][n.replace("sent", "came")], account["senders"][0][n], f"{what}: all that was sent came")
    eq(run("lab", "down", NAME).returncode, 0, "down")


def test_switch_drops():
    """What a switch has no room for in its queue: a record of each, with the reason, and nothing else is lost."""
    path = lab.write("drops.yaml", f"name: {NAME}\nnodes: [{{name: h1}}, {{name: h2}}, {{name: s1, kind: switch}}]\n"
                     "links:\n  - {ends: [h1, s1], queue: 2MiB}\n  - {ends: [s1, h2], rate: 1M, queue: 10KiB}\n")
    eq(run("lab", "up", path, "--tier", "root").returncode, 0, "a switch with a narrow port")
    said = shown()
    account = json.loads(run("lab", "traffic", NAME, "udp", "h1", "h2", "--rate", "8M", "--duration", "300ms", "-o", "json").stdout)
    n = account["senders"][0]["sent"] - account["receiver"]["came"]
    node = {n["name"]: i + 1 for i, n in enumerate(said["nodes"])}
    question = "SELECT node, port, drop_reason, count(*) AS n FROM events WHERE event = 'packet_drop' and flow.dport = 5201 GROUP BY node, port, drop_reason"
    eq([(r["node"], r["port"], r["drop_reason"], r["n"]) for r in ask(question, f"{said['folder']}/truth", f"{said['folder']}/truth-s1")],
       [(node["s1"], 2, 71, n)], "sent = came + dropped at that port, for want of room")
    ok(n > 0, f"{n} were dropped")
    eq(run("lab", "down", NAME).returncode, 0, "down")


def check_telemetry(said, least):
    """Of the flow from h2, through both switches, in the collector's history; fields are those of the file."""
    def paths():
        return [p for p in jsonl(run("query", "paths", f"{said['folder']}/history", "-o", "jsonl").stdout) if p["flow"].get("dport") == 5201]

    node = {n["name"]: i + 1 for i, n in enumerate(said["nodes"])}
    got = wait(lambda: len(p := paths()) >= least and p) or paths()
    ok(len(got) >= least and all([h["node"] for h in p["hops"]] == [node["s2"], node["s1"]] for p in got), "telemetry has its path",
       f"{len(got)} {got[:1]}")
    ok(all("hop_latency_ns" in h and "queue_depth" in h for p in got for h in p["hops"]), "and what the file asks for", got[:1])


def test_versions():
    """Of a simulation: what the file names, and nothing else, in each version."""
    for version in ("0.5", "1.0", "2.1"):
        path = lab.write("v.yaml", f"shape: line:2\nint: {{version: {version}, fields: [node, queue]}}\n")
        pcap = lab.path("v.pcap")
        eq(run("simulate", path, "--duration", "1s", "--rate", "100", "-w", pcap).returncode, 0, f"INT {version}")
        hops = [h for p in jsonl(run("read", "-o", "jsonl", pcap).stdout) for h in p["hops"]]
        # The sink's own are in the report's header, with what it knows.
        first = [h for h in hops if h["index"] == 0] if hops and "index" in hops[0] else hops[::2]
        ok(len(first) > 50 and all("queue_depth" in h and "hop_latency_ns" not in h and "ingress_port" not in h for h in first),
           f"INT {version}: the first hop has node and queue", first[:1])


os.makedirs("/run/netns", exist_ok=True)
lab.undo(PATHLINE, "lab", "down", NAME)
if sys.argv[2:] == ["stories"]:
    lab.run(test_story_simulated, test_story_in_namespaces, test_same_receiver, test_switch_drops)
else:
    lab.run(test_simulated, test_behind, test_killed, test_no_rights, test_versions)
sys.exit(tap.end())
