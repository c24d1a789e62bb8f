#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""History in regions: a daemon is sent reports whose decoded form is known from a capture of the same packets, is killed
in their midst, started again, reloaded and stopped; every record that tail and query read out of the regions is compared.
Readers that are overtaken, a second daemon, a full disk, another size. usage: history.py PATHLINE [TEST…]"""

import collections
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap  # noqa: E402
from lib.lab import DIR, free_udp_port  # noqa: E402
from lib.pathline import PATHLINE, run  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402


def rows(*args):
    r = run(*args, "-o", "jsonl")
    return [json.loads(line) for line in r.stdout.splitlines()], r


def drops(output):
    return output["dropped"] if isinstance(output["dropped"], int) else sum(output["dropped"].values())


class Daemon(pathline.Daemon):
    def __init__(self, name, folder, keep="", outputs="", ready=True, sizes=(32768, 65536)):
        self.port = free_udp_port()
        self.folder, self.sizes = folder, sizes
        super().__init__(self.write_config(name, keep, outputs), name, ready)

    def write_config(self, name, keep, outputs=""):
        flows, queues = self.sizes
        return lab.write(name + ".yaml",
                         f"sources:\n  - uri: udp://127.0.0.1:{self.port}\n    rcvbuf: 16MiB\n"
                         f"outputs:\n  - type: region\n    name: history\n    path: {self.folder}\n    queue: 1048576\n"
                         f"    keep: {{flows: {flows}, queues: {queues}{keep}}}\n{outputs}"
                         f"web: {{listen: '127.0.0.1:0'}}\n")

    def get(self, path):
        """What is there, from JSON; anything but that is raised."""
        status, body, _ = self.fetch(path)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {body.decode()}")
        return json.loads(body)

    def output(self):
        return [o for o in self.get("/api/v1/status")["outputs"] if o["name"] == "history"][0]

    def settled(self, reports):
        """So many reports came, and all that came of them is in the regions."""
        def done():
            """all is received and in the regions"""
            s = self.get("/api/v1/status")
            o = [o for o in s["outputs"] if o["name"] == "history"][0]
            return s["packets"]["received"] >= reports and o["waiting"] == 0 and o["delivered"] + drops(o) == o["offered"]
        return wait(done)

    def kill(self):
        self.p.kill()
        self.p.wait()


# ---- what is sent, and what must come of it ----

def udp_payloads(path):
    """Payloads of a capture of Ethernet, IPv4, UDP."""
    return [frame[14 + (frame[14] & 15) * 4 + 8:] for frame in pcap.frames_of(path)]


def essence(record):
    """A path without what depends on when and by which way it came."""
    kept = {k: v for k, v in record.items() if k not in ("ts_ns", "exporter", "exporter_port", "report_id")}
    # A daemon waits for proof of the exporters' numbers, which reading a capture does not.
    return kept | ({"flags": {k: v for k, v in kept["flags"].items() if k != "unproven"}} if "flags" in kept else {})


def make_load(n):
    load = os.path.join(DIR, "load.pcap")
    run("gen", "int", "-w", load, "-n", n, "-r", "5000", "--drop", "0.05", "--flows", "60", "--queue-report", "150", check=True)
    r = run("read", "-o", "jsonl", load)
    return udp_payloads(load), [essence(json.loads(line)) for line in r.stdout.splitlines()]


LOAD = 6000
SLICE = 256  # records that are written together
PAYLOADS, EXPECTED = make_load(LOAD)


def send(port, first, n):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i in range(first, first + n):
        s.sendto(PAYLOADS[i], ("127.0.0.1", port))
        if i % 20 == 19:
            time.sleep(0.005)
    s.close()


def paths_of(folder):
    return rows("tail", "--from", folder, "--paths")


def compare(records, expected, name):
    got = [essence(r) for r in records]
    if got == expected:
        return ok(True, name)
    wrong = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
    return ok(False, name, f"{len(got)} of {len(expected)}, from number {wrong} on\n{got[wrong:wrong + 1]}\n"
              f"{expected[wrong:wrong + 1]}")


# ---- tests ----

def test_restart():
    eq((len(PAYLOADS), len(EXPECTED)), (LOAD, LOAD), "a report in each packet")
    folder = os.path.join(DIR, "restart")
    jsonl = os.path.join(DIR, "restart.jsonl")
    # The detector would say of a restart what it says of a first report: two files of the same run are compared.
    # A key whose two slots others have written over is not found, and the seed is drawn: of 60 flows in 131072 slots one is
    # gone in 17 of a million runs, of the 97 nodes, ports and queues in 524288 slots in 4.
    d = Daemon("restart", folder, outputs=f"  - path: {jsonl}\n    queue: 1048576\n", sizes=(131072, 524288))
    follow_out = open(os.path.join(DIR, "follow.out"), "w")
    follower = lab.start([PATHLINE, "tail", "--from", folder, "--follow", "--paths", "-o", "jsonl"], stdout=follow_out,
                         stderr=subprocess.PIPE, text=True)
    send(d.port, 0, 1000)
    ok(d.settled(1000), "1000 reports are in the regions")
    o = d.output()
    eq((o["offered"], drops(o)), (o["delivered"], 0), "offered = delivered")
    records, r = paths_of(folder)
    eq((r.returncode, r.stderr), (0, ""), "tail --from while it is written")
    compare(records, EXPECTED[:1000], "paths with their hops are what was sent")
    with open(jsonl) as f:
        events = [line for line in f if line.startswith('{"kind":"event"') and line.endswith("\n")]
    ok(len(events) > 0, f"{len(events)} events")

    def told():
        """As many of them; levels end by themselves, and each output has its own time."""
        return run("tail", "--from", folder, "--events", "-o", "jsonl").stdout.splitlines(keepends=True)[:len(events)]
    wait(lambda: len(told()) == len(events))
    eq(told(), events, "are those of the other output")

    # Killed while reports come.
    pid = os.fork()
    if pid == 0:
        send(d.port, 1000, 2000)
        os._exit(0)
    ok(wait(lambda: int(d.get("/api/v1/status")["packets"]["received"]) > 1300), "reports come")
    d.kill()
    os.waitpid(pid, 0)
    records, r = paths_of(folder)
    before = len(records)
    eq(r.stderr, "", "nothing is damaged")
    ok(1000 < before <= 3000, f"{before} reports are there after the kill")
    compare(records, EXPECTED[:before], "and are what was sent")
    for name in ("events", "paths", "hops"):
        r = run("region", "verify", os.path.join(folder, name + ".region"), "-o", "jsonl")
        v = json.loads(r.stdout)
        eq((r.returncode, v["damaged"], v["closed"]), (0, 0, False), f"{name}: every entry is whole, not closed")
    n_events = len(rows("query", "events", folder)[0])

    # Started again: goes on behind.
    d.start()
    old = d.get("/api/v1/events?limit=1000")["rows"]
    eq(len(old), min(n_events, 1000), "the events of the first run are on the API before anything comes")
    send(d.port, 3000, 1500)
    ok(d.settled(1500), "the second run's reports are in the regions")
    records, r = paths_of(folder)
    compare(records, EXPECTED[:before] + EXPECTED[3000:4500], "history is whole over the kill")

    # A reload keeps it open; other sizes are refused until a restart.
    d.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: "is in use" in d.log()), "a reload")
    d.write_config("restart", ", events: 1024", f"  - path: {jsonl}\n    queue: 1048576\n")
    d.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: "keep of history is not changed while running" in d.log()), "another size is refused")
    send(d.port, 4500, 500)
    ok(d.settled(2000), "reports after the reload are in the regions")
    eq(d.stop(), 0, "SIGTERM: exit code 0")
    records, r = paths_of(folder)
    want = EXPECTED[:before] + EXPECTED[3000:5000]
    compare(records, want, "history is whole over reload and end")
    r = run("region", "info", os.path.join(folder, "paths.region"), "-o", "jsonl")
    eq(json.loads(r.stdout)["clean"], True, "closed")
    # Who asked for another size meanwhile is told at the start.
    r = run("run", "-c", d.config)
    ok(r.returncode == 78 and "events.region was made for another size than 1024" in r.stderr,
       "a start with another size is refused", r.stderr)

    wait(lambda: sum(1 for _ in open(follow_out.name)) >= len(want))
    follower.send_signal(signal.SIGINT)
    err = follower.communicate(timeout=60)[1]
    with open(follow_out.name) as f:
        compare([json.loads(line) for line in f], want, "a follower saw all of it, over kill and restart")
    eq((follower.returncode, err), (0, ""), "and lost nothing")
    # A killed daemon may have written records and not yet what they are the last of.
    queries(folder, want, [EXPECTED[:k] + EXPECTED[3000:5000] for k in range(before - SLICE, before)])
    selects(folder)


def flow_text(p):
    f = p["flow"]
    if "sport" not in f:
        return f"{f['src']},{f['dst']}/{f['proto']}"
    return f"{f['src']}:{f['sport']},{f['dst']}:{f['dport']}/{f['proto']}"


def last_hops(records):
    """Of each node, port and queue, by what lookup queue takes."""
    last = {}
    for p in records:
        for h in p["hops"]:
            for key in (f"{h['node']}", f"{h['node']}/{h.get('egress_port')}",
                        f"{h['node']}/{h.get('egress_port')}/{h.get('queue')}"):
                if "None" not in key:
                    last[key] = h
    return last


def last_paths(records):
    return {flow_text(p): p for p in records if "flow" in p}


def drops_of(records):
    """How many packets were dropped by each node, and by each node for each reason, by what lookup drops takes."""
    drops = {}
    for p in records:
        if p["flags"]["dropped"] and "node" in p:
            keys = [f"{p['node']}"] + ([f"{p['node']}/{p['drop_reason']}"] if "drop_reason" in p else [])
            for key in keys:
                drops[key] = drops.get(key, 0) + 1
    return drops


def queries(folder, want, or_else):
    """want: every record; or_else: those that the last values, and the counts, may be of as well."""
    # What is known by records alone that may not have been the last of anything yet is not asked for.
    others = [last_paths(records) for records in or_else]
    last = {k: p for k, p in last_paths(want).items() if all(k in x for x in others)}
    found, r = rows("lookup", "flow", folder, *last)
    eq(len(found), len(last), "each flow is found")
    wrong = [(k, p) for k, p in zip(last, map(essence, found)) if p != last[k] and all(p != x.get(k) for x in others)]
    ok(not wrong, "the last path of each flow, by flow", wrong[:1])
    r = run("lookup", "flow", folder, "-", "-o", "jsonl", input="\n".join(last) + "\n10.9.9.9:1,10.9.9.8:2\n")
    eq((len(r.stdout.splitlines()), r.returncode, r.stderr),
       (len(last), 3, "pathline: 10.9.9.9:1,10.9.9.8:2: not found\n"), "keys from standard input, one of them unknown")
    others = [last_hops(records) for records in or_else]
    queues = {k: h for k, h in last_hops(want).items() if all(k in x for x in others)}
    found, r = rows("lookup", "queue", folder, *queues)
    eq(len(found), len(queues), "each queue is found")
    found = [{k: v for k, v in h.items() if k not in ("kind", "ts_ns", "report_id", "path_id")} for h in found]
    wrong = [(k, h) for k, h in zip(queues, found) if h != queues[k] and all(h != x.get(k) for x in others)]
    ok(not wrong, "the last hop of each node, port and queue", wrong[:1])
    drops = drops_of(want)
    # A killed daemon may not have counted the drops of the slice it was killed in.
    fewest = [drops_of(records) for records in or_else]
    least = {key: min(few.get(key, 0) for few in fewest) for key in drops}
    found, r = rows("lookup", "drops", folder, *drops)
    ok(len(drops) > 2, f"{sum(drops.values())} drops")
    ok(all(least[key] <= f["value"] <= n + f["error"] for f, (key, n) in zip(found, drops.items()))
       and len(found) == len(drops),
       "drops by node and reason, within the error", f"{found}\n{drops}\n{least}")
    found, r = rows("query", "paths", folder, "--where", "flags.dropped", "--from", "1000")
    eq([essence(p) for p in found], [p for p in want[1000:] if p["flags"]["dropped"]], "an expression, from a number")
    found, r = rows("query", "hops", folder, "--where", "queue_depth > 100")
    eq(len(found), sum(h.get("queue_depth", 0) > 100 for p in want for h in p["hops"]), "hops by themselves")
    # A short form is a question: the text that it stands for has the same answer.
    for words in (("paths", "--where", "flags.dropped or hops.queue_depth > 100", "--since", "1h"), ("hops", "--where", "queue_depth > 100 or node == 3"),
                  ("events", "-n", "5"), ("events", "--where", "phase != end", "--until", "2020-01-01T00:00:00Z")):
        text = run("query", f"EXPLAIN {words[0]}", *words[1:]).stdout.splitlines()[0]
        by_text, r = rows("query", text, folder)
        found, r = rows("query", *words[:1], folder, *words[1:])
        eq((text.startswith(f"SELECT * FROM {words[0]}"), [e["ts_ns"] for e in found]), (True, [e["ts_ns"] for e in by_text]),
           f"{' '.join(words)} is {text}")
    r = run("query", "explain events", "--where", "query == x and node == 3", "-n", "4", "--last", "9")
    ok(r.stdout.startswith("SELECT * FROM events WHERE (query == x and node == 3) LIMIT 4\n") and "-- --last 9" in r.stdout,
       "what is not of the language is said", r.stdout)
    r = run("query", "events", folder, "--where", "query == x")
    eq((r.returncode, r.stderr), (3, ""), "and works")
    r = run("query", "paths", folder, "--last", "7", "-n", "3", "--show-next", "-o", "jsonl")
    eq([essence(json.loads(line)) for line in r.stdout.splitlines()], want[-7:-4], "the last ones")
    eq(r.stderr, f"pathline: next entry: {len(want) - 4}\n", "and where they end")
    stamps = [p["ts_ns"] for p in rows("query", "paths", folder)[0]]
    middle = stamps[len(stamps) // 2]
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(middle // 10**9)) + f".{middle % 10**9:09}Z"
    eq(len(rows("query", "paths", folder, "--since", text)[0]), sum(s >= middle for s in stamps), "since")
    eq(len(rows("query", "paths", folder, "--until", text)[0]), sum(s < middle for s in stamps), "until")
    for form in ("table", "wide", "csv", "text", "json"):
        r = run("tail", "--from", folder, "--paths", "-n", "50", "-o", form)
        n = len(json.loads(r.stdout)) if form == "json" else len(r.stdout.splitlines())
        least = 50 + (form in ("table", "wide", "csv"))
        ok(r.returncode == 0 and n >= least, f"tail --from in the form {form}", r.stderr)
    both, r = rows("tail", "--from", folder)
    stamps = [e["ts_ns"] for e in both]
    ok(stamps == sorted(stamps) and {e["kind"] for e in both} == {"path", "event"},
       "events and paths come in the order of time")


def table(question, *sources):
    """Rows of a SELECT as a list of tuples, in order; absent values are None."""
    found, r = rows("query", question, *sources)
    if r.returncode != 0 or r.stderr:
        return r.stderr
    # What every row says behind the question's columns is left out.
    return sorted((tuple(v for k, v in row.items() if k not in ("window_end", "first_ts", "late", "exp", "final", "incomplete"))
                   for row in found), key=str)


def counts(keys):
    return sorted(((k if isinstance(k, tuple) else (k,)) + (n,) for k, n in collections.Counter(keys).items()), key=str)


def deepest(hops, key):
    """By key: the greatest queue depth, and how many hops."""
    groups = collections.defaultdict(list)
    for h in hops:
        groups[key(h)].append(h.get("queue_depth"))
    return sorted((k + (max((d for d in depths if d is not None), default=None), len(depths))
                   for k, depths in groups.items()), key=str)


def selects(folder):
    """Questions over a history: against sums in Python over what tail prints."""
    paths, r = paths_of(folder)
    hops = [h | {"ts": p["ts_ns"], "flow": p.get("flow", {})} for p in paths for h in p["hops"]]
    question = "SELECT node, max(queue_depth) AS deepest, count(*) AS n FROM hops{} GROUP BY node"
    eq(table(question.format(""), folder), deepest(hops, lambda h: (h.get("node"),)), "hops by node")
    eq(table(question.format(" TUMBLE(ts, 100ms)"), folder, "--lateness", "10s"),
       deepest(hops, lambda h: (h["ts"] // 10**8 * 10**8, h.get("node"))), "hops by node and window")
    eq(table("SELECT flow.dst, count(*) AS n FROM hops WHERE flow.proto = 17 GROUP BY flow.dst", folder),
       counts(h["flow"]["dst"] for h in hops if h["flow"].get("proto") == 17), "hops by the flow of their path")
    where = "any hop (queue_depth > 100 and node != 1) or flags.dropped"
    some, r = rows("query", "paths", folder, "--where", where)
    ok(0 < len(some) < len(paths), f"{len(some)} paths of {len(paths)} with --where")
    eq(table(f"SELECT flow.src, mode, count(*) AS n FROM paths WHERE {where} GROUP BY flow.src, mode", folder),
       counts((p.get("flow", {}).get("src"), p["mode"]) for p in some), "and as many with WHERE")
    events, r = rows("tail", "--from", folder, "--events")
    eq(table("SELECT event, phase, count(*) AS n FROM events GROUP BY event, phase", folder),
       counts((e["event"], e["phase"]) for e in events), f"{len(events)} events by kind and phase")
    load = os.path.join(DIR, "load.pcap")
    eq(table(question.format(""), load), deepest((h for p in EXPECTED for h in p["hops"]), lambda h: (h.get("node"),)),
       "hops of a capture")
    r = run("query", "SELECT count(*) AS n FROM events", load)
    ok(r.returncode == 2 and "a capture has paths and hops" in r.stderr, "a capture has no events", r.stderr)
    r = run("query", "SELECT count(*) AS n FROM paths", os.path.join(folder, "events.region"))
    ok(r.returncode != 0 and "no such list" in r.stderr, "nor a list of events paths", r.stderr)


def top(folder, screen, *args):
    r = run("top", "--from", folder, "--batch", "-o", "json", "--screen", screen, "--rows", "1000", *args)
    return (json.loads(r.stdout.splitlines()[-1]) if r.returncode == 0 else {"rows": []}), r


def test_top():
    """What top shows of a history is what the daemon showed, whether there is one or not."""
    folder = os.path.join(DIR, "top")
    d = Daemon("top", folder)
    send(d.port, 0, 2500)
    ok(d.settled(2500), "2500 reports are in the regions")
    screens = ("queues", "links", "ports", "paths", "events")
    ok(wait(lambda: sum(r["packets"] for r in d.get("/api/v1/paths?limit=1000")["rows"]) ==
                  sum(r["packets"] for r in top(folder, "paths")[0]["rows"])), "the daemon has counted them")
    live = {s: d.get(f"/api/v1/{s}?limit=1000") for s in screens}

    def rows_of(doc, without=("depth_max", "utilization_max")):
        return sorted(json.dumps({k: v for k, v in r.items() if k not in without}, sort_keys=True) for r in doc["rows"])
    # Levels end by themselves, one after the other, some time after the last report.
    ok(wait(lambda: rows_of(top(folder, "events")[0]) == rows_of(d.get("/api/v1/events?limit=1000"))) and
       len(top(folder, "events")[0]["rows"]) > 10, "events, as the daemon shows them")
    for s in screens[:-1]:
        doc, r = top(folder, s)
        ok(len(doc["rows"]) > 10 and rows_of(doc) == rows_of(live[s]) and doc["matched"] == live[s]["matched"],
           f"{s}: {len(doc['rows'])} rows, as the daemon shows them", f"{r.stderr}\n{rows_of(doc)[:2]}\n{rows_of(live[s])[:2]}")
    deepest = {}
    for p in paths_of(folder)[0]:
        for h in p["hops"] if not p["flags"]["unproven"] else []:
            if "queue_depth" in h and "queue" in h and "egress_port" in h:
                key = h["node"], h["egress_port"], h["queue"]
                deepest[key] = max(deepest.get(key, 0), h["queue_depth"])
    doc, r = top(folder, "queues")
    eq({(q["node"], q["port"], q["queue"]): q["depth_max"] for q in doc["rows"]
        if "depth_max" in q and "queue" in q and "port" in q}, deepest, "the deepest is that of the whole history")
    doc, r = top(folder, "queues", "--where", "node == 3 and depth > 20", "--sort", "packets")
    want = sorted((q["packets"] for q in live["queues"]["rows"] if q["node"] == 3 and q["depth"] > 20), reverse=True)
    eq([q["packets"] for q in doc["rows"]], want, "filtered and in order")
    # While it is written, an answer has what came since the last one.
    p = lab.start([PATHLINE, "top", "--from", folder, "--batch", "-o", "json", "--screen", "paths", "--rows", "1000",
                   "--times", "100000", "--interval", "250ms"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seen = [sum(r["packets"] for r in json.loads(p.stdout.readline())["rows"])]
    send(d.port, 2500, 500)
    ok(d.settled(3000), "500 more")
    want = sum(r["packets"] for r in top(folder, "paths")[0]["rows"])
    wait(lambda: seen.append(sum(r["packets"] for r in json.loads(p.stdout.readline())["rows"])) or seen[-1] >= want)
    ok(seen[0] < want == seen[-1] and seen == sorted(seen), "who watches sees them", seen)
    p.terminate()
    p.communicate(timeout=60)
    before = {s: rows_of(top(folder, s)[0], ()) for s in screens}
    d.kill()
    after = {s: rows_of(top(folder, s)[0], ()) for s in screens}
    ok(set(before.pop("events")) <= set(after.pop("events")), "events are there while the daemon is dead")
    eq(after, before, "so is all else")
    r = run("top", "--from", folder, "--batch", "--screen", "events")
    ok(r.returncode == 0 and "history of" in r.stdout and "reports 3000" in r.stdout and "TIMEv" in r.stdout, "as a table",
       r.stdout + r.stderr)
    doc, r = top(folder, "paths", "--since", "2040-01-01T00:00:00Z")
    eq((doc["rows"], r.returncode), ([], 0), "nothing is younger than the future")
    for s in ("exporters", "drops", "flows"):
        r = top(folder, s)[1]
        ok(r.returncode == 2 and f"{s} are known while the daemon runs" in r.stderr, f"{s} are not in a history", r.stderr)
    eq([run("top", "--batch", *args).returncode for args in (
        ("--from", os.path.join(DIR, "nowhere")), ("--from", folder, "--url", "http://127.0.0.1:1"), ("--since", "1m"),
        ("--from", folder, "--since", "soon"))], [69, 2, 2, 2], "what cannot be asked")


def test_overrun():
    folder = os.path.join(DIR, "overrun")
    d = Daemon("overrun", folder, keep=", paths: 256, hops: 2048, events: 64")
    out = open(os.path.join(DIR, "overrun.out"), "w")
    p = lab.start([PATHLINE, "tail", "--from", folder, "--follow", "--paths", "--show-loss", "-o", "jsonl"], stdout=out,
                  stderr=subprocess.PIPE, text=True)
    send(d.port, 0, 100)
    ok(wait(lambda: sum(1 for _ in open(out.name)) == 100), "a reader has what there is")
    p.send_signal(signal.SIGSTOP)
    send(d.port, 100, 1900)
    ok(d.settled(2000), "it is stopped while the list goes round")
    p.send_signal(signal.SIGCONT)
    ok(wait(lambda: any(line.startswith('{"kind":"dropped"') for line in open(out.name))),
       "then it is told what it lost, in its place")
    send(d.port, 2000, 50)
    last = EXPECTED[2049]

    def at_the_end():
        """the reader has the last record"""
        lines = open(out.name).read().splitlines()
        return len(lines) > 101 and essence(json.loads(lines[-1])) == last
    ok(wait(at_the_end), "and goes on to the end")
    p.send_signal(signal.SIGINT)
    err = p.communicate(timeout=60)[1]
    with open(out.name) as f:
        lines = [json.loads(line) for line in f]
    lost = sum(x["count"] for x in lines if x["kind"] == "dropped")
    records = [x for x in lines if x["kind"] == "path"]
    eq(len(records) + lost, 2050, "read + overwritten = sent")
    ok(lost >= 2000 - 100 - 256 - 2 * 64, "most of it was overwritten", lost)
    at, good = 0, True
    for r in records:
        e = essence(r)
        while at < 2050 and EXPECTED[at] != e:
            at += 1
        good = good and at < 2050
        at += 1
    ok(good, "what was read is what was sent, in its order")
    ok(f"{lost} entries were overwritten" in err, "the sum is told at the end", err)
    eq(d.stop(), 0, "stopped")


def test_refused():
    folder = os.path.join(DIR, "refused")
    d = Daemon("refused", folder)
    other = Daemon("refused2", folder, ready=False)
    eq(other.p.wait(timeout=60), 69, "a second daemon on one folder ends")
    ok(f"is being written by process {d.p.pid}" in other.log(), "and is told who writes", other.log())
    eq(d.stop(), 0, "the first one goes on")

    # Someone cuts a file under the daemon: it is told, counted, mended by SIGHUP.
    d.start()
    send(d.port, 0, 10)
    d.settled(10)
    os.truncate(os.path.join(folder, "hops.region"), 4096)
    send(d.port, 10, 10)
    ok(wait(lambda: "was truncated while it was open" in d.log()), "a cut file is told", d.log())
    status, body, _ = d.fetch("/readyz?verbose")
    ok("was truncated while it was open" in body.decode(), "and not ready", body.decode())
    ok(status != 200, "not ready", status)
    os.unlink(os.path.join(folder, "hops.region"))
    d.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: "writing again" in d.log()), "taken away and with SIGHUP, it is made anew", d.log())
    n = len(rows("query", "hops", folder)[0])
    send(d.port, 20, 10)
    d.settled(30)
    ok(wait(lambda: len(rows("query", "hops", folder)[0]) > n), "and written")
    eq(d.stop(), 0, "stopped")


def test_damaged():
    """One file that was cut while nothing ran costs neither readers nor the daemon the others."""
    folder = os.path.join(DIR, "damaged")
    d = Daemon("damaged", folder)
    send(d.port, 0, 100)
    d.settled(100)
    eq(d.stop(), 0, "stopped")
    events, r = rows("query", "events", folder)
    code = r.returncode
    queue = str(paths_of(folder)[0][0]["hops"][0]["node"])
    was = rows("lookup", "queue", folder, queue)[0]
    os.truncate(os.path.join(folder, "paths.region"), 10000)
    cut = "paths.region: the file is truncated"
    got, r = rows("query", "events", folder)
    ok((got, r.returncode) == (events, code) and cut in r.stderr, "events are read, the cut file is named", r.stderr)
    got, r = rows("lookup", "queue", folder, queue)
    ok((got, r.returncode) == (was, 0) and cut in r.stderr and len(was) == 1, "queues too", r.stderr)
    got, r = rows("query", "paths", folder)
    ok((got, r.returncode) == ([], 1) and cut in r.stderr and "no such list" not in r.stderr, "what is damaged is no list that "
       "is not there", r.stderr)
    got, r = rows("tail", "--from", folder)
    ok(got == events and r.returncode == 1 and cut in r.stderr, "tail reads the rest, and does not call it all", r.stderr)
    r = run("lookup", "drops", folder, "3")
    r2 = run("lookup", "drops", os.path.join(folder, "drops.region"), "3")
    ok(r.stdout == r2.stdout and r.returncode == r2.returncode != 1 and r2.stderr == "", "drops from their file", r2.stderr)
    d.start()
    ok(cut in d.log() and "paths.region.damaged" in d.log(), "the daemon starts, and says what it put away", d.log())
    eq(os.path.getsize(os.path.join(folder, "paths.region.damaged")), 10000, "which is still there")
    send(d.port, 0, 10)
    d.settled(10)
    eq(d.stop(), 0, "stopped")
    got, r = rows("query", "paths", folder)
    ok(len(got) == 10 and r.returncode == 0 and r.stderr == "", "a new list of paths", r.stderr)
    ok(len(rows("query", "events", folder)[0]) >= len(events), "the old one of events")


def test_full_disk():
    mount = os.path.join(DIR, "small")
    if not lab.mount(mount, "4m"):
        skip("a full disk", "tmpfs cannot be mounted")
        return
    folder = os.path.join(mount, "history")
    d = Daemon("full", folder, keep=", events: 1024, paths: 1024, hops: 1048576", ready=False)
    eq(d.p.wait(timeout=60), 69, "a full disk at creation ends the start")
    ok("hops.region: cannot allocate the region: No space left on device" in d.log(), "and says so", d.log())
    eq(os.listdir(mount), [], "nothing is left behind")
    # What fits is taken at once: no full disk later.
    d.sizes = 512, 4096
    d.write_config("full", ", events: 1024, paths: 1024, hops: 4096")
    d.start()
    eq(d.p.poll(), None, "smaller, it starts")
    if d.p.poll() is None:
        with open(os.path.join(mount, "rest"), "wb") as f:
            try:
                while True:
                    f.write(bytes(65536))
                    f.flush()
            except OSError:
                pass
        send(d.port, 0, 1000)
        ok(d.settled(1000), "and writes on a disk that is full by now")
        compare(paths_of(folder)[0], EXPECTED[:1000], "all of it")
        eq(d.stop(), 0, "stopped")


def main():
    lab.run(test_restart, test_top, test_overrun, test_refused, test_damaged, test_full_disk)
    return tap.end()


sys.exit(main())
