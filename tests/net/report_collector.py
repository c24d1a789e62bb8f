#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline run on a network interface: a generator at full rate on the other end of a veth pair, every frame
accounted for; the interface taken down, removed, renamed and given back; a second daemon on the same interface;
kill -9 and start; other traffic untouched.

    usage: report_collector.py PATHLINE REFUSE [PART…]

REFUSE: the library of refuse.c. PART: one of the functions that main names, instead of everything.

Needs root, network namespaces, the right to load BPF programs; is skipped without."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap  # noqa: E402
from lib.lab import DIR  # noqa: E402
from lib.pathline import PATHLINE, accounts_close, samples, total  # noqa: E402
from lib.tap import comment, eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

REFUSE = sys.argv[2]
PORT = lab.free_port()
TX = RX = None


def run(*args, check=True):
    return subprocess.run(args, check=check, capture_output=True, text=True, timeout=5 * LIMIT)


def make_pair():
    # One queue each, so that one socket sees all; no IPv6, whose neighbour talk would be counted.
    network.join(TX, "tx0", RX, "rx0")
    for ns, link, addr, mac in ((TX, "tx0", "10.255.0.1/24", "02:00:00:00:00:01"), (RX, "rx0", "10.255.0.2/24", "02:00:00:00:00:02")):
        ns.sysctl(f"ipv6.conf.{link}.disable_ipv6", 1)
        ns.ip(f"link set {link} address {mac}")
        ns.up(link, addr)
    network.wait_for_carrier((TX, "tx0"), (RX, "rx0"))
    # Nobody asks who has an address: that would be frames nobody sent.
    TX.ip("neigh add 10.255.0.2 lladdr 02:00:00:00:00:02 dev tx0")
    RX.ip("neigh add 10.255.0.1 lladdr 02:00:00:00:00:01 dev rx0")


class Daemon(pathline.Daemon):
    def __init__(self, name, text, ready=True, **environment):
        super().__init__(lab.write(name + ".yaml", text), name, ready, RX.command(), env=os.environ | environment)

    def start_again(self):
        """Behind one that was killed, after whom the kernel clears up, on a loaded machine some time later."""
        ends = time.monotonic() + LIMIT
        while True:
            try:
                return self.start()
            except RuntimeError as e:
                if "AF_XDP socket of another process" not in str(e) or time.monotonic() > ends:
                    raise
                time.sleep(0.2)

    def said_after(self, at, pattern):
        """Whether it says this behind a place in its log."""
        return self.wait_for(rf"(?s)\A.{{{at}}}.*{pattern}") is not None

    def get(self, path):
        """The page is on the loopback of the other namespace."""
        r = run(*RX.command("curl", "-s", "-m", str(LIMIT), "-w", "\n%{http_code}", f"http://127.0.0.1:{PORT}{path}"), check=False)
        body, _, code = r.stdout.rpartition("\n")
        return int(code or 0), body

    def metrics(self):
        return samples(self.get("/metrics")[1])


def total_of(values, name, word):
    return int(sum(v for k, v in values.items() if k.split("{")[0] == name and word in k))


def seen(values):
    """Frames that reached the program on the interface: each is in exactly one of these."""
    return (sum(total(values, f"pathline_socket_{x}_total") for x in ("packets", "drops", "filtered", "unread")) +
            total(values, "pathline_packets_settled_total"))


def ethernet(ns, link, name):
    return int(ns.sh(f"cat /sys/class/net/{link}/statistics/{name}") or 0)


def generate(count, *options, port="afxdp:tx0"):
    """Sends, and returns how many frames left."""
    before = ethernet(TX, "tx0", "tx_packets")
    r = run(*TX.command(PATHLINE, "gen", "int", "--count", str(count), *options, port), check=False)
    if r.returncode != 0:
        ok(False, "the generator sends", r.stderr)
    return ethernet(TX, "tx0", "tx_packets") - before, r.stderr


def both_sides(values):
    """Both sides of each account."""
    outputs = [total(values, f"pathline_output_{x}_total") for x in ("offered", "delivered", "filtered", "dropped")]
    packets = total(values, "pathline_packets_total")
    return [(total(values, "pathline_packets_decoded_total") + total(values, "pathline_report_errors_total"), packets),
            (total(values, "pathline_socket_packets_total") + total(values, "pathline_packets_settled_total"), packets),
            (outputs[0], sum(outputs[1:]))]


def settle(daemon, frames=0):
    """Metrics, when so many frames have come, the accounts agree, and they stay as they are."""
    pages = [{}, {}]

    def is_still():
        """all frames have come, the accounts agree and were the same before"""
        pages[:] = pages[1], daemon.metrics()
        return seen(pages[1]) >= frames and all(a == b for a, b in both_sides(pages[1])) and both_sides(pages[0]) == both_sides(pages[1])
    wait(is_still, pause=0.2)
    return pages[1]


def escalated(values):
    """By cause."""
    grown = {re.search('cause="(.*?)"', k).group(1): v for k, v in values.items() if k.startswith("pathline_kernel_escalated_total")}
    return {cause: int(v) for cause, v in grown.items() if v > 0}


def in_turn(values):
    """Reports escalated because user space had the tables: how many depends on how busy the machine is."""
    return escalated(values).get("turn", 0)


def teach(daemon, *form):
    """Reports of this form until the kernel knows the layouts: how many were sent."""
    sent = 0

    def is_known():
        """none of so many reports is escalated for its layout"""
        nonlocal sent
        before = settle(daemon)
        more, _ = generate(500, "--rate", "20000", *form)
        sent += more
        values = settle(daemon, seen(before) + more)
        return escalated(values).get("layout", 0) == escalated(before).get("layout", 0)
    wait(is_known)
    return sent


def settles(values, before, name):
    """Of what came in between all is settled in the kernel, but what came in user space's turn."""
    grown = {cause: n - escalated(before).get(cause, 0) for cause, n in escalated(values).items()}
    settled = total(values, "pathline_kernel_settled_total") - total(before, "pathline_kernel_settled_total")
    ok(settled > 0 and not {cause for cause, n in grown.items() if n > 0} - {"turn"},
       f"{name}: {settled} are settled in the kernel, and all others came in user space's turn", grown)


def balanced(values, name):
    accounts_close(values, name)
    eq(total(values, "pathline_socket_packets_total") + total(values, "pathline_packets_settled_total"),
       total(values, "pathline_packets_total"), f"{name}: all that was received was decoded, settled or refused")


def config(uri, extra=""):
    """Every report counts, so that sums are those of what was sent: reports that the kernel settles wait for no proof."""
    return (f"decode:\n  admit: first\nsources:\n  - uri: {uri}\nweb:\n  listen: 127.0.0.1:{PORT}\n"
            f"outputs:\n  - path: {DIR}/records.jsonl\n    paths: false\n{extra}")


def full_rate(uri, name, count, detect=""):
    """Returns the daemon, still running."""
    d = Daemon(name, config(uri, f"detect:\n{detect}  queue_depth:\n    threshold: 1000\n    begin_hold: 0s\n"))
    taught = teach(d) if detect else 0
    before = settle(d)
    sent, words = generate(count, "--rate", "100000000", "--event", "queue@0s+2ms:depth=20000")
    values = settle(d, taught + sent)
    eq(seen(values), taught + sent, f"{name}: {taught + sent} sent = received + dropped by place + left to the host")
    if detect:
        settles(values, before, name)
    ok(total(values, "pathline_socket_packets_total") > 0, f"{name}: something is received")
    balanced(values, name)
    rate = re.search(r"([0-9.]+ ?[kM]?)\S*/s", words)
    comment(f"{name}: {words.strip().splitlines()[-1] if words.strip() else rate}")
    comment(f"{name}: received {total(values, 'pathline_socket_packets_total')}, dropped "
            f"{total(values, 'pathline_socket_drops_total')}")
    return d, values


# Gauges that show the last reading of a queue or a port.
LAST_READING = ("pathline_queue_depth{", "pathline_queue_depth_bytes{", "pathline_port_utilization{")
NETWORK = re.compile(r"pathline_(queue|port|link|path|hop)_")


def network_of(values):
    """What the page says of queues, ports, links and paths: histograms and maxima too."""
    # Jitter hangs on the order of the reports; those escalated are read later.
    return {k: v for k, v in values.items() if NETWORK.match(k) and "_jitter_" not in k}


def test_same_series():
    """Detected in the kernel or in user space, the page shows the same network, value by value."""
    forms = {"v1.0": ("--int", "1.0", "--report", "1.0"), "v2.0": ("--int", "2.1", "--report", "2.0"),
             "v0.5": ("--int", "0.5", "--report", "0.5"), "v2.0 with drops": ("--int", "2.1", "--report", "2.0", "--drop", "0.02")}
    pages = {}
    for where in ("user", "kernel"):
        d = Daemon(f"same-{where}", config("afxdp:rx0", f"aggregate:\n  slot: 1h\ndetect:\n  where: {where}\n"))
        all_sent = 0
        for count in (500, 5000):  # what has to be learned first
            before = settle(d, all_sent)
            for name, options in forms.items():
                sent, words = generate(count, "--rate", "20000", "--seed", "3", "--missing", "0.05", "--topology", "leaf-spine:4x2", *options)
                all_sent += sent
                if sent == 0:
                    ok(False, f"{where}, {name}: reports are sent", words)
        pages[where] = settle(d, all_sent)
        balanced(pages[where], f"same series, {where}")
        if where == "kernel":
            settles(pages[where], before, "same series")
            code, body = d.get("/api/v1/flows")
            rows = json.loads(body)["rows"] if code == 200 else []
            ok(len(rows) >= 100, f"same series: {len(rows)} flows in the table of the kernel's")
        eq(d.stop(), 0, f"same series, {where}: ends well")
    user, kernel = (network_of(pages[x]) for x in ("user", "kernel"))
    eq(sorted(kernel), sorted(user), f"the same {len(user)} series")
    wrong = {k: (kernel[k], user[k]) for k in user if k in kernel and abs(kernel[k] - user[k]) > 1e-9 * abs(user[k])}
    if in_turn(pages["kernel"]) > 0:
        # A report that was handed up for the turn is counted behind later ones: it may be the last reading of its
        # queue or port.
        wrong = {k: v for k, v in wrong.items() if not k.startswith(LAST_READING)}
    ok(not wrong, "with the same values", "\n".join(f"{k}: kernel {a}, user {b}" for k, (a, b) in sorted(wrong.items())))
    eq(total(pages["kernel"], "pathline_flows"), total(pages["user"], "pathline_flows"), "as many flows")
    for name in ("pathline_reports_total", "pathline_exporter_reports_total"):
        eq(total(pages["kernel"], name), total(pages["user"], name), f"as many: {name}")
    # A number that user space counts after later ones fills a gap that these opened.
    lost = [total(p, "pathline_exporter_skipped_total") - total(p, "pathline_exporter_recovered_total") for p in pages.values()]
    eq(lost[1], lost[0], "as many lost")


def test_refused():
    """A kernel whose verifier does not take the detector: one line says so, and user space detects."""
    d = Daemon("refused", config("afxdp:rx0", "detect:\n  where: kernel\n  queue_depth:\n    threshold: 1000\n    begin_hold: 0s\n"),
               LD_PRELOAD=REFUSE)
    said = [line for line in d.log().splitlines() if "because the kernel cannot" in line]
    eq(len(said), 1, "refused: one line")
    ok("this kernel rejects the detector" in said[0] and "BPF program is too large" in said[0] and "level=warning" in said[0],
       "refused: which says what the verifier said", said)
    sent, _ = generate(20000, "--rate", "100000", "--event", "queue@0s+10ms:depth=20000")
    values = settle(d, sent)
    eq(seen(values), sent, "refused: all that was sent is in the account")
    eq(total(values, "pathline_packets_settled_total"), 0, "refused: nothing is settled elsewhere")
    balanced(values, "refused")
    ok(total(values, "pathline_events_total") > 0, "refused: events are told")
    ok(total(values, "pathline_queue_packets_total") > 0, "refused: queues are on the page")
    eq(d.stop(), 0, "refused: ends well")


def test_copies():
    """Of what the kernel settles, some reports come up in full; what is wanted changes by a reload."""
    text = (f"decode:\n  admit: first\nsources:\n  - uri: afxdp:rx0\nweb:\n  listen: 127.0.0.1:{PORT}\n"
            f"outputs:\n  - path: {DIR}/copies.jsonl\n    events: false\n")
    d = Daemon("copies", text + "detect:\n  where: kernel\n  copy:\n    sample: 10\n")
    form = ("--int", "2.1", "--report", "2.0", "--seed", "3", "--flows", "50")

    def more(count):
        before = settle(d)
        lines = sum(1 for _ in open(f"{DIR}/copies.jsonl")) if os.path.exists(f"{DIR}/copies.jsonl") else 0
        sent, _ = generate(count, "--rate", "20000", *form)
        values = settle(d, seen(before) + sent)
        eq(seen(values) - seen(before), sent, f"copies: {sent} sent = seen, each once")
        balanced(values, "copies")
        grown = {x: total(values, f"pathline_kernel_{x}_total") - total(before, f"pathline_kernel_{x}_total")
                 for x in ("settled", "copied", "copies_lost", "escalated")}
        wait(lambda: len(lab.read("copies.jsonl").splitlines()) - lines == grown["copied"] + grown["escalated"])
        new = pathline.jsonl(lab.read("copies.jsonl"))[lines:]
        eq(len(new), grown["copied"] + grown["escalated"], f"copies: {len(new)} reports in the file, by the counters")
        eq(total(values, "pathline_hops_total"), total(values, "pathline_queue_packets_total"), "copies: each hop counted once")
        return grown, new

    more(1000)  # what has to be learned first
    grown, _ = more(5000)
    # Each processor counts for itself, and the kernel moves the work between them as it likes. A report that comes while user
    # space has the turn over the tables is escalated, and is no copy.
    copies = grown["copied"] + grown["copies_lost"]
    ok(grown["settled"] > 0 and abs(copies - grown["settled"] / 10) <= os.cpu_count(), "copies: one in ten", grown)

    def reload(detect, holds):
        """What is told to be in use holds for the next reports; on a busy machine some come before."""
        at = len(d.log())
        with open(d.config, "w") as f:
            f.write(text + detect)
        d.p.send_signal(signal.SIGHUP)
        ok(d.said_after(at, "is in use"), "copies: a reload", d.log()[at:])
        wait(lambda: holds(*more(500)))

    grown, new = more(100)
    node = next(h["node"] for r in new for h in r["hops"])

    def met(grown, new):
        others = sum(node not in [h["node"] for h in r["hops"]] for r in new)
        return grown["copied"] > 0 and others <= grown["escalated"]

    reload(f"detect:\n  where: kernel\n  copy:\n    node: \"{node}\"\n", met)
    grown, new = more(5000)
    ok(grown["copied"] < 5000 and met(grown, new), f"copies: {grown['copied']} reports met node {node}, and no others come")
    reload("detect:\n  where: kernel\n", lambda grown, _: grown["copied"] == 0)
    grown, _ = more(1000)
    eq(grown["copied"], 0, "copies: none any more")
    eq(d.stop(), 0, "copies: ends well")


def test_late_query():
    """A reload that brings the first question of hops, where the kernel keeps the reports that it settles: the log says so."""
    query = f"queries:\n  - {{name: hops, query: 'hops | group node over 1h agg n=count()', from: hops, to: ['file:{DIR}/late-hops.jsonl']}}\n"
    other = f"  - {{name: events, query: 'events | group event over 1h agg n=count()', from: events, to: ['file:{DIR}/late-events.jsonl']}}\n"
    auto = "detect:\n  where: auto\n"
    d = Daemon("late", config("afxdp:rx0", auto + "queries:\n" + other))
    for text, missing in (("queries:\n" + other, False), (query + other, True)):
        at = len(d.log())
        with open(d.config, "w") as f:
            f.write(config("afxdp:rx0", auto + text))
        d.p.send_signal(signal.SIGHUP)
        ok(d.said_after(at, "is in use"), "late query: a reload", d.log()[at:])
        eq("queries of paths and hops lack these until a restart" in d.log()[at:], missing, f"late query: what it lacks is said: {missing}")
    sent, _ = generate(2000, "--rate", "20000", "--flows", "50")
    values = settle(d, sent)
    came = values['pathline_query_records_total{query="hops"}']
    ok(came < total(values, "pathline_hops_total"), f"late query: {came} hops of {total(values, 'pathline_hops_total')}")
    eq(d.stop(), 0, "late query: ends well")
    d = Daemon("late", config("afxdp:rx0", auto + query + other))
    sent, _ = generate(2000, "--rate", "20000", "--flows", "50")
    values = settle(d, sent)
    wait(lambda: d.metrics()['pathline_query_records_total{query="hops"}'] == total(values, "pathline_hops_total"))
    eq(d.metrics()['pathline_query_records_total{query="hops"}'], total(values, "pathline_hops_total"), "late query: all of them after a restart")
    eq(d.stop(), 0, "late query: ends well again")


def test_direct():
    """A report that changes nothing takes the fast path, whatever is told and whichever addresses are meant."""
    form = ("--int", "1.0", "--carrier", "udp", "--flows", "200", "--seed", "3", "--rate", "100000")
    quiet_rules = "  path_change: false\n  queue_depth:\n    threshold: 1000000000\n"
    for name, uri, rules in (
            ("direct", "afxdp:rx0", ""),
            ("no flow kinds", "afxdp:rx0", quiet_rules),
            ("a filter", "afxdp:rx0?dst=10.255.255.254", ""),
            ("a filter, no flow kinds", "afxdp:rx0?dst=10.255.255.254", quiet_rules)):
        d = Daemon("direct", config(uri, f"detect:\n  where: kernel\n{rules}"))
        # The first reports of flows, layouts and queues take the slow path.
        first, _ = generate(1000, *form)
        before = settle(d, first)
        sent, words = generate(20000, *form)
        values = settle(d, first + sent)
        eq(seen(values), first + sent, f"{name}: {first} and {sent} sent = seen, each once")
        grown = {k: v - before.get(k, 0) for k, v in values.items() if k.startswith("pathline_kernel_") and "_path_total" in k}
        fast = total(grown, "pathline_kernel_fast_path_total")
        slow = {re.search('cause="(.*?)"', k).group(1): v for k, v in grown.items() if "slow_path" in k and v}
        # The generator numbers its reports anew. How often user space has the turn depends on how busy the machine is.
        ok(fast > 0 and set(slow) <= {"exporter", "turn"} and slow.get("exporter", 0) < 100 and fast + sum(slow.values()) == sent,
           f"{name}: all {sent} take the fast path, but in user space's turn", (words, fast, slow))
        balanced(values, name)
        eq(d.stop(), 0, f"{name}: ends well")


def test_profiled():
    """A profile that the kernel's detector knows sends no report up; its exporters' numbers are in the one account."""
    d = Daemon("profiled", config("afxdp:rx0", "profiles:\n  - match: 0.0.0.0/0\n    embedded: announced\n"
                                  "detect:\n  where: kernel\n"))
    form = ("--rate", "20000", "--int", "2.1", "--report", "2.0")
    first = teach(d, *form)
    before = settle(d)
    sent, _ = generate(5000, *form, "--event", "loss@50ms+100ms:ratio=0.2")
    settle(d, first + sent)
    wait(lambda: total_of(d.metrics(), "pathline_events_total", "report_loss") > 0)
    values = settle(d)
    settles(values, before, "profiled")
    eq(total(values, "pathline_exporter_reports_total"), first + sent, "profiled: every report is in its exporter's account")
    skipped, recovered = (total(values, f"pathline_exporter_{x}_total") for x in ("skipped", "recovered"))
    lost = skipped - recovered
    ok(lost > 50, f"profiled: {lost} reports are missing ({skipped} skipped, {recovered} recovered)")
    ok(total_of(values, "pathline_events_total", "report_loss") > 0, "profiled: and that is told")
    balanced(values, "profiled")
    eq(d.stop(), 0, "profiled: ends well")


def test_story():
    """A path change, a build-up and lost reports, by default thresholds: at each place told once; paths by their nodes."""
    for where in ("kernel", "user"):
        story_where(where)


def story_where(where):
    name, records = f"story, {where}", os.path.join(DIR, "records.jsonl")
    if os.path.exists(records):
        os.unlink(records)
    d = Daemon(f"story-{where}", config("afxdp:rx0", f"detect:\n  where: {where}\n  loss_hold: 2s\n"))
    form = ("--flows", "200", "--seed", "1")
    taught = teach(d, *form) if where == "kernel" else 0
    before = settle(d)
    sent, _ = generate(35000, "--rate", "5000", *form, "--event", "path@1s+3s", "--event", "queue@1s+3s", "--event", "loss@2s+1s:ratio=0.5")

    def told(kind):
        with open(records) as f:
            lines = [json.loads(line) for line in f]
        return [e for e in lines if e.get("event") == kind]

    def place(e):
        return e["exporter"] if e["event"] == "report_loss" else (e["node"], e["port"], e["queue"])

    values = settle(d, taught + sent)
    if where == "kernel":
        settles(values, before, name)
    for kind in ("queue_depth", "hop_latency", "report_loss"):
        wait(lambda: (lambda e: e and sum(x["phase"] == "end" for x in e) * 2 == len(e))(told(kind)))
        phases = {}
        for e in told(kind):
            phases.setdefault(place(e), []).append(e["phase"])
        ok(phases, f"{name}: {kind} is told")
        eq([p for p in phases.values() if p != ["begin", "end"]], [], f"{name}: {kind}: one begin and one end at each place")
    flows = {}
    for e in told("path_change"):
        flows.setdefault(json.dumps(e["flow"]), []).append(e["path_id"])
    ok(flows, f"{name}: path changes are told")
    eq([p for p in flows.values() if len(p) != 2], [], f"{name}: each flow that moves goes, and comes back")
    for e in told("path_change"):
        now, old = e["path_nodes"], e["old_path_nodes"]
        if now is None or old is None or now == old or (now[0], now[-1]) != (old[0], old[-1]) or e["path_hops"] != len(now):
            ok(False, f"{name}: two ways between the same ends", e)
    code, page = d.get("/api/v1/events")
    rows = [e for e in json.loads(page)["rows"] if e["event"] == "path_change"]
    ok(code == 200 and rows and all(">" in e["path_nodes"] and ">" in e["old_path_nodes"] for e in rows),
       f"{name}: the API has the nodes too", rows[:1])
    eq(d.stop(), 0, f"{name}: ends well")


SERVER = "import socket; s = socket.create_server(('10.255.0.2', 2200)); print('on', flush=True); c = s.accept()[0]; c.sendall(c.recv(99))"
CLIENT = "import socket; c = socket.create_connection(('10.255.0.2', 2200), 60); c.sendall(b'hello'); print(c.recv(99).decode())"


def test_full():
    """At full rate; other traffic goes on; a second daemon."""
    # At full rate; other traffic goes on; the same over AF_PACKET.
    d, values = full_rate("afxdp:rx0", "afxdp", 1000000)
    ok(total(values, "pathline_events_total") > 0, "afxdp: events are told")
    server = lab.start(RX.command(sys.executable, "-c", SERVER), stdout=subprocess.PIPE)
    server.stdout.readline()
    filtered = total(values, "pathline_socket_filtered_total")
    eq(run(*TX.command( sys.executable, "-c", CLIENT), check=False).stdout, "hello\n",
       "connections over the same interface work as before")
    wait(lambda: total(d.metrics(), "pathline_socket_filtered_total") > filtered)
    after = settle(d)
    ok(total(after, "pathline_socket_filtered_total") > filtered,
       "and its frames are counted as left to it")
    with open(f"{DIR}/records.jsonl") as f:
        kinds = [json.loads(line)["kind"] for line in f]
    ok(len(kinds) > 0 and set(kinds) == {"event"}, f"afxdp: {len(kinds)} events are in the file")

    # A second one on the same interface is told who has it, and does no harm.
    second = Daemon("second", config("afxdp:rx0").replace(str(PORT), str(PORT + 1)), ready=False)
    code = second.p.wait(timeout=60)
    ok(code != 0 and "XDP program already" in second.log(), f"a second daemon is refused, exit {code}", second.log())
    sent, _ = generate(2000, "--rate", "100000")
    now = settle(d, seen(after) + sent)
    eq(seen(now) - seen(after), sent, "and the first goes on without a loss in the account")
    eq(d.stop(), 0, "ends well")


def may_raise_locked_memory():
    with open("/proc/self/status") as f:
        effective = int(re.search(r"CapEff:\s+(\w+)", f.read()).group(1), 16)
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY or effective & 1 << 24 != 0


def test_restarts():
    """Killed and started again; rights; an interface that goes and comes back."""
    # A ring small enough for any limit on locked memory, so that it can be made again without rights.
    SMALL = "afxdp:rx0?ring=1024"
    d = Daemon("small", config(SMALL))

    # kill -9: the kernel takes the program off; the next start finds the interface free.
    d.kill()
    d.start_again()
    ok(d.web is not None, "starts again after kill -9", d.log())
    sent, _ = generate(2000, "--rate", "100000")
    values = settle(d, sent)
    eq(seen(values), sent, "and counts from nothing")
    balanced(values, "after kill -9")

    # Rights: nothing left, in any thread; the helper has three and does nothing else.
    tasks = os.listdir(f"/proc/{d.p.pid}/task")
    caps = set()
    for task in tasks:
        with open(f"/proc/{d.p.pid}/task/{task}/status") as f:
            caps |= {line.split()[1] for line in f if re.match("Cap(Eff|Prm|Inh|Bnd|Amb)", line)}
    # Who may not raise the limit on locked memory keeps the right to lock more.
    kept = {f"{1 << 14:016x}"} if "CAP_IPC_LOCK is kept" in d.log() else set()
    eq(caps, {"0" * 16} | kept, f"no capability in any of {len(tasks)} threads")
    if kept:
        ok(not may_raise_locked_memory(), "locked memory is limited here")
    helpers = run("pgrep", "-P", str(d.p.pid), check=False).stdout.split()
    eq(len(helpers), 1, "one helper")
    with open(f"/proc/{helpers[0]}/status") as f:
        text = f.read()
    eq(re.search(r"CapEff:\s+(\w+)", text).group(1), f"{(1 << 12) | (1 << 13) | (1 << 39):016x}", "which has the three rights")

    # Down and up, then gone and back, then renamed: said once, not ready meanwhile, account closed afterwards.
    eq(d.get("/readyz")[0], 200, "ready")
    for what, lose, regain in (
            ("down", lambda: RX.ip("link set rx0 down"),
             lambda: (RX.ip("link set rx0 up"), RX.ip("neigh replace 10.255.0.1 lladdr 02:00:00:00:00:01 dev rx0"))),
            ("gone", lambda: RX.ip("link del rx0"), make_pair)):
        at = len(d.log())
        lose()
        ok(d.said_after(at, "lost: "), f"{what}: is said", d.log()[at:])
        wait(lambda: d.get("/readyz")[0] == 503)
        code, body = d.get("/readyz?verbose")
        eq(code, 503, f"{what}: not ready")
        ok("rx0" in body and '"ok":false' in body, f"{what}: with the reason", body)
        d.p.send_signal(signal.SIGHUP)
        ok(d.said_after(at, "is in use"), f"{what}: a reload meanwhile", d.log()[at:])
        regain()
        ok(d.said_after(at, "back after"), f"{what}: back is said", d.log()[at:])
        eq(d.log()[at:].count("lost: "), 1, f"{what}: lost is said once")
        ok(wait(lambda: d.get("/readyz")[0] == 200), f"{what}: ready again")
        before = settle(d)
        sent, _ = generate(3000, "--rate", "100000")
        values = settle(d, seen(before) + sent)
        eq(seen(values) - seen(before), sent, f"{what}: {sent} sent = seen afterwards")
        balanced(values, what)
    at = len(d.log())
    RX.ip("link set rx0 name rx1")
    ok(d.said_after(at, "now called rx1"), "renamed: is said", d.log()[at:])
    before = settle(d)
    sent, _ = generate(3000, "--rate", "100000")
    values = settle(d, seen(before) + sent)
    eq(seen(values) - seen(before), sent, "renamed: goes on")
    RX.ip("link set rx1 name rx0")
    eq(d.stop(), 0, "ends well")
    eq(RX.sh("ip -d link show rx0").count("xdp"), 0, "and leaves no program behind")


def test_kernel():
    """The detector in the kernel: the same stream, the same account; events come through its ring."""
    for where in ("kernel", "both"):
        d, values = full_rate("afxdp:rx0", where, 1000000, f"  where: {where}\n")
        if "because the kernel cannot" in d.log():
            ok(False, f"{where}: the kernel detects", d.log())
        settled = total(values, "pathline_kernel_settled_total")
        eq(settled + total(values, "pathline_kernel_escalated_total"), total(values, "pathline_kernel_reports_total"),
           f"{where}: seen there = settled + escalated")
        ok(total(values, "pathline_events_total") > 0, f"{where}: events are told")
        with open(d.config) as f:
            text = f.read()
        with open(d.config, "w") as f:
            f.write(text.replace("threshold: 1000", "threshold: 4000000000"))
        d.p.send_signal(signal.SIGHUP)
        ok(d.wait_for("is in use") is not None, f"{where}: other thresholds while it runs", d.log())
        before = settle(d)
        sent, _ = generate(50000, "--rate", "100000000", "--event", "queue@0s+2ms:depth=20000")
        values = settle(d, seen(before) + sent)
        eq(seen(values) - seen(before), sent, f"{where}: no frame is lost from the account by that")
        eq(total_of(values, "pathline_events_total", "queue_depth"), total_of(before, "pathline_events_total", "queue_depth"),
           f"{where}: and no queue is told above them")
        eq(d.stop(), 0, f"{where}: ends well")
        m = re.search(r"stopped: received (\d+) = decoded (\d+) \+ not decoded (\d+)", d.log())
        ok(m is not None and int(m.group(1)) == int(m.group(2)) + int(m.group(3)), f"{where}: the last word balances", d.log())


def test_packets():
    """The same over AF_PACKET."""
    d, values = full_rate("packet:rx0", "packet", 300000)
    eq(d.stop(), 0, "packet: ends well")


def main():
    global TX, RX
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    try:
        TX, RX = network.Namespace("collector-tx"), network.Namespace("collector-rx")
    except RuntimeError as e:
        tap.skip_all(f"network namespaces cannot be made here: {e}")
    make_pair()
    probe = run(*RX.command(PATHLINE, "listen", "--duration", "100ms", "afxdp:rx0"), check=False)
    if probe.returncode == 77:
        tap.skip_all("BPF programs cannot be loaded here: " + probe.stderr.strip())
    lab.run(test_full, test_restarts, test_kernel, test_packets, test_same_series, test_refused, test_copies, test_late_query, test_direct, test_profiled, test_story)
    return tap.end()


sys.exit(main())
