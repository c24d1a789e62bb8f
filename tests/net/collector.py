#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline run on a network interface: a generator at full rate on the other end of a veth pair, every frame
accounted for; the interface taken down, removed, renamed and given back; a second daemon on the same interface;
kill -9 and start; other traffic untouched.

    usage: collector.py PATHLINE REFUSE [PART…]

REFUSE: the library of refuse.c. PART: one of the functions in PARTS, instead of everything.

Namespaces plcol-PID-tx and plcol-PID-rx, removed at the end. Needs root, network namespaces, the right to load BPF
programs; exits 77 without."""

import atexit
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATHLINE, REFUSE = sys.argv[1:3]
TX, RX = (f"plcol-{os.getpid()}-{x}" for x in ("tx", "rx"))
DIR = tempfile.mkdtemp(prefix="pathline-collector-")
COUNT = FAILED = 0
RUNNING = []
PORT = 45100


def ok(good, name, detail=""):
    global COUNT, FAILED
    COUNT += 1
    FAILED += not good
    print(f"{'ok' if good else 'not ok'} {COUNT} - {name}", flush=True)
    if not good and detail != "":
        for line in str(detail).splitlines()[:30]:
            print(f"# {line}", flush=True)


def eq(got, want, name):
    ok(got == want, name, f"got    {got!r}\nwanted {want!r}")


def stop_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(77)


def run(*args, check=True):
    return subprocess.run(args, check=check, capture_output=True, text=True, timeout=60)


def inside(ns, *args):
    return ["ip", "netns", "exec", ns, *args]


def make_pair():
    # One queue each, so that one socket sees all; no IPv6, whose neighbour talk would be counted.
    run("ip", "-n", TX, "link", "add", "tx0", "type", "veth", "peer", "name", "rx0", "netns", RX)
    for ns, link, addr in ((TX, "tx0", "10.255.0.1/24"), (RX, "rx0", "10.255.0.2/24")):
        run(*inside(ns, "sysctl", "-q", "-w", f"net.ipv6.conf.{link}.disable_ipv6=1"))
        run("ip", "-n", ns, "addr", "add", addr, "dev", link)
        run("ip", "-n", ns, "link", "set", link, "address", "02:00:00:00:00:01" if ns == TX else "02:00:00:00:00:02")
        run("ip", "-n", ns, "link", "set", link, "up")
    end = time.time() + 10
    while "LOWER_UP" not in run("ip", "-n", RX, "link", "show", "rx0").stdout and time.time() < end:
        time.sleep(0.02)
    # Nobody asks who has an address: that would be frames nobody sent.
    run("ip", "-n", TX, "neigh", "add", "10.255.0.2", "lladdr", "02:00:00:00:00:02", "dev", "tx0")
    run("ip", "-n", RX, "neigh", "add", "10.255.0.1", "lladdr", "02:00:00:00:00:01", "dev", "rx0")


def clean_up():
    for p in RUNNING:
        if p.poll() is None:
            p.kill()
            p.wait()
    for ns in (TX, RX):
        run("ip", "netns", "del", ns, check=False)
    run("rm", "-rf", DIR, check=False)


class Daemon:
    def __init__(self, name, text, start=True, env=()):
        self.name = name
        self.env = dict(os.environ, **dict(env))
        self.config = os.path.join(DIR, name + ".yaml")
        self.log_path = os.path.join(DIR, name + ".log")
        with open(self.config, "w") as f:
            f.write(text)
        self.start()
        if start and self.wait_for(r"metrics on") is None:
            ok(False, f"{name}: starts", self.log())

    def start(self):
        self.at = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "a") as f:
            self.p = subprocess.Popen(inside(RX, PATHLINE, "run", "-c", self.config, "--log.format", "logfmt"), stderr=f,
                                      env=self.env)
        RUNNING.append(self.p)

    def log(self):
        with open(self.log_path) as f:
            f.seek(self.at)
            return f.read()

    def wait_for(self, pattern, seconds=20):
        end = time.time() + seconds
        while time.time() < end:
            found = re.search(pattern, self.log())
            if found:
                return found
            if self.p.poll() is not None:
                return re.search(pattern, self.log())
            time.sleep(0.02)
        return None

    def get(self, path):
        """The page is on the loopback of the other namespace."""
        r = run(*inside(RX, "curl", "-s", "-m", "10", "-w", "\n%{http_code}", f"http://127.0.0.1:{PORT}{path}"), check=False)
        body, _, code = r.stdout.rpartition("\n")
        return int(code or 0), body

    def metrics(self):
        values = {}
        for line in self.get("/metrics")[1].splitlines():
            if not line.startswith("#") and " " in line:
                key, value = line.split(" # ")[0].rsplit(" ", 1)
                values[key] = float(value)
        return values

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        return self.p.wait(timeout=60)


def total(values, name):
    return int(sum(v for k, v in values.items() if k.split("{")[0] == name))


def total_of(values, name, word):
    return int(sum(v for k, v in values.items() if k.split("{")[0] == name and word in k))


def seen(values):
    """Frames that reached the program on the interface: each is in exactly one of these."""
    return (sum(total(values, f"pathline_socket_{x}_total") for x in ("packets", "drops", "filtered", "unread")) +
            total(values, "pathline_packets_settled_total"))


def ethernet(ns, link, name):
    with open("/dev/null") as null:
        text = subprocess.run(inside(ns, "cat", f"/sys/class/net/{link}/statistics/{name}"), stdin=null, capture_output=True,
                              text=True).stdout
    return int(text or 0)


def generate(count, *options, port="afxdp:tx0"):
    """Sends, and returns how many frames left."""
    before = ethernet(TX, "tx0", "tx_packets")
    r = run(*inside(TX, PATHLINE, "gen", "int", "--count", str(count), *options, port), check=False)
    if r.returncode != 0:
        ok(False, "the generator sends", r.stderr)
    return ethernet(TX, "tx0", "tx_packets") - before, r.stderr


def settle(daemon, seconds=10):
    """Metrics, when nothing moves any more."""
    end = time.time() + seconds
    before = None
    while time.time() < end:
        now = daemon.metrics()
        if (before is not None and seen(now) == seen(before) and
                total(now, "pathline_output_delivered_total") == total(before, "pathline_output_delivered_total")):
            return now
        before = now
        time.sleep(0.2)
    return before


def balanced(values, name):
    verdicts = total(values, "pathline_packets_decoded_total") + total(values, "pathline_report_errors_total")
    eq(total(values, "pathline_packets_total"), verdicts, f"{name}: packets = sum of verdicts")
    eq(total(values, "pathline_socket_packets_total") + total(values, "pathline_packets_settled_total"),
       total(values, "pathline_packets_total"), f"{name}: all that was received was decoded, settled or refused")
    eq(total(values, "pathline_output_offered_total"),
       sum(total(values, f"pathline_output_{x}_total") for x in ("delivered", "filtered", "dropped")) +
       total(values, "pathline_output_waiting"), f"{name}: offered = delivered + filtered + dropped + waiting")


def config(uri, extra=""):
    return (f"sources:\n  - uri: {uri}\nweb:\n  listen: 127.0.0.1:{PORT}\n"
            f"outputs:\n  - path: {DIR}/records.jsonl\n    paths: false\n{extra}")


def full_rate(uri, name, count, detect=""):
    """Returns the daemon, still running."""
    d = Daemon(name, config(uri, f"detect:\n{detect}  queue_depth:\n    threshold: 1000\n"))
    sent, words = generate(count, "--rate", "100000000", "--event", "queue@0s+2ms:depth=20000")
    values = settle(d)
    eq(seen(values), sent, f"{name}: {sent} sent = received + dropped by place + left to the host")
    ok(total(values, "pathline_socket_packets_total") > 0, f"{name}: something is received")
    balanced(values, name)
    rate = re.search(r"([0-9.]+ ?[kM]?)\S*/s", words)
    print(f"# {name}: {words.strip().splitlines()[-1] if words.strip() else rate}")
    print(f"# {name}: received {total(values, 'pathline_socket_packets_total')}, dropped "
          f"{total(values, 'pathline_socket_drops_total')}")
    return d, values


NETWORK = re.compile(r"pathline_(queue|port|link|path|hop)_")


def network(values):
    """What the page says of queues, ports, links and paths: histograms and maxima too."""
    return {k: v for k, v in values.items() if NETWORK.match(k)}


def same_series():
    """Detected in the kernel or in user space, the page shows the same network, value by value."""
    forms = {"v1.0": ("--int", "1.0", "--report", "1.0"), "v2.0": ("--int", "2.1", "--report", "2.0"),
             "v0.5": ("--int", "0.5", "--report", "0.5"), "v2.0 with drops": ("--int", "2.1", "--report", "2.0", "--drop", "0.02")}
    pages = {}
    for where in ("user", "kernel"):
        d = Daemon(f"same-{where}", config("afxdp:rx0", f"aggregate:\n  slot: 1h\ndetect:\n  where: {where}\n"))
        for name, options in forms.items():
            sent, words = generate(5000, "--rate", "20000", "--seed", "3", "--missing", "0.05", "--topology", "leaf-spine:4x2", *options)
            if sent == 0:
                ok(False, f"{where}, {name}: reports are sent", words)
        time.sleep(1.2)
        pages[where] = settle(d)
        balanced(pages[where], f"same series, {where}")
        if where == "kernel":
            settled, reports = (total(pages[where], f"pathline_kernel_{x}_total") for x in ("settled", "reports"))
            ok(settled > 0.9 * reports, f"same series: {settled} of {reports} are settled in the kernel")
            code, body = d.get("/api/v1/flows")
            rows = json.loads(body)["rows"] if code == 200 else []
            ok(len(rows) >= 100, f"same series: {len(rows)} flows in the table of the kernel's")
        eq(d.stop(), 0, f"same series, {where}: ends well")
    user, kernel = (network(pages[x]) for x in ("user", "kernel"))
    eq(sorted(kernel), sorted(user), f"the same {len(user)} series")
    wrong = {k: (kernel[k], user[k]) for k in user if k in kernel and abs(kernel[k] - user[k]) > 1e-9 * abs(user[k])}
    ok(not wrong, "with the same values", "\n".join(f"{k}: kernel {a}, user {b}" for k, (a, b) in sorted(wrong.items())))
    # A flow of which some reports were handed up is in two tables.
    handed_up = total(pages["kernel"], "pathline_kernel_handed_up_total")
    ok(0 <= total(pages["kernel"], "pathline_flows") - total(pages["user"], "pathline_flows") <= handed_up, "as many flows")
    for name in ("pathline_reports_total", "pathline_exporter_reports_total", "pathline_exporter_skipped_total"):
        eq(total(pages["kernel"], name), total(pages["user"], name), f"as many: {name}")


def refused():
    """A kernel whose verifier does not take the detector: one line says so, and user space detects."""
    d = Daemon("refused", config("afxdp:rx0", "detect:\n  where: kernel\n  queue_depth:\n    threshold: 1000\n"),
               env={"LD_PRELOAD": REFUSE})
    said = [line for line in d.log().splitlines() if "in the kernel it cannot" in line]
    eq(len(said), 1, "refused: one line")
    ok("this kernel does not take the detector" in said[0] and "BPF program is too large" in said[0] and "level=warning" in said[0],
       "refused: which says what the verifier said", said)
    sent, _ = generate(20000, "--rate", "100000", "--event", "queue@0s+10ms:depth=20000")
    values = settle(d)
    eq(seen(values), sent, "refused: all that was sent is in the account")
    eq(total(values, "pathline_packets_settled_total"), 0, "refused: nothing is settled elsewhere")
    balanced(values, "refused")
    ok(total(values, "pathline_events_total") > 0, "refused: events are told")
    ok(total(values, "pathline_queue_packets_total") > 0, "refused: queues are on the page")
    eq(d.stop(), 0, "refused: ends well")


def copies():
    """Of what the kernel settles, some reports come up in full; what is wanted changes by a reload."""
    text = (f"sources:\n  - uri: afxdp:rx0\nweb:\n  listen: 127.0.0.1:{PORT}\n"
            f"outputs:\n  - path: {DIR}/copies.jsonl\n    events: false\n")
    d = Daemon("copies", text + "detect:\n  where: kernel\n  copy:\n    sample: 10\n")
    form = ("--int", "2.1", "--report", "2.0", "--seed", "3", "--flows", "50")

    def more(count):
        before = settle(d)
        lines = sum(1 for _ in open(f"{DIR}/copies.jsonl")) if os.path.exists(f"{DIR}/copies.jsonl") else 0
        sent, _ = generate(count, "--rate", "20000", *form)
        values = settle(d)
        time.sleep(1.5)
        new = [json.loads(line) for line in list(open(f"{DIR}/copies.jsonl"))[lines:]]
        eq(seen(values) - seen(before), sent, f"copies: {sent} sent = seen, each once")
        balanced(values, "copies")
        grown = {x: total(values, f"pathline_kernel_{x}_total") - total(before, f"pathline_kernel_{x}_total")
                 for x in ("settled", "copied", "copies_lost", "handed_up")}
        eq(len(new), grown["copied"] + grown["handed_up"], f"copies: {len(new)} reports in the file, by the counters")
        eq(total(values, "pathline_hops_total"), total(values, "pathline_queue_packets_total"), "copies: each hop counted once")
        return grown, new

    more(1000)  # what has to be learned first
    grown, _ = more(5000)
    # Each processor counts for itself, and the kernel moves the work between them as it likes.
    copies = grown["copied"] + grown["copies_lost"]
    ok(grown["settled"] == 5000 and abs(copies - 500) <= os.cpu_count(), "copies: one in ten", grown)

    def reload(detect):
        at = len(d.log())
        with open(d.config, "w") as f:
            f.write(text + detect)
        d.p.send_signal(signal.SIGHUP)
        ok(d.wait_for(rf"(?s)\A.{{{at}}}.*is in use", 10) is not None, "copies: a reload", d.log()[at:])
        time.sleep(0.3)

    grown, new = more(100)
    node = next(h["node"] for r in new for h in r["hops"])
    reload(f"detect:\n  where: kernel\n  copy:\n    node: \"{node}\"\n")
    grown, new = more(5000)
    ok(0 < grown["copied"] < 5000 and all(node in [h["node"] for h in r["hops"]] for r in new),
       f"copies: {grown['copied']} reports met node {node}, and no others come")
    reload("detect:\n  where: kernel\n")
    grown, new = more(1000)
    eq((grown["copied"], len(new)), (0, 0), "copies: none any more")
    eq(d.stop(), 0, "copies: ends well")


def profiled():
    """Exporters with a profile are read in user space; their numbers are in the one account all the same."""
    d = Daemon("profiled", config("afxdp:rx0", "profiles:\n  - match: 0.0.0.0/0\n    embedded: announced\n"
                                  "detect:\n  where: kernel\n"))
    sent, _ = generate(5000, "--rate", "20000", "--int", "2.1", "--report", "2.0", "--event", "loss@50ms+100ms:ratio=0.2")
    settle(d)
    time.sleep(1.5)
    values = settle(d)
    eq(total(values, "pathline_packets_settled_total"), 0, "profiled: nothing is settled in the kernel")
    eq(total(values, "pathline_exporter_reports_total"), sent, "profiled: every report is in its exporter's account")
    skipped, recovered = (total(values, f"pathline_exporter_{x}_total") for x in ("skipped", "recovered"))
    lost = skipped - recovered
    ok(lost > 50, f"profiled: {lost} reports are missing ({skipped} skipped, {recovered} recovered)")
    ok(total_of(values, "pathline_events_total", "report_loss") > 0, "profiled: and that is told")
    balanced(values, "profiled")
    eq(d.stop(), 0, "profiled: ends well")


PARTS = {"same_series": same_series, "refused": refused, "copies": copies, "profiled": profiled}


if os.geteuid() != 0:
    stop_all("needs root")
if run("ip", "netns", "add", TX, check=False).returncode != 0:
    stop_all("network namespaces cannot be made here")
run("ip", "netns", "add", RX)
atexit.register(clean_up)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
for ns in (TX, RX):
    run("ip", "-n", ns, "link", "set", "lo", "up")
make_pair()
probe = run(*inside(RX, PATHLINE, "listen", "--duration", "100ms", "afxdp:rx0"), check=False)
if "CAP_" in probe.stderr or "EPERM" in probe.stderr:
    stop_all("BPF programs cannot be loaded here: " + probe.stderr.strip())

if sys.argv[3:]:
    for part in sys.argv[3:]:
        PARTS[part]()
    print(f"1..{COUNT}")
    sys.exit(1 if FAILED else 0)

# At full rate; other traffic goes on; the same over AF_PACKET.
d, values = full_rate("afxdp:rx0", "afxdp", 1000000)
ok(total(values, "pathline_events_total") > 0, "afxdp: events are told")
SERVER = "import socket; s = socket.create_server(('10.255.0.2', 2200)); print('on', flush=True); c = s.accept()[0]; c.sendall(c.recv(99))"
CLIENT = "import socket; c = socket.create_connection(('10.255.0.2', 2200), 5); c.sendall(b'hello'); print(c.recv(99).decode())"
server = subprocess.Popen(inside(RX, sys.executable, "-c", SERVER), stdout=subprocess.PIPE)
RUNNING.append(server)
server.stdout.readline()
eq(run(*inside(TX, sys.executable, "-c", CLIENT), check=False).stdout, "hello\n",
   "connections over the same interface work as before")
after = settle(d)
ok(total(after, "pathline_socket_filtered_total") > total(values, "pathline_socket_filtered_total"),
   "and its frames are counted as left to it")
with open(f"{DIR}/records.jsonl") as f:
    kinds = [json.loads(line)["kind"] for line in f]
ok(len(kinds) > 0 and set(kinds) == {"event"}, f"afxdp: {len(kinds)} events are in the file")

# A second one on the same interface is told who has it, and does no harm.
second = Daemon("second", config("afxdp:rx0").replace(str(PORT), str(PORT + 1)), start=False)
code = second.p.wait(timeout=20)
ok(code != 0 and "XDP program already" in second.log(), f"a second daemon is refused, exit {code}", second.log())
sent, _ = generate(2000, "--rate", "100000")
now = settle(d)
eq(seen(now) - seen(after), sent, "and the first goes on without a loss in the account")

# A ring small enough for any limit on locked memory, so that it can be made again without rights.
SMALL = "afxdp:rx0?ring=1024"
eq(d.stop(), 0, "ends well")
d = Daemon("small", config(SMALL))

# kill -9: the kernel takes the program off; the next start finds the interface free.
children = run("pgrep", "-P", str(d.p.pid), check=False).stdout.split()
daemon_pid = d.p.pid
d.p.send_signal(signal.SIGKILL)
d.p.wait()
d.start()
ok(d.wait_for("metrics on") is not None, "starts again after kill -9", d.log())
sent, _ = generate(2000, "--rate", "100000")
values = settle(d)
eq(seen(values), sent, "and counts from nothing")
balanced(values, "after kill -9")

# Rights: nothing left, in any thread; the helper has three and does nothing else.
tasks = os.listdir(f"/proc/{d.p.pid}/task")
caps = set()
for task in tasks:
    with open(f"/proc/{d.p.pid}/task/{task}/status") as f:
        caps |= {line.split()[1] for line in f if re.match("Cap(Eff|Prm|Inh|Bnd|Amb)", line)}
eq(caps, {"0" * 16}, f"no capability in any of {len(tasks)} threads")
helpers = run("pgrep", "-P", str(d.p.pid), check=False).stdout.split()
eq(len(helpers), 1, "one helper")
with open(f"/proc/{helpers[0]}/status") as f:
    text = f.read()
eq(re.search(r"CapEff:\s+(\w+)", text).group(1), f"{(1 << 12) | (1 << 13) | (1 << 39):016x}", "which has the three rights")

# Down and up, then gone and back, then renamed: said once, not ready meanwhile, account closed afterwards.
eq(d.get("/readyz")[0], 200, "ready")
for what, lose, regain in (
        ("down", lambda: run("ip", "-n", RX, "link", "set", "rx0", "down"),
         lambda: (run("ip", "-n", RX, "link", "set", "rx0", "up"),
                  run("ip", "-n", RX, "neigh", "replace", "10.255.0.1", "lladdr", "02:00:00:00:00:01", "dev", "rx0"))),
        ("gone", lambda: run("ip", "-n", RX, "link", "del", "rx0"), make_pair)):
    at = len(d.log())
    lose()
    ok(d.wait_for(rf"(?s)\A.{{{at}}}.*lost: ", 10) is not None, f"{what}: is said", d.log()[at:])
    time.sleep(0.3)
    code, body = d.get("/readyz?verbose")
    eq(code, 503, f"{what}: not ready")
    ok("rx0" in body and '"ok":false' in body, f"{what}: with the reason", body)
    d.p.send_signal(signal.SIGHUP)
    ok(d.wait_for(rf"(?s)\A.{{{at}}}.*is in use", 10) is not None, f"{what}: a reload meanwhile", d.log()[at:])
    began = time.time()
    regain()
    ok(d.wait_for(rf"(?s)\A.{{{at}}}.*back after", 10) is not None, f"{what}: back is said", d.log()[at:])
    took = time.time() - began
    ok(took < 5, f"{what}: within 5 s of the return: {took:.2f} s")
    eq(d.log()[at:].count("lost: "), 1, f"{what}: lost is said once")
    eq(d.get("/readyz")[0], 200, f"{what}: ready again")
    before = settle(d)
    sent, _ = generate(3000, "--rate", "100000")
    values = settle(d)
    eq(seen(values) - seen(before), sent, f"{what}: {sent} sent = seen afterwards")
    balanced(values, what)
at = len(d.log())
run("ip", "-n", RX, "link", "set", "rx0", "name", "rx1")
ok(d.wait_for(rf"(?s)\A.{{{at}}}.*now called rx1", 10) is not None, "renamed: is said", d.log()[at:])
before = settle(d)
sent, _ = generate(3000, "--rate", "100000")
values = settle(d)
eq(seen(values) - seen(before), sent, "renamed: goes on")
run("ip", "-n", RX, "link", "set", "rx1", "name", "rx0")
eq(d.stop(), 0, "ends well")
eq(run(*inside(RX, "ip", "-d", "link", "show", "rx0")).stdout.count("xdp"), 0, "and leaves no program behind")

# The detector in the kernel: the same stream, the same account; events come through its ring.
for where in ("kernel", "both"):
    d, values = full_rate("afxdp:rx0", where, 1000000, f"  where: {where}\n")
    if "in the kernel it cannot" in d.log():
        ok(False, f"{where}: the kernel detects", d.log())
    settled = total(values, "pathline_kernel_settled_total")
    ok(settled > 900000, f"{where}: {settled} are settled in the kernel")
    eq(settled + total(values, "pathline_kernel_handed_up_total"), total(values, "pathline_kernel_reports_total"),
       f"{where}: seen there = settled + handed up")
    ok(total(values, "pathline_events_total") > 0, f"{where}: events are told")
    events = total(values, "pathline_events_total")
    with open(d.config) as f:
        text = f.read()
    with open(d.config, "w") as f:
        f.write(text.replace("threshold: 1000", "threshold: 4000000000"))
    d.p.send_signal(signal.SIGHUP)
    ok(d.wait_for("is in use", 10) is not None, f"{where}: other thresholds while it runs", d.log())
    before = settle(d)
    sent, _ = generate(50000, "--rate", "100000000", "--event", "queue@0s+2ms:depth=20000")
    values = settle(d)
    eq(seen(values) - seen(before), sent, f"{where}: no frame is lost from the account by that")
    eq(total_of(values, "pathline_events_total", "queue_depth"), total_of(before, "pathline_events_total", "queue_depth"),
       f"{where}: and no queue is told above them")
    eq(d.stop(), 0, f"{where}: ends well")
    m = re.search(r"stopped: received (\d+) = decoded (\d+) \+ not decoded (\d+)", d.log())
    ok(m is not None and int(m.group(1)) == int(m.group(2)) + int(m.group(3)), f"{where}: the last word balances", d.log())

d, values = full_rate("packet:rx0", "packet", 300000)
eq(d.stop(), 0, "packet: ends well")

for part in PARTS.values():
    part()

print(f"1..{COUNT}")
sys.exit(1 if FAILED else 0)
