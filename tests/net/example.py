#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The example configuration of the documentation, run on a wire between two namespaces: ordinary traffic with a port scan and a
SYN flood passes, both are told as events, and the flows are in their file. usage: example.py PATHLINE EXAMPLE"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

SCANNER, VICTIM = "198.51.100.66", "192.0.2.1"  # as `pathline help gen packets` says


def write_config(example):
    """The example, but for where things are on a machine."""
    with open(example, encoding="utf-8") as f:
        text = f.read()
    changed = text.replace("/var/lib/pathline", path("")).replace("/var/log/pathline", path("")).replace("127.0.0.1:8400", "127.0.0.1:0")
    ok(changed.count(path("")) == 2, "its folders are those of this test", changed)
    with open(path("example.yaml"), "w", encoding="utf-8") as f:
        f.write(changed)


def make_wire():
    host, wire = (network.Namespace("ex-" + side, ipv6=False) for side in "ab")
    network.join(host, "eth0", wire, "eth0")
    for side in (host, wire):
        side.up("eth0")
    network.wait_for_carrier((host, "eth0"), (wire, "eth0"))
    return host, wire


def alerts():
    """Of each query, the keys that it told."""
    found = {}
    with open(path("alerts.jsonl"), encoding="utf-8") as f:
        for event in jsonl(f.read()):
            found.setdefault(event["query"], set()).add(event["key"])
    return found


def main(example):
    checked = run("config", "check", example)
    ok(checked.returncode == 0, "the example is good as it stands", checked.stderr)
    write_config(example)
    host, wire = make_wire()
    d = Daemon(path("example.yaml"), prefix=host.command())
    sent = lab.start(wire.command(PATHLINE, "gen", "packets", "--story", "--duration", "12s", "packet:eth0"), log=path("gen.log"))
    eq(sent.wait(timeout=60), 0, "the traffic passes")
    wait(lambda: alerts() == {"portscan": {SCANNER}, "many-sources": {VICTIM}})
    eq(alerts(), {"portscan": {SCANNER}, "many-sources": {VICTIM}}, "the scanner and the victim are told, and nobody else")
    ok(re.search(rf'subject=query msg="portscan: {SCANNER}: n \d+', d.log()), "the log has the scanner", d.log())
    page = json.loads(host.call(lambda: d.get("/readyz?verbose")[1]))
    eq((page["taps"]["ready"], page["queries"]["ready"]), (True, True), "the taps and queries are ready")
    eq(d.stop(), 0, "it ends well")
    account = re.search(r"stopped: uplink: (\d+) packets, (\d+) records, (\d+) records of flows", d.log())
    made = int(re.search(r"(\d+) packets", open(path("gen.log"), encoding="utf-8").read()).group(1))
    eq(int(account.group(1)), made, "every packet was tapped")
    eq(os.path.getsize(path("flows.flow128")), int(account.group(3)) * 128, "and the flows are in their file")


main(sys.argv[2])
sys.exit(tap.end())
