#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is Prometheus-shaped against the real servers: Prometheus and VictoriaMetrics scrape the daemon and take
its remote write, every value is read back and compared with the page, a server is killed and comes back under
load, a hundred scrape at once, exemplars are read back, Alertmanager gets the events.
usage: prometheus.py PATHLINE [TEST…]"""

import http.server
import json
import math
import os
import re
import shutil
import signal
import sys
import threading
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import DIR, free_port, free_udp_port, write  # noqa: E402
from lib.pathline import gen, sent_by, start_gen  # noqa: E402
from lib.servers import Alertmanager, Server, get  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import LIMIT, changes, wait  # noqa: E402


def prometheus(scrape=None):
    config = "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n"
    if scrape:
        config += f"scrape_configs:\n  - job_name: scraped\n    static_configs:\n      - targets: ['{scrape}']\n"
    path = write(f"prometheus{free_port()}.yml", config)
    return Server("Prometheus", ["prometheus", f"--config.file={path}", "--storage.tsdb.path={dir}",
                                 "--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver",
                                 "--enable-feature=exemplar-storage"], "/-/ready")


def victoria(scrape=None):
    args = ["victoria-metrics", "-storageDataPath={dir}", "-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=1",
            "-search.latencyOffset=0s", "-dedup.minScrapeInterval=0"]
    if scrape:
        path = write("victoria.yml", "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n"
                     f"  - job_name: scraped\n    static_configs:\n      - targets: ['{scrape}']\n")
        args.append(f"-promscrape.config={path}")
    return Server("VictoriaMetrics", args, "/health")


SERVERS = {"prometheus": prometheus, "victoria-metrics": victoria}


class Daemon(pathline.Daemon):
    def __init__(self, name, text):
        self.port = free_udp_port()
        super().__init__(write(name + ".yaml", f"sources:\n  - uri: udp://127.0.0.1:{self.port}?rcvbuf=64MiB\n"
                               "web:\n  listen: 127.0.0.1:0\n  max_per_address: 256\n  max_connections: 512\n" + text), name)

    def page(self, accept="text/plain"):
        return get(self.web + "/metrics", {"Accept": accept}).decode()

    def values(self):
        return parse(self.page())

    def gen(self, *options):
        return gen(self.port, *options)


def parse(page):
    """A page as {(name, labels): value}, by Python's own means."""
    found = {}
    for line in page.splitlines():
        if line.startswith("#") or not line:
            continue
        m = re.fullmatch(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)', line)
        labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m.group(2) or "")
        key = (m.group(1), tuple(sorted((k, v.replace(r'\"', '"').replace(r"\\", "\\")) for k, v in labels if v)))
        assert key not in found, key
        found[key] = float(m.group(3).replace("Inf", "inf"))
    return found


def one(values, name, **labels):
    return sum(v for (n, l), v in values.items() if n == name and set(labels.items()) <= set(l))


def read_back(server, job):
    """All series of a job as the server has them now: the same form as a page."""
    found = {}
    for x in server.query('{job="%s"}' % job):
        labels = tuple(sorted((k, v) for k, v in x["metric"].items() if k not in ("__name__", "job", "instance")))
        found[(x["metric"]["__name__"], labels)] = float(x["value"][1])
    return found


# Those that change by themselves from one reading to the next.
MOVING = re.compile(r"^(process_|pathline_output_|pathline_http_|pathline_config_|pathline_start|scrape_|up$|"
                    r"pathline_state_age|pathline_worker_|pathline_series_aged|pathline_memory|.*_cpu_seconds)")


def compare(page, got, what):
    """Both are asked again until they agree: a scrape may be late, or given up by its server, on a busy machine."""
    until = time.time() + LIMIT
    while True:
        want = {k: v for k, v in page().items() if not MOVING.match(k[0])}
        have = {k: v for k, v in got().items() if not MOVING.match(k[0])}
        missing, extra = sorted(set(want) - set(have)), sorted(set(have) - set(want))
        wrong = [(k, want[k], have[k]) for k in want if k in have and
                 not (want[k] == have[k] or math.isclose(want[k], have[k], rel_tol=1e-12))]
        same = len(want) > 300 and not missing and not extra and not wrong
        if same or time.time() > until:
            break
        time.sleep(0.5)
    ok(same,
       f"{what}: {len(want)} values are as on the page, none missing, none too many",
       f"missing {len(missing)} {missing[:5]}\nextra {len(extra)} {extra[:5]}\nwrong {len(wrong)} {wrong[:5]}")


def settled(d, n):
    """The page once all of n packets are on it, and the gauges of old slots have gone."""
    ok(wait(lambda: one(d.values(), "pathline_packets_total") == n), f"{n} packets are received")


def remote_config(url, extra=""):
    return (f"outputs:\n  - name: rw\n    type: remote_write\n    url: {url}/api/v1/write\n    interval: 1s\n"
            f"    batch:\n      age: 100ms\n{extra}" "aggregate:\n  slot: 1h\n")


# ---- tests ----

def test_scrape():
    for name, make in SERVERS.items():
        if shutil.which(name) is None:
            skip(f"scraped by {name}", f"missing: {name}")
            continue
        d = Daemon("scrape-" + name, "aggregate:\n  slot: 1h\n")
        s = make(d.web[len("http://"):])
        n = d.gen("--rate", "5000", "--count", "10000", "--seed", "11")
        settled(d, n)
        wait(lambda: s.query("pathline_packets_total{job='scraped'}")[0]["value"][1] == str(n))
        compare(d.values, lambda: read_back(s, "scraped"), f"{name} scrapes")
        eq(d.stop(), 0, "stops with 0")
        s.stop()
        ok(not re.search(r"out.of.order|duplicate|cannot parse", s.log(), re.I), "no complaint in the server's log",
           s.log()[-1500:])


def test_exemplars():
    if shutil.which("prometheus") is None:
        skip("exemplars", "missing: prometheus")
        return
    d = Daemon("exemplars", "")
    s = prometheus(d.web[len("http://"):])
    began = time.time()
    n = d.gen("--rate", "5000", "--count", "5000", "--seed", "5")
    settled(d, n)
    page = d.page("application/openmetrics-text")
    on_page = re.findall(r'^(pathline_\w+)_bucket\{(.*)le="([^"]+)"\} (\d+) # \{flow="([^"]+)"(?:,path_id="(\w+)")?\} (\S+) (\S+)$',
                         page, re.M)
    ok(len(on_page) > 20, "the OpenMetrics page has exemplars", len(on_page))
    families = {x[0] for x in on_page}
    eq(families, {"pathline_hop_latency_seconds", "pathline_queue_occupancy", "pathline_path_latency_seconds",
                  "pathline_link_latency_seconds"} & families, "of histograms")
    good = all(re.fullmatch(r"\d+\.\d+\.\d+\.\d+:\d+>\d+\.\d+\.\d+\.\d+:\d+/\d+", x[4]) and
               float(x[6]) <= float(x[2].replace("Inf", "inf")) and began - 5 < float(x[7]) < time.time() + 5 and
               int(x[3]) > 0 for x in on_page)
    ok(good, "each names a flow, lies in its bucket, and has a time of now", on_page[:3])

    def stored():
        q = urllib.parse.urlencode({"query": "pathline_hop_latency_seconds_bucket", "start": began - 60,
                                    "end": time.time() + 60})
        return json.loads(get(f"{s.url}/api/v1/query_exemplars?{q}"))["data"]

    def have():
        return {(x["seriesLabels"]["le"], x["seriesLabels"]["node"], e["labels"]["flow"], float(e["value"]))
                for x in stored() for e in x["exemplars"]}
    want = set()
    for name, labels, le, _, flow, _, value, _ in on_page:
        if name == "pathline_hop_latency_seconds":
            want.add((le, re.search(r'node="(\d+)"', labels).group(1), flow, float(value)))
    ok(want and wait(lambda: want <= have()), f"Prometheus has all {len(want)} of hop latency", sorted(want - have())[:4])
    eq(d.stop(), 0, "stops with 0")
    s.stop()


def output(values, name, **labels):
    return one(values, f"pathline_output_{name}", output="rw", **labels)


def accounts(d, what):
    """points + accepted = delivered + dropped + waiting + spooled, once nothing moves."""
    got = []

    def closed():
        v = d.values()
        got[:] = (output(v, "points_total") + output(v, "accepted_total"),
                  output(v, "delivered_total") + output(v, "dropped_total") + output(v, "waiting") + output(v, "spooled"))
        return got[0] == got[1]
    ok(wait(closed), f"{what}: the accounts close", got)


def test_remote_write():
    for name, make in SERVERS.items():
        if shutil.which(name) is None:
            skip(f"remote write to {name}", f"missing: {name}")
            continue
        s = make()
        d = Daemon("rw-" + name, remote_config(s.url))
        n = d.gen("--rate", "5000", "--count", "10000", "--seed", "12")
        settled(d, n)
        wait(lambda: s.query("pathline_packets_total{job='pathline'}")[0]["value"][1] == str(n))
        compare(d.values, lambda: read_back(s, "pathline"), f"remote write to {name}")
        accounts(d, name)
        v = d.values()
        eq((output(v, "dropped_total"), output(v, "errors_total")), (0, 0), "nothing dropped, no error")
        if name == "prometheus":
            q = urllib.parse.urlencode({"query": "pathline_hop_latency_seconds_bucket", "start": time.time() - 60,
                                        "end": time.time() + 60})
            ok(len(json.loads(get(f"{s.url}/api/v1/query_exemplars?{q}"))["data"]) > 3, "exemplars came too")
        eq(d.stop(), 0, "stops with 0")
        s.stop()
        ok(not re.search(r"out.of.order|out.of.bound|duplicate", s.log(), re.I), "no complaint in the server's log",
           s.log()[-1500:])


def test_stale():
    if shutil.which("prometheus") is None:
        skip("stale markers", "missing: prometheus")
        return
    s = prometheus()
    d = Daemon("stale", remote_config(s.url).replace("slot: 1h", "slot: 1s\n  idle: 2s"))
    d.gen("--rate", "2000", "--count", "2000")
    ok(wait(lambda: len(s.query("last_over_time(pathline_queue_packets_total[1h])")) > 0), "queues are there")
    ok(wait(lambda: len(s.query("pathline_queue_packets_total")) == 0 and
                  len(s.query("pathline_packets_total")) == 1, 60),
       "and end seconds after they went, not after five minutes", s.query("pathline_queue_packets_total")[:2])
    eq(d.stop(), 0, "stops with 0")
    s.stop()


def intervals(d, n):
    """Waits until points were made so many times more."""
    return changes(lambda: output(d.values(), "points_total"), n)


def points(server):
    """How many points it has of the daemon; a histogram at a time is one. The stale marker of a series that ended, which
    VictoriaMetrics shows as a sample, is none."""
    found = set()
    for x in server.query('{job="pathline"}[1h]'):
        labels = {k: v for k, v in x["metric"].items() if k not in ("__name__", "le")}
        family = re.sub("_(bucket|sum|count)$", "", x["metric"]["__name__"])
        found |= {(family, *sorted(labels.items()), t) for t, v in x["values"] if v != "NaN"}
    return len(found)


def test_outage():
    """The server is killed and comes back, under load: no sample is missing, none comes twice."""
    for name, make in SERVERS.items():
        if shutil.which(name) is None:
            skip(f"{name} killed", f"missing: {name}")
            continue
        s = make()
        d = Daemon("outage-" + name, remote_config(s.url, f"    spool:\n      path: {DIR}/spool-{name}\n"))
        g = start_gen(d.port, "--rate", "2000", "--duration", "10m")

        def samples():
            """(time, value) of a counter, as the server has them"""
            return [(x[0], float(x[1])) for x in s.query('pathline_packets_total{job="pathline"}[1h]')[0]["values"]]
        ok(wait(lambda: len(samples()) >= 3), f"{name} gets samples")
        # VictoriaMetrics answers before it has written; killed outright it loses what it took last.
        s.stop(signal.SIGKILL if name == "prometheus" else signal.SIGTERM)
        away = time.time()
        ok(intervals(d, 4) and output(d.values(), "waiting") + output(d.values(), "spooled") > 0, f"{name} is away: what there is waits")
        back = time.time()
        s.start()
        ok(wait(lambda: samples()[-1][0] > back), "it comes back and gets it")
        ok(wait(lambda: output(d.values(), "spooled") == 0), "also what was on disk")
        ok(wait(lambda: "output_failing" not in d.page()), "nothing is wrong any more")
        g.terminate()
        g.wait()
        accounts(d, f"{name} killed")
        eq(output(d.values(), "dropped_total"), 0, "nothing was dropped")
        eq(d.stop(), 0, "stops with 0")
        delivered = int(re.findall(r"= delivered (\d+)", d.log())[-1])
        ok(wait(lambda: points(s) == delivered), f"all {delivered} points that were delivered are there", points(s))
        of = samples()
        ok(any(away < t < back for t, _ in of), "those of the outage too", (away, back, of))
        ok(all(t < u and v <= w for (t, v), (u, w) in zip(of, of[1:])), "counters do not go back", of)
        s.stop()


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers as it is told to, and remembers."""
    answers, bodies, lock = [], [], threading.Lock()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with Receiver.lock:
            status, text = Receiver.answers.pop(0) if Receiver.answers else (204, "")
            Receiver.bodies.append((status, dict(self.headers), body))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


def receiver(answers):
    Receiver.answers, Receiver.bodies = list(answers), []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def test_answers():
    server, url = receiver([(503, "later"), (429, "slow down"), (500, "oops"), (400, "out of order sample"),
                            (400, "out of order sample")])
    d = Daemon("answers", remote_config(url, f"    dead_letter:\n      path: {DIR}/dead.jsonl\n"))
    ok(wait(lambda: len(Receiver.bodies) > 8), "after 503, 429, 500 and 400 it goes on")
    accounts(d, "answers")
    with Receiver.lock:
        bodies = list(Receiver.bodies)
    ok(bodies[0][2] == bodies[1][2] == bodies[2][2] == bodies[3][2], "503, 429, 500: the same bytes again")
    ok(len(bodies[4][2]) < len(bodies[3][2]), "400: a half of it")
    headers = {k.lower(): v for k, v in bodies[0][1].items()}
    eq((headers["content-type"], headers["content-encoding"], headers["x-prometheus-remote-write-version"],
        headers["user-agent"].split("/")[0]),
       ("application/x-protobuf", "snappy", "0.1.0", "pathline"), "the headers of remote write 1.0")
    eq(d.stop(), 0, "stops with 0")
    server.shutdown()
    server.server_close()


def test_many_scrapes():
    d = Daemon("many", "")
    n = d.gen("--rate", "5000", "--count", "5000")
    settled(d, n)
    g = start_gen(d.port, "--rate", "5000", "--duration", "4s")
    results = []

    def scrape(i):
        try:
            page = d.page("application/openmetrics-text" if i % 2 else "text/plain")
            results.append(page.endswith("# EOF\n") if i % 2 else page.endswith("\n"))
        except OSError as e:
            results.append(str(e))
    threads = [threading.Thread(target=scrape, args=(i,)) for i in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    eq(results.count(True), 100, "a hundred scrapes at once, each a whole page")
    n += sent_by(g)
    settled(d, n)
    eq(d.stop(), 0, "stops with 0")


def test_exporter_without_node():
    d = Daemon("v05", "")
    n = sum(d.gen("--report", version, "--rate", "1000", "--count", "100") for version in ("0.5", "1.0"))
    settled(d, n)
    nodes = re.findall(r'^pathline_exporter_reports_total\{exporter="[^"]+",node="(\d*)"', d.page(), re.M)
    ok("" in nodes and "0" not in nodes and len(nodes) > 1, "reports of version 0.5 name no node", nodes)
    eq(d.stop(), 0, "stops with 0")


def test_alertmanager():
    text = ("outputs:\n  - name: rw\n    type: webhook\n    url: {url}\n    labels: [severity=page]\n"
            "    link: http://dashboard.example/\n    repeat: 1s\n    resolve: 60s\n    batch:\n      age: 100ms\n{extra}"
            "detect:\n  queue_depth:\n    threshold: 20\n  idle: 1s\n")
    if shutil.which("prometheus-alertmanager") is None:
        skip("Alertmanager", "missing: prometheus-alertmanager")
    else:
        s = Alertmanager()
        d = Daemon("am", text.format(url=s.url + "/api/v2/alerts", extra=""))
        g = start_gen(d.port, "--rate", "1000", "--duration", "10m", "--queue", "const:100")

        def alerts():
            return s.alerts("pathline_queue_depth")
        ok(wait(lambda: len(alerts()) > 3), "Alertmanager has the queues that are full")
        # An alert that is not told again would last for four repeats.
        ok(changes(lambda: alerts()[0]["endsAt"], 5), "they are told again", alerts()[:1])
        now = []

        def as_raised():
            now[:] = alerts()
            return now and len(now) == one(d.values(), "pathline_levels_raised")
        ok(wait(as_raised), "as many as the page says, also after repeats", len(now))
        a = now[0]
        ok(a["labels"]["severity"] == "page" and a["labels"]["node"].isdigit() and
           a["generatorURL"] == "http://dashboard.example/" and "queue depth" in a["annotations"]["summary"] and
           a["status"]["state"] == "active" and "flow" not in a["labels"], "labels, annotations, link", a)
        g.terminate()
        g.wait()
        ok(wait(lambda: len(alerts()) == 0), "they are resolved when the queues are empty", alerts()[:1])
        v = d.values()
        eq((output(v, "dropped_total"), output(v, "errors_total")), (0, 0), "nothing dropped, no error")
        accounts(d, "Alertmanager")
        eq(d.stop(), 0, "stops with 0")
        s.stop()
    server, url = receiver([(500, "busy")])
    d = Daemon("receiver", text.format(url=url, extra="    form: receiver\n"))
    d.gen("--rate", "1000", "--count", "1000", "--queue", "const:100")
    ok(wait(lambda: any(b'"status":"resolved","receiver"' in b[2] for b in Receiver.bodies)),
       "a receiver is told of begin and end")
    begun, ended = {}, {}

    def told():
        """of each begin the end"""
        with Receiver.lock:
            bodies = list(Receiver.bodies)
        for status, _, body in bodies:
            group = json.loads(body)
            assert group["version"] == "4" and group["commonLabels"] == {"severity": "page"}
            for a in group["alerts"] if status != 500 else []:
                if a["labels"]["alertname"] == "pathline_queue_depth":
                    (begun if a["status"] == "firing" else ended).setdefault(a["fingerprint"], a)
        return begun and set(begun) == set(ended)
    wait(told)
    accounts(d, "receiver")
    ok(begun and set(begun) == set(ended), "every begin has its end", f"{len(begun)} {len(ended)}")
    ok(all(begun[k]["startsAt"] == ended[k]["startsAt"] < ended[k]["endsAt"] for k in ended if k in begun),
       "of the same start")
    eq(d.stop(), 0, "stops with 0")
    server.shutdown()
    server.server_close()


def main():
    lab.run(test_scrape, test_exemplars, test_remote_write, test_stale, test_outage, test_answers, test_many_scrapes,
            test_exporter_without_node, test_alertmanager)
    return tap.end()


sys.exit(main())
