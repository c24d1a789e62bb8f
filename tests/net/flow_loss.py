#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Packets lost and out of order by the numbers of their flows, end to end: IOAM's edge to edge and direct export in packets that
go by, and GEANT's in reports; detected in user space and beside the detector in the kernel. What the events, the counters and the
tables say is what was left out and swapped on the way, and the same on either side. Reports lost or overtaken are no lost packets.

    usage: flow_loss.py PATHLINE [TEST…]

Needs root, network namespaces and the right to load BPF programs; is skipped without."""

import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap  # noqa: E402
from lib.pathline import PATHLINE, accounts_close, total  # noqa: E402
from lib.roce import ones_sum, packet_socket  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

ADDRESSES = {4: {"a": "10.79.0.1", "b": "10.79.0.2"}, 6: {"a": "fd79::1", "b": "fd79::2"}}
SOURCES = {"user": "packet:eth0?also=ioam", "afxdp": "afxdp:eth0?also=ioam", "kernel": "afxdp:eth0?also=ioam"}
NS = {}
MACS = {}


def daemon(name, where):
    port = lab.free_port()
    text = (f"decode: {{admit: first}}\nsources: [{{uri: '{SOURCES[where]}'}}]\nweb: {{listen: '127.0.0.1:{port}'}}\n"
            f"outputs: [{{path: {lab.path(name + '.jsonl')}, paths: false}}]\n"
            f"detect: {{where: {'kernel' if where == 'kernel' else 'user'}, reordering: true, loss_hold: 2s, flow_idle: 60s}}\n")
    d = pathline.Daemon(lab.write(name + ".yaml", text), name, prefix=NS["b"].command())
    ok("in the kernel it cannot" not in d.log(), f"{name}: detects where it was told to", d.log())
    return d


def metrics(d):
    return NS["b"].call(d.metrics)


def counted(d):
    values = metrics(d)
    return {k: total(values, f"pathline_flow_{k}_packets_total") for k in ("numbered", "lost", "reordered", "unsure")}


def flows(d):
    rows = json.loads(NS["b"].call(lambda: d.get("/api/v1/flows?limit=1000"))[1])["rows"]
    return [{**row, **row["flow"]} for row in rows]


def events(name, kind):
    """Of each flow by its ports: the phases in their order, and the values of the ends in all."""
    told = {}
    for e in pathline.jsonl(lab.read(name + ".jsonl")):
        if e["kind"] == "event" and e["event"] == kind:
            key = (e["flow"]["src"], e["flow"]["dst"], e["flow"]["sport"], e["flow"]["dport"])
            phases, value = told.get(key, ((), 0))
            told[key] = ((*phases, e["phase"]), value + (e["value"] if e["phase"] == "end" else 0))
    return told


# ---- IOAM ----

DEX_PORT = 9005


def e2e(namespace, seq):
    """The option edge to edge: a 32-bit number (RFC 9197 4.6)."""
    return struct.pack("!BBBB BBBB HHI", 17, 1, 1, 0, 0x11, 10, 0, 3, namespace, 0x4000, seq)


def dex(namespace, seq):
    """Direct export with flow id 21 and a number (RFC 9326 3.2); every third packet has a trace of node 7 beside it."""
    options = struct.pack("!BB BBBBHBB I II", 1, 0, 0x31, 18, 0, 4, namespace, 0, 0xC0, 0x80000000, 21, seq)
    if seq % 3 == 0:
        options += struct.pack("!BBBBHH II", 0x31, 14, 0, 0, namespace, 0x0800, 0x80000000, 64 << 24 | 7)
    return struct.pack("!BB", 17, (2 + len(options)) // 8 - 1) + options


def packet(port, namespace, seq):
    """UDP over IPv6 with an option of IOAM in the destination options."""
    options = (dex if port == DEX_PORT else e2e)(namespace, seq & 0xFFFFFFFF)
    ends = b"".join(socket.inet_pton(socket.AF_INET6, ADDRESSES[6][side]) for side in "ab")
    udp = struct.pack("!HHHH", 40000, port, 12, 0) + b"data"
    udp = udp[:6] + struct.pack("!H", ones_sum(ends + struct.pack("!II", len(udp), 17) + udp) or 0xFFFF) + udp[8:]
    return (MACS["b"] + MACS["a"] + struct.pack("!HIHBB", 0x86DD, 6 << 28, len(options) + len(udp), 60, 64)
            + ends + options + udp)


# One flow each, by its port: namespace, numbers left out, numbers that come after the next one, the first number. The last two
# flows have two namespaces each, whose numbers have nothing to do with each other, in direct export though the flow id is one.
FLOWS = {9000: [(123, set(), set(), 1)],
         9001: [(123, {100, 101, 102, 250}, set(), 1)],
         9002: [(123, set(), {80, 90, 300}, 1)],
         9003: [(123, {60}, {120}, 2 ** 32 - 200)],
         9004: [(123, set(), set(), 5), (124, {70, 71}, set(), 25)],
         DEX_PORT: [(123, {40, 41, 42}, set(), 5), (124, {200}, {150}, 25)]}
NUMBERS = 400


def stream(namespace, lost, late, first, port):
    """What is left of the numbers, in the order in which they come."""
    left = [i for i in range(NUMBERS) if i not in lost]
    for i in late:
        at = left.index(i)
        left[at], left[at + 1] = left[at + 1], left[at]
    return [packet(port, namespace, first + i) for i in left]


def send_ioam(d):
    """All flows side by side, over some of the looks of a second each, and never more at a time than there is room for. Returns how
    many."""
    streams = [stream(*source, port) for port, sources in FLOWS.items() for source in sources]
    s = packet_socket(NS["a"], "eth0", 0)
    for i in range(NUMBERS):
        for frames in streams:
            if i < len(frames):
                s.send(frames[i])
        time.sleep(0.01)
        if i % 50 == 49:
            sent = sum(len(frames[:i + 1]) for frames in streams)
            wait(lambda sent=sent: counted(d)["numbered"] >= sent)
    s.close()
    return sum(len(frames) for frames in streams)


def want_ioam(which):
    """Of the flows that lost packets (1), or had some overtaken (2): how many, by port."""
    sums = {port: sum(len(source[which]) for source in sources) for port, sources in FLOWS.items()}
    return {port: n for port, n in sums.items() if n > 0}


def each_ends(phases, sources):
    """Behind its begin, of so many sources of one flow, each of which has one event at a time."""
    under_way = [phases[:i + 1].count("begin") - phases[:i + 1].count("end") for i in range(len(phases))]
    return all(0 <= n <= sources for n in under_way) and under_way[-1] == 0


def check_ioam(where):
    name = "ioam-" + where
    d = daemon(name, where)
    sent = send_ioam(d)
    lost, late = want_ioam(1), want_ioam(2)
    want = {"numbered": sent, "lost": sum(lost.values()), "reordered": sum(late.values()), "unsure": 0}
    wait(lambda: counted(d) == want)
    eq(counted(d), want, f"{name}: the counters")
    table = {f.get("dport"): f for f in flows(d)}
    eq({p: f["lost"] for p, f in table.items() if p in FLOWS}, {p: lost.get(p, 0) for p in FLOWS}, f"{name}: lost in the table")
    eq({p: f["reordered"] for p, f in table.items() if p in FLOWS}, {p: late.get(p, 0) for p in FLOWS},
       f"{name}: overtaken in the table")

    def over():
        """each event that began has ended"""
        return all(t[0].count("begin") == t[0].count("end") for kind in ("packet_loss", "reordering")
                   for t in events(name, kind).values())
    wait(lambda: {k[3] for k in events(name, "packet_loss")} == set(lost) and {k[3] for k in events(name, "reordering")} == set(late)
         and over())
    accounts_close(metrics(d), name)
    eq(d.stop(), 0, f"{name}: ends well")
    for kind, counts in (("packet_loss", lost), ("reordering", late)):
        told = events(name, kind)
        eq({k[3]: v for k, (_, v) in told.items()}, counts, f"{name}: events {kind} tell of the same")
        ok(all(each_ends(phases, len(FLOWS.get(key[3], ()))) for key, (phases, _) in told.items()), f"{name}: each {kind} ends",
           [(key[3], *words) for key, words in told.items()])


def test_ioam():
    for where in SOURCES:
        check_ioam(where)


# ---- GEANT ----

STREAMS = {"drops": ("-e", "drop@1s+2s:ratio=0.2"),
           "damaged": ("-e", "drop@1s+1s:ratio=0.2", "-e", "loss@4s+1s:ratio=0.1", "--reorder", "0.002")}
GEANT = ("--preset", "geant", "--carrier", "udp", "--port", "32766", "--seed", "5", "--rate", "1000", "--flows", "40", "--duration", "8s")


def send_geant(*options):
    """Sends; returns how many packets arrived and were reported on, and how many were dropped, which a report of its own says.
    From one processor: a veth pair hands packets over where they are sent, and those of two processors may overtake each other."""
    with NS["a"]:
        p = lab.start(["taskset", "-c", str(min(os.sched_getaffinity(0))), PATHLINE, "gen", "int", *GEANT, *options, "packet:eth0"],
                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    words = pathline.finish_gen(p)
    dropped = int(re.search(r"packets dropped: (\d+)", words).group(1))
    return int(re.search(r"(\d+) packets", words).group(1)) - dropped, dropped


def geant(where, stream_name):
    """What was told of it: the counters, the table, the events."""
    name = f"geant-{stream_name}-{where}"
    d = daemon(name, where)
    sent, dropped = send_geant(*STREAMS[stream_name])
    wait(lambda: counted(d)["numbered"] == sent)
    eq(counted(d)["numbered"], sent, f"{name}: each report has a number")
    if where == "kernel":
        values = metrics(d)
        up = {k: v for k, v in values.items() if k.startswith("pathline_kernel_escalated_total") and v > 0}
        # The first ones come up because their layout is not known yet.
        causes = {cause: sum(v for k, v in up.items() if f'"{cause}"' in k) for cause in ("numbered", "layout")}
        ok(causes["numbered"] > 0 and sum(causes.values()) >= sent, f"{name}: they were escalated for it", up)
    wait(lambda: counted(d)["lost"] + counted(d)["unsure"] >= dropped)
    wait(lambda: metrics(d).get("pathline_flow_lost_packets_total") == sum(v for _, v in events(name, "packet_loss").values()))
    told = {"counters": counted(d), "table": {(f["src"], f["dst"], f.get("sport"), f.get("dport")): (f.get("lost"), f.get("reordered")) for f in flows(d)},
            "loss": events(name, "packet_loss"), "reordering": events(name, "reordering")}
    accounts_close(metrics(d), name)
    eq(d.stop(), 0, f"{name}: ends well")
    return told, dropped


def test_drops():
    """Nothing happened to the reports: every packet is accounted for."""
    sides = {where: geant(where, "drops") for where in ("afxdp", "kernel")}
    for where, (told, dropped) in sides.items():
        eq((told["counters"]["lost"], told["counters"]["unsure"], told["counters"]["reordered"]), (dropped, 0, 0),
           f"drops-{where}: each packet dropped is lost, and no other")
        eq(sum(value for _, value in told["loss"].values()), dropped, f"drops-{where}: and told of")
        eq(sum(lost or 0 for lost, _ in told["table"].values()), dropped, f"drops-{where}: and in the table")
        eq(told["reordering"], {}, f"drops-{where}: none overtakes another")
        eq({k: v[1] for k, v in told["loss"].items()}, {k: v[1] for k, v in sides["afxdp"][0]["loss"].items()},
           f"drops-{where}: the same of each flow")
        eq(told["table"], sides["afxdp"][0]["table"], f"drops-{where}: the same table")


def test_damaged():
    """Reports were lost and overtaken too: nothing is told that did not happen to packets."""
    for where in ("afxdp", "kernel"):
        told, dropped = geant(where, "damaged")
        c = told["counters"]
        ok(c["unsure"] > 0, f"damaged-{where}: what cannot be told apart is unsure", c)
        ok(c["lost"] <= dropped and c["reordered"] == 0, f"damaged-{where}: no packet is lost that was not dropped: {dropped}", c)
        eq(told["reordering"], {}, f"damaged-{where}: no event of order")


def test_reload():
    """Without the events the kernel settles the reports; with them it hands them up, from the next one on."""
    name = "reload"
    d = daemon(name, "kernel")
    text = lab.read(name + ".yaml")
    for word, loss in (("off", "false"), ("on", "true")):
        lab.write(name + ".yaml", text.replace("reordering: true", f"reordering: false, packet_loss: {loss}"))
        d.p.send_signal(1)
        d.wait_for("detect changed", count=1 if word == "off" else 2)
        before = metrics(d)
        sent, dropped = send_geant(*STREAMS["drops"], "--duration", "3s")

        def grown(name):
            return total(metrics(d), name) - total(before, name)
        wait(lambda: grown("pathline_kernel_reports_total") == sent + dropped)
        numbered = sum(v - before.get(k, 0) for k, v in metrics(d).items() if k.startswith("pathline_kernel_escalated_total") and '"numbered"' in k)
        settled = grown("pathline_kernel_settled_total")
        if word == "off":
            ok(settled > 0 == numbered, f"reload: {word}: {settled} of {sent} are settled, none comes up for its number", numbered)
        else:
            ok(settled <= dropped and numbered >= sent, f"reload: {word}: {numbered} of {sent} come up for their number", settled)
    eq(d.stop(), 0, "reload: ends well")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root to make network namespaces")
    NS.update(network.pair("loss", ADDRESSES))
    MACS.update({side: namespace.mac("eth0") for side, namespace in NS.items()})
    NS["a"].sh("ethtool -K eth0 tx off", check=False)
    with NS["b"]:
        probe = pathline.run("listen", "--duration", "100ms", "afxdp:eth0")
    if probe.returncode == 77:
        tap.skip_all("BPF programs cannot be loaded here: " + probe.stderr.strip())
    lab.run(test_ioam, test_drops, test_damaged, test_reload)
    return tap.end()


sys.exit(main())
