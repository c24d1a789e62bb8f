# SPDX-License-Identifier: BSD-2-Clause
"""Flows that outlive their tap (--flow-state): 1,000 flows over a wire, a tap that is ended in order and by SIGKILL, and started again.
The witness is what was put on the wire; what no record has is named.

usage: flow_state.py PATHLINE [TEST…]
"""
import ctypes
import os
import random
import re
import signal
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap, tapping  # noqa: E402
from lib.pathline import Daemon, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

WIRE = tapping.Wire("state", "10.94.0.1", "10.94.0.2")
FLOWS, LONG = 1000, ("--flow-idle", "1h", "--flow-active", "1h")
NAMES = iter(range(1000))
VERSION_AT, CONTINUED, FURTHER = 8, 2, 1


def frames(flows=FLOWS, to=53):
    mac = {side: WIRE.ns[side].mac("eth0") for side in "ab"}
    made = []
    for i in range(flows):
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 64, i, 0, 64, 17, 0, bytes((10, 9, 0, 1)), bytes((10, 9, 0, 2)))
        made.append(mac["b"] + mac["a"] + b"\x08\0" + ip + struct.pack(">HHHH", 1000 + i, to, 44, 0) + bytes(36))
    return made


def received():
    return WIRE.ns["b"].call(tapping.received)


class Line:
    """Taps one after the other with one state, and all that they printed."""

    def __init__(self, source, *args):
        self.state, self.source, self.args = lab.path(f"state-{next(NAMES)}"), source, args
        self.taps, self.sent, self.records = [], 0, []

    def start(self, *more):
        self.tap = tapping.Tap(WIRE.ns["b"], f"tap-{next(NAMES)}", "-o", "jsonl", "--flows", *LONG, "--flow-state", self.state,
                               *self.args, *more, self.source)
        if self.taps:
            ok(wait(lambda: "flow state" in self.tap.errors()), "it says what it found", self.tap.errors())
        self.taps.append(self.tap)
        return self.tap.errors()

    def send(self, made):
        """All of it is counted when this returns."""
        before = self.tap.look()["flows"]["packets"]
        on_wire = received()
        WIRE.send_frames(made)
        self.sent += len(made)
        eq(received() - on_wire, len(made), "the interface has what was sent")
        ok(wait(lambda: self.tap.look()["flows"]["packets"] == before + len(made)), "and the tap counted it")

    def kill(self):
        self.tap.p.kill()
        self.tap.p.wait(LIMIT)
        self.records += [r for r in self.tap.lines() if "src" in r]

    def end(self):
        self.tap.end()
        self.records += self.tap.records

    def total(self):
        return sum(r["pkts_fwd"] + r["pkts_rev"] for r in self.records)

    def patch(self, at, data):
        with open(self.state, "r+b") as f:
            f.seek(at)
            f.write(data)


def goes_on(text):
    m = re.search(r"(\d+) flows? goe?s? on, (\d+) ended meanwhile, unseen for ([\d.]+) s \((\d+) packets counted so far, (\d+) of them in (\d+) records", text)
    return ok(m is not None, "it says what goes on", text) and [float(g) if "." in g else int(g) for g in m.groups()]


def exactly(line, rounds):
    """Traffic pauses while no tap runs: every packet is in a record, whoever ended the taps."""
    kills = 0
    line.start()
    for i in range(rounds):
        line.send(frames())
        if random.random() < 0.5:
            line.kill()
            kills += 1
        else:
            line.end()
        flows, ended, _, counted, given, records = goes_on(line.start())
        eq((flows, ended, counted), (FLOWS, 0, line.sent), f"round {i}: all flows go on, and all packets are counted")
        eq((given, records), (line.total(), len(line.records)), "those of records are in the records that were printed")
    line.send(frames())
    line.end()
    eq(line.total(), line.sent, f"after {rounds} restarts, {kills} of them by SIGKILL, every packet is in one record")
    eq([r["flow_seq"] for r in line.records], list(range(len(line.records))), "records are numbered on")
    ok(all(r["flow_flags"] & CONTINUED for r in line.tap.records), "those of the last tap say that their flow went on")
    # After SIGKILL a record goes on over the outage, after an orderly end another one begins behind it.
    eq({r["unseen_ns"] > 0 for r in line.records if r["pkts_fwd"] > 1}, {True}, "records over an outage say that it was")
    eq({r["unseen_ns"] > 0 for r in line.records if r["pkts_fwd"] == 1}, {False}, "others do not")
    ok(all(r["unseen_ns"] < r["last_ts"] - r["first_ts"] for r in line.records if r["unseen_ns"] > 0), "and it is a part of their time")


def test_rounds():
    random.seed(1)
    exactly(Line("packet:eth0"), 20)


def test_kernel():
    exactly(Line("tc:eth0"), 4)


def test_traffic_goes_on():
    """Taps are killed at any time amid the packets: what is missing was sent between the last look and the next start."""
    line, made, stop, sent = Line("packet:eth0"), frames(), threading.Event(), [0]

    def run_on():
        while not stop.is_set():
            WIRE.send_frames(made[:100])
            sent[0] += 100
            made[:] = made[100:] + made[:100]
            time.sleep(0.002)
    random.seed(2)
    line.start()
    thread = threading.Thread(target=run_on)
    thread.start()
    counted, may_miss = 0, 0
    for i in range(8):
        time.sleep(random.random())
        seen = line.tap.look()["flows"]["packets"] + counted
        time.sleep(random.random() / 4)
        line.kill()
        text = line.start()
        _, ended, unseen, now, given, records = goes_on(text)
        # As many as were sent behind the look, and a burst that was under way.
        may_miss += sent[0] + 100 - seen
        ok(now >= seen and ended == 0, f"round {i}: no packet that was counted is lost", (seen, now))
        eq((given, records), (line.total(), len(line.records)), "records of before are those that were printed")
        ok(unseen > 0, "it says how long nobody looked", text)
        counted = now
    time.sleep(0.3)
    stop.set()
    thread.join(LIMIT)
    line.send(frames())
    last = line.tap.look()["flows"]["packets"]
    line.end()
    on_wire = sent[0] + FLOWS
    eq(line.total(), counted + last, "records have all that was counted")
    ok(0 < on_wire - line.total() <= may_miss, "what is missing was sent while nobody looked", (on_wire, line.total(), may_miss))
    ok(all(r["unseen_ns"] > 0 and r["flow_flags"] & CONTINUED for r in line.records), "all records say that some was not seen")
    ok(all(r["unseen_ns"] < r["last_ts"] - r["first_ts"] for r in line.records), "for a part of its time")


def test_orderly():
    """A tap that is told to end leaves a record of each flow; the next one's are further ones, and no time is unseen."""
    stored = lab.path("orderly.flow288")
    line = Line("packet:eth0", "--to", f"file:{stored}?kind=flow288")
    line.start()
    line.send(frames())
    line.end()
    eq({(r["end_reason"], r["flow_flags"], r["unseen_ns"]) for r in line.records}, {("shutdown", 0, 0)}, "a record of each flow")
    eq(len(line.records), FLOWS, "all of them")
    line.start()
    line.send(frames())
    s = line.tap.look()
    eq((s["flows"]["continued"], s["flows"]["live"], s["flows"]["started"]), (FLOWS, FLOWS, 0), "no flow began anew")
    line.end()
    eq({(r["flow_flags"], r["unseen_ns"], r["pkts_fwd"]) for r in line.tap.records}, {(FURTHER | CONTINUED, 0, 1)}, "further records")
    line.start()
    line.end()
    eq(line.tap.records, [], "flows without packets since then have no record more")
    time.sleep(1.2)
    text = line.start("--flow-idle", "1s")
    eq(goes_on(text)[:2], [0, FLOWS], "flows that are idle by now are over")
    line.end()
    eq(line.total(), line.sent, "and every packet is in one record")
    rows = jsonl(run("query", "-o", "jsonl", "SELECT continued, further, count(*) AS n, sum(pkts_fwd) AS packets FROM flows288 GROUP BY continued, further", stored).stdout)
    eq({(bool(r["continued"]), bool(r["further"])): (r["n"], r["packets"]) for r in rows}, {(False, False): (FLOWS, FLOWS), (True, True): (FLOWS, FLOWS)},
       "a question tells them apart")


def test_idle():
    """Flows that became idle while nobody looked have their record at the start."""
    line = Line("packet:eth0")
    line.start()
    line.send(frames())
    line.kill()
    time.sleep(1.2)
    text = line.start("--flow-idle", "1s")
    eq(goes_on(text)[:2], [0, FLOWS], "they are over")
    line.end()
    eq(({(r["end_reason"], r["flow_flags"], r["unseen_ns"]) for r in line.records}, line.total()), ({("idle", CONTINUED, 0)}, line.sent), "with all that was counted")


def test_layout():
    """Another layout of the state: after an orderly end no packet is missing, after SIGKILL the state's header says which are."""
    line = Line("packet:eth0")
    line.start()
    line.send(frames())
    line.end()
    line.patch(VERSION_AT, struct.pack("<I", 77))
    text = line.start()
    ok(f"{FLOWS} flows are forgotten, all packets of which are in records; the file is {line.state}.old now" in text, "flows are forgotten", text)
    line.send(frames())
    line.end()
    eq(line.total(), line.sent, "every packet is in one record")
    line.start()
    line.send(frames())
    line.kill()
    line.patch(VERSION_AT, struct.pack("<I", 77))
    text = line.start()
    ok(f"another version of pathline left it: {FLOWS} flows are lost, and {FLOWS} packets that no record has" in text, "the loss is named", text)
    line.send(frames())
    line.end()
    eq(line.total(), line.sent - FLOWS, "and it is just that")


def test_others():
    """Another size of the table, other points, another boot, a damaged header, a file that was cut."""
    line = Line("packet:eth0")
    line.start()
    line.send(frames())
    line.kill()
    text = line.start("--flow-table", "2000")
    ok(f"the flow table has another size now: {FLOWS} flows ended" in text, "another size", text)
    line.send(frames())
    line.kill()
    eq({r["end_reason"] for r in line.records}, {"shutdown"}, "they end with a record")
    text = line.start("--flow-table", "2000", "--point", "5")
    ok(f"the interfaces or their observation points are others now: {FLOWS} flows ended" in text, "another point", text)
    line.send(frames())
    line.end()
    eq(line.total(), line.sent, "no packet is missing")
    eq([r["flow_seq"] for r in line.records], list(range(len(line.records))), "records are numbered on")
    for at, data, why in ((32, bytes(16), "its header is damaged"), (60, b"\1", "its header is damaged"), (None, None, "it was cut")):
        line.start("--flow-table", "2000", "--point", "5")
        line.send(frames())
        line.kill()
        line.sent -= FLOWS
        if at is None:
            os.truncate(line.state, os.path.getsize(line.state) // 2)
        else:
            line.patch(at, data)
        text = line.start("--flow-table", "2000", "--point", "5")
        ok(f"{why}: {FLOWS} flows are lost, and {FLOWS} packets" in text, why, text)
        line.end()
    eq(line.total(), line.sent, "nothing else is missing")


def refused(args, words):
    with WIRE.ns["b"]:
        r = run("tap", "--flows", "-n", "1", *args)
    ok(r.returncode != 0 and words in r.stderr, words, (r.returncode, r.stderr))


def test_files():
    """One tap for each file, and nothing else than such files."""
    line = Line("packet:eth0")
    line.start()
    refused(("--flow-state", line.state, "packet:eth0"), f"the flow state {line.state} is in use by another tap")
    line.end()
    eq(oct(os.stat(line.state).st_mode & 0o777), "0o600", "nobody else may read it")
    other = lab.path("other")
    os.symlink(line.state, other)
    refused(("--flow-state", other, "packet:eth0"), "is a symbolic link")
    os.unlink(other)
    os.mkfifo(other)
    refused(("--flow-state", other, "packet:eth0"), "is no regular file")
    os.unlink(other)
    os.mkdir(other)
    refused(("--flow-state", other, "packet:eth0"), "Is a directory")
    os.rmdir(other)
    with open(other, "wb") as f:
        f.write(b"something of somebody else's")
    refused(("--flow-state", other, "packet:eth0"), "is no flow state, and stays as it is")
    with open(other, "rb") as f:
        eq(f.read(), b"something of somebody else's", "it does")
    refused(("--flow-state", lab.path("no/folder"), "packet:eth0"), "No such file or directory")
    refused(("--flow-state", other, "/dev/null"), "captures have their end")
    r = run("tap", "--flow-state", other, "packet:eth0")
    ok(r.returncode == 2 and "--flow-state is for --flows" in r.stderr, "flows alone", r.stderr)


def test_room():
    """A file system without room is told at the start, and is no signal later."""
    small = lab.path("small")
    os.mkdir(small)
    if ctypes.CDLL(None).mount(b"tmpfs", small.encode(), b"tmpfs", 0, b"size=1m") != 0:
        tap.comment("no file systems can be mounted here")
        return
    refused(("--flow-state", small + "/state", "packet:eth0"), "No space left on device")
    line = Line("packet:eth0", "--flow-table", "1400")
    line.state = small + "/state"
    line.start()
    line.send(frames())
    line.kill()
    # A larger table has no room: what is there gives its records, and nothing is begun.
    t = tapping.lab.start(WIRE.ns["b"].command(sys.argv[1], "tap", "-o", "jsonl", "--flows", "--flow-state", line.state, "packet:eth0"),
                          log=lab.path("room.err"), stdout=open(lab.path("room.out"), "w", encoding="utf-8"))
    ok(t.wait(LIMIT) != 0, "it does not begin")
    with open(lab.path("room.err"), encoding="utf-8") as f:
        text = f.read()
    ok("No space left on device" in text and "goes on" not in text, "it says why", text)
    line.start()
    eq(line.tap.look()["flows"]["live"], FLOWS, "and what is there stays")
    line.end()
    eq(line.total(), line.sent, "to the last packet")
    ctypes.CDLL(None).umount(small.encode())


def test_cut():
    """Another process cuts the file while it is in use: the tap goes on, and says what is lost."""
    for size in (0, 100000):
        line = Line("packet:eth0")
        line.start()
        line.send(frames())
        os.truncate(line.state, size)
        WIRE.send_frames(frames())
        ok(wait(lambda: "was cut by another process" in line.tap.errors()), "it is told", line.tap.errors())
        lost = int(re.search(r"(\d+) flows? (is|are) lost", line.tap.errors()).group(1))
        eq(line.tap.look()["flows"]["damaged"], lost, "and counted")
        line.tap.end()
        eq(line.tap.code, 0, "it ends well")
        flows = len({r["sport"] for r in line.tap.records})
        ok(flows <= FLOWS and lost > 0, f"{flows} flows are in records, {lost} were lost")
        eq(line.tap.stats["flows"]["live"] <= FLOWS, True, "and counted so")


def config(state, rest=""):
    with open(lab.path("taps.yaml"), "w", encoding="utf-8") as f:
        f.write("web: {listen: '127.0.0.1:0'}\nsources: []\ntaps:\n  - {name: one, sources: ['packet:eth0'], records: flows, "
                f"flows: {{idle: 1h, active: 1h, state: '{state}'}}, to: ['jsonl:{lab.path('daemon.jsonl')}'], point: 3}}\n{rest}")


def daemon_records():
    with open(lab.path("daemon.jsonl"), encoding="utf-8") as f:
        return [r for r in jsonl(f.read()) if "src" in r]


def test_daemon():
    """Taps of the configuration: the same, with a reload."""
    state = lab.path("daemon-state")
    config(state, f"  - {{name: two, sources: ['tc:eth0'], records: flows, flows: {{state: '{state}'}}}}\n")
    r = run("config", "check", lab.path("taps.yaml"))
    ok(r.returncode != 0 and "taps 1 and 2 have the same flows.state" in r.stderr, "two taps of one state are refused", r.stderr)
    config(state, f"  - {{name: two, sources: ['pcap:/dev/null'], records: flows, flows: {{state: '{state}.2'}}}}\n")
    r = run("config", "check", lab.path("taps.yaml"))
    ok(r.returncode != 0 and "flows.state is of live sources" in r.stderr, "and one of a capture", r.stderr)
    config(state)
    eq(run("config", "check", lab.path("taps.yaml")).returncode, 0, "a good one")
    sent = 0
    with WIRE.ns["b"]:
        for i, end in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)):
            d = Daemon(lab.path("taps.yaml"))
            if i > 0:
                d.wait_for("flow state .* on, ")
                flows, _, _, counted, given, _ = goes_on(d.log())
                eq((flows, counted), (FLOWS, sent), "all go on")
                eq(given, sum(r["pkts_fwd"] for r in daemon_records()), "records of before are in the file")
            before = d.metrics().get('pathline_flow_packets_total{tap="one"}')
            WIRE.send_frames(frames())
            sent += FLOWS
            ok(wait(lambda: d.metrics().get('pathline_flow_packets_total{tap="one"}') == before + FLOWS), "counted")
            eq(d.metrics().get('pathline_flow_continued_total{tap="one"}'), FLOWS if i > 0 else 0, "continued")
            if i == 1:
                d.p.send_signal(signal.SIGHUP)
                d.wait_for("is in use")
            d.p.send_signal(end)
            d.p.wait(LIMIT)
    eq(sum(r["pkts_fwd"] for r in daemon_records()), sent, "every packet is in one record")


WIRE.make()
lab.run(test_rounds, test_kernel, test_traffic_goes_on, test_orderly, test_idle, test_layout, test_others, test_files, test_room, test_cut,
        test_daemon)
sys.exit(tap.end())
