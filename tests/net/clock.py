#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Time that does not behave: the machine's clock stepped by hours and years under a running daemon (libfaketime), the
reports' own time going backwards, and hours in seconds (the clocks run faster); as a promise with memory that stays flat.

    usage: clock.py PATHLINE [HOURS] [TEST…]

HOURS (default 0.25) of the daemon's time are run through; `make soak` runs 24."""

import contextlib
import glob
import http.client
import json
import os
import re
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, pcap, tap  # noqa: E402
from lib.lab import DIR, free_udp_port  # noqa: E402
from lib.pathline import accounts_close, came, total  # noqa: E402
from lib.promise import promise  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402

HOURS = float(next((word for word in sys.argv[2:] if word[0].isdigit()), 0.25))
SPEED = 120
YEAR = 365 * 24 * 3600  # of libfaketime
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

    def fetch(self, path, headers=None):
        # Where the clocks run faster, so do time-outs: ours would mean milliseconds.
        def fetched():
            try:
                return super(Daemon, self).fetch(path, headers)
            except http.client.HTTPException:
                return None
        return wait(fetched)


def gen(*options):
    """How many it sent."""
    r = pathline.run("gen", "int", *options, timeout=300)
    if r.returncode != 0:
        ok(False, "gen " + " ".join(options), r.stderr)
    return int(re.search(r"(\d+) packets", r.stderr).group(1))


def received(d, want):
    """The page once all has come, and lies still: what an output's thread holds in its hand is neither waiting nor delivered."""
    values = {}

    def all_has():
        """as many packets as were sent, and all outputs at rest"""
        nonlocal values
        values = d.metrics()
        return (came(values) >= want and
                total(values, "pathline_output_offered_total") ==
                sum(total(values, f"pathline_output_{x}_total") for x in ("delivered", "filtered", "dropped")))
    wait(all_has)
    return values


def balanced(values, want, name):
    eq(came(values), want, f"{name}: all are received")
    accounts_close(values, name)


def path_times(path):
    """Of the reports in a file of records, in seconds."""
    return [x["ts_ns"] / 10**9 for x in pathline.jsonl(lab.read(path)) if x["kind"] == "path"]


def test_stepped():
    """The wall clock jumps; intervals are none of its business."""
    rc = os.path.join(DIR, "now")
    with open(rc, "w") as f:
        f.write("+0")
    d = Daemon("stepped", "sources:\n  - uri: udp://127.0.0.1:PORT\nweb:\n  listen: 127.0.0.1:0\n"
               "outputs:\n  - path: DIR/out.jsonl\n    rotate:\n      age: 30m\n",
               FAKETIME_TIMESTAMP_FILE=rc, FAKETIME_NO_CACHE="1", DONT_FAKE_MONOTONIC="1")
    sent = 0
    before = {}
    for step, seconds in (("+0", 0), ("+5h", 5 * 3600), ("-5h", -5 * 3600), ("+30y", 30 * YEAR), ("-20y", -20 * YEAR), ("+0", 0)):
        with open(rc, "w") as f:
            f.write(step)

        def has_the_time():
            """the last of more reports has the time that the clock tells"""
            nonlocal sent, values
            sent += gen("--count", "500", "--rate", "5000", "--seed", "7", f"udp://127.0.0.1:{d.port}")
            values = received(d, sent)
            return abs(path_times("stepped/out.jsonl")[-1] - time.time() - seconds) < 3600
        values = {}
        ok(wait(has_the_time), f"clock {step}: reports have the time that it tells")
        balanced(values, sent, f"clock {step}")
        back = [k for k, v in before.items() if "_total" in k and values.get(k, 0) < v]
        eq(back, [], f"clock {step}: no counter goes back or vanishes")
        before = values
    eq(len(glob.glob(f"{d.dir}/out.jsonl*")), 1, "no file was rotated for its age")
    with urllib.request.urlopen(d.web + "/readyz", timeout=60) as r:
        eq(r.status, 200, "ready")
    eq(d.stop(), 0, "stepped: ends well")
    eq(len(path_times("stepped/out.jsonl")), total(values, "pathline_packets_total"), "every report is in the file")


def test_backwards():
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


def soak(name):
    """Hours of ageing, ticks, rotations, event limits and idle time-outs, with flows, damage and scrapes. The sizes of memory
    meanwhile."""
    seconds = HOURS * 3600 / SPEED
    d = Daemon(name, "drain: 10m\nsources:\n  - uri: udp://127.0.0.1:PORT?rcvbuf=64MiB\nweb:\n  listen: 127.0.0.1:0\n"
               "detect:\n  max_flows: 8192\n  queue_depth:\n    threshold: 100\n"
               "outputs:\n  - path: DIR/out.jsonl\n    rotate:\n      size: 8MiB\n      age: 10m\n      keep: 2\n",
               FAKETIME=f"+0 x{SPEED}")
    began = time.monotonic()
    sizes = []
    sent = 0
    # A busy machine makes few bursts in the time; the first ones fill tables.
    while time.monotonic() - began < seconds or len(sizes) < 10:
        # Each burst is another network: other flows, paths, exporters' sequences; then a pause, in which all age.
        sent += gen("--count", "12000", "--rate", "40000", "--seed", str(len(sizes) + 1), "--flows", "20000", "--malform", "all:0.05",
                    "--loss", "0.01", "--duplicate", "0.01", "--topology", "random:24,3", f"udp://127.0.0.1:{d.port}")
        # Scraped by somebody with an ordinary clock, who hardly ever gets all of it.
        with contextlib.suppress(OSError, http.client.HTTPException):
            pathline.Daemon.fetch(d, "/metrics")
        time.sleep(0.3)
        sizes.append((time.monotonic() - began, *memory(d.p.pid)))

    def has_come():
        """all packets were received, or dropped by the kernel"""
        s = json.loads(d.get("/api/v1/status")[1])
        return s["packets"]["received"] + sum(source["kernel_drops"] for source in s["sources"]) == sent
    ok(wait(has_come), f"{name}: all that was sent is received or dropped")
    eq(d.stop(), 0, f"{name}: ends well")
    m = re.search(r"received (\d+) = decoded (\d+) \+ not decoded (\d+)", d.log())
    n = [int(x) for x in m.groups()] if m else [0, -1]
    eq(n[0], sum(n[1:]), f"{name}: packets = sum of verdicts")
    ok(n[0] > 10000, f"{name}: there was something to do")
    m = re.search(r"offered (\d+) = delivered (\d+) \+ filtered (\d+) \+ dropped (\d+) \+ undelivered (\d+)", d.log())
    n = [int(x) for x in m.groups()] if m else [0, -1]
    eq(n[0], sum(n[1:]), f"{name}: outputs balance to the end")
    eq(len(glob.glob(f"{d.dir}/out.jsonl*")), 3, f"{name}: files were rotated, two are kept")
    return sizes


def test_soak():
    soak("soak")


def promise_flat():
    """In a short run tables made at the start are still being touched for the first time. AddressSanitizer asks for terabytes of
    shadow; promises are of the release build."""
    resident, asked, tries = 2048 if HOURS >= 6 else 6144, 1024, iter(range(10))

    def attempt():
        sizes = soak(f"flat{next(tries)}")
        half = sizes[len(sizes) * 2 // 5:]
        grown = [half[-1][i] - half[0][i] for i in (1, 2)]
        return (grown[0] < resident and grown[1] < asked,
                f"from 40 % to the end resident memory grew by {grown[0]} KiB, what was asked for by {grown[1]}, of {half[0][1:]}")
    promise(f"memory is flat: {resident >> 10} MiB resident, {asked >> 10} asked for, in {HOURS:g} h", attempt)


def main():
    if FAKETIME is None:
        lab.run(test_backwards)
        skip("stepped clocks and the soak", "missing: libfaketime (package faketime)")
    else:
        lab.run(test_backwards, test_stepped, test_soak, promise_flat)
    return tap.end()


sys.exit(main())
