#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline run and demo from the outside: a real Prometheus scrapes the daemon, files are read by Python's
json module, and every count must agree to the packet: under load, across reloads with good and bad files,
across a restart, with a full disk, with clients that want to hold it up. usage: daemon.py PATHLINE"""

import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap  # noqa: E402
from lib.lab import DIR, free_port, free_udp_port, write  # noqa: E402
from lib.pathline import came, gen, reports_of, run, sent_by, start_gen, total  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402


class Daemon(pathline.Daemon):
    def account(self):
        """The final line's numbers."""
        m = re.search(r'stopped: received (\d+) = decoded (\d+) \+ not decoded (\d+); kernel drops (\d+); '
                      r'reports (\d+).*?(?:offered (\d+) = delivered (\d+) \+ filtered (\d+) \+ dropped '
                      r'(\d+) \+ undelivered (\d+))?"', self.log())
        names = ("received", "decoded", "refused", "kernel", "reports", "offered", "delivered",
                 "filtered", "dropped", "undelivered")
        return dict(zip(names, (int(x or 0) for x in m.groups()))) if m else {}


def config_text(port, out, extra="", source_extra="", output_extra=""):
    return (f"sources:\n  - uri: udp://127.0.0.1:{port}\n{source_extra}"
            f"outputs:\n  - path: {out}\n    queue: 1048576\n{output_extra}"
            # What waits in the queues is written to the end, however slow the machine.
            f"web:\n  listen: 127.0.0.1:0\ndrain: 60s\n{extra}")


# ---- configuration ----

def test_config():
    bad = write("typo.yaml", "web:\n  listn: 127.0.0.1:0\n")
    for command in (["config", "check", bad], ["run", "-c", bad]):
        r = run(*command)
        eq(r.returncode, 78, f"{command[0]}: a misspelt key is exit 78")
        ok(f"{bad}:2:3:" in r.stderr and "listn" in r.stderr and "listen" in r.stderr,
           f"{command[0]}: file, line, column, key, nearest key", r.stderr)
    r = run("config", "check")
    ok(r.returncode == 0 and re.search(r"at most \d+", r.stdout) and re.search(r"bound: \d+ MiB", r.stdout),
       "check tells series and memory", r.stdout)
    dumped = run("config", "dump").stdout
    path = write("dump.yaml", dumped)
    eq(run("config", "dump", path).stdout, dumped, "a dump is read back to the same")
    path = write("init.yaml", run("config", "init", "--full").stdout)
    eq(run("config", "dump", path).stdout, dumped, "the template is the defaults")
    for text, what in (("outputs:\n  - path: a\n  - path: a\n", "one path twice"),
                       ("sources:\n  - uri: tcp://:1\n", "a source that is none"),
                       ("detect:\n  queue_depth:\n    threshold: 5\n    low: 6\n", "low above threshold"),
                       ("profiles:\n  - match: 10.0.0.0/8\n    dscp: 64\n", "a DSCP of 64"),
                       ("outputs:\n  - path: a\n    where: hops.queue_depth >\n", "half an expression")):
        eq(run("config", "check", write("bad.yaml", text)).returncode, 78, f"refused: {what}")


def test_short_config():
    """The file of `config init`, as it is, in a namespace where its ports are free."""
    r = run("config", "init", "--full", "dump")
    eq(r.returncode, 2, "init takes one word")
    eq(run("config", "check", "--full").returncode, 2, "--full is refused but with init")
    text = run("config", "init").stdout
    ok(len(text.splitlines()) < 30, "the file is short", text)
    place, folder = network.Namespace("short"), os.path.join(DIR, "short")
    os.mkdir(folder)
    path = write("short/pathline.yaml", text)
    with place:
        d = Daemon(path, "short", cwd=folder)
        eq(d.web, "http://127.0.0.1:8400", "the page is where the file says")
        n = gen(32766, "--rate", "10000", "--count", "20000", "--loss", "0.01", "--seed", "3")
        ok(wait(lambda: total(d.metrics(), "pathline_packets_decoded_total") == n), "its reports are decoded")
        ok(wait(lambda: total(d.metrics(), "pathline_events_total") > 0), "with events")
        eq(d.stop(), 0, "stops with 0")
    got = reports_of(os.path.join(folder, "pathline-events.jsonl"))
    ok(got["event"] > 0 and got["path"] == 0, "events are in its output, reports are not", got)
    write("short/pathline.yaml", text.replace("...\n", ""))
    ok("..." in text and run("config", "check", path).returncode == 0, "a file without the mark is good at a start", text)


# ---- Prometheus ----

def prometheus_values(port, expr):
    url = f"http://127.0.0.1:{port}/api/v1/query?query=" + urllib.parse.quote(expr)
    with urllib.request.urlopen(url, timeout=LIMIT) as r:
        return json.load(r)["data"]["result"]


def test_prometheus():
    port, out = free_udp_port(), os.path.join(DIR, "prom", "out.jsonl")
    os.mkdir(os.path.dirname(out))
    d = Daemon(write("prom.yaml", config_text(port, out)), "prom")
    g = start_gen(port, "--rate", "10000", "--count", "20000", "--loss", "0.01", "--seed", "7")
    err = pathline.finish_gen(g)
    n, lost = (int(re.search(p, err).group(1)) for p in (r"(\d+) packets", r"lost: (\d+)"))
    ok(wait(lambda: total(d.metrics(), "pathline_socket_packets_total") == n),
       "every datagram sent is received")
    for accept, kind in (("text/plain", "text"), ("application/openmetrics-text", "openmetrics")):
        status, body, headers = d.fetch("/metrics", {"Accept": accept})
        ok(status == 200 and ("openmetrics" in headers["Content-Type"]) == (kind == "openmetrics"),
           f"{kind}: content type", headers)
        if shutil.which("promtool") is None:
            skip(f"{kind}: promtool", "missing: promtool (package prometheus)")
        elif kind == "text":
            r = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True)
            ok(r.returncode == 0, f"{kind}: promtool is content", r.stderr.decode() + r.stdout.decode())
        if kind == "openmetrics":
            ok(body.endswith(b"# EOF\n"), "openmetrics: ends in # EOF")
    status, body, headers = d.fetch("/metrics", {"Accept-Encoding": "gzip"})
    ok(headers.get("Content-Encoding") == "gzip" and b"pathline_packets_total" in gzip.decompress(body),
       "gzip when asked for")
    if shutil.which("prometheus") is None:
        skip("scraped by Prometheus", "missing: prometheus")
    else:
        scrape(d, n)
    m = d.metrics()
    missing = total(m, "pathline_exporter_skipped_total") - total(m, "pathline_exporter_recovered_total")
    eq(d.stop(), 0, "stops with 0")
    got = reports_of(out)
    eq(got["path"], n, "one line per report")
    account = d.account()
    eq((account.get("received"), account.get("reports"), account.get("offered"), account.get("delivered")),
       (n, n, got["path"] + got["event"], got["path"] + got["event"]), "the final account agrees")
    # The last losses of a node are seen only with its next report.
    ok(lost - 8 <= missing <= lost, "as many reports are missing as were lost", f"{missing} of {lost}")


def scrape(d, n):
    web = free_port()
    conf = write("prometheus.yml", "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n"
                 "  - job_name: pathline\n    static_configs:\n"
                 f"      - targets: ['{d.web[len('http://'):]}']\n")
    p = lab.start(["prometheus", f"--config.file={conf}", f"--storage.tsdb.path={DIR}/tsdb",
                   f"--web.listen-address=127.0.0.1:{web}"], log=lab.path("prometheus.log"))
    ok(wait(lambda: [x["value"][1] for x in prometheus_values(web, "up")] == ["1"]), "Prometheus: up == 1")
    # Of a scrape that took more than its second, on a busy machine, nothing is there until the next one.
    for expr, what in (("pathline_packets_total", "packets"), ("sum(pathline_exporter_reports_total)", "reports over exporters")):
        ok(wait(lambda: [int(float(x["value"][1])) for x in prometheus_values(web, expr)] == [n]),
           f"Prometheus: {what} as sent", prometheus_values(web, expr))
    ok(wait(lambda: abs(int(prometheus_values(web, "count({job='pathline'})")[0]["value"][1]) - len(d.metrics())) <= 6),
       "Prometheus: took every series")
    p.terminate()
    p.wait(timeout=120)
    with open(p.log, encoding="utf-8") as log:
        text = log.read()
    ok("duplicate" not in text and "out of order" not in text.lower(), "Prometheus: no complaint", text[-2000:])


# ---- reload, restart ----

def reloads(d, result, n):
    """Not by the log: it folds repeated lines."""
    return wait(lambda: d.metrics()[f'pathline_config_reloads_total{{result="{result}"}}'] == n)


def test_reload():
    port, second, out = free_udp_port(), free_udp_port(), os.path.join(DIR, "reload", "out.jsonl")
    os.mkdir(os.path.dirname(out))
    other = os.path.join(DIR, "reload", "second.jsonl")
    base = config_text(port, out)
    path = write("reload.yaml", base)
    d = Daemon(path, "reload")
    g = start_gen(port, "--rate", "5000", "--duration", "10m", "--seed", "3")
    variants = [config_text(port, out, extra="aggregate:\n  max_queues: 64\n"),
                config_text(port, out, source_extra=f"  - uri: udp://127.0.0.1:{second}\n"),
                "web:\n  listn: x\n",
                config_text(port, out, output_extra=f"  - path: {other}\n    queue: 1048576\n"),
                config_text(port, out, extra="detect:\n  queue_depth:\n    threshold: 50\n"),
                "sources: [",
                config_text(port, out, extra="decode:\n  max_paths: 1000\n"), base]
    good = bad = 0
    for text in variants:
        before = total(d.metrics(), "pathline_packets_total")
        ok(wait(lambda: total(d.metrics(), "pathline_packets_total") > before), "reports come")
        write("reload.yaml", text)
        d.p.send_signal(signal.SIGHUP)
        if "listn" in text or text == "sources: [":
            bad += 1
            ok(reloads(d, "failure", bad), f"reload {good + bad}: refused")
            eq(d.metrics()["pathline_config_last_reload_successful"], 0, "last reload successful: 0")
        else:
            good += 1
            ok(reloads(d, "success", good), f"reload {good + bad}: taken")
            eq(d.metrics()["pathline_config_last_reload_successful"], 1, "last reload successful: 1")
    g.send_signal(signal.SIGINT)
    n = sent_by(g)
    ok("the old configuration stays in use" in d.log(), "a bad file is told of", d.log())

    wait(lambda: came(d.metrics()) == n)
    eq(came(d.metrics()), n, "reloads cost no datagram: sent = received + dropped")
    n = total(d.metrics(), "pathline_packets_total")
    eq(d.stop(), 0, "stops with 0")
    account = d.account()
    eq((account.get("received"), account.get("reports")), (n, n), "the final account agrees")
    # The output was there all the time; what became of each entry is told.
    got = reports_of(out)
    eq(got["path"], n, "and no report: one line each")


def test_half_written():
    """A reload of a file that is empty, cut anywhere, or being written: the old configuration stays."""
    port, out = free_udp_port(), os.path.join(DIR, "half.jsonl")
    whole = config_text(port, out, extra="detect:\n  queue_depth:\n    threshold: 50\n") + "...\n"
    path = write("half.yaml", whole)
    d = Daemon(path, "half")
    cuts = [0, 1, len(whole) - 1, len(whole) - 4] + [m.end() for m in re.finditer("\n", whole)][:-1]
    cuts += [cut + 3 for cut in cuts[4:]]
    refused, taken = 0, []
    for cut in cuts:
        # As an editor does that writes in place, and an automatic reload just then.
        with open(path, "w", encoding="utf-8") as f:
            f.write(whole[:cut])
        d.p.send_signal(signal.SIGHUP)
        refused += 1
        if not reloads(d, "failure", refused):
            taken.append(cut)
            break
    eq(taken, [], f"none of {len(cuts)} cut files is taken")
    ok("half-written" in d.log() and "the file is empty" in d.log(), "the log says why", d.log())
    eq(d.get("/readyz")[0], 200, "all is as it was")
    eq(gen(port, "-n", "100", "--rate", "1k"), 100, "reports are sent")
    ok(wait(lambda: reports_of(out)["path"] == 100), "and written by the old output")
    with open(path, "w", encoding="utf-8") as f:
        f.write(whole.replace("50", "60"))
    d.p.send_signal(signal.SIGHUP)
    ok(reloads(d, "success", 1), "the whole one is taken")
    eq(d.stop(), 0, "stops with 0")


def test_restart():
    port, out = free_udp_port(), os.path.join(DIR, "restart", "out.jsonl")
    os.mkdir(os.path.dirname(out))
    path = write("restart.yaml", config_text(port, out))
    g = start_gen(port, "--rate", "5000", "--duration", "10m")
    received = delivered = 0
    for i in range(3):
        d = Daemon(path, f"restart{i}")
        ok(wait(lambda: total(d.metrics(), "pathline_packets_total") > 1000), f"run {i + 1}: there is load")
        eq(d.stop(), 0, f"run {i + 1}: stops under load with 0")
        a = d.account()
        eq((a.get("received"), a.get("undelivered")), (a.get("reports"), 0), f"run {i + 1}: balances")
        received += a.get("received", 0)
        delivered += a.get("delivered", 0)
    g.send_signal(signal.SIGINT)
    sent_by(g)
    got = reports_of(out)
    eq((got["path"], got["path"] + got["event"]), (received, delivered), "received = stored, to the packet")


# ---- trouble ----

def test_folded():
    """Lines that repeat are left out, and how many is told: when their ten seconds are over, and at the stop."""
    good = f"sources: [{{uri: 'udp://127.0.0.1:{free_udp_port()}'}}]\nweb: {{listen: '127.0.0.1:0'}}\n"
    d = Daemon(write("folded.yaml", good), "folded")

    def told():
        """Lines about reloads that failed: shown, and told of as left out."""
        return (len(re.findall("level=error subject=reload msg=.*the old configuration stays in use", d.log())) - len(left_out()),
                sum(left_out()))

    def left_out():
        return [int(n) for n in re.findall(r'msg="(\d+) more in \d+ s like', d.log())]
    for n in range(1, 13):
        write("folded.yaml", f"nonsense{n}: 1\n")
        d.p.send_signal(signal.SIGHUP)
        reloads(d, "failure", n)
    ok(wait(lambda: left_out() and sum(told()) == 12), "each of them is shown or counted, and no other line comes", d.log())
    eq(told()[0] >= 10, True, "ten and more are shown")
    for n in range(13, 25):
        write("folded.yaml", f"nonsense{n}: 1\n")
        d.p.send_signal(signal.SIGHUP)
        reloads(d, "failure", n)
    eq(d.stop(), 0, "it stops")
    eq(sum(told()), 24, "at the stop too")


def test_two():
    port = free_udp_port()
    for sockets in (1, 2):
        text = f"sources:\n  - uri: udp://127.0.0.1:{port}\n    sockets: {sockets}\nweb:\n  listen: 127.0.0.1:0\n"
        path = write("two.yaml", text)
        d = Daemon(path, f"two{sockets}")
        r = run("run", "-c", path)
        eq(r.returncode, 69, f"a second daemon on one port ends with 69 ({sockets} sockets)")
        ok(str(port) in r.stderr or "in use" in r.stderr, "and says why", r.stderr)
        eq(d.stop(), 0, "the first goes on and stops with 0")


def test_both_families():
    """[::] and 0.0.0.0 with one port are two sources, in either order and with several sockets: each has its own."""
    report = bytes.fromhex("1140002a000000070000000000000000")
    for sockets in (1, 2):
        for order in (("[::]", "0.0.0.0"), ("0.0.0.0", "[::]")):
            name, port = f"{order[0]} first, {sockets} sockets", free_udp_port()
            uris = [f"udp://{host}:{port}" for host in order]
            d = Daemon(write("families.yaml", "web: {listen: 127.0.0.1:0}\nsources:\n" + "".join(
                f"  - uri: '{uri}'\n    sockets: {sockets}\n" for uri in uris)), f"families{sockets}")
            for family, host, n in ((socket.AF_INET, "127.0.0.1", 2), (socket.AF_INET6, "::1", 3)):
                with socket.socket(family, socket.SOCK_DGRAM) as s:
                    for _ in range(n):
                        s.sendto(report, (host, port))

            def got():
                series = d.metrics()
                return {host: sum(v for key, v in series.items() if key.startswith("pathline_socket_packets_total") and
                                  f'"udp://{host}:' in key) for host in order}
            wait(lambda: sum(got().values()) == 5)
            eq(got(), {"0.0.0.0": 2, "[::]": 3}, f"{name}: each family by its source")
            eq(d.stop(), 0, f"{name}: ends well")


def test_web():
    d = Daemon(write("web.yaml", f"sources:\n  - uri: udp://127.0.0.1:{free_udp_port()}\nweb:\n  listen: 127.0.0.1:0\n"),
               "web")
    host, port = d.web[len("http://"):].split(":")
    where = (host, int(port))
    for path, want in (("/", 200), ("/metrics", 200), ("/healthz", 200), ("/readyz", 200), ("/-/healthy", 200),
                       ("/-/ready", 200), ("/readyz?verbose", 200), ("/nothing", 404), ("/metrics/", 404),
                       ("/..%2fmetrics", 404), ("/%00", 400), ("/" + "a" * 300, 400)):
        eq(d.fetch(path)[0], want, f"GET {path[:20]}: {want}")
    ok(json.loads(d.fetch("/readyz?verbose")[1])["ready"] is True, "readyz?verbose is JSON")

    def raw(data):
        with socket.create_connection(where, timeout=LIMIT) as s:
            s.sendall(data)
            try:
                return s.recv(65536).decode("latin-1")
            except (TimeoutError, ConnectionResetError):
                return ""
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        ok(" 405 " in raw(f"{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()), f"{method}: 405")
    for name in ("evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example"):
        ok(" 403 " in raw(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()), f"Host {name}: 403")
    for name in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8400"):
        ok(" 200 " in raw(f"GET /healthz HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()), f"Host {name}: 200")
    ok(" 400 " in raw(b"GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 without Host: 400")
    r = raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9000 + b"\r\n\r\n")
    ok(" 431 " in r or " 414 " in r, "a head beyond 8 KiB: 431", r[:80])
    head = raw(b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    ok(" 200 " in head and head.endswith("\r\n\r\n"), "HEAD has no body")
    for h in ("X-Content-Type-Options: nosniff", "X-Frame-Options: DENY", "Content-Security-Policy: default-src 'none'"):
        ok(h in head, f"header {h[:28]}")
    # A byte a second does not hold a connection for longer than the deadline, nor anybody else up.
    began, slow = time.monotonic(), [socket.create_connection(where, timeout=0.05) for _ in range(12)]
    for s in slow:
        s.sendall(b"GET / HT")

    def has_ended():
        try:
            for s in slow:
                s.send(b"x")
            return slow[0].recv(1000) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    answers = set()
    ok(wait(lambda: answers.add(d.fetch("/healthz")[0]) or has_ended(), pause=0.2), "a slow head ends")
    ok(time.monotonic() - began > 4, "not before its deadline")
    eq(answers, {200}, "others are served while heads are not at their end")
    for s in slow:
        s.close()
    eq(d.stop(), 0, "stops with 0")


def test_full_disk():
    mount = os.path.join(DIR, "small")
    if not lab.mount(mount, "2m"):
        skip("a full disk", "needs the right to mount")
        return
    port, out = free_udp_port(), os.path.join(mount, "out.jsonl")
    d = Daemon(write("full.yaml", config_text(port, out, output_extra="    buffer: 524288\n")), "full")
    n = sent_by(start_gen(port, "--rate", "10000", "--count", "20000"))
    wait(lambda: total(d.metrics(), "pathline_packets_total") == n)
    ok(wait(lambda: d.fetch("/readyz")[0] == 503), "not ready while the disk is full")
    eq(total(d.metrics(), "pathline_packets_total"), n, "capture goes on")
    ok(wait(lambda: total(d.metrics(), "pathline_output_dropped_total") > 0), "what cannot be written is counted")
    open(out, "w").close()
    ok(wait(lambda: d.fetch("/readyz")[0] == 200), "ready again when there is room")
    d.stop()
    a = d.account()
    eq(a.get("offered"), sum(a.get(k, 0) for k in ("delivered", "filtered", "dropped", "undelivered")),
       "offered = delivered + filtered + dropped + undelivered")


STORY = ("path_change", "queue_depth", "report_loss")


def test_demo():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8400))
            taken.listen()
        except OSError:
            pass  # something else is there: as good
        # So long of the network's time, however long that takes: its story is told to the end.
        r = run("demo", "--headless", "--duration", "8s", "-o", "json", timeout=5 * LIMIT)
        s = json.loads(r.stdout)
    eq(r.returncode, 0, "demo ends with 0, its port taken")
    a = s["accounting"]
    eq(a["made"], a["sent"] + a["lost_on_purpose"] + a["not_sent"], "made = sent + lost on purpose + not sent")
    eq(a["sent"], a["received"] + a["kernel_drops"], "sent = received + kernel drops")
    ok(a["balanced"], "it says so itself")
    for kind in STORY:
        ok(s["events"][kind] > 0, f"the story has a {kind}", s["events"])
    m = s["marking"]
    eq((m["wrong"], [k for k in m["links"] if k["lost"] != k["true_lost"]]), (0, []), f"{m['results']} blocks of flows have lost what marking says")
    by = {(k["from"], k["to"]): k for k in m["links"]}
    leak, full = by["leaf3", "spine1"], by["spine2", "leaf4"]
    ok(0.004 < leak["lost"] / leak["sent"] < 0.025 and leak["drop_reports"] == 0, "a link loses 1 %, of which INT knows nothing", leak)
    ok("found_after_blocks" in m, "which marking finds", m)
    ok(full["lost"] > 0 and full["drop_reports"] > 0, "it finds what a full queue drops, too", full)
    # A link that goes down may lose what has been sent into it.
    eq({k for k, v in by.items() if v["lost"] > 0} - {("leaf3", "spine1"), ("spine2", "leaf4"), ("leaf1", "spine1"), ("spine1", "leaf1")}, set(),
       "and blames no other link")


def test_demo_behind():
    """A network that no machine simulates by the clock: the demonstration ends when its story is told."""
    r = run("demo", "--headless", "--duration", "2s", "--rate", "200k", "-o", "json", timeout=5 * LIMIT)
    a = json.loads(r.stdout)["accounting"]
    ok(r.returncode == 0 and a["lost_on_purpose"] > 0, "reports are lost on purpose in the last quarter of the story", a)


def test_demo_printed():
    """Without a terminal the demonstration prints the tables that top draws, and its totals."""
    r = run("demo", "--duration", "7s")
    ok(r.returncode == 0 and "they agree" in r.stdout, "the demo without a terminal", r.stdout + r.stderr)
    ok(r.stdout.startswith("network: ") and re.search(r"^metrics: http://127\.0\.0\.1:\d+/metrics$", r.stdout, re.M), "what it shows", r.stdout)
    ok(re.search(r"^pathline top .*\nreports \d+ .*\n\nTIMEv +EVENT +PHASE", r.stdout, re.M), "the table of events", r.stdout)
    ok(re.search(r"^totals: made \d+ = sent", r.stdout, re.M), "the totals", r.stdout)


def main():
    lab.run(test_config, test_short_config, test_prometheus, test_reload, test_half_written, test_restart, test_folded, test_two, test_both_families, test_web, test_full_disk,
            test_demo, test_demo_behind, test_demo_printed)
    logs = {name: lab.read(name) for name in sorted(os.listdir(DIR)) if name.endswith(".log")}
    if os.environ.get("PATHLINE_SHOW_LOGS"):
        for name, text in logs.items():
            print(f"# {name}\n" + text)
    eq([name for name, text in logs.items() if "ThreadSanitizer" in text], [], "no report of a sanitizer in any log")
    return tap.end()


sys.exit(main())
