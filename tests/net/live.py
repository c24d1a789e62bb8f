#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""status, tail, top and the API they ask, against a daemon under load: every number is compared with what Python's
json module reads from the daemon's own file of records; a tail that is stopped costs capture nothing and is told
what it lost; top is drawn by tmux, in 80x24 and over. usage: live.py PATHLINE [TEST…]"""

import collections
import fcntl
import http.server
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import DIR, free_port, free_udp_port  # noqa: E402
from lib.pathline import PATHLINE, run, sent_by, start_gen  # noqa: E402
from lib.promise import promise  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402


class Daemon(pathline.Daemon):
    """A daemon with one source and one file of everything, over TCP and a Unix socket."""

    def __init__(self, name, extra="", web_port=0):
        self.port = free_udp_port()
        self.out = lab.path(name + ".jsonl")
        self.socket = lab.path(name + ".sock")
        super().__init__(lab.write(name + ".yaml", f"sources:\n  - uri: udp://127.0.0.1:{self.port}\noutputs:\n  - path: {self.out}\n"
                                   f"    queue: 1048576\nweb:\n  listen: 127.0.0.1:{web_port}\n  socket: {self.socket}\n{extra}"
                                   # No level ends, and no maximum goes, by itself between readings that are compared.
                                   "detect:\n  idle: 1h\n  loss_hold: 1h\naggregate:\n  slot: 1h\n"), name)

    def get(self, path, **query):
        status, body, _ = self.fetch(path + ("?" + urllib.parse.urlencode(query) if query else ""))
        return status, json.loads(body)

    def rows(self, table, **query):
        return self.get("/api/v1/" + table, **({"limit": 1000} | query))[1]["rows"]

    def status(self):
        return self.get("/api/v1/status")[1]

    def answers(self):
        """Of its page so far."""
        return pathline.total(pathline.samples(self.fetch("/metrics")[1].decode()), "pathline_http_answers_total")

    def records(self):
        with open(self.out) as f:
            return [json.loads(line) for line in f]


def settled(d, n):
    """All n packets were received, or dropped by the kernel, and what was received is in the file."""
    def done():
        """all has come and is delivered"""
        s = d.status()
        o = [x for x in s["outputs"] if x["name"] != "live"][0]
        return (s["packets"]["received"] + s["sources"][0]["kernel_drops"] == n and s["packets"]["received"] == s["reports"]["stored"] and
                o["waiting"] == 0 and o["delivered"] == o["offered"] > 0)
    return wait(done)


class Client:
    """A command that writes into files, so that nothing waits for this test to read."""

    def __init__(self, *args):
        base = tempfile.mktemp(dir=DIR)
        self.out_path, self.err_path = base + ".out", base + ".err"
        with open(self.out_path, "w") as out:
            self.p = lab.start([PATHLINE, *args], log=self.err_path, stdout=out)

    def out(self):
        with open(self.out_path) as f:
            return f.read()

    def whole_lines(self):
        return self.out().rpartition("\n")[0].splitlines()

    def comes_to(self, n):
        """Waits for so many lines."""
        wait(lambda: len(self.whole_lines()) >= n)

    def end(self, number=signal.SIGINT):
        if number is not None:
            self.p.send_signal(number)
        code = self.p.wait(timeout=LIMIT)
        with open(self.err_path) as f:
            return code, self.out(), f.read()


# ---- the numbers ----

def test_numbers():
    d = Daemon("numbers")
    n = sent_by(start_gen(d.port, "--rate", "5000", "--count", "15000", "--loss", "0.01", "--seed", "5"))
    ok(settled(d, n), "all is received and written")
    records = d.records()
    paths = [r for r in records if r["kind"] == "path"]
    events = [r for r in records if r["kind"] == "event"]
    s = d.status()
    eq((s["packets"]["received"], s["packets"]["decoded"], s["reports"]["stored"]), (n, n, n), "status: packets")
    eq(s["reports"]["hops"], sum(len(p["hops"]) for p in paths), "status: hops")
    exporters = collections.Counter((p["exporter"], p["node"], p["hw_id"]) for p in paths)
    first = [p for p in paths if p["flags"]["unproven"]]
    eq(len(first), len(exporters), "the first report of each exporter waits for proof")
    # And is in no sum.
    paths = [p for p in paths if not p["flags"]["unproven"]]
    eq({k: v for k, v in s["events"].items() if v}, dict(collections.Counter(e["event"] for e in events)),
       "status: events")
    eq((s["time"][:4].isdigit(), s["time"][-1], s["time_ns"].isdigit()), (True, "Z", True), "status: times are texts")
    queues = collections.Counter((h["node"], h["egress_port"], h["queue"]) for p in paths for h in p["hops"])
    rows = d.rows("queues")
    eq({(r["node"], r["port"], r["queue"]): r["packets"] for r in rows}, dict(queues), "queues: packets of every one")
    depth = collections.defaultdict(int)
    for p in paths:
        for h in p["hops"]:
            key = (h["node"], h["egress_port"], h["queue"])
            depth[key] = max(depth[key], h["queue_depth"])
    eq({(r["node"], r["port"], r["queue"]): r["depth_max"] for r in rows if "depth_max" in r},
       dict(depth), "queues: largest depth of every one")
    ports = collections.Counter((h["node"], h["egress_port"]) for p in paths for h in p["hops"])
    eq({(r["node"], r["port"]): r["packets"] for r in d.rows("ports")}, dict(ports), "ports")
    links = collections.Counter((a["node"], a["egress_port"], b["node"], b["ingress_port"])
                                for p in paths for a, b in zip(p["hops"], p["hops"][1:]))
    eq({(r["node"], r["port"], r["peer"], r["peer_port"]): r["packets"] for r in d.rows("links")}, dict(links), "links")
    by_path = collections.Counter(p["path_id"] for p in paths)
    rows = d.rows("paths")
    eq({r["path_id"]: r["packets"] for r in rows}, dict(by_path), "paths")
    nodes = {p["path_id"]: ">".join(str(h["node"]) for h in p["hops"]) for p in paths}
    eq({r["path_id"]: r["nodes"] for r in rows}, nodes, "paths: nodes")
    flow = lambda x: (x["src"], x["dst"], x["sport"], x["dport"], x["proto"])
    flows = collections.Counter(flow(p["flow"]) for p in paths)
    eq({flow(r["flow"]): r["packets"] for r in d.rows("flows")}, dict(flows), "flows: packets of every one")
    r = run("top", "--url", d.web, "-b", "-s", "flows", "--rows", "3")
    eq([int(line.split()[0]) for line in r.stdout.splitlines()[4:7]], [v for _, v in flows.most_common(3)], "top: flows")
    rows = d.rows("exporters")
    eq({(r["exporter"], r["node"], r["hw_id"]): r["reports"] for r in rows}, dict(exporters), "exporters")
    eq(sum(r["lost"] for r in rows), s["reports"]["lost"], "exporters: lost")
    got = d.rows("events")
    last = sorted(events, key=lambda e: e["ts_ns"], reverse=True)[:len(got)]
    eq(sorted(int(e["ts_ns"]) for e in got), sorted(e["ts_ns"] for e in last), "events: the latest ones")
    drops = {(r["place"], r["name"], r["cause"]): r["count"] for r in d.rows("drops")}
    eq(drops.get(("network", "reports", "missing_in_sequence"), 0), s["reports"]["lost"], "drops: missing reports")

    # Order, filter, limit against the same rows.
    rows = d.rows("queues")
    few = d.rows("queues", sort="-packets", limit=7)
    eq([r["packets"] for r in few], sorted((r["packets"] for r in rows), reverse=True)[:7], "sort and limit")
    up = d.rows("queues", sort="hop_latency_p99_ns")
    eq([r["hop_latency_p99_ns"] for r in up], sorted(r["hop_latency_p99_ns"] for r in rows), "sort, smallest first")
    some = d.rows("queues", where="node == 3 and depth_max > 50")
    eq(sorted(r["packets"] for r in some),
       sorted(r["packets"] for r in rows if r["node"] == 3 and r["depth_max"] > 50), "where")
    doc = d.get("/api/v1/queues", where="node == 3", limit=1)[1]
    eq((doc["total"], doc["matched"], len(doc["rows"])), (len(rows), sum(r["node"] == 3 for r in rows), 1), "counts")
    for path, query, status, code in (
            ("queues", {"sort": "dept"}, 400, "bad_sort"), ("queues", {"where": "node = 3"}, 400, "bad_where"),
            ("queues", {"where": "hops.node == 3"}, 400, "bad_where"), ("queues", {"limit": "0"}, 400, "bad_limit"),
            ("queues", {"limit": "1001"}, 400, "bad_limit"), ("queues", {"limit": "x"}, 400, "bad_limit"),
            ("queues", {"sortt": "x"}, 400, "bad_parameter"), ("nope", {}, 404, "not_found"),
            ("tail", {"kind": "hops"}, 400, "bad_kind"), ("tail", {"form": "xml"}, 400, "bad_form"),
            ("tail", {"where": "nod == 1"}, 400, "bad_where"), ("tail", {"form": "csv"}, 400, "bad_where")):
        got, doc = d.get("/api/v1/" + path, **query)
        eq((got, doc.get("status"), doc.get("code")), (status, status, code), f"{path} {query}: {code}")

    # The same by the commands.
    r = run("status", "--url", d.web, "-o", "json")
    eq((r.returncode, json.loads(r.stdout)["packets"]["received"]), (0, n), "pathline status -o json")
    r = run("status", "--url", "unix:" + d.socket)
    ok(r.returncode == 0 and "all is well" in r.stdout and f"received {n} = decoded {n} + refused 0" in r.stdout,
       "pathline status over the Unix socket", r.stdout + r.stderr)
    eq(oct(os.stat(d.socket).st_mode & 0o777), "0o660", "the socket is its owner's and group's")
    r = run("top", "--url", d.web, "--batch", "-s", "queues", "--rows", "1000", "-o", "json")
    eq({(x["node"], x["port"], x["queue"]): x["packets"] for x in json.loads(r.stdout)["rows"]}, dict(queues),
       "pathline top -b -o json")
    r = run("top", "--url", d.web, "-b", "-s", "links", "--sort", "packets", "--rows", "1000")
    table = [line.split() for line in r.stdout.splitlines()[4:-1]]
    eq(sorted(int(x[8]) for x in table), sorted(links.values()), "pathline top -b")
    eq(d.stop(), 0, "stops with 0")
    ok(not os.path.exists(d.socket), "the socket is gone")
    r = run("status", "--url", d.web)
    eq(r.returncode, 69, "pathline status: nobody there is 69")
    for args in (["status", "--url", "ftp://x"], ["status", "--url", "http://u:p@x"], ["tail", "x"],
                 ["tail", "-o", "csv"], ["top", "--sort", "nope"], ["top", "--rows", "0"],
                 ["status", "--user", "x"]):
        r = run(*args)
        ok(r.returncode == 2 and r.stderr.startswith("pathline: "), f"{' '.join(args)}: usage", r.stderr)


# ---- tail ----

def streams(d, n):
    return wait(lambda: len(d.status()["streams"]) == n)


def test_tail():
    d = Daemon("tail", "  stream_buffer: 32MiB\n")
    everything = Client("tail", "--url", d.web, "--paths", "-o", "jsonl")
    events = Client("tail", "--url", "unix:" + d.socket, "--events", "-o", "jsonl", "--where", "node == 3")
    deep = Client("tail", "--url", d.web, "-o", "jsonl", "--where", "hops.queue_depth > 100")
    first = Client("tail", "--url", d.web, "-p", "-n", "5")
    ok(streams(d, 4), "four streams")
    n = sent_by(start_gen(d.port, "--rate", "2000", "--count", "8000", "--loss", "0.005", "--seed", "9"))
    ok(settled(d, n), "all is received and written")
    code, out, err = first.end(None)
    ok(code == 0 and len(out.splitlines()) == 6 and out.startswith("TIME"), "-n 5: a header and 5 lines", out + err)
    records = d.records()
    paths = [r for r in records if r["kind"] == "path"]
    of_node = [r for r in records if r["kind"] == "event" and r.get("node") == 3]
    queued = [p for p in paths if any(h["queue_depth"] > 100 for h in p["hops"])]
    for client, want in ((everything, paths), (events, of_node), (deep, queued)):
        client.comes_to(len(want))
    ended = [p.end() for p in (everything, events, deep)]
    eq([e[0] for e in ended], [0, 0, 0], "SIGINT ends them with 0")
    got = [[json.loads(line) for line in e[1].splitlines()] for e in ended]
    ok(got[0] == paths, "every path, as in the file, in its order", f"{len(got[0])} of {len(paths)}")
    ok(got[1] == of_node and of_node, "events of node 3", f"{len(got[1])} of {len(of_node)}")
    ok(got[2] == queued and queued, "paths with a deep queue", f"{len(got[2])} of {len(queued)}")
    eq("".join(e[2] for e in ended), "", "nothing was lost, nothing said")
    ok(streams(d, 0), "they are gone")
    p = lab.start([PATHLINE, "tail", "--url", d.web, "--paths"], stdout=subprocess.PIPE, text=True)
    ok(streams(d, 1), "one more")
    g = start_gen(d.port, "--rate", "2000", "--count", "4000")
    p.stdout.readline()
    p.stdout.close()
    eq(p.wait(timeout=LIMIT), 0, "a reader that goes away is no error")
    sent_by(g)
    eq(d.stop(), 0, "stops with 0")


def test_slow():
    """A tail that is stopped, under load: nothing is lost but for itself, and that is counted."""
    d = Daemon("slow", "  stream_buffer: 64KiB\n")
    p = Client("tail", "--url", d.web, "-o", "jsonl", "--show-loss", "--paths")
    ok(streams(d, 1), "one stream")
    p.p.send_signal(signal.SIGSTOP)
    n = sent_by(start_gen(d.port, "--rate", "10000", "--count", "30000"))
    ok(settled(d, n), "all is received and written while it is stopped")
    s = d.status()
    stream, live = s["streams"][0], [o for o in s["outputs"] if o["name"] == "live"][0]
    n = s["packets"]["received"]
    eq(stream["seen"], stream["filtered"] + stream["sent"] + stream["dropped"], "seen = filtered + sent + dropped")
    ok(stream["dropped"] > 0 and stream["waiting_bytes"] <= 65536, "its buffer is bounded", stream)
    eq(live["offered"], live["delivered"] + sum(live["dropped"].values()) + live["waiting"],
       "the output's account: offered = delivered + dropped + waiting")
    ok(s["readiness"]["ready"], "and the daemon is ready")
    p.p.send_signal(signal.SIGCONT)

    def accounted_for():
        """Entries that it got, and that it was told of."""
        lines = [json.loads(line) for line in p.whole_lines()]
        return sum(x["kind"] == "path" for x in lines) + sum(x["count"] for x in lines if x["kind"] == "dropped")
    wait(lambda: accounted_for() >= n)
    code, out, err = p.end()
    lines = [json.loads(line) for line in out.splitlines()]
    told = sum(x["count"] for x in lines if x["kind"] == "dropped")
    eq((code, sum(x["kind"] == "path" for x in lines) + told), (0, n), "what it got and what it was told of is all")
    ok(f"{told} entries were dropped" in err, "told at the end, too", err)
    eq(d.stop(), 0, "stops with 0")


def test_terminal():
    """What a server says, which may be anybody, does nothing to a terminal."""
    evil = b'{"kind":"path","x":"\x1b]0;owned\x07\xc2\x9b31m\xe2\x80\xae\xff"}\n'

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(evil)))
            self.end_headers()
            self.wfile.write(evil)

        def log_message(self, *args):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    r = run("tail", "--url", url, "-n", "1", "-o", "jsonl", text=False)
    eq(json.loads(r.stdout)["x"], "\x1b]0;owned\x07\x9b31m\u202e\ufffd", "jsonl: the same to who reads JSON")
    ok(all(0x20 <= byte < 0x7f or byte == 10 for byte in r.stdout), "and plain ASCII", r.stdout)
    r = run("tail", "--url", url, "-n", "1", "-o", "text", text=False)
    eq(r.stdout, b'{"kind":"path","x":"?]0;owned??31m??"}\n', "text: as ?")
    server.shutdown()


def test_blocked():
    """Standard output that nobody reads: what is told to end ends, and what is read in time is not lost."""
    d = Daemon("blocked")
    port = free_udp_port()
    last = lab.path("blocked.plr")
    run("region", "create", "--primitive", "key-write", "--slots", "1024", "--value-bytes", "4", last)
    # Every one prints for as long as it is asked to.
    for name, args, feed in (
            ("tail", ["tail", "--url", d.web, "--paths"], d.port), ("listen", ["listen", "-o", "jsonl", f"udp://127.0.0.1:{port}"], port),
            ("collect", ["collect", "--listen", f"127.0.0.1:{free_port()}", "--cm-port", "0", "udp://127.0.0.1", last], None)):
        p = lab.start([PATHLINE, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if name == "tail":
            streams(d, 1)
        else:
            p.stderr.readline()  # it is there
        fcntl.fcntl(p.stdout, 1031, 4096)  # F_SETPIPE_SZ

        def is_full():
            """its pipe takes nothing more"""
            if feed is None:
                p.send_signal(signal.SIGUSR1)
            else:
                sent_by(start_gen(feed, "-n", "50", "--flood"))
            return not select.select([], [pipe], [], 0.2)[1]
        # The pipe's other end, in this process too: whether it is full.
        pipe = os.open(f"/proc/{p.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
        ok(wait(is_full, pause=0.2), f"{name}: its pipe is full")
        p.send_signal(signal.SIGTERM)
        os.close(pipe)
        try:
            eq(p.wait(LIMIT), 0, f"{name}: SIGTERM ends it, with 0")
        except subprocess.TimeoutExpired:
            ok(False, f"{name}: SIGTERM ends it")
            p.kill()
    eq(d.stop(), 0, "stops with 0")


def test_reconnect():
    web = free_port()
    d = Daemon("again1", web_port=web)
    p = Client("tail", "--url", d.web, "--paths")
    ok(streams(d, 1), "one stream")
    sent_by(start_gen(d.port, "--rate", "1000", "--count", "500"))
    p.comes_to(501)
    eq(d.stop(), 0, "the daemon stops")
    d = Daemon("again2", web_port=web)
    ok(streams(d, 1), "the stream is there again")
    sent_by(start_gen(d.port, "--rate", "1000", "--count", "500"))
    p.comes_to(1001)
    code, out, err = p.end()
    lines = out.splitlines()
    eq((len(lines), sum(line.startswith("TIME") for line in lines)), (1001, 1), "all lines, one header")
    ok("trying again" in err and code == 0, "it said so", err)
    other = Daemon("third", "  max_streams: 1\n")
    a = Client("tail", "--url", other.web)
    ok(streams(other, 1), "the only place")
    r = run("tail", "--url", other.web)
    ok(r.returncode == 69 and "limit" in r.stderr, "one more stream than allowed: 69", r.stderr)
    a.end(signal.SIGKILL)
    ok(streams(other, 0), "a client that died frees its place")
    eq(other.stop(), 0, "stops with 0")
    eq(d.stop(), 0, "stops with 0")


# ---- top ----

class Terminal:
    """tmux as the terminal: what it shows is what a person would see."""

    def __init__(self, cols, rows, *args, term="screen-256color"):
        self.base = ["tmux", "-L", f"pathline-{os.getpid()}-{cols}", "-f", "/dev/null"]
        # ncurses keeps its descriptions of terminals to the end of the process, which is not ours to free.
        leaks = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        env = os.environ | {"TERM": "xterm", "LC_ALL": "C.UTF-8", "ASAN_OPTIONS": leaks}
        lab.undo(*self.base, "kill-server")
        subprocess.run([*self.base, "new-session", "-d", "-x", str(cols), "-y", str(rows),
                        f"TERM={term} {' '.join([PATHLINE, *args])}; echo exit=$?; sleep 600"], check=True, env=env)

    def keys(self, *keys):
        subprocess.run([*self.base, "send-keys", *keys], check=True)

    def screen(self):
        return subprocess.run([*self.base, "capture-pane", "-p"], capture_output=True, text=True).stdout.splitlines()

    def rows(self):
        """The lines of the table: two of sums, a blank one and the names of the columns are above, one below."""
        return [line for line in self.screen()[4:-1] if line.strip()]

    def wait(self, pattern):
        return wait(lambda: re.search(pattern, "\n".join(self.screen()), re.M))

    def resize(self, cols, rows):
        subprocess.run([*self.base, "resize-window", "-x", str(cols), "-y", str(rows)], check=True)

    def close(self):
        subprocess.run([*self.base, "kill-server"], capture_output=True)


def test_top():
    if shutil.which("tmux") is None:
        skip("top", "missing: tmux")
        return
    d = Daemon("top")
    n = sent_by(start_gen(d.port, "--rate", "5000", "--count", "10000", "--loss", "0.01", "--seed", "5"))
    ok(settled(d, n), "all is received")
    queues = d.rows("queues", sort="-depth_max")
    for cols, rows in ((80, 24), (200, 50)):
        t = Terminal(cols, rows, "top", "--url", d.web, "-d", "300ms")
        try:
            ok(t.wait(r"^ *NODE +PORT +QUEUE"), f"{cols}x{rows}: the table is drawn", "\n".join(t.screen()))
            ok(t.wait(rf"reports {n} .*missing {d.status()['reports']['lost']}  refused 0  kernel drops 0"),
               "the sums are the daemon's", t.screen()[:2])
            # The sums stand above the table: the terminal has them before the last of its rows.
            wait(lambda: len(t.rows()) == min(len(queues), rows - 5))
            s = t.screen()
            ok(len(s) == rows and all(len(line) <= cols for line in s), "it fits")
            table = t.rows()
            got = [tuple(int(x) for x in line.split()[:3]) for line in table]
            eq(len(got), min(len(queues), rows - 5), "as many rows as there is room for")
            known = {(q["node"], q["port"], q["queue"]): q for q in queues}
            ok(all(k in known for k in got), "every row is one of the daemon's")
            eq([int(line.split()[8]) for line in table], [known[k]["packets"] for k in got], "packets of every row")
            t.keys("2")
            ok(t.wait(r"TO NODE"), "2: links", "\n".join(t.screen()))
            links = {(x["node"], x["port"], x["peer"], x["peer_port"]): x["packets"] for x in d.rows("links")}
            ok(wait(lambda: len(t.rows()) == len(links)), "with rows", "\n".join(t.screen()))
            got = {tuple(int(v) for v in line.split()[:4]): int(line.split()[8]) for line in t.rows()}
            eq(got, links, "every link with its packets")
            t.keys("/")
            t.keys("-l", "node == 3")
            t.keys("Enter")
            ok(t.wait(r"filter: node == 3"), "a filter", "\n".join(t.screen()))
            want = {k: v for k, v in links.items() if k[0] == 3}
            ok(t.wait(rf"^{len(want)} of {len(links)}"), "counts what matches", t.screen()[-1])
            wait(lambda: len(t.rows()) == len(want))
            got = [tuple(int(v) for v in line.split()[:4]) for line in t.rows()]
            eq(set(got), set(want), "only what matches is shown")
            t.keys("/")
            t.keys("C-u")
            t.keys("-l", "nod == 3")
            t.keys("Enter")
            ok(t.wait(r"did you mean \"node\""), "a bad filter is told of", t.screen()[-1])
            for key, word in (("3", "UTIL"), ("4", "PATH"), ("5", "PHASE"), ("6", "EXPORTER"), ("7", "CAUSE"), ("8", "IDLE")):
                t.keys(key)
                ok(t.wait(word), f"{key}: {word}", "\n".join(t.screen()))
            t.keys("1")
            ok(t.wait("QUEUE"), "back to the queues")
            t.keys("Right")
            ok(t.wait(r"HOP P50v"), "another column to sort by", t.screen()[3])
            t.keys("r")
            ok(t.wait(r"HOP P50\^"), "the other way round", t.screen()[3])
            t.keys("Space")
            ok(t.wait(r"FROZEN"), "frozen", t.screen()[-1])
            before = t.screen()[:-1]
            g = start_gen(d.port, "--rate", "1000", "--count", "500")
            n += sent_by(g)
            wait(lambda: d.status()["packets"]["received"] == n)
            first, own = d.answers(), [0]

            def is_asked():
                """by somebody else, three times"""
                own[0] += 1
                return d.answers() - first - own[0] >= 3
            ok(wait(is_asked), "it asks all the same")
            eq(t.screen()[:-1], before, "nothing moves")
            t.keys("Space")
            ok(t.wait(rf"reports {n} "), "and goes on", t.screen()[:2])
            wait(lambda: d.status()["packets"]["received"] == n)
            queues = d.rows("queues", sort="-depth_max")
            t.keys("?")
            ok(t.wait("q +quit"), "help")
            t.keys("?")
            t.resize(60, 12)
            ok(wait(lambda: len(t.screen()) == 12 and "QUEUE" in t.screen()[3]), "smaller", t.screen())
            t.resize(100, 30)
            ok(wait(lambda: len(t.screen()) == 30 and "PACKETS" in t.screen()[3]), "larger", t.screen())
            t.resize(15, 3)
            ok(t.wait("too small"), "much too small says so", t.screen())
            t.resize(cols, rows)
            ok(t.wait("QUEUE"), "and comes back")
            t.keys("q")
            ok(t.wait("exit=0"), "q quits with 0", "\n".join(t.screen()))
        finally:
            t.close()
    t = Terminal(80, 24, "top", "--url", d.web, term="vt100")
    try:
        ok(t.wait("QUEUE"), "a monochrome terminal", "\n".join(t.screen()))
        eq(d.stop(), 0, "the daemon stops")
        ok(t.wait(r"^! http"), "it says that nobody answers, and stays", "\n".join(t.screen()))
        t.keys("C-c")
        ok(t.wait("exit=0"), "Ctrl-C quits", "\n".join(t.screen()))
    finally:
        t.close()
    d = Daemon("dumb")
    t = Terminal(81, 24, "top", "--url", d.web, term="dumb")
    try:
        ok(t.wait("cannot be drawn on.*: printing once"), "TERM=dumb: says so", "\n".join(t.screen()))
        ok(t.wait("exit=0"), "prints and ends", "\n".join(t.screen()))
    finally:
        t.close()
    eq(d.stop(), 0, "stops with 0")


def test_demo():
    """The demonstration has the screens of top, and its losses below each."""
    if shutil.which("tmux") is None:
        skip("demo", "missing: tmux")
        return
    t = Terminal(80, 24, "demo")
    try:
        ok(t.wait(r"^TIMEv +EVENT"), "the events are drawn", "\n".join(t.screen()))
        ok(t.wait(r"^leaf3 +spine1 +(\d+) +\1 +0 +\d+$"), "a link loses what marking says, of which reports know nothing", "\n".join(t.screen()))
        ok(t.wait(r" path_change once +1 "), "a link fails", "\n".join(t.screen()))
        ok(all(len(line) <= 80 for line in t.screen()), "it fits")
        t.keys("1")
        ok(t.wait(r"^ *NODE +PORT +QUEUE"), "1: queues", "\n".join(t.screen()))
        ok(t.wait(r"^LOST FROM +TO +BY MARKINGv"), "the losses stay", "\n".join(t.screen()))
        t.resize(60, 10)
        ok(wait(lambda: len(t.screen()) == 10 and "QUEUE" in t.screen()[3] and t.screen()[-2].startswith("LOST FROM")), "smaller: one line of three", t.screen())
        t.resize(60, 40)
        ok(wait(lambda: len(t.screen()) == 40 and all(t.screen()[4:12])), "larger: eight queues at least", t.screen())
        t.keys("Space")
        ok(t.wait("FROZEN"), "frozen", t.screen()[-1])
        queues = t.screen()[4:34]
        t.resize(60, 10)
        ok(wait(lambda: t.screen()[4:8] == queues[:4]), "four rows are left", t.screen())
        t.keys("NPage")
        ok(wait(lambda: t.screen()[4:8] == queues[4:8]), "PgDn passes over no row", (t.screen(), queues))
        t.resize(80, 40)
        t.keys("q")
        ok(t.wait(r"^exit=0$") and t.wait(r"they agree"), "q ends it, and its totals agree", "\n".join(t.screen()))
    finally:
        t.close()


def promise_no_drops():
    """20,000 reports a second with all that is followed by default, and a file of everything."""
    d, total = Daemon("promise"), [0]

    def attempt():
        before = d.status()["sources"][0]["kernel_drops"]
        total[0] += sent_by(start_gen(d.port, "--rate", "20000", "--count", "100000"))
        settled(d, total[0])
        dropped = d.status()["sources"][0]["kernel_drops"] - before
        return dropped == 0, f"{dropped} of 100000 dropped"
    promise("20,000 reports a second are received without a drop", attempt)
    eq(d.stop(), 0, "promise: stops with 0")


def main():
    lab.run(test_numbers, test_tail, test_slow, test_terminal, test_blocked, test_reconnect, test_top, test_demo, promise_no_drops)
    eq([name for name in os.listdir(DIR) if name.endswith(".log") and "ThreadSanitizer" in lab.read(name)], [],
       "no report of a sanitizer in any log")
    return tap.end()


sys.exit(main())
