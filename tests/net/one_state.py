#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The daemon with the detector in the kernel, of whose reports a part is escalated to user space: what it tells is what the
generator made, once. Nodes that are heard of are not silent, flows that go on do not end, and a queue that plain reports and
reports of VXLAN packets show begins once and ends once. Reports that user space reads must not be missing from an account.

    usage: one_state.py PATHLINE

Needs root, network namespaces, the right to load BPF programs; is skipped without."""
import os
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap  # noqa: E402
from lib.pathline import PATHLINE, accounts_close, total  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

ADDRESSES = {4: {"a": "10.254.7.1", "b": "10.254.7.2"}, 6: {"a": "fd07::1", "b": "fd07::2"}}
# One network: the same topology and seed have the same flows over the same queues.
NETWORK = ("--topology", "chain:3", "--seed", "5", "--flows", "8", "--carrier", "udp")
PLAIN = (*NETWORK, "--hw-id", "1")
TUNNEL = (*NETWORK, "--hw-id", "2", "--inner", "vxlan")
PAIRS = (*NETWORK, "--hw-id", "3", "--report", "2.0", "--reports-per-datagram", "2")
FLAT = "const:5"
sides = {}


def configure(name, detect, port, uri="afxdp:eth0"):
    return lab.write(name + ".yaml", f"decode:\n  admit: first\nsources:\n  - uri: {uri}\nweb:\n  listen: 127.0.0.1:{port}\n"
                     f"outputs:\n  - path: {lab.path(name + '.jsonl')}\n    paths: false\ndetect:\n{detect}")


def daemon(name, detect, port=None):
    """On the wire's one end; its page is on the loopback of that namespace."""
    port = port or lab.free_port()
    with sides["b"]:
        d = pathline.Daemon(configure(name, detect, port), name)
    ok("because the kernel cannot" not in d.log(), f"{name}: the kernel detects", d.log())
    return d


def values_of(d):
    return sides["b"].call(d.metrics)


def send(*options):
    """Sends and returns how many reports left."""
    with sides["a"]:
        p = lab.start([PATHLINE, "gen", "int", *options, "packet:eth0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return pathline.sent_by(p)


def together(*streams):
    """Streams at the same time; the sum of what they sent."""
    sent = [0] * len(streams)

    def one(i):
        sent[i] = send(*streams[i])
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(streams))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(sent)


def shares(values):
    """How many reports the kernel settled, and how many it escalated."""
    return (total(values, f"pathline_kernel_{x}_total") for x in ("settled", "escalated"))


def escalated_for(values, name, *causes):
    """For nothing but these causes, a layout that is not known yet, and user space's turn, of which there may be any number."""
    seen = {re.search('cause="(.*?)"', k).group(1) for k, v in values.items() if k.startswith("pathline_kernel_escalated_total") and v > 0}
    ok(seen <= {"layout", "turn", *causes} and seen >= set(causes), f"{name}: escalated for their causes", seen)


def account(d, sent, name):
    """When all has come: settled and escalated, of one exporter and queue each."""
    wait(lambda: total(values_of(d), "pathline_kernel_reports_total") == sent)
    wait(lambda: total(values_of(d), "pathline_exporter_reports_total") == sent)
    values = values_of(d)
    settled, up = shares(values)
    eq(settled + up, sent, f"{name}: {sent} sent = {settled} settled + {up} escalated")
    eq(total(values, "pathline_reports_total"), sent, f"{name}: each is a report of the page")
    eq(total(values, "pathline_hops_total"), total(values, "pathline_queue_packets_total"), f"{name}: each hop is counted in one queue")
    eq(total(values, "pathline_exporter_reports_total"), sent, f"{name}: each number is in its exporter's account")
    eq(total(values, "pathline_exporter_skipped_total") - total(values, "pathline_exporter_recovered_total"), 0,
       f"{name}: none is missing")
    accounts_close(values, name)
    return values, settled, up


def events_of(d, name):
    """In the order in which they were told, once the daemon has ended."""
    eq(d.stop(), 0, f"{name}: ends well")
    return [e for e in pathline.jsonl(lab.read(name + ".jsonl")) if e["kind"] == "event"]


def count(events, event, phase=None):
    return sum(e["event"] == event and phase in (None, e.get("phase")) for e in events)


def silences(d):
    """Events of silent nodes, begins and ends."""
    return sum(v for k, v in values_of(d).items() if k.startswith("pathline_events_total") and "node_silent" in k)


def silent_nodes():
    """Of a stream that the kernel settles, the first reports come up, because their layouts are new. Its nodes are silent once it
    has ended, and are heard again with the next one: each begin has its end."""
    stream = ("--rate", "500", "--topology", "chain:3")
    d = daemon("silent", "  where: kernel\n  node_silent: 1s\n  queue_depth:\n    enabled: false\n  hop_latency:\n    enabled: false\n")
    sent = send(*stream, "--duration", "3s")
    values, settled, up = account(d, sent, "silent")
    ok(settled > 0 < up, f"silent: {up} reports were escalated")
    escalated_for(values, "silent")
    ok(wait(lambda: silences(d) >= 3), "silent: three nodes, after the stream")
    send(*stream, "--count", "100")
    ok(wait(lambda: silences(d) >= 6), "silent: all are heard again with the next one")
    told = {}
    for e in events_of(d, "silent"):
        told.setdefault(e["node"], []).append(e["phase"])
    eq(sorted(told), [1, 2, 3], "silent: these nodes")
    eq([t for t in told.values() if t != (["begin", "end"] * len(t))[:len(t)]], [], "silent: each begin has its end")


def flows():
    """Flows whose first reports come in a form that is escalated, and all later ones are settled."""
    d = daemon("flows", "  where: kernel\n  flow_start: true\n  flow_end: true\n  flow_idle: 5s\n")
    sent = send(*PAIRS, "--queue", FLAT, "--rate", "1000", "--count", "100")
    sent += send(*PLAIN, "--queue", FLAT, "--rate", "1000", "--count", "3000")
    wait(lambda: total(values_of(d), "pathline_kernel_reports_total") == sent)
    values = values_of(d)
    settled, up = shares(values)
    ok(settled > 0 and up >= 100, f"flows: {settled} settled, {up} escalated")
    escalated_for(values, "flows", "report")
    eq(total(values, "pathline_flows"), 8, "flows: as many as there are")
    wait(lambda: total(values_of(d), "pathline_flows") == 0)
    events = events_of(d, "flows")
    for event in ("flow_start", "flow_end"):
        eq(count(events, event), 8, f"flows: one {event} of each")


def one_queue():
    """Deep at first, flat afterwards, in plain reports and in reports of VXLAN packets at the same time."""
    for where in ("kernel", "both"):
        name = "queue-" + where
        d = daemon(name, f"  where: {where}\n  hop_latency:\n    enabled: false\n  queue_depth:\n    threshold: 100\n    end_hold: 300ms\n")
        sent = 0
        for depth in ("const:500", FLAT):
            sent += together(*((*form, "--queue", depth, "--rate", "2000", "--count", "2000") for form in (PLAIN, TUNNEL)))
        wait(lambda: total(values_of(d), "pathline_kernel_reports_total") == sent)
        values = values_of(d)
        settled, up = shares(values)
        ok(settled > 0 and up >= sent / 2, f"{name}: {settled} settled, {up} escalated")
        escalated_for(values, name, "inner")
        wait(lambda: total(values_of(d), "pathline_levels_raised") == 0)
        levels = {}
        for e in events_of(d, name):
            if e["event"] == "queue_depth":
                levels.setdefault((e["node"], e["port"], e["queue"]), []).append(e["phase"])
        ok(len(levels) > 1, f"{name}: {len(levels)} queues were deep")
        eq({k: v for k, v in levels.items() if v != ["begin", "end"]}, {}, f"{name}: each begins once and ends once")


def removed():
    """A reload that removes the source ends what its detector has begun."""
    detect, port = "  where: auto\n  idle: 1h\n  hop_latency:\n    enabled: false\n  queue_depth:\n    threshold: 100\n", lab.free_port()
    d = daemon("removed", detect, port)
    sent = send(*PLAIN, "--queue", "const:500", "--rate", "1000", "--count", "500")
    wait(lambda: total(values_of(d), "pathline_kernel_reports_total") == sent)
    ok(wait(lambda: total(values_of(d), "pathline_levels_raised") > 0), "removed: queues are deep")
    configure("removed", detect, port, f"udp://127.0.0.1:{lab.free_port()}")
    d.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: values_of(d)['pathline_config_reloads_total{result="success"}'] == 1), "removed: the source is")
    eq(total(values_of(d), "pathline_levels_raised"), 0, "removed: nothing is left raised")
    events = events_of(d, "removed")
    ok(count(events, "queue_depth", "begin") > 0, "removed: queues began to be deep")
    eq(count(events, "queue_depth", "begin"), count(events, "queue_depth", "end"), "removed: each begin has its end")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    try:
        sides.update(network.pair("onestate", ADDRESSES))
    except RuntimeError as e:
        tap.skip_all(f"network namespaces cannot be made here: {e}")
    with sides["b"]:
        probe = pathline.run("listen", "--duration", "100ms", "afxdp:eth0")
    if probe.returncode == 77:
        tap.skip_all("BPF programs cannot be loaded here: " + probe.stderr.strip())
    lab.run(silent_nodes, flows, one_queue, removed)
    return tap.end()


sys.exit(main())
