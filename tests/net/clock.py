#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Time that does not behave: the machine's clock stepped by hours and years under a running daemon (libfaketime), the
reports' own time going backwards, and a day in minutes (the clocks run faster) with memory that must stay flat.

    usage: clock.py PATHLINE [HOURS]

HOURS (default 0.25) of the daemon's time are run through; `make soak` runs 24."""

import glob
import json
import os
import re
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap  # noqa: E402
from lib.lab import DIR, free_udp_port  # noqa: E402
from lib.pathline import accounts_close, total  # noqa: E402
from lib.tap import comment, eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402

HOURS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.25
SPEED = 120
FAKETIME = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") + [None])[0]


class Daemon(pathline.Daemon):
    """With clocks of its own, a port and a folder; in the text PORT and DIR."""

    def __init__(self, name, text, **environment):
        self.port = free_udp_port()
        self.dir = os.path.join(DIR, name)
        os.mkdir(self.dir)
        # A leak checker's own library must stay the first.
        preload = {"LD_PRELOAD": FAKETIME} if environment else {}
        super().__init__(lab.write(name + ".yaml", text.replace("PORT", str(self.port)).replace("DIR", self.dir)), name,
                         env=os.environ | environment | preload)

    def metrics(self):
        # Where the clocks run faster, so do time-outs: ours would mean milliseconds.
        for _ in range(100):
            try:
                return super().metrics()
            except OSError:
                time.sleep(0.02)
        return super().metrics()


def gen(*options):
    r = pathline.run("gen", "int", *options, timeout=300)
    if r.returncode != 0:
        ok(False, "gen " + " ".join(options), r.stderr)


def received(d, want):
    """The page once all has come, and lies still: what an output's thread holds in its hand is neither waiting nor delivered."""
    values = {}

    def all_has():
        """as many packets as were sent, and all outputs at rest"""
        nonlocal values
        values = d.metrics()
        return (total(values, "pathline_packets_total") + total(values, "pathline_socket_drops_total") >= want and
                total(values, "pathline_output_offered_total") ==
                sum(total(values, f"pathline_output_{x}_total") for x in ("delivered", "filtered", "dropped")))
    wait(all_has)
    return values


def balanced(values, want, name):
    eq(total(values, "pathline_packets_total") + total(values, "pathline_socket_drops_total"), want, f"{name}: all are received")
    accounts_close(values, name)


def stepped():
    """The wall clock jumps; intervals are none of its business."""
    rc = os.path.join(DIR, "now")
    with open(rc, "w") as f:
        f.write("+0")
    d = Daemon("stepped", "sources:\n  - uri: udp://127.0.0.1:PORT\nweb:\n  listen: 127.0.0.1:0\n"
               "outputs:\n  - path: DIR/out.jsonl\n    rotate:\n      age: 30m\n",
               FAKETIME_TIMESTAMP_FILE=rc, FAKETIME_NO_CACHE="1", DONT_FAKE_MONOTONIC="1")
    sent = 0
    before = {}
    for step in ("+0", "+5h", "-5h", "+30y", "-20y", "+0"):
        with open(rc, "w") as f:
            f.write(step)
        time.sleep(0.15)
        gen("--count", "500", "--rate", "5000", "--seed", "7", f"udp://127.0.0.1:{d.port}")
        sent += 500
        values = received(d, sent)
        balanced(values, sent, f"clock {step}")
        back = [k for k, v in before.items() if "_total" in k and values.get(k, 0) < v]
        eq(back, [], f"clock {step}: no counter goes back or vanishes")
        before = values
    eq(len(glob.glob(f"{d.dir}/out.jsonl*")), 1, "no file was rotated for its age")
    with urllib.request.urlopen(d.web + "/readyz", timeout=60) as r:
        eq(r.status, 200, "ready")
    eq(d.stop(), 0, "stepped: ends well")
    with open(f"{d.dir}/out.jsonl") as f:
        lines = [json.loads(line) for line in f]
    years = [time.gmtime(x["ts_ns"] // 10**9).tm_year for x in lines if x["kind"] == "path"]
    eq(len(years), sent, "every report is in the file")
    ok(max(years) - min(years) >= 45, f"with the time the clock told then: {min(years)} to {max(years)}")


def backwards():
    """Capture time and the reports' own times go back by hours, then to 1970, then wrap."""
    starts = ("1700000000s", "1699990000s", "1700000000s", "1s", "4294967000s")
    for i, start in enumerate(starts):
        gen("--count", "400", "--seed", "3", "--start", start, "-w", f"{DIR}/part{i}.pcap")
    pcap.join([f"{DIR}/part{i}.pcap" for i in range(len(starts))], f"{DIR}/back.pcap")
    d = Daemon("backwards", f"sources:\n  - uri: pcap:{DIR}/back.pcap\nweb:\n  listen: 127.0.0.1:0\n"
               "outputs:\n  - path: DIR/out.jsonl\n")
    values = received(d, 2000)
    balanced(values, 2000, "backwards")
    eq(total(values, "pathline_packets_decoded_total"), 2000, "backwards: every one is decoded")
    eq(d.stop(), 0, "backwards: ends well")
    with open(f"{d.dir}/out.jsonl") as f:
        lines = [json.loads(line) for line in f]
    paths = [x for x in lines if x["kind"] == "path"]
    eq(len(paths), 2000, "backwards: and in the file")
    # The generator's hops take 2 us each on average: nothing is made of the difference of two epochs.
    worst = max(h.get("hop_latency_ns", 0) for p in paths for h in p["hops"])
    ok(worst < 10**6, f"backwards: no latency is made of it: {worst} ns at most")


def memory(pid):
    with open(f"/proc/{pid}/status") as f:
        text = f.read()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)), int(re.search(r"VmData:\s+(\d+)", text).group(1))


def soak():
    """Hours of ageing, ticks, rotations, event limits and idle time-outs, with flows, damage and scrapes."""
    seconds = HOURS * 3600 / SPEED
    d = Daemon("soak", "drain: 10m\nsources:\n  - uri: udp://127.0.0.1:PORT?rcvbuf=64MiB\nweb:\n  listen: 127.0.0.1:0\n"
               "detect:\n  max_flows: 8192\n  queue_depth:\n    threshold: 100\n"
               "outputs:\n  - path: DIR/out.jsonl\n    rotate:\n      size: 8MiB\n      age: 10m\n      keep: 2\n",
               FAKETIME=f"+0 x{SPEED}")
    began = time.monotonic()
    sizes = []
    seed = 0
    # A busy machine makes few bursts in the time; the first ones fill tables.
    while time.monotonic() - began < seconds or len(sizes) < 10:
        # Each burst is another network: other flows, paths, exporters' sequences; then a pause, in which all age.
        seed += 1
        gen("--count", "12000", "--rate", "40000", "--seed", str(seed), "--flows", "20000", "--malform", "all:0.05",
            "--loss", "0.01", "--duplicate", "0.01", "--topology", "random:24,3", f"udp://127.0.0.1:{d.port}")
        values = d.metrics()
        time.sleep(0.3)
        sizes.append((time.monotonic() - began, *memory(d.p.pid)))
    time.sleep(0.5)
    values = d.metrics()
    got = total(values, "pathline_packets_total")
    eq(total(values, "pathline_packets_decoded_total") + total(values, "pathline_report_errors_total"), got,
       f"soak: {got} packets = sum of verdicts")
    ok(got > 10000, "soak: there was something to do")
    half = sizes[len(sizes) * 2 // 5:]
    comment(f"soak: {HOURS:g} h of the daemon's time in {seconds:.0f} s, {got} packets; resident KiB "
            f"{sizes[0][1]} first, {half[0][1]} at 40 %, {half[-1][1]} at the end; data {half[0][2]} and {half[-1][2]}")
    # In a short run tables made at the start are still being touched for the first time.
    limit = 2048 if HOURS >= 6 else 6144
    ok(half[-1][1] - half[0][1] < limit, f"soak: resident memory is flat ({limit >> 10} MiB)", str(sizes))
    # AddressSanitizer asks for terabytes of shadow, and for more memory whenever it keeps freed blocks from being used
    # again. What the daemon itself asks for is then not to be seen in the sum.
    asked = 1024 if half[0][2] < 1 << 30 else 16384
    ok(half[-1][2] - half[0][2] < asked, f"soak: so is what was asked for ({asked >> 10} MiB)", str(sizes))
    eq(d.stop(), 0, "soak: ends well")
    m = re.search(r"offered (\d+) = delivered (\d+) \+ filtered (\d+) \+ dropped (\d+) \+ undelivered (\d+)", d.log())
    n = [int(x) for x in m.groups()] if m else [0, -1]
    eq(n[0], sum(n[1:]), "soak: outputs balance to the end")
    ok(len(glob.glob(f"{d.dir}/out.jsonl*")) == 3, "soak: files were rotated, two are kept", os.listdir(d.dir))


def main():
    if FAKETIME is None:
        lab.run(backwards)
        skip("stepped clocks and the soak", "missing: libfaketime (package faketime)")
    else:
        lab.run(backwards, stepped, soak)
    return tap.end()


sys.exit(main())
