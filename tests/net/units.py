#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two nodes that tell queue depth in cells of different sizes, one threshold in bytes: each node's event begins at the first depth
whose bytes are above it, in user space and in the kernel; what is told is in bytes and says so. A reload gives a node another unit.

    usage: units.py PATHLINE

The kernel's part needs root, network namespaces and the right to load BPF programs; it is skipped without."""
import contextlib
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap  # noqa: E402
from lib.pathline import PATHLINE, total  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402

ADDRESSES = {4: {"a": "10.254.9.1", "b": "10.254.9.2"}, 6: {"a": "fd09::1", "b": "fd09::2"}}
# 48 cells of 208 are 9984 bytes, 125 of 80 are exactly the threshold.
CELLS = {1: 208, 2: 80}
THRESHOLD = 10000
COUNT = 20


def config(name, source, where, cells):
    units = "".join(f"  - nodes: {node}\n    queue_cell_bytes: {size}\n" for node, size in cells.items())
    return (f"decode:\n  admit: first\nsources:\n  - uri: {source}\nweb:\n  listen: 127.0.0.1:{ports[name]}\n"
            f"outputs:\n  - path: {lab.path(name + '.jsonl')}\n    paths: {str(where == 'user').lower()}\n"
            + (f"units:\n{units}" if units else "") +
            f"detect:\n  where: {where}\n  hop_latency:\n    enabled: false\n"
            f"  queue_depth:\n    threshold: {THRESHOLD}\n    low: {THRESHOLD - 2000}\n    begin_hold: 0s\n    end_hold: 1ms\n")


ports = {}


def stages(name, source, where, to, at_a, at_b):
    """at_a, at_b: where it is sent, and where the daemon runs."""
    ports[name] = lab.free_port()
    path = lab.write(name + ".yaml", config(name, source, where, CELLS))
    sent = 0

    def values():
        return at_b.call(d.metrics) if at_b is not None else d.metrics()

    def send(depth):
        nonlocal sent
        with at_a or contextlib.nullcontext():
            p = lab.start([PATHLINE, "gen", "int", "--topology", "chain:2", "--flows", "1", "--queue", f"const:{depth}", "--rate",
                           "500", "--count", str(COUNT), to], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        sent += pathline.sent_by(p)
        wait(lambda: total(values(), "pathline_reports_total") == sent)

    def levels(depth, want, what):
        """Nodes and phases of all events so far."""
        wait(lambda: len(told_events()) >= len(want))
        eq([(e["node"], e["phase"]) for e in told_events()], want, f"{name}: {depth} cells: {what}")

    def told_events():
        return [e for e in pathline.jsonl(lab.read(name + ".jsonl")) if e["kind"] == "event" and e["event"] == "queue_depth"]

    with at_b or contextlib.nullcontext():
        d = pathline.Daemon(path, name)
    told = []
    for depth, begins, what in ((48, None, "nobody is above"), (49, 1, "208 * 49 is above"), (125, None, "80 * 125 is the threshold"),
                                (126, 2, "80 * 126 is above")):
        send(depth)
        told += [(begins, "begin")] if begins else []
        levels(depth, told, what)
    for e in told_events():
        eq((e.get("value"), e.get("threshold"), e.get("unit")), ({1: 49, 2: 126}[e["node"]] * CELLS[e["node"]], THRESHOLD, "bytes"),
           f"{name}: node {e['node']}: the first depth above, in bytes")
    ok(any(v == 126 * 80 for k, v in values().items() if k.startswith("pathline_queue_depth_bytes{") and 'node="2"' in k),
       f"{name}: the page has bytes")
    ok(any(v == 126 for k, v in values().items() if k.startswith("pathline_queue_depth{") and 'node="2"' in k),
       f"{name}: and the depth as it came")
    call = at_b.call if at_b is not None else (lambda f: f())
    rows = {r["node"]: r for r in json.loads(call(lambda: d.get("/api/v1/queues?limit=100"))[1])["rows"]}
    eq({n: (r["depth"], r["depth_bytes"], r["depth_max_bytes"]) for n, r in rows.items()},
       {n: (126, 126 * c, 126 * c) for n, c in CELLS.items()}, f"{name}: the table of queues has both")
    seen = json.loads(call(lambda: d.get("/api/v1/events?limit=100"))[1])["rows"]
    eq({e.get("unit") for e in seen if e["event"] == "queue_depth"}, {"bytes"}, f"{name}: the table of events says the unit")
    # 126 of an unknown unit are far below; both levels end, as told by then: node 2 in bytes of 1.
    lab.write(name + ".yaml", config(name, source, where, {2: 1}))
    d.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: values()['pathline_config_reloads_total{result="success"}'] == 1), f"{name}: reloads")
    send(126)
    send(126)
    told += [(1, "end"), (2, "end")]
    wait(lambda: len(told_events()) >= 4)
    eq(sorted((e["node"], e["phase"]) for e in told_events()), sorted(told), f"{name}: a reload of the units ends both")
    ends = {e["node"]: (e["value"], e.get("unit")) for e in told_events() if e["phase"] == "end"}
    eq(ends, {1: (126, None), 2: (126, "bytes")}, f"{name}: the ends say in what unit they are")
    eq(d.stop(), 0, f"{name}: ends well")
    if where != "user":
        return
    hops = [h for r in pathline.jsonl(lab.read(name + ".jsonl")) if r["kind"] == "path" for h in r["hops"]]
    eq({(h["node"], h["queue_depth"], h.get("queue_bytes")) for h in hops if h["queue_depth"] < 126},
       {(n, v, v * c) for n, c in CELLS.items() for v in (48, 49, 125)}, f"{name}: hops have the depth as it came, and bytes")
    eq({h.get("queue_bytes") for h in hops if h["node"] == 1 and h["queue_depth"] == 126}, {126 * 208, None},
       f"{name}: without a unit no bytes")


def user():
    port = lab.free_udp_port()
    stages("user", f"udp://127.0.0.1:{port}", "user", f"udp://127.0.0.1:{port}", None, None)


def kernel():
    if os.geteuid() != 0:
        skip("the detector in the kernel", "needs root")
        return
    try:
        sides = network.pair("units", ADDRESSES)
    except RuntimeError as e:
        skip("the detector in the kernel", f"network namespaces cannot be made here: {e}")
        return
    with sides["b"]:
        probe = pathline.run("listen", "--duration", "100ms", "afxdp:eth0")
    if probe.returncode == 77:
        skip("the detector in the kernel", "BPF programs cannot be loaded here: " + probe.stderr.strip())
        return
    stages("kernel", "afxdp:eth0", "kernel", "packet:eth0", sides["a"], sides["b"])


def main():
    lab.run(user, kernel)
    return tap.end()


sys.exit(main())
