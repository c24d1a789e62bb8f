#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Labs: every host reaches every other, by all equal paths; a lab that goes down, fails, or is killed at any moment leaves
nothing behind; names that are taken are left alone; without root it is the same in a user namespace. The kernel is the
witness: it answers, counts, and lists what there is. usage: labs.py PATHLINE"""
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter

# A leak is looked for by a process that the sanitizer starts, which cannot see its parent from the PID namespace that
# lab makes for its commands.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

NAME = f"t{os.getpid()}"
RUN = "/run/pathline/lab"
RT_SIGACTION = {"x86_64": 13, "aarch64": 134}[os.uname().machine]
program_of = [PATHLINE]
# One that another user can read.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PING = r'''
import os, socket, struct, sys
def checksum(b):
    s = sum(struct.unpack(f"!{len(b) // 2}H", b))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
def ping(to, n):
    six = ":" in to
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP)
    s.settimeout(60)
    head = lambda c: struct.pack("!BBHHH", 128 if six else 8, 0, c, os.getpid() & 0xffff, n)
    s.sendto(head(0 if six else checksum(head(0))), (to, 0))
    while True:
        data = s.recv(2000)
        data = data if six else data[(data[0] & 15) * 4:]
        if data[0] == (129 if six else 0) and data[4:8] == head(0)[4:8]:
            return
for i, to in enumerate(sys.argv[1:]):
    ping(to, i)
print("answered", len(sys.argv) - 1)
'''


def run(*words, user=None, **more):
    prefix = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"] if user else []
    return subprocess.run([*prefix, program_of[0], "lab", *words], capture_output=True, text=True, timeout=120, check=False, **more)


def listed():
    """All that a lab could leave behind: names, links of this namespace, processes, folders."""
    processes = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read().decode(errors="replace")
        except OSError:
            continue
        if (NAME in line or lab.DIR in line) and int(pid) != os.getpid():
            processes.append(line)
    return {"names": sorted(n for n in os.listdir("/run/netns") if n.startswith(NAME)) if os.path.isdir("/run/netns") else [],
            "links": subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.count("\n"),
            "processes": processes,
            "folders": [n for n in os.listdir(RUN) if n.startswith(NAME)] if os.path.isdir(RUN) else []}


def is_clean(what):
    """A namespace that nobody has goes when the kernel has the time for it."""
    if wait(lambda: listed() == CLEAN):
        ok(True, what)
    else:
        eq(listed(), CLEAN, what)


def file_of(text, name="net.yaml"):
    return lab.write(name, text)


def exec_in(what, node, *command, **more):
    return run("exec", what, node, "--", *command, **more)


def shown(what, **more):
    return json.loads(run("show", what, "-o", "json", **more).stdout)


def all_reach_all(what, **more):
    hosts = [n for n in shown(what, **more)["nodes"] if n["kind"] == "host"]
    addresses = [h[v] for h in hosts for v in ("ipv4", "ipv6")]
    for h in hosts:
        got = exec_in(what, h["name"], PYTHON, "-c", PING, *addresses, **more)
        eq((got.stdout, got.returncode), (f"answered {len(addresses)}\n", 0), f"{h['name']} reaches all {len(hosts)} hosts")
        if got.returncode:
            tap.comment(got.stderr)


def received(name, node):
    """Packets that came into a node's links, as its kernel counts them."""
    text = exec_in(name, node, "cat", "/proc/net/dev").stdout
    return sum(int(line.split(":")[1].split()[1]) for line in text.splitlines() if ":" in line and "lo:" not in line)


def test_leaf_spine():
    path = file_of(f"name: {NAME}\nshape: leaf-spine:4x2x2\n")
    up = run("up", path, "-o", "json")
    said = json.loads(up.stdout)
    eq((up.returncode, said["lab"], said["tier"], said["nodes"], said["links"]), (0, NAME, "root", 15, 22), "up, as root")
    eq(len(listed()["names"]), 16, "a named namespace for each node, the collector too, and one for the wires")
    eq(listed()["links"], CLEAN["links"], "and no interface in this one")
    all_reach_all(path)
    before = [received(NAME, f"spine{i}") for i in (1, 2)]
    sender = "import socket\nfor i in range(64):\n s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n s.bind(('', 20000 + i))\n s.sendto(b'x', ('10.1.7.1', 9))"
    eq(exec_in(NAME, "h1", PYTHON, "-c", sender).returncode, 0, "64 flows from h1 to h8")
    ok(wait(lambda: all(received(NAME, f"spine{i}") - before[i - 1] >= 8 for i in (1, 2))), "take the ways by both spines")
    eq(exec_in(NAME, "h1", "sh", "-c", "exit 7").returncode, 7, "exec has the exit code of its command")
    eq(exec_in(NAME, "h1", "no-such-command").returncode, 127, "127 when there is none")
    eq(exec_in(NAME, "h9", "true").returncode, 1, "1 for a node that is not there")
    for word in ("down", "show", "exec", "truth", "impair", "traffic"):
        asked = run(word)
        ok(asked.returncode == 2 and f"lab {word}: missing FILE" in asked.stderr and
           NAME in asked.stderr.strip().split("up now: ")[-1].split(", "), f"{word} without FILE names the labs that are up", asked.stderr)
    asked = run("exec", path)
    ok(asked.returncode == 2 and "missing NODE" in asked.stderr, "exec without NODE says so", asked.stderr)
    again = run("up", path)
    ok(again.returncode == 1 and "is up already" in again.stderr, "it is up once only", again.stderr)
    eq(run("down", path).returncode, 0, "down")
    is_clean("nothing is left of it")
    ok(run("down", path).returncode == 1, "down of what is not up is an error")
    ok("is not up" in run("show", path).stderr, "and so is show")
    words = run("down").stderr
    ok("missing FILE" in words and NAME not in words, "what is down is not named", words)
    ok("missing FILE" in run("up").stderr, "up without FILE says so")
    got = run("show", NAME)
    ok(got.returncode == 1 and f"no lab called '{NAME}' is up" in got.stderr, "by its name too", got.stderr)


def test_dry_run():
    """What is printed is what is done: carried out by iproute2 it is a network that works as ours does."""
    path = file_of(f"name: {NAME}\nnodes: [{{name: a}}, {{name: b}}, {{name: r, kind: router}}]\nevery_link: {{bare: true}}\n"
                   "links:\n  - {ends: [a, r], rate: 10M}\n  - {ends: [b, r]}\n")
    plan = run("up", "--dry-run", path).stdout
    for n in "abr":
        lab.undo("ip", "netns", "delete", f"{NAME}-{n}")
    # Offloads are set by ethtool, which is not everywhere.
    script = "\n".join(line for line in plan.splitlines() if "ethtool" not in line)
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False)
    eq((done.returncode, done.stderr), (0, ""), "the shell carries a plan out")
    by_hand = facts()
    for n in "abr":
        subprocess.run(["ip", "netns", "delete", f"{NAME}-{n}"], check=True)
    eq(run("up", path).returncode, 0, "and so do we")
    ours = facts()
    eq((ours - by_hand, by_hand - ours), (Counter(), Counter()), "with the same addresses, routes, neighbours and rates")
    run("down", path)
    is_clean("nothing is left of either")


def facts():
    commands = ("-o addr", "route", "-6 route", "neigh", "-6 neigh", "-o link")
    made = [subprocess.run(f"ip -n {NAME}-{n} {c}", shell=True, capture_output=True, text=True, check=True).stdout
            for n in "abr" for c in commands]
    made += [subprocess.run(f"tc -n {NAME}-a qdisc", shell=True, capture_output=True, text=True, check=True).stdout]
    # Numbers of interfaces and namespaces, handles, and times are each one's own.
    clean = re.sub(r"@if\d+|link-netns \S+|^\d+:|qdisc tbf \S+|lat \S+|src \S+ metric|RTM_\S+|\s+", " ", "\n".join(made), flags=re.M)
    return Counter(re.sub(r"\b\d+: |expires \S+", "", clean).split())


def test_many_paths():
    """All of them are in the routes, as --dry-run says."""
    links = "".join("  - {ends: [a, b]}\n" for _ in range(90))
    path = file_of(f"name: {NAME}\nnodes: [{{name: h1}}, {{name: h2}}, {{name: a, kind: router}}, {{name: b, kind: router}}]\n"
                   f"every_link: {{bare: true}}\nlinks:\n  - {{ends: [h1, a]}}\n  - {{ends: [h2, b]}}\n{links}")
    eq(run("up", path).returncode, 0, "90 links between two routers")
    for command in ("route show 10.1.1.0/31", "-6 route show fd00:1:0:1::/127"):
        text = subprocess.run(f"ip -n {NAME}-a {command}", shell=True, capture_output=True, text=True, check=True).stdout
        eq(text.count(" dev b"), 90, f"{command}: 90 next hops")
    eq(run("down", path).returncode, 0, "down")
    is_clean("nothing is left")


def truth(name):
    """By (from, to)."""
    return {(d["from"], d["to"]): d for d in map(json.loads, run("truth", name).stdout.splitlines())}


SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[2])):
    s.sendto(b"x" * 958, (sys.argv[1], 9000))
"""
# Answers with how many came; whoever asks says when all are there.
COUNT = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
s.bind(("", 9000))
print("bound", flush=True)
n = 0
while True:
    data, _ = s.recvfrom(2000)
    if data == b"end":
        break
    n += 1
print(n, flush=True)
"""


def test_impair():
    path = file_of(f"name: {NAME}\nshape: line:1\nevery_link: {{queue: 2MiB}}\n")
    eq(run("up", path).returncode, 0, "a line")
    counter = subprocess.Popen([PATHLINE, "lab", "exec", NAME, "h2", "--", PYTHON, "-c", COUNT], stdout=subprocess.PIPE, text=True)
    eq(counter.stdout.readline(), "bound\n", "a host that counts")
    to = "10.1.1.1"
    eq(run("impair", NAME, "h1>s1", "loss=0.2").returncode, 0, "a fifth of what h1 sends is lost")
    eq(exec_in(NAME, "h1", PYTHON, "-c", SEND, to, "1000").returncode, 0, "1000 packets")
    line = wait(lambda: (t := truth(NAME)["h1", "s1"])["wire"]["received"] >= 1000 and t)["line"]
    ok(100 < line["lost_random"] < 300, f"{line['lost_random']} are lost")
    eq(run("impair", NAME, "h1-s1", "loss=0", "rate=20M", "queue=20kB").returncode, 0, "20 Mb/s and 20 kB")
    eq(exec_in(NAME, "h1", PYTHON, "-c", SEND, to, "1000").returncode, 0, "1000 packets")
    full = wait(lambda: (t := truth(NAME)["h1", "s1"])["wire"]["received"] >= 2000 and not t["queue"]["held_packets"] and t)
    queue = full["queue"]
    ok(queue["dropped_bytes_limit"] > 0 and 19000 < queue["peak_bytes"] <= 20000, "the queue was full", queue)
    ok(queue["residence_max_ns"] >= 19000 * 8 * 50, "and somebody waited for as long as it takes", queue)
    eq(run("impair", NAME, "h1-s1", "rate=0", "queue=2MiB").returncode, 0, "as it was")
    end = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'end', ('127.0.0.1', 9000))"
    # Packets of 1000 bytes; the others are the kernels' own, ten of 90 bytes at most.
    all_sent = wait(lambda: (t := truth(NAME)) and t["h1", "s1"]["wire"]["delivered_bytes"] // 1000
                    == t["s1", "h2"]["wire"]["delivered_bytes"] // 1000 and t)
    exec_in(NAME, "h2", PYTHON, "-c", end)
    came = int(counter.stdout.readline())
    counter.wait()
    lost = all_sent["h1", "s1"]["line"]["lost_bytes"] // 1000 + all_sent["h1", "s1"]["queue"]["dropped_bytes"] // 1000
    eq(came + lost, 2000, "sent = counted by the host + lost and dropped in the lab's accounts")
    for d in truth(NAME).values():
        w, q, ln = d["wire"], d["queue"], d["line"]
        eq((w["received"], q["in_packets"], ln["in_packets"], ln["out_packets"]),
           (q["in_packets"] + w["no_packet"] + w["too_long"], q["out_packets"] + q["dropped_bytes_limit"] + q["held_packets"], q["out_packets"],
            w["delivered"] + w["refused"]), f"the account of {d['from']} to {d['to']} closes")
    told = {(d["from"], d["to"]): [d["queue"]["in_packets"], d["queue"]["dropped_bytes_limit"], d["line"]["lost_random"], d["line"]["out_packets"]]
            for d in truth(NAME).values()}
    got = subprocess.run([PATHLINE, "query", "-o", "jsonl", "SELECT node, peer_node, in_packets, dropped, lost, out_packets FROM truth_links",
                          f"/run/pathline/lab/{NAME}/truth"], capture_output=True, text=True, timeout=60, check=False)
    rows = [json.loads(row) for row in got.stdout.splitlines()]
    nodes = [n["name"] for n in json.loads(run("show", NAME, "-o", "json").stdout)["nodes"]]
    eq({(nodes[r["node"] - 1], nodes[r["peer_node"] - 1]): [r[k] for k in ("in_packets", "dropped", "lost", "out_packets")]
        for r in rows if "in_packets" in r}, told, f"and a question reads them as records {got.stderr}")
    for words, says in ((("h1-s1", "dely=1ms"), "did you mean 'delay'?"), (("h1-s2", "delay=1ms"), "no link is called 'h1-s2'"),
                        (("h1-s1", "loss=2"), "no value of loss"), (("h1-s1", "loss=0.5", "x"), "not KEY=VALUE"),
                        (("h1", "loss=0.5"), "no link")):
        got = run("impair", NAME, *words)
        ok(got.returncode in (1, 2) and says in got.stderr, f"refused: {' '.join(words)}", got.stderr)
    eq(truth(NAME)["h1", "s1"]["set"]["loss"], 0, "and then nothing is changed")
    hostile()
    eq(run("down", NAME).returncode, 0, "down")
    is_clean("nothing is left")


def hostile():
    """Clients that send what is none, nothing, too much, or do not read."""
    draw, kept = random.Random(3), []
    for data in (b"", b"x", b"truth", b"impair\0h1-s1\0", b"\0" * 4000, b"y" * 8000, bytes(draw.randrange(256) for _ in range(999))):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(f"{RUN}/{NAME}/control")
        if data:
            s.send(data)
        kept.append(s)
    for _ in range(20):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        try:
            s.connect(f"{RUN}/{NAME}/control")
        except OSError:
            pass
        kept.append(s)
    eq(len(wait(lambda: truth(NAME))), 4, "clients that send garbage, or nothing, hold nobody up")
    for s in kept:
        s.close()


# Datagrams with their number and time; and who prints which came, after how many ns, once somebody says that it is all.
SEND_NUMBERS = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[1])):
    s.sendto(struct.pack(">QQ", i, time.monotonic_ns()), ("10.1.1.1", 9001))
"""
SEND_END = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'end', ('10.1.1.1', 9001))"
NUMBERS = """
import json, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9001))
print("bound", flush=True)
came = []
while (data := s.recv(2000)) != b"end":
    number, sent = struct.unpack(">QQ", data)
    came.append((number, time.monotonic_ns() - sent))
print(json.dumps(came), flush=True)
"""


def impaired(words, as_before, n=100):
    """What comes of n datagrams through a link that is so: numbers, in their order; the least time; and what its books have of it."""
    with subprocess.Popen([PATHLINE, "lab", "exec", NAME, "h2", "--", PYTHON, "-c", NUMBERS], stdout=subprocess.PIPE, text=True) as receiver:
        eq((receiver.stdout.readline(), run("impair", NAME, "h1>s1", *words).returncode), ("bound\n", 0), " ".join(words))
        before = truth(NAME)["h1", "s1"]
        exec_in(NAME, "h1", PYTHON, "-c", SEND_NUMBERS, str(n))
        line = wait(lambda: (t := truth(NAME)["h1", "s1"])["wire"]["received"] >= before["wire"]["received"] + n
                    and not t["queue"]["held_packets"] and not t["line"]["held_packets"] and t["line"]) or before["line"]
        eq(run("impair", NAME, "h1>s1", *as_before).returncode, 0, "and as it was")
        # Whatever came before it is there when this is.
        exec_in(NAME, "h1", PYTHON, "-c", SEND_END)
        came = json.loads(receiver.stdout.readline())
    return [number for number, _ in came], min((ns for _, ns in came), default=0), {k: v - before["line"][k] for k, v in line.items()}


def test_each_impairment():
    """Each of what a link may do to packets, while real sockets send and receive them."""
    eq(run("up", file_of(f"name: {NAME}\nshape: line:1\nevery_link: {{queue: 2MiB}}\n")).returncode, 0, "a line")
    whole = list(range(100))
    came, least, _ = impaired(("delay=50ms",), ("delay=0",))
    ok(came == whole and least >= 50_000_000, "delay: all come, none before its time", (came, least))
    came, least, _ = impaired(("jitter=uniform:1ms,20ms",), ("jitter=0",))
    ok(came == whole and least >= 1_000_000, "jitter: all come, in order, none before the least of it", (came, least))
    came, _, line = impaired(("jitter=uniform:1ms,20ms", "jitter_reorders=yes"), ("jitter=0", "jitter_reorders=no"))
    ok(sorted(came) == whole != came and line["reordered"] > 0, "jitter that reorders: all come, in another order", came)
    came, _, line = impaired(("reorder=0.3", "reorder_time=50ms"), ("reorder=0",))
    ok(sorted(came) == whole != came and line["delayed"] > 0, "reordering: all come, some behind later ones", came)
    came, _, line = impaired(("duplicate=1",), ("duplicate=0",))
    ok(sorted(came) == sorted(whole * 2) and line["duplicated"] >= 100, "duplication: all come twice", came)
    came, _, line = impaired(("corrupt=1",), ("corrupt=0",))
    ok(came == [] and line["corrupted"] >= 100, "corruption: checksums find every bit", came)
    came, _, line = impaired(("to_bad=1", "to_good=0.000001", "bad_loss=1"), ("to_bad=0", "to_good=0", "bad_loss=0"))
    ok(came == [] and line["lost_burst"] >= 100, "a time of losses that does not end", came)
    came, _, line = impaired(("lose=0+1/2",), ("lose=",))
    ok(45 <= len(came) <= 55 and abs(2 * line["lost_listed"] - line["in_packets"]) <= 2, "losses by number: every other one", came)
    came, _, line = impaired(("down=yes",), ("down=no",))
    ok(came == [] and line["lost_down"] >= 100, "down: none comes", came)
    eq(impaired(("loss=0",), ("loss=0",))[0], whole, "and then the link is as it was")
    eq(run("down", NAME).returncode, 0, "down")
    is_clean("nothing is left")


# Each flow sends when the interval of its reports is over.
FLOWS = """
import socket, time
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(16)]
for i, s in enumerate(sockets):
    s.bind(("", 20000 + i))
for _ in range(20):
    for s in sockets:
        s.sendto(b"x" * 100, ("10.1.1.1", 9))
    time.sleep(0.012)
"""
DIAMOND = """
nodes: [{name: l1, kind: switch}, {name: l2, kind: switch}, {name: s1, kind: switch}, {name: s2, kind: switch}, {name: h1}, {name: h2}]
links:
  - {ends: [h1, l1]}
  - {ends: [h2, l2], rate: 10M, queue: 20kB}
  - {ends: [l1, s1]}
  - {ends: [l1, s2]}
  - {ends: [l2, s1]}
  - {ends: [l2, s2]}
"""


def history(name, *words):
    got = subprocess.run([PATHLINE, *words[:2], f"{RUN}/{name}/history", *words[2:], "-o", "jsonl"], capture_output=True, text=True,
                         check=False)
    return [json.loads(line) for line in got.stdout.splitlines()]


def account(name, node):
    got = subprocess.run([PATHLINE, "switch", "account", "-s", f"{RUN}/{name}/{node}.sock", "-o", "json"], capture_output=True, text=True,
                         check=False)
    return json.loads(got.stdout)["account"]


def test_switches():
    """The telemetry of switches says what was done to the network: the collector is asked, the accounts are the witness."""
    path = file_of(f"name: {NAME}\n{DIAMOND}")
    up = run("up", path)
    ok(up.returncode == 0 and "4 switches run pathline switch, with INT" in up.stdout, "up, with switches", up.stdout + up.stderr)
    eq(exec_in(NAME, "l1", "cat", "/proc/sys/net/ipv4/ip_forward").stdout, "0\n", "whose kernels forward nothing")
    eq((run("impair", NAME, "l1>s1", "delay=200ms").returncode, run("impair", NAME, "l1>s2", "loss=0.3").returncode), (0, 0),
       "a link with a delay, one with loss")
    eq(exec_in(NAME, "h1", PYTHON, "-c", FLOWS).returncode, 0, "16 flows of 20 packets")
    done = wait(lambda: (t := truth(NAME))["h1", "l1"]["wire"]["received"] >= 320 and not t["l1", "s1"]["line"]["held_packets"]
                and t["s1", "l2"]["wire"]["received"] > 0 and t)
    lost = done["l1", "s2"]["line"]["lost_random"]
    ok(lost > 0, f"{lost} packets are lost on one link")

    def paths():
        return [p for p in history(NAME, "query", "paths") if p["kind"] == "path" and p["flow"].get("dport") == 9]
    # Every flow has been seen, by one way, and that of the delay to its end.
    seen = wait(lambda: (got := paths()) and {p["flow"]["sport"] for p in got} == set(range(20000, 20016)) and got) or paths()
    ways = {p["flow"]["sport"]: set() for p in seen}
    links = {}
    for p in seen:
        ways[p["flow"]["sport"]].add(tuple(h["node"] for h in p["hops"]))
        for a, b in zip(p["hops"], p["hops"][1:]):
            links.setdefault((a["node"], b["node"]), []).append(b["link_latency_ns"])
    eq(sorted(ways), list(range(20000, 20016)), "the collector has all flows")
    eq(({len(w) for w in ways.values()}, set.union(*ways.values())), ({1}, {(1, 3, 2), (1, 4, 2)}), "each by its one way, and both ways")
    ok(min(links[1, 3]) >= 200000000, "the link with the delay has it in the telemetry", min(links[1, 3]))
    ok(all(min(links[at]) < min(links[1, 3]) for at in ((1, 4), (3, 2), (4, 2))), "and no other", {k: min(v) for k, v in links.items()})
    before = account(NAME, "l2")["dropped_egress"]["queue"]
    run("impair", NAME, "l1>s2", "loss=0")
    got = run("traffic", NAME, "udp", "h1", "h2", "--rate", "40M", "--duration", "300ms", "-o", "json")
    eq(got.returncode, 0, "four times of what the link with h2 takes")
    said = json.loads(got.stdout)
    dropped = account(NAME, "l2")["dropped_egress"]["queue"] - before
    ok(dropped > 0 and said["receiver"]["came"] + dropped <= said["senders"][0]["sent"], f"{dropped} do not fit into the queue of l2", said)

    def drops(node):
        words = [PATHLINE, "lookup", "drops", f"{RUN}/{NAME}/history", f"{node}/71", "-o", "jsonl"]
        text = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        return sum(json.loads(line)["value"] for line in text.splitlines())
    ok(wait(lambda: drops(2) > 0), "and are reported, with their reason and the right node")
    ok(drops(2) <= account(NAME, "l2")["dropped_egress"]["queue"] and [drops(n) for n in (1, 3, 4)] == [0] * 3, "not of others",
       [drops(n) for n in (1, 2, 3, 4)])
    deep = [h["queue_depth"] for h in history(NAME, "query", "hops") if h.get("node") == 2 and h["egress_port"] == 1]
    ok(10000 < max(deep) <= 20000, "INT has the depth of the queue that the link has in the file", max(deep))
    page = exec_in(NAME, "collector", PATHLINE, "top", "--batch", "--screen", "links")
    ok(page.returncode == 0 and "links: 4 of 4" in page.stdout, "top asks the collector", page.stdout + page.stderr)
    eq(shown(NAME)["ended"], [], "no program has ended")
    os.kill(lab.pid_in(f"{RUN}/{NAME}", "switch -c s1.yaml"), signal.SIGKILL)
    dead = "s1: 'exec pathline switch -c s1.yaml' ended with signal 9, output in s1.log"
    ok(wait(lambda: shown(NAME)["ended"] == [dead]), "show says which switch died", shown(NAME)["ended"])
    ok(f"ENDED (output in {RUN}/{NAME})\n{dead}\n" in run("show", NAME).stdout, "and where it said why", run("show", NAME).stdout)
    ok(dead in run("show", NAME).stdout, "in words also")
    eq(run("down", NAME).returncode, 0, "down")
    is_clean("nothing is left")


def test_mixed():
    """Switches and routers in one network, and switches without telemetry."""
    text = (f"name: {NAME}\nnodes: [{{name: h1}}, {{name: h2}}, {{name: s1, kind: switch}}, {{name: r, kind: router}}, {{name: s2, kind: switch}}]\n"
            "links: [{ends: [h1, s1]}, {ends: [s1, r]}, {ends: [r, s2]}, {ends: [s2, h2]}]\n")
    eq(run("up", file_of(text)).returncode, 0, "a router between two switches")
    all_reach_all(NAME)
    exec_in(NAME, "h1", PYTHON, "-c", FLOWS)

    def paths():
        return {tuple(h["node"] for h in p["hops"]) for p in history(NAME, "query", "paths") if p["flow"].get("dport") == 9}
    ok(wait(lambda: paths() == {(3,), (5,)}), "the router sees no INT: each switch is a path of its own", paths())
    eq(exec_in(NAME, "h1", PYTHON, "-c", PING, "10.255.0.2", "fd00:ff::2").stdout, "answered 2\n", "the router's own address is reached")
    run("down", NAME)
    eq(run("up", file_of(text + "telemetry: none\n")).returncode, 0, "the same without telemetry")
    eq([n["name"] for n in shown(NAME)["nodes"]], ["h1", "h2", "s1", "r", "s2"], "has no collector")
    all_reach_all(NAME)
    run("down", NAME)
    bad = file_of(text.replace("h2", "collector"))
    got = run("up", bad)
    ok(got.returncode == 78 and "give yours another name" in got.stderr, "a node with the collector's name is refused", got.stderr)
    is_clean("nothing is left")


def test_traffic():
    """Sockets' accounts and those of the links agree."""
    path = file_of(f"name: {NAME}\nshape: leaf-spine:2x1x2\nevery_link: {{queue: 4MiB}}\n")
    eq(run("up", path).returncode, 0, "a lab")

    def traffic(*words):
        got = run("traffic", NAME, *words, "-o", "json")
        if got.returncode:
            tap.comment(got.stderr)
        return json.loads(got.stdout)

    t = traffic("udp", "h1", "h3", "--rate", "4M", "--duration", "500ms")
    s, r = t["senders"][0], t["receiver"]
    ok(s["sent"] > 0 and s["sent_bytes"] == 1000 * s["sent"] and s["failed"] == 0, "udp: datagrams are sent", t)
    eq((r["came"], r["came_bytes"]), (s["sent"], s["sent_bytes"]), "and all of them come")
    t = traffic("incast", "h1", "h2", "h4", "h3", "--rate", "20M", "--duration", "300ms")
    ok(all(s["sent"] > 0 for s in t["senders"]) and len(t["senders"]) == 3, "incast: three send", t)
    eq(t["receiver"]["came"], sum(s["sent"] for s in t["senders"]), "and all of it comes")
    t = traffic("onoff", "h1", "h3", "--rate", "20M", "--duration", "300ms", "--on", "5ms", "--off", "1h")
    ok(0 < t["senders"][0]["sent"] <= 13, "onoff: 5 ms of 20 Mb/s are 13 datagrams, then none", t)
    t = traffic("bulk", "h1", "h3", "--duration", "300ms")
    ok(t["senders"][0]["sent_bytes"] > 0, "bulk: TCP sends", t)
    eq(t["receiver"]["came_bytes"], t["senders"][0]["sent_bytes"], "and every byte comes")
    t = traffic("request", "h1", "h3", "--duration", "300ms")
    s, r = t["senders"][0], t["receiver"]
    eq((s["came"], r["came"], r["sent"]), (s["sent"],) * 3, "request: every request has its answer")
    ok(s["sent"] > 0 and 0 < s["mean_ns"] <= s["max_ns"], "in a time", t)
    t = traffic("dns", "h1", "h3", "--duration", "300ms", "--rate", "1M")
    s = t["senders"][0]
    ok(s["sent"] > 0 and s["came"] == s["sent"] and s["came_bytes"] == 200 * s["came"], "dns: every question has its answer", t)
    before = truth(NAME)["h1", "leaf1"]["line"]
    run("impair", NAME, "h1>leaf1", "loss=0.3")
    t = traffic("udp", "h1", "h3", "--rate", "8M", "--duration", "500ms")
    after = truth(NAME)["h1", "leaf1"]["line"]
    # Frames of 1042 bytes; the kernel's own are small and few.
    lost = (after["lost_bytes"] - before["lost_bytes"]) // 1042
    ok(lost > 0 and t["senders"][0]["sent"] == t["receiver"]["came"] + lost, f"sent = came + {lost} lost on the link", t)
    run("impair", NAME, "h1>leaf1", "down=yes")
    got = run("traffic", NAME, "bulk", "h1", "h3", "--duration", "300ms")
    ok(got.returncode == 1 and "timed out" in got.stderr, "bulk to whom no packet reaches ends", got.stderr)
    run("impair", NAME, "h1>leaf1", "down=no", "loss=0")
    before = truth(NAME)["h1", "leaf1"]["wire"]["delivered_bytes"]
    cut = subprocess.Popen([PATHLINE, "lab", "traffic", NAME, "bulk", "h1", "h3", "--duration", "6s", "-o", "json"],
                           stdout=subprocess.PIPE, text=True)
    wait(lambda: truth(NAME)["h1", "leaf1"]["wire"]["delivered_bytes"] > before + 100000)
    run("impair", NAME, "h1>leaf1", "down=yes")
    t = json.loads(cut.communicate(timeout=100)[0])
    ok(0 < t["receiver"]["came_bytes"] < t["senders"][0]["sent_bytes"], "and so does one that is cut off in the midst", t)
    for words, says in ((("udp", "h1", "h9"), "no node is called 'h9'"), (("ucp", "h1", "h3"), "no kind 'ucp'"),
                        (("udp", "h1", "h3", "--rate", "1"), "--rate is from")):
        got = run("traffic", NAME, *words)
        ok(got.returncode != 0 and says in got.stderr, f"refused: {says}", got.stderr)
    eq(run("down", NAME).returncode, 0, "down")
    is_clean("nothing is left")


QUEUE_LOSS = """SELECT i.block, i.packets - o.packets AS loss, q.n AS dropped
    FROM (SELECT block, sum(packets) AS packets FROM marks WHERE point = 3001 GROUP BY block) AS i
    JOIN (SELECT block, sum(packets) AS packets FROM marks WHERE point = 3502 GROUP BY block) AS o ON block
    LEFT JOIN (SELECT ts / 1s AS block, count(*) AS n FROM events
          WHERE event = 'packet_drop' and node = 3 and drop_reason = 71 GROUP BY ts / 1s) AS q ON block"""
LINK_LOSS = "SELECT point, sum(packets) AS loss FROM marks WHERE point = 3502 or point = 4002 GROUP BY point"
LINK_DROPS = "SELECT count(*) AS loss FROM events WHERE event = 'packet_drop' and node = 4 and exists(peer.node) GROUP BY node"


def test_causes():
    """Loss by marking has its cause: in the queue of a switch block by block, and on the link behind it."""
    text = f"""name: {NAME}
telemetry: none
marking: {{method: step}}
nodes: [{{name: h1}}, {{name: h2}}, {{name: s1, kind: switch}}, {{name: s2, kind: switch}}]
links:
  - {{ends: [h1, s1]}}
  - {{ends: [h2, s2]}}
  - {{ends: [s1, s2], rate: 1M, queue: 10kB}}
"""
    eq(run("up", file_of(text)).returncode, 0, "up")
    lab.undo(PATHLINE, "lab", "down", NAME)
    eq(run("impair", NAME, "s1>s2", "loss=0.1").returncode, 0, "a link that loses, behind a queue that fills")
    got = run("traffic", NAME, "udp", "h1", "h2", "--rate", "2M", "--duration", "3s", "-o", "json")
    t = json.loads(got.stdout)
    folder, link = f"{RUN}/{NAME}", truth(NAME)["s1", "s2"]["line"]

    marks, drops = (f"{folder}/s1.mark128", f"{folder}/s2.mark128"), (f"{folder}/truth", f"{folder}/truth-s1")

    def ask(question, sources=(*marks, *drops)):
        out = subprocess.run([PATHLINE, "query", "-o", "jsonl", question, *sources],
                             capture_output=True, text=True, check=False)
        return [json.loads(line) for line in out.stdout.splitlines() if "loss" in line] if out.returncode == 0 else out.stderr
    in_all = t["senders"][0]["sent"] - t["receiver"]["came"]
    ok(wait(lambda: sum(r["loss"] for r in ask(QUEUE_LOSS)) + link["lost_random"] == in_all), f"marking finds {in_all} losses, as hosts do", ask(QUEUE_LOSS))
    rows = ask(QUEUE_LOSS)
    eq([r for r in rows if r["loss"] != r.get("dropped", 0)], [], "in the queue block by block those that it dropped")
    ok(sum(r["loss"] for r in rows) > 0 and len([r for r in rows if r["loss"]]) >= 3, "in each block of the traffic", rows)
    passed = {r["point"]: r["loss"] for r in ask(LINK_LOSS, marks)}
    eq((passed[3502] - passed[4002], ask(LINK_DROPS, drops)[0]["loss"]), (link["lost_random"],) * 2, "and on the link those that it lost")
    eq(run("down", NAME).returncode, 0, "down")


def test_examples():
    """The networks that come with the guide."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "examples", "lab")
    names = sorted(n for n in os.listdir(folder) if n.endswith(".yaml"))
    ok(len(names) >= 5, f"{len(names)} examples")
    for n in names:
        with open(os.path.join(folder, n), encoding="utf-8") as f:
            text = f.read()
        own = f"{NAME}{n[0]}"
        text = re.sub(r"^name: .*$", f"name: {own}", text, flags=re.M)
        if n.startswith("marking"):
            text = text.replace("period: 8s", "period: 2s").replace("period: 16s", "period: 4s").replace("for: 64s", "for: 6s")
        path = file_of(text, n)
        up = run("up", path)
        eq((up.returncode, up.stderr), (0, ""), f"{n} comes up")
        if n == "dta.yaml":
            dta(own)
        elif n.startswith("marking"):
            four_switches(own, n)
        else:
            all_reach_all(own)
        if n == "intcollector.yaml":
            six_hops(own)
        eq(run("down", own).returncode, 0, f"{n} goes down")
    is_clean("nothing is left of them")


def four_switches(own, name):
    """What the points at both ends of the link that loses have counted is what its books have, and the pulse takes its delay."""
    ok(wait(lambda: "ended" in str(shown(own)["story"])), f"{name}: all is sent")
    ask = "SELECT block, point, sum(packets) AS packets, max(pulses) AS pulses, min(pulse_ns) AS pulse_ns FROM marks GROUP BY block, point"

    def seen():
        out = subprocess.run([PATHLINE, "query", "-o", "jsonl", ask, *(f"{RUN}/{own}/s{i}.mark128" for i in (1, 2, 3, 4))],
                             capture_output=True, text=True, check=False).stdout
        return [json.loads(line) for line in out.splitlines()]

    def total(rows, point):
        return sum(r["packets"] for r in rows if r["point"] == point)
    t = truth(own)
    ok(wait(lambda: total(seen(), 6001) == t["s2", "s4"]["line"]["out_packets"]), f"{name}: the last block is there")
    rows, line = seen(), t["s2", "s4"]["line"]
    ok(line["lost_random"] > 0 and total(rows, 4502) - total(rows, 6001) == line["lost_random"],
       f"{name}: what the link lost, {line['lost_random']} packets, is what marking says", rows)
    eq((total(rows, 3502), total(rows, 5001), total(rows, 6002)), (total(rows, 4001), 0, 0), f"{name}: no other link loses, and s3 is idle")
    at = {(r["block"], r["point"]): r for r in rows if r["pulses"] == 1}
    delays = [at[block, 6001]["pulse_ns"] - r["pulse_ns"] for (block, point), r in at.items() if point == 4502 and (block, 6001) in at]
    ok(delays and all(500_000_000 <= d < 5_000_000_000 for d in delays),
       f"{name}: the pulse of {len(delays)} blocks takes the link's time", delays)


def six_hops(own):
    """As many as INTCollector reads: the collector has paths of all six, in their order."""
    nodes = [n["name"] for n in shown(own)["nodes"]]
    way = [nodes.index(f"s{i}") + 1 for i in range(1, 7)]
    eq(run("traffic", own, "udp", "h1", "h2", "--duration", "200ms").returncode, 0, "intcollector: datagrams from h1 to h2")
    ok(wait(lambda: any([h["node"] for h in p["hops"]] == way for p in history(own, "query", "paths"))), "intcollector: a path has six hops",
       history(own, "query", "paths")[:1])


def dta(own):
    """A report comes through the translator into the collector's memory."""
    sent = exec_in(own, "reporter", PATHLINE, "report", "key-write", "-k", "hello", "-d", "1234", "udp://10.255.0.2:40040")
    eq(sent.returncode, 0, "dta: a report")
    ask = [PATHLINE, "region", "lookup", f"{RUN}/{own}/last.plr", "hello"]
    ok(wait(lambda: "31323334" in subprocess.run(ask, capture_output=True, text=True, check=False).stdout),
       "dta: is found in the collector's memory")


def test_descriptors():
    """Few are the shell's default, and not the lab's limit."""
    path = file_of(f"name: {NAME}\nshape: leaf-spine:4x2x4\nrun:\n  - {{node: h1, command: ulimit -n}}\n")
    got = run("up", path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096)))
    eq((got.returncode, got.stderr), (0, ""), "24 links where a process has 64 descriptors")
    ok(wait(lambda: open(f"{RUN}/{NAME}/h1.log", encoding="ascii").read() == "64\n"), "as many as commands have still")
    eq(run("down", path).returncode, 0, "down")
    is_clean("nothing is left")


def test_names():
    path = file_of(f"name: {NAME}\nshape: line:1\n")
    subprocess.run(["ip", "netns", "add", f"{NAME}-s1"], check=True)
    lab.undo("ip", "netns", "delete", f"{NAME}-s1")
    up = run("up", path)
    ok(up.returncode == 1 and f"'{NAME}-s1' already" in up.stderr, "a name that is taken is refused", up.stderr)
    eq(listed()["names"], [f"{NAME}-s1"], "it stays, and nothing was made")
    subprocess.run(["ip", "netns", "delete", f"{NAME}-s1"], check=True)
    is_clean("nothing is left")


def test_name_taken_meanwhile():
    """By somebody else, after the lab has looked: it is left alone too."""
    path = file_of(f"name: {NAME}\nshape: line:60\nevery_link: {{bare: true}}\n")
    theirs = f"/run/netns/{NAME}-s60"
    lab.undo("rm", "-f", theirs)
    process = subprocess.Popen([PATHLINE, "lab", "up", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not os.path.exists(f"/run/netns/{NAME}-h1") and process.poll() is None:
        pass
    try:
        with open(theirs, "x", encoding="ascii"):
            pass
    except FileExistsError:
        tap.comment("the lab was faster")
        process.communicate()
        run("down", path)
    else:
        ok("File exists" in process.communicate()[1], "a name that is taken meanwhile is refused")
        eq(listed()["names"], [f"{NAME}-s60"], "and stays")
        os.unlink(theirs)
    is_clean("nothing is left")


def test_read_once():
    """What a lab is made of is known while it is up, also when it came from a pipe."""
    got = run("up", "-", input=f"name: {NAME}\nshape: line:1\ntelemetry: none\n")
    eq((got.returncode, len(shown(NAME)["nodes"])), (0, 3), "a lab out of a pipe is shown")
    eq(run("down", NAME).returncode, 0, "and goes down")
    is_clean("nothing is left")


def test_refused():
    for text, code, says in ((f"name: {NAME}\nshape: lyne\n", 78, ":2:8: no shape 'lyne', did you mean 'line'?"),
                             (f"name: {NAME}\nnodes:\n  - {{name: a}}\n  - {{name: a}}\n", 78, ":4:12: 'a' is the name"),
                             ("\0\0\0", 78, ""), ("- [", 78, "")):
        got = run("up", file_of(text, "bad.yaml"))
        ok(got.returncode == code and says in got.stderr, f"refused: {says}", f"{got.returncode} {got.stderr}")
    eq(run("up", "/no/such/file").returncode, 78, "a file that is not there")
    eq(run("upp", "line").returncode, 2, "a word that is none")
    eq(run("up").returncode, 2, "no file")
    is_clean("nothing is left")


COMMANDS = f"""name: {NAME}
shape: line:2
run:
  - {{node: h1, command: 'echo begun; sh -c "sleep 1000; : {NAME}" & sh -c "sleep 1001; : {NAME}"'}}
"""


def keeper(name):
    try:
        with open(f"{RUN}/{name}/lock", encoding="ascii") as f:
            return int(f.read())
    except (OSError, ValueError):
        return 0


def ignore_signals():
    """All but two that nobody can ignore. By the system call: the C library has two for itself."""
    act = struct.pack("QQQQ", 1, 0, 0, 0)
    for signo in range(1, 65):
        lab.libc.syscall(RT_SIGACTION, signo, act, None, 8)


def test_commands():
    path = file_of(f"name: {NAME}\nshape: line:1\nrun:\n  - {{node: h1, command: grep SigIgn /proc/self/status}}\n")
    eq(run("up", path, preexec_fn=ignore_signals).returncode, 0, "a lab that is brought up by who ignores all signals")
    said = wait(lambda: re.fullmatch(r"SigIgn:\t(\w+)\n", open(f"{RUN}/{NAME}/h1.log", encoding="ascii").read())) or ["", "nothing"]
    ok(said[1] == "0" * 16, "whose commands ignore none" + ("" if said[1] == "0" * 16 else f": {said[1]}"))
    eq(run("down", path).returncode, 0, "and goes down")
    path = file_of(COMMANDS)
    end, inherited = os.pipe()
    eq(run("up", path, pass_fds=(inherited,)).returncode, 0, "a lab with commands")
    os.close(inherited)
    eq(os.read(end, 1), b"", "that keeps nothing open of whoever called")
    os.close(end)
    ok(wait(lambda: open(f"{RUN}/{NAME}/h1.log", encoding="ascii").read() == "begun\n"), "whose output is kept")
    inside = subprocess.Popen([PATHLINE, "lab", "exec", NAME, "h2", "--", "sleep", "1002"])
    ok(wait(lambda: "1002" in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
            .replace(f"{PATHLINE} lab exec {NAME} h2 -- sleep 1002", "")), "and one of exec")
    eq(run("down", path).returncode, 0, "down")
    ok(inside.wait(60) in (137, 143), "ends them all, that of exec too")
    is_clean("nothing is left")
    run("up", path)
    ending = subprocess.Popen([PATHLINE, "lab", "exec", NAME, "h2", "--", "sh", "-c",
                               "trap 'sleep 0.3; exit 5' TERM; echo ready; sleep 1003 & wait"], stdout=subprocess.PIPE, text=True)
    eq(ending.stdout.readline(), "ready\n", "a command of exec that needs a while to end")
    run("down", path)
    eq(ending.wait(60), 5, "has it")
    is_clean("nothing is left")


def test_other_mounts():
    """A lab that came up with mounts of its own is entered, and goes down, from outside."""
    path = file_of(f"name: {NAME}\nshape: line:1\n")
    eq(subprocess.run(["unshare", "-m", PATHLINE, "lab", "up", path], capture_output=True, check=False).returncode, 0, "a lab")
    got = exec_in(NAME, "h1", "cat", "/proc/net/dev")
    ok(got.returncode == 0 and " s1:" in got.stdout, "is entered from outside its mounts", got.stderr)
    eq(run("down", NAME).returncode, 0, "and goes down")
    is_clean("nothing is left")


def test_other_names():
    """Where the folder of names is another one, as in a container, names of a killed lab cannot be removed: it is left to who can."""
    path = file_of(f"name: {NAME}\nshape: line:1\n")
    script = f"mount -t tmpfs none /run/netns && {PATHLINE} lab up {path} && echo up && read go; {PATHLINE} lab show {path}; ls /run/netns | wc -l"
    inside = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while (line := inside.stdout.readline()) not in ("up\n", ""):
        pass
    pid = keeper(NAME)
    if not ok(pid > 0, "a lab"):
        return
    os.kill(pid, signal.SIGKILL)
    ok(wait(lambda: not os.path.exists(f"/proc/{pid}")), "the keeper is killed")
    wait(lambda: run("show", path).returncode != 0)
    eq(listed()["folders"], [NAME], "another view of the names leaves the folder")
    out, _ = inside.communicate("\n")
    eq(out.splitlines()[-1:], ["0"], "who sees the names removes them")
    is_clean("and nothing is left")


def test_other_pids():
    """In another PID namespace the number of a lab's process is somebody else's, who is left alone."""
    path = file_of(f"name: {NAME}\nshape: line:1\n")
    script = f"{PATHLINE} lab up {path} && echo up && read wait; {PATHLINE} lab down {path}"
    inside = subprocess.Popen(["unshare", "-pf", "--mount-proc", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while (line := inside.stdout.readline()) not in ("up\n", ""):
        pass
    other = subprocess.Popen(["sleep", "1004"])
    with open(f"{RUN}/{NAME}/lock", "r+", encoding="ascii") as f:
        own = f.read()
        f.seek(0)
        f.write(f"{other.pid}\n")
        f.truncate()
    got = run("down", NAME)
    ok(got.returncode == 1 and "PID namespace" in got.stderr, "down says so", f"{line} {got.returncode} {got.stderr}")
    ok(other.poll() is None, "and ends nobody")
    other.kill()
    other.wait()
    with open(f"{RUN}/{NAME}/lock", "w", encoding="ascii") as f:
        f.write(own)
    inside.communicate("\n")
    eq(inside.returncode, 0, "from within it goes down")
    is_clean("nothing is left")


def test_interrupted():
    """Ctrl-C while a lab comes up takes it down, says so, and comes back when nothing is left."""
    path = file_of(f"name: {NAME}\nshape: line:1\nrun:\n  - {{node: h1, name: slow, command: exec sleep 1000, ready: never}}\n")
    for number in (signal.SIGINT, signal.SIGTERM):
        up = subprocess.Popen([PATHLINE, "lab", "up", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lab.running.append(up)
        ok(wait(lambda: len(listed()["names"]) == 5 and any("sleep" in p for p in processes_of("slow"))), "a lab that never is ready")
        up.send_signal(number)
        out, err = up.communicate(timeout=120)
        lab.running.remove(up)
        left = listed()
        eq((left["names"], left["folders"]), ([], []), f"{number.name}: no name and no folder is left as it ends")
        ok(up.returncode == 1 and out == "" and "the lab is taken down" in err and "all of it was removed" in err, "and it says so", err)
        is_clean("nothing is left")


def processes_of(name):
    """Command lines of those that run below the lab's folder, when NAME.log is there."""
    if not os.path.exists(f"{RUN}/{NAME}/{name}.log"):
        return []
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == f"{RUN}/{NAME}":
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    found.append(f.read().decode(errors="replace"))
        except OSError:
            continue
    return found


def test_killed():
    path = file_of(COMMANDS)
    eq(run("up", path).returncode, 0, "a lab")
    os.kill(keeper(NAME), signal.SIGKILL)
    ok(wait(lambda: not listed()["processes"]), "its commands end with it")
    # A process that is ending may hold its lock for a moment yet.
    wait(lambda: run("show", path).returncode != 0 and not listed()["folders"])
    is_clean("and the next call leaves nothing of it")


def test_killed_in_the_midst():
    path = file_of(f"name: {NAME}\nshape: leaf-spine:4x2x2\n")
    draw, came = random.Random(7), set()
    for i in range(16):
        process = subprocess.Popen([PATHLINE, "lab", "up", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0, 0.15))
        came.add(len(listed()["names"]))
        # The command, its keeper, or both.
        if i % 3 != 1:
            process.kill()
        if i % 3 != 0 and keeper(NAME):
            try:
                os.kill(keeper(NAME), signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()
        # Whom the signal came too early or too late for, has a lab that is up: then it goes down.
        wait(lambda: run("down", path).returncode == 0 or not listed()["folders"])
        if not wait(lambda: listed() == CLEAN):
            break
    eq(listed(), CLEAN, f"killed 16 times, with {sorted(came)} namespaces made: nothing is left")
    eq(run("up", path).returncode, 0, "and it comes up")
    eq(run("down", path).returncode, 0, "and goes down")
    is_clean("nothing is left")


def test_unprivileged():
    # The program, where that user can read it.
    program = lab.path("pathline")
    subprocess.run(["cp", PATHLINE, program], check=True)
    os.chmod(lab.DIR, 0o755)
    path = file_of(f"name: {NAME}\nshape: diamond\n")
    os.chmod(path, 0o644)
    env = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    program_of[0] = program
    try:
        up = run("up", path, "-o", "json", user="65534", env=env, cwd="/")
        ok(up.returncode == 0 and json.loads(up.stdout)["tier"] == "unprivileged", "up, without root", up.stderr)
        eq(listed()["names"], [], "no name in /run/netns")
        all_reach_all(path, user="65534", env=env, cwd="/")
        pid = shown(NAME, user="65534", env=env, cwd="/")["pid"]
        eq(run("down", path, user="65534", env=env, cwd="/").returncode, 0, "down")
        ok(wait(lambda: not os.path.exists(f"/proc/{pid}")), "its process is gone")
        eq(os.listdir("/tmp/pathline-65534/lab"), [], "and its folder")
        is_clean("nothing is left")
        no_rights = ("echo 0 > /proc/sys/user/max_user_namespaces && "
                     f"exec setpriv --bounding-set -all --inh-caps -all {program} lab up --tier unprivileged {path}")
        got = subprocess.run(["unshare", "-Ur", "sh", "-c", no_rights], capture_output=True, text=True, check=False, env=env)
        ok(got.returncode == 77 and "run as root" in got.stderr, "without any right it says what to do, and 77",
           f"{got.returncode} {got.stderr}")
    finally:
        program_of[0] = PATHLINE


os.makedirs("/run/netns", exist_ok=True)
CLEAN = listed()
lab.undo(PATHLINE, "lab", "down", NAME)
lab.run(test_leaf_spine, test_dry_run, test_many_paths, test_impair, test_each_impairment, test_switches, test_mixed, test_traffic, test_causes, test_examples, test_descriptors, test_names, test_name_taken_meanwhile, test_read_once, test_refused, test_commands, test_other_mounts, test_other_names, test_other_pids, test_interrupted, test_killed, test_killed_in_the_midst,
        test_unprivileged)
sys.exit(tap.end())
