#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Senders that are no exporters, and exporters that want everything, beside honest ones: what they take from those, and what
the daemon says of it. Random bytes; one host that names more nodes, queues or ports than there is room for. What the kernel
detects is held to the same, as root and with the right to load BPF programs. usage: hostile.py PATHLINE"""
import collections
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, pcap, tap  # noqa: E402
from lib.lab import free_udp_port, write  # noqa: E402
from lib.pathline import PATHLINE, Daemon, gen, run, total  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

UDP_PAYLOAD = 14 + 20 + 8
STATES = ("queues", "ports", "links", "paths", "flows")


class Hostile:
    """Sends datagrams from an address of its own."""

    def __init__(self, address, port, to="127.0.0.1"):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 0))
        self.to, self.sent = (to, port), 0

    def send(self, payload):
        self.socket.sendto(payload, self.to)
        self.sent += 1


def status(daemon):
    return json.loads(daemon.get("/api/v1/status")[1])


def table(daemon, name):
    return json.loads(daemon.get(f"/api/v1/{name}?limit=1000")[1])


def received(daemon, n):
    """What was sent is paced by what has arrived: none is dropped before the daemon."""
    return wait(lambda: status(daemon)["packets"]["received"] >= n)


def said(daemon):
    r = run("status", "--url", daemon.web)
    return r.returncode, r.stdout


def payloads(*options):
    """What the generator sends with these options."""
    path = lab.path("template.pcap")
    r = run("gen", "int", *options, "-w", path)
    if r.returncode != 0:
        raise RuntimeError(r.stderr)
    return [frame[UDP_PAYLOAD:] for frame in pcap.frames_of(path)]


def numbers(payload):
    """The sequence space and the number of a report (version 1.0 or 2.0), read here."""
    first, node, third = struct.unpack_from("!III", payload)
    if first >> 28 == 2:
        return (node, first >> 22 & 0x3f), first & 0x3fffff
    return (node, first & 0x3f), third


def missing(reports):
    """Reports missing in a stream without restarts, between the first and the last of each space."""
    spaces = collections.defaultdict(list)
    for payload in reports:
        space, number = numbers(payload)
        spaces[space].append(number)
    return sum(list_[-1] - list_[0] + 1 - len(list_) for list_ in spaces.values()), len(spaces)


def start(name, extra=""):
    port = free_udp_port()
    daemon = Daemon(write(name + ".yaml", f"sources:\n  - uri: udp://127.0.0.1:{port}\nweb:\n  listen: 127.0.0.1:0\n{extra}"),
                    name=name)
    return daemon, port


# ---- random bytes ----

GARBAGE = 60000
STREAM = ("--rate", "3000", "--count", "6000", "--loss", "0.1")


def send_garbage(hostile, daemon, n):
    """Numbered from the same seed every time, and never more under way than the socket holds."""
    rng = random.Random(12)
    for i in range(n):
        hostile.send(rng.randbytes(24))
        if i % 5000 == 4999:
            received(daemon, hostile.sent)


def nothing_from(daemon, what):
    s = status(daemon)
    eq({name: table(daemon, name)["total"] for name in STATES}, dict.fromkeys(STATES, 0), f"{what}: no queue, no port, no flow")
    eq({k: n for k, n in s["events"].items() if n}, {}, f"{what}: no event")
    eq((s["exporters"], s["levels_raised"]), (0, 0), f"{what}: nobody is followed as an exporter, no level is raised")
    ok(s["reports"]["unproven"] > 500 and s["reports"]["unproven"] == s["reports"]["stored"],
       f"{what}: those that look like reports are counted, by that name", s["reports"])
    code, words = said(daemon)
    ok(code == 0 and "all is well" in words and f"not proven {s['reports']['unproven']}" in words, f"{what}: status tells it", words)


def test_garbage():
    """60,000 random datagrams, then a stream that loses a tenth, from the same host."""
    expected, spaces = missing(payloads(*STREAM[2:]))
    for address in ("127.0.0.1", "127.0.0.66"):
        daemon, port = start("garbage-" + address)
        hostile = Hostile(address, port)
        send_garbage(hostile, daemon, GARBAGE)
        nothing_from(daemon, f"garbage of {address}")
        sent = gen(port, *STREAM)
        received(daemon, GARBAGE + sent)
        s = status(daemon)
        eq((s["reports"]["lost"], s["reports"]["untracked"], s["exporters"]), (expected, 0, spaces),
           f"behind garbage of {address}: the loss is found, all of it")
        ok(wait(lambda: sum(e["value"] for e in table(daemon, "events")["rows"] if e["event"] == "report_loss" and e["phase"] == "end") == expected),
           "and told")
        nodes = {row["node"] for name in ("queues", "ports") for row in table(daemon, name)["rows"]}
        eq(nodes, set(range(1, 1 + len(nodes))), "no queue or port but those of the stream's nodes")
        eq(s["reports"]["unproven"], s["reports"]["stored"] - sent + spaces, "one report of each exporter came before its proof")
        eq(daemon.stop(), 0, "it ends well")


# ---- one host that names more nodes than there is room for ----

ROOM, NODES = 4096, 6000


def name_nodes(hostile, daemon, template, times):
    """A host reports for NODES nodes, for each so many times in sequence."""
    for i in range(NODES):
        for number in range(times):
            report = bytearray(template)
            struct.pack_into("!I", report, 4, 0x800000 + i)
            struct.pack_into("!I", report, 8, number)
            hostile.send(bytes(report))
        if i % 1000 == 999:
            received(daemon, hostile.sent)


def test_exporters():
    """decode.max_exporters is for all: who names many nodes does not take it from who comes later, and what is not followed
    is said."""
    template = payloads("--report", "1.0", "-n", "1")[0]
    stream = ("--report", "1.0", "-n", "2000", "--loss", "0.5")
    expected, spaces = missing(payloads(*stream))
    for times, what in ((1, "once each"), (2, "in sequence")):
        daemon, port = start(f"nodes-{times}")
        hostile = Hostile("127.0.0.66", port)
        name_nodes(hostile, daemon, template, times)
        untracked = NODES - ROOM if times > 1 else 0
        eq((status(daemon)["exporters"], status(daemon)["reports"]["untracked"]), (ROOM if times > 1 else 0, untracked),
           f"{NODES} nodes of one host, {what}: so many are followed, so many reports are of others")
        sent = gen(port, *stream, "--rate", "4k")
        received(daemon, hostile.sent + sent)
        s = status(daemon)
        eq((s["reports"]["lost"], s["reports"]["untracked"]), (expected, untracked), f"{what}: who comes later is followed")
        values = daemon.metrics()
        if times > 1:
            eq(len([s for s in values if s.startswith('pathline_exporter_reports_total{exporter="127.0.0.1"')]), spaces,
               f"{what}: it has series of its own")
        eq(total(values, "pathline_exporters_untracked_total"), untracked, f"{what}: a metric tells who is not")
        eq(total(values, "pathline_exporters_displaced_total"), spaces if times > 1 else 0, f"{what}: and how many made room")
        if times > 1:
            wait(lambda: daemon.get("/readyz")[0] == 503)
        code, words = said(daemon)
        http, page = daemon.get("/readyz?verbose")
        if times == 1:
            ok(code == 0 and http == 200 and "all is well" in words, "nobody is missing: all is well", words)
        else:
            ok(code == 3 and "all is well" not in words and "not tracked" in words, "status says that some are not tracked", words)
            ok(http == 503 and "not tracked" in page, "so does readiness", page)
        eq(daemon.stop(), 0, "it ends well")


# ---- one host that names queues, ports and links without end ----

def test_series():
    """A trickle of reports, each of 40 hops that nobody heard of: the series of the network's own queues are there all the
    same."""
    template = payloads("--report", "1.0", "--int", "1.0", "--topology", "chain:40", "--fields", "node,ports,queue", "--flows",
                        "1", "-n", "1")[0]
    places, at = [], 0
    for node in range(40, 0, -1):  # the stack: the last hop first
        at = template.index(struct.pack("!I", node), at + 1 if places else 60)
        places.append(at)
    daemon, port = start("series")
    hostile = Hostile("127.0.0.66", port)
    sent = 0

    def hog():
        for _ in range(40):
            report = bytearray(template)
            struct.pack_into("!I", report, 8, hostile.sent)
            for place in places:
                struct.pack_into("!I", report, place, 0x900000 + 40 * hostile.sent + places.index(place))
            hostile.send(bytes(report))
        received(daemon, sent + hostile.sent)
    hog()
    tables = ("queues", "ports", "links")
    eq({name: table(daemon, name)["total"] for name in tables}, dict.fromkeys(tables, 1024), "one host fills all tables")
    for _ in range(3):
        sent += gen(port, "-n", "4000", "--rate", "8k", "--fields", "node,ports,queue")
        received(daemon, sent + hostile.sent)
        hog()
    exporters = table(daemon, "exporters")["rows"]
    ok(exporters, "exporters are listed")
    alone, other = start("alone")
    n = gen(other, "-n", "4000", "--rate", "8k", "--fields", "node,ports,queue")
    received(alone, n)
    for name in tables:
        rows, want = table(daemon, name)["rows"], table(alone, name)["rows"]
        key = ("from_node", "from_port", "node", "ingress_port", "port", "queue")
        honest = {tuple(row.get(k) for k in key) for row in rows if row.get("node", 0) < 0x900000}
        expected = {tuple(row.get(k) for k in key) for row in want}
        eq(sorted(map(str, expected - honest)), [], f"{name} of the network, {len(expected)} of them, are there beside it")
    values = daemon.metrics()
    ok(sum(values[f'pathline_series_displaced_total{{family="{name}"}}'] for name in tables) > 0, "and a metric tells who made room")
    eq((alone.stop(), daemon.stop()), (0, 0), "both end well")


# ---- one host with many ports, beside reporters of Direct Telemetry Access ----

def test_reporters():
    """The translator's table of reporters is for all of them: not for one host's ports."""
    region = lab.path("list.plr")
    run("region", "create", "--primitive", "append", "--slots", "65536", "--lists", "1", "--value-bytes", "4", region)
    port = free_udp_port()
    translator = lab.start([PATHLINE, "translate", "--stats", f"udp://127.0.0.1:{port}", region], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    ok("translating from" in translator.stderr.readline(), "translate listens")

    def account():
        translator.send_signal(signal.SIGUSR1)
        return json.loads(translator.stdout.readline())
    sent = 0
    for source in range(20000, 24000):  # four times what there is room for
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.66", source))
            for number in range(2):
                body = struct.pack("!II", 0, 7)
                s.sendto(struct.pack("!BBBBHHI", 0xD1, 2, 0x40, 0, 0, len(body), number) + body, ("127.0.0.1", port))
                sent += 1
        if sent % 400 == 0:
            wait(lambda: account()["datagrams"] >= sent)
    before = wait(lambda: account()["datagrams"] >= sent) and account()
    ok(before["refused"]["reporters"] > 0, "one host's ports take all there is, and are refused then", before)
    codes = [run("report", "append", "-d", "1", "--data-form", "be32", "--sequenced", "-n", "50", "--rate", "2k",
                 f"udp://127.0.0.1:{port}").returncode for _ in range(8)]
    eq(codes, [0] * 8, "reporters of another host deliver all they have")
    wait(lambda: account()["accepted"] - before["accepted"] >= 400)
    after = account()
    eq((after["accepted"] - before["accepted"], after["refused"]["reporters"] - before["refused"]["reporters"]), (400, 0),
       "each of theirs is taken, none refused")
    translator.send_signal(signal.SIGTERM)
    translator.communicate()
    eq(translator.returncode, 0, "it ends well")


# ---- the same, where the kernel detects ----

WIRE = {4: {"a": "10.254.8.1", "b": "10.254.8.2"}, 6: {"a": "fd08::1", "b": "fd08::2"}}
STRANGER = "10.254.8.66"
PORT = 32766
sides = {}


def start_kernel(name, extra=""):
    """On the wire's end b, where the calling thread is; its page is on the loopback there."""
    text = (f"sources:\n  - uri: afxdp:eth0\nweb:\n  listen: 127.0.0.1:{lab.free_port()}\n"
            f"detect:\n  where: kernel\n{extra}")
    daemon = Daemon(write(name + ".yaml", text), name=name)
    ok("in the kernel it cannot" not in daemon.log(), f"{name}: the kernel detects", daemon.log())
    return daemon


def stranger(address):
    with sides["a"]:
        return Hostile(address, PORT, to=WIRE[4]["b"])


def send_stream(*options):
    """From the wire's other end; how many."""
    with sides["a"]:
        p = lab.start([PATHLINE, "gen", "int", *options, f"udp://{WIRE[4]['b']}:{PORT}"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.PIPE, text=True)
    return pathline.sent_by(p)


def escalated(values):
    """By cause."""
    return {re.search('cause="(.*?)"', k).group(1): v for k, v in values.items() if k.startswith("pathline_kernel_escalated_total")}


def garbage_kernel():
    """What test_garbage sees, of reports that the kernel's program settles and of those that it escalates."""
    expected, spaces = missing(payloads(*STREAM[2:]))
    for address in (WIRE[4]["a"], STRANGER):
        daemon = start_kernel("garbage-kernel-" + address)
        hostile = stranger(address)
        send_garbage(hostile, daemon, GARBAGE)
        nothing_from(daemon, f"kernel, garbage of {address}")
        before = escalated(daemon.metrics())
        sent = send_stream(*STREAM)
        received(daemon, GARBAGE + sent)
        s = status(daemon)
        eq((s["reports"]["lost"], s["reports"]["untracked"], s["exporters"]), (expected, 0, spaces),
           f"kernel, behind garbage of {address}: the loss is found, all of it")
        ok(wait(lambda: sum(e["value"] for e in table(daemon, "events")["rows"] if e["event"] == "report_loss" and e["phase"] == "end") == expected),
           "and told")
        nodes = {row["node"] for name in ("queues", "ports") for row in table(daemon, name)["rows"]}
        eq(nodes, set(range(1, 1 + len(nodes))), "no queue or port but those of the stream's nodes")
        # A first report that was escalated may be read after the second one was counted.
        early = s["reports"]["unproven"] - (s["reports"]["stored"] - sent)
        ok(0 <= early <= spaces, f"{early} reports of {spaces} exporters came before their proof", s["reports"])
        values = daemon.metrics()
        settled, came = (total(values, f"pathline_kernel_{x}_total") for x in ("settled", "reports"))
        # While user space steps a queue's tables, or has not read a layout yet, the program escalates; on a busy machine that lasts.
        grown = {cause: n - before.get(cause, 0) for cause, n in escalated(values).items() if n > before.get(cause, 0)}
        ok(settled > 0 and set(grown) <= {"turn", "layout"} and came == GARBAGE + sent,
           f"{settled} of {came} were settled by the program, others for its causes", grown)
        eq(daemon.stop(), 0, "it ends well")


def exporters_kernel():
    """What test_exporters sees, with a smaller table: it has room for 768."""
    template = payloads("--report", "1.0", "-n", "1")[0]
    stream = ("--report", "1.0", "-n", "2000", "--loss", "0.5")
    expected, spaces = missing(payloads(*stream))
    daemon = start_kernel("nodes-kernel", "decode:\n  max_exporters: 256\n")
    hostile = stranger(STRANGER)
    name_nodes(hostile, daemon, template, 2)
    s = status(daemon)
    followed, untracked = s["exporters"], s["reports"]["untracked"]
    ok(600 < followed <= 768 and untracked > 0, f"kernel, {NODES} nodes of one host: {followed} are followed, {untracked} reports are of others")
    sent = send_stream(*stream, "--rate", "4k")
    received(daemon, hostile.sent + sent)
    s = status(daemon)
    eq((s["reports"]["lost"], s["reports"]["untracked"]), (expected, untracked), "kernel: who comes later is followed")
    values = daemon.metrics()
    eq(len([s for s in values if s.startswith(f'pathline_exporter_reports_total{{exporter="{WIRE[4]["a"]}"')]), spaces,
       "kernel: it has series of its own")
    eq(total(values, "pathline_exporters_untracked_total"), untracked, "kernel: a metric tells who is not")
    ok(0 < total(values, "pathline_exporters_displaced_total") <= spaces, "kernel: and how many made room")
    wait(lambda: daemon.get("/readyz")[0] == 503)
    code, words = said(daemon)
    http, page = daemon.get("/readyz?verbose")
    ok(code == 3 and "all is well" not in words and "not tracked" in words, "kernel: status says that some are not tracked", words)
    ok(http == 503 and "not tracked" in page, "kernel: so does readiness", page)
    eq(daemon.stop(), 0, "it ends well")


def in_kernel(test):
    """With a wire whose end b is a daemon's; the calling thread is there."""
    what = test.__name__.replace("_", ", where detected: ")
    if os.geteuid() != 0:
        tap.skip(what, "needs root")
        return
    try:
        if not sides:
            sides.update(network.pair("hostile", WIRE))
            sides["a"].ip(f"addr add {STRANGER}/24 dev eth0")
    except RuntimeError as e:
        tap.skip(what, f"network namespaces cannot be made here: {e}")
        return
    with sides["b"]:
        probe = run("listen", "--duration", "100ms", "afxdp:eth0")
        if probe.returncode == 77:
            tap.skip(what, "BPF programs cannot be loaded here: " + probe.stderr.strip())
            return
        test()


def test_garbage_kernel():
    in_kernel(garbage_kernel)


def test_exporters_kernel():
    in_kernel(exporters_kernel)


def main():
    lab.run(test_garbage, test_exporters, test_series, test_reporters, test_garbage_kernel, test_exporters_kernel)
    return tap.end()


sys.exit(main())
