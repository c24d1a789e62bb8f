#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline read and listen from the outside: reports made here byte by byte, output read by Python's own
json and csv modules, filters checked against Python. usage: read_listen.py PATHLINE"""

import csv
import gzip
import io
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE, jsonl as lines  # noqa: E402
from lib.pcap import NOW_NS, capture  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

# ---- the other encoder: INT v2.1 in reports v2.0, from the specifications ----

NONE64 = 0xFFFFFFFFFFFFFFFF


def ipv4(src, dst, proto, payload, dscp=0):
    return struct.pack("!BBHHHBBH4s4s", 0x45, dscp << 2, 20 + len(payload), 1, 0, 64, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst)) + payload


def udp(sport, dport, payload):
    return struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def block(hop):
    """Bits 0 to 5: node, ports, latency, queue, two timestamps."""
    return struct.pack("!IHHIIQQ", hop["node"], hop["in"], hop["out"], hop["latency"],
                       hop["queue"] << 24 | hop["depth"], hop["t0"], hop["t1"])


def report(seq, reporter, hops, flow, bits=2, hw=5):
    """hops: source first. bits: D 8, Q 4, F 2, I 1."""
    stack = b"".join(block(h) for h in reversed(hops))
    words = 3 + len(stack) // 4
    shim = struct.pack("!BBBB", 0x10, words, 0, flow["dscp"] << 2)
    md = struct.pack("!IHHHH", 0x2 << 28 | 8 << 8 | 4, 0xFC00, 0, 0, 0)
    inner = ipv4(flow["src"], flow["dst"], 17,
                 udp(flow["sport"], flow["dport"], shim + md + stack + b"data"), dscp=0x17)
    inner += bytes(-len(inner) % 4)
    own = block(reporter)[4:]
    body = struct.pack("!HHHH", 0x7C00, 0, 0, 0) + own + inner
    head = struct.pack("!BBBB", 1 << 4 | 4, len(body) // 4, len(own) // 4, bits << 4)
    return struct.pack("!II", 2 << 28 | hw << 22 | seq, reporter["node"]) + head + body


def frame(payload, src="10.9.0.1", sport=40000, dport=32766):
    return bytes(12) + b"\x08\x00" + ipv4(src, "10.9.9.9", 17, udp(sport, dport, payload))


def make_hop(rng, node, start):
    latency = rng.randrange(100, 100000)
    return {"node": node, "in": rng.randrange(1, 100), "out": rng.randrange(1, 100), "latency": latency,
            "queue": rng.randrange(8), "depth": rng.randrange(2000), "t0": start, "t1": start + latency}


def make(rng, seq):
    start = 1 << 60 | seq
    hops = []
    for node in rng.sample(range(1, 50), rng.randrange(1, 5)):
        hops.append(make_hop(rng, node, start))
        start = hops[-1]["t1"] + 500
    flow = {"src": f"10.{rng.randrange(4)}.0.1", "dst": "192.168.7.7", "sport": rng.randrange(1, 65536),
            "dport": rng.choice([443, 53, 8080]), "dscp": rng.randrange(64)}
    bits = 2 | rng.choice([0, 4])
    return {"seq": seq, "hops": hops[:-1], "reporter": hops[-1], "flow": flow, "bits": bits}


# ---- running it ----

def run(*args, stdin=None, stdout=subprocess.PIPE):
    p = subprocess.run([PATHLINE, *args], input=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=60)
    return p.returncode, (p.stdout or b"").decode(), p.stderr.decode()


def test_values(path, truth):
    code, out, err = run("read", "-o", "jsonl", path)
    eq((code, err), (0, ""), "read -o jsonl succeeds and says nothing else")
    records = lines(out)
    eq(len(records), len(truth), "a line per report")
    for r, t in zip(records, truth):
        hops = t["hops"] + [t["reporter"]]
        want_flow = dict(t["flow"], proto=17)
        got = {k: r[k] for k in ("kind", "exporter", "exporter_port", "report_version", "mode", "seq", "node",
                                 "hw_id")}
        want = {"kind": "path", "exporter": "10.9.0.1", "exporter_port": 40000, "report_version": "2.0",
                "mode": "md", "seq": t["seq"], "node": t["reporter"]["node"], "hw_id": 5}
        got_hops = [{"node": h["node"], "in": h["ingress_port"], "out": h["egress_port"],
                     "latency": h["hop_latency_ns"], "queue": h["queue"], "depth": h["queue_depth"],
                     "t0": h["ingress_ts_ns"], "t1": h["egress_ts_ns"]} for h in r["hops"]]
        good = got == want and got_hops == hops and r["flow"] == want_flow \
            and r["ts_ns"] == NOW_NS + t["seq"] and r["flags"]["tracked"] \
            and r["flags"]["congested"] == bool(t["bits"] & 4) and "drop_reason" not in r \
            and "vlan" not in r["flow"] and "buffer" not in r["hops"][0]
        if not good or t["seq"] == 0:
            ok(good, f"report {t['seq']}: every value as sent, all digits", f"{r}\n{t}")
        if not good:
            return records
    links = [h.get("link_latency_ns") for r in records for h in r["hops"][1:]]
    eq(set(links), {500}, "link latencies")
    return records


def test_forms(path, records):
    code, out, _ = run("read", "-o", "json", path)
    eq((code, json.loads(out)), (0, records), "-o json is one array of the same objects")
    code, out, _ = run("read", "-o", "csv", path)
    rows = list(csv.DictReader(io.StringIO(out), strict=True))
    want = [(str(r["ts_ns"]), str(r["seq"]), r["flow"]["src"], str(h["node"]), str(h["egress_ts_ns"]),
             str(h.get("link_latency_ns", "")), "") for r in records for h in r["hops"]]
    got = [(row["ts_ns"], row["seq"], row["flow.src"], row["hops.node"], row["hops.egress_ts_ns"],
            row["hops.link_latency_ns"], row["flow.vlan"]) for row in rows]
    eq(got, want, "-o csv: a row per hop, missing is empty")
    ok(all(None not in row and None not in row.values() for row in rows), "every row has every column")
    code, out, _ = run("read", path)
    table = out.splitlines()
    eq(len(table), len(records) + 1, "the table has a header and a line per report")
    eq(table[0].split(), ["TIME", "EXPORTER", "FLOW", "PATH", "LATENCY", "FLAGS"], "its header")
    ok(all(re.search(r" \d+(>\d+)* ", line) for line in table[1:]), "paths as node>node")
    code, out, _ = run("read", "-o", "wide", path)
    eq(len(out.splitlines()), len(records) + 1, "wide too")
    code, out, _ = run("read", "-o", "text", path)
    eq(sum(line.startswith("path ") for line in out.splitlines()), len(records), "text: a path line each")
    eq(sum(line.startswith("\thop ") for line in out.splitlines()), len(rows), "text: a hop line each")
    if shutil.which("jq"):
        p = subprocess.run(["jq", "-e", f"length == {len(records)}"], input=run("read", "-o", "json", path)[1],
                           text=True, stdout=subprocess.DEVNULL)
        eq(p.returncode, 0, "jq reads it")


FILTERS = [
    ("hops.queue_depth > 1500 and flow.dport == 443",
     lambda r: any(h["queue_depth"] > 1500 for h in r["hops"]) and r["flow"]["dport"] == 443),
    ("all hops.queue_depth < 1000 or flags.congested",
     lambda r: all(h["queue_depth"] < 1000 for h in r["hops"]) or r["flags"]["congested"]),
    ("flow.src in 10.2.0.0/15", lambda r: r["flow"]["src"].startswith(("10.2.", "10.3."))),
    ("not (hops.hop_latency_ns > 50us) and mode == md",
     lambda r: not any(h["hop_latency_ns"] > 50000 for h in r["hops"])),
    ("missing(hops.link_latency_ns) and not exists(flow.vlan)", lambda r: True),
    ("seq >= 5 and seq != 7 and seq < 0x10", lambda r: 5 <= r["seq"] < 16 and r["seq"] != 7),
    ("hops.node == 7 or hops.node == 8", lambda r: any(h["node"] in (7, 8) for h in r["hops"])),
]


def test_where(path, records):
    for text, holds in FILTERS:
        code, out, err = run("read", "-o", "jsonl", "--where", text, path)
        want = [r for r in records if holds(r)]
        eq((code, lines(out)), (0 if want else 3, want), f"--where {text}: {len(want)} of {len(records)}")
    some = records[3]["path_id"]
    _, out, _ = run("read", "-o", "jsonl", "--where", f"path_id == {some}", path)
    ok(records[3] in lines(out), "a path id found by itself")
    code, out, _ = run("read", "-o", "json", "--where", "seq == 99999", path)
    eq((code, json.loads(out)), (3, []), "nothing found: an empty array and exit code 3")
    code, out, err = run("read", "--where", "hop.node == 1", path)
    eq((code, out), (2, ""), "a bad filter is a usage error")
    ok("column 1" in err and "hops.node" in err and err.splitlines()[-1].strip() == "^",
       "it points at the character and names the nearest field", err)
    code, out, err = run("read", "--where", "seq == 1 and seq = 2", path)
    eq(err.splitlines()[-1].index("^") - 2, 17, "the mark stands under the character")


def test_stats(path, records):
    for extra in ([], ["-n", "1"], ["--where", "seq < 3"]):
        for form in ("json", "jsonl"):
            code, out, _ = run("read", "--stats", "-o", form, *extra, path)
            objects = lines(out)
            stats = objects[-1]
            eq((code, stats["kind"]), (0, "stats"), f"{form} {extra}: the statistics come last")
            eq(stats["packets"], sum(stats["verdicts"].values()), "packets = sum of verdicts")
            ok("ok" in stats["verdicts"], "ok is always there")
            ok(all(o["kind"] == "path" for o in objects[:-1]), "before it, records")
            if extra == []:
                eq((stats["reports"], stats["paths"], stats["hops"], len(objects) - 1),
                   (len(records), len(records), sum(len(r["hops"]) for r in records), len(records)), "totals")
                eq(sum(e["reports"] for e in stats["exporters"]), len(records), "reports per exporter")
    code, out, err = run("read", "--stats", path)
    ok(code == 0 and re.search(rf"{len(records)} reports", err) and "decoded" in err,
       "as text they go to standard error", err)


def test_bad_input(folder, path, data, records):
    code, out, err = run("read", "-o", "jsonl", "-", stdin=data)
    eq((code, lines(out)), (0, records), "standard input")
    packed = os.path.join(folder, "packed.pcap.gz")
    with gzip.open(packed, "wb") as f:
        f.write(data)
    code, out, _ = run("read", "-o", "jsonl", packed)
    eq((code, lines(out)), (0, records), "gzip")
    code, out, _ = run("read", "-o", "jsonl", path, path)
    eq((code, len(lines(out))), (0, 2 * len(records)), "two files")
    code, out, _ = run("read", "-o", "jsonl", "-n", "3", path)
    eq((code, lines(out)), (0, records[:3]), "-n 3")
    cut = os.path.join(folder, "cut.pcap")
    with open(cut, "wb") as f:
        f.write(data[:-7])
    code, out, err = run("read", "-o", "jsonl", cut)
    eq((code, lines(out)), (1, records[:-1]), "a cut capture: everything before the damage, exit code 1")
    ok("cut.pcap" in err, "and a message that names it", err)
    code, out, err = run("read", "-o", "json", os.path.join(folder, "none.pcap"), path)
    eq((code, json.loads(out)), (1, records), "a missing file does not hide the others")
    ok("none.pcap" in err, "and is named", err)
    code, out, err = run("read", "-o", "jsonl", "-", stdin=b"not a capture at all, no")
    eq((code, out), (1, ""), "not a capture")
    for args in ([], ["--where", "", path], ["--nonsense", path], ["-o", "xml", path],
                 ["--dscp", "64", path], ["--dscp", "1/0", path], ["--report-port", "0", path],
                 ["--marker", "xyz", path], ["--int-port", "65536", path], ["--gre-type", "65536", path],
                 ["--geneve-class", "0x10000", path], ["--ioam-time", "123", path], ["--ioam-time", "65536=ptp", path],
                 ["--ioam-time", "1=gps", path], ["--ioam-time", "=ptp", path], ["-n", "many", path]):
        code, out, err = run("read", *args)
        ok(code == 2 and out == "" and err != "", f"usage: {args[:2]}", f"{code} {out} {err}")
    code, out, err = run("read", "--report-port", "1", path)
    ok(code == 0 and "--report-port" in err, "reports on a port not expected: a hint", err)
    with open("/dev/full", "wb") as full:
        code, _, err = run("read", "-o", "jsonl", path, stdout=full)
    ok(code == 1 and "standard output" in err, "a full disk is a failure", err)
    with lab.start([PATHLINE, "read", "-o", "jsonl"] + [path] * 200, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        p.stdout.readline()
        p.stdout.close()
        err = p.stderr.read()
        p.wait(30)
        eq((p.returncode, err), (0, b""), "a reader that leaves ends it quietly")


class Listener:
    """What it prints and says goes into files, and is looked at while it runs."""

    def __init__(self, *args):
        self.out_path, self.err_path = (tempfile.mktemp(dir=lab.DIR) for _ in range(2))
        with open(self.out_path, "w", encoding="utf-8") as out:
            self.p = lab.start([PATHLINE, "listen", *args], log=self.err_path, stdout=out)
        wait(lambda: "\n" in self.said() or self.p.poll() is not None)
        found = re.search(r"udp://\S+:(\d+)", self.said())
        self.port = int(found.group(1)) if found else 0

    def said(self):
        with open(self.err_path, encoding="utf-8") as f:
            return f.read()

    def printed(self):
        with open(self.out_path, encoding="utf-8") as f:
            return f.read()

    def end(self, signo=None):
        if signo is not None:
            self.p.send_signal(signo)
        return self.p.wait(timeout=60), self.printed(), self.said()


def send(port, payloads):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        for p in payloads:
            s.sendto(p, ("127.0.0.1", port))
        return s.getsockname()[1]


def test_listen():
    truth = TRUTH
    silent = Listener("udp://127.0.0.1:0")
    good = [report(t["seq"], t["reporter"], t["hops"], t["flow"], t["bits"]) for t in truth]
    for signo in (signal.SIGTERM, signal.SIGINT):
        l = Listener("-o", "jsonl", "--stats", "udp://127.0.0.1:0")
        ok(l.port != 0, "says where it listens", l.said())
        # Twice the same fault, another fault, and an empty datagram between the good ones.
        sport = send(l.port, good[:5] + [b"\xf0" + bytes(20), b"\xf0" + bytes(30), good[5][:10], b""] + good[5:])
        wait(lambda: l.printed().count("\n") == len(truth))
        code, out, err = l.end(signo)
        objects = lines(out)
        eq(code, 0, f"ends in good order on signal {signo}")
        eq([r["seq"] for r in objects[:-1]], [t["seq"] for t in truth], "what was sent arrives, decoded")
        eq({(r["exporter"], r["exporter_port"]) for r in objects[:-1]}, {("127.0.0.1", sport)}, "with its sender")
        stats = objects[-1]
        eq((stats["packets"], sum(stats["verdicts"].values())), (len(truth) + 4, len(truth) + 4),
           "every datagram has a verdict")
        eq((stats["port"]["kernel_drops"], stats["verdicts"].get("report_version")), (0, 2), "what was wrong is counted")
        eq(err.count("report_version: a telemetry report version other"), 1, "the first of a kind is explained")
        ok("the fault shows at byte 0" in err and "f0 00 00" in err, "with its bytes and the place", err)
        ok("report_short: " in err and "it ends with byte 9," in err, "for one too short, where it ends", err)
        ok(f"127.0.0.1 port {sport} sent 21 bytes" in err, "with the exporter", err)
    l = Listener("-n", "1", "-o", "jsonl", "udp://*:0")
    send(l.port, good[:1])
    eq(l.end()[0], 0, "* is every address")
    l = Listener("-n", "2", "-o", "jsonl", "udp://127.0.0.1:0")
    send(l.port, [b""] + good[:4])
    code, out, err = l.end()
    ok("an empty datagram" in err, "an empty datagram is explained", err)
    eq((code, len(lines(out))), (0, 2), "-n ends it")
    ok("packets" in err and "lost before pathline: 0" in err, "statistics on exit, kernel drops included", err)
    l = Listener("--duration", "300ms", "udp://127.0.0.1:0")
    code, out, err = l.end()
    eq((code, len(out.splitlines())), (3, 1), "--duration without a report: exit code 3")
    group = bytes.fromhex("2140002a00000007")
    rest = bytes.fromhex("50000000000000000009000a03001000")
    faults = {"report_length": (group + b"\x10\x09\x02\x60" + rest, 9),
              "report_md_length": (group + b"\x10\x04\x99\x60" + rest, 10),
              "report_version": (b"\x90" + bytes(40), 0)}
    l = Listener("udp://127.0.0.1:0")
    send(l.port, [f for f, _ in faults.values()])
    wait(lambda: all(f" {name}: " in l.said() for name in faults))
    code, out, err = l.end(signal.SIGTERM)
    for name, (_, place) in faults.items():
        ok(re.search(rf" {name}: .*\n(    .*\n)*    the fault shows at byte {place}\n", err),
           f"{name}: the byte at fault is {place}", err)
    for args, want in ((["udp://127.0.0.1:notaport"], 2), (["trace.pcap"], 2), (["udp://127.0.0.1:0", "--where", "x"], 2)):
        code, out, err = run("listen", *args)
        ok(code == want and err != "", f"usage: {args}", f"{code} {err}")
    ok(wait(lambda: "nothing received so far" in silent.said()), "after five silent seconds a hint", silent.said())
    silent.end(signal.SIGTERM)


def record(number, dport):
    """A datagram of tmpkt/1 with a record of a packet (docs/protocols/tmpkt.md, docs/formats/records.md)."""
    v4 = [bytes(10) + b"\xff\xff" + bytes((10, 0, 0, i)) for i in (1, 2)]
    packet = struct.pack("<Q16s16sHHBBBB", 1700000000_000000000 + number, *v4, 1000, dport, 17, 0, 64, 0) + bytes(10) + struct.pack("<HHH", 40, 12, 0)
    return b"TPK1" + struct.pack("<BBHIIQQ", 1, 1, 1, 7, number, 0, 0) + packet


def test_packets():
    """Records of packets that arrive, with what is lost; what is said of them where reports are expected, and options that do not fit."""
    datagrams = [record(i, 50 + i) for i in (1, 2, 4)]
    l = Listener("--packets", "-o", "jsonl", "--stats", "-n", "3", "--where", "dport != 50", "udp://127.0.0.1:0")
    send(l.port, datagrams)
    code, out, err = l.end()
    objects = lines(out)
    eq((code, [(r["src"], r["dst"], r["dport"], r["wire_len"]) for r in objects[:-1]]),
       (0, [("10.0.0.1", "10.0.0.2", 50 + i, 40) for i in (1, 2, 4)]), f"records are printed, until there are three {err}")
    eq((objects[-1]["tmpkt"]["accepted"], objects[-1]["tmpkt"]["lost"]), (3, 1), "with the account of their exporter")
    l = Listener("--flows", "-o", "jsonl", "udp://127.0.0.1:0")
    send(l.port, datagrams)
    ok(wait(lambda: l.p.send_signal(signal.SIGUSR1) or '"packets":3,' in l.printed()), "flows of them", l.printed())
    code, out, err = l.end(signal.SIGTERM)
    eq((code, sorted(f["dport"] for f in lines(out) if "dport" in f)), (0, [51, 52, 54]), f"one each {err}")
    l = Listener("udp://127.0.0.1:0")
    send(l.port, datagrams)
    ok(wait(lambda: "pathline listen --packets" in l.said()), "where reports are expected it is told what they are", l.said())
    l.end(signal.SIGTERM)
    for args, says in ((["--packets", "--flows"], "one of --packets"), (["--packets", "--dscp", "3"], "settings of reports"),
                       (["--packets", "packet:lo"], "carries=tmpkt"), (["--drops", "trace.pcap"], "carries=tmpkt")):
        code, out, err = run("listen", *args)
        ok(code == 2 and says in err, f"usage: {args}", f"{code} {err}")


def test_advice():
    """Packets of a dialect that was not told: the option is proposed, and reads them."""
    path = lab.path("dialect.pcap")
    entry = "profiles:\n  - {match: 127.0.0.1, dialect: intcollector}\n"
    run("gen", "int", "--preset", "intcollector-test2", "--count", "5", "-w", path)
    code, out, err = run("read", "-o", "jsonl", path)
    ok("shim_length_min" in err and "--dialect intcollector" in err and entry in err, "read proposes the dialect", err)
    code, out, err = run("read", "-o", "jsonl", "--dialect", "intcollector", path)
    eq((code, len(out.splitlines()), err), (0, 5, ""), "which reads them, and nothing more is proposed")
    run("gen", "int", "--int", "0.5", "--dialect", "intcollector", "--topology", "chain:3", "--count", "50", "-w", path)
    code, out, err = run("read", "-o", "jsonl", path)
    ok("queue depths above 65535 at every hop" in err and "--dialect intcollector" in err, "read doubts depths", err)
    for args in (("--int", "0.5"), ("--int", "1.0"), ("--int", "2.1"), ("--int", "1.0", "--queue", "exp:200000")):
        run("gen", "int", *args, "--count", "500", "-w", path)
        eq(run("read", "-o", "jsonl", path)[2], "", f"read proposes nothing for {args}")
    l = Listener("-o", "jsonl", "udp://127.0.0.1:0")
    run("gen", "int", "--preset", "intcollector-test1", "--count", "20", "--rate", "1000", f"udp://127.0.0.1:{l.port}")
    wait(lambda: "match:" in l.said())
    ok("--dialect intcollector" in l.said() and entry in l.said(), "listen proposes it while it listens", l.said())
    eq(l.end(signal.SIGTERM)[2].count("match:"), 1, "once")


def test_pages():
    page = os.path.join(os.path.dirname(__file__), "../../docs/formats/records.md")
    code, out, _ = run("help", "--markdown", "fields")
    with open(page, encoding="utf-8") as f:
        ok(code == 0 and out == f.read(), "docs/formats/records.md is what help --markdown fields prints")
    code, out, _ = run("help", "where")
    examples = [line.strip() for line in out.splitlines()[-3:]]
    for text in examples:
        ok(run("read", "--where", text, "/dev/null")[0] == 1, f"the manual's example compiles: {text}")


def test_config():
    """What --ioam-time says, as a configuration says it; and a limit that no 32-bit clock could keep."""
    for text, want, place in ((b'decode:\n  ioam_time: ["123=ptp", "0x7c=ntp"]\n', 0, ""),
                              (b'decode:\n  ioam_time: ["123=gps"]\n', 78, ":2:15"),
                              (b'decode:\n  ioam_time: ["65536=ptp"]\n', 78, ":2:15"),
                              (b"decode:\n  latency_max: 4s\n", 0, ""),
                              (b"decode:\n  latency_max: 5s\n", 78, ":2:16")):
        code, _, err = run("config", "check", "-", stdin=text)
        ok(code == want and place in err, f"configuration {text!r}: {want}", f"{code} {err}")


def test_read():
    data = capture([frame(report(t["seq"], t["reporter"], t["hops"], t["flow"], t["bits"])) for t in TRUTH])
    path = lab.path("reports.pcap")
    with open(path, "wb") as f:
        f.write(data)
    records = test_values(path, TRUTH)
    test_forms(path, records)
    test_where(path, records)
    test_stats(path, records)
    test_bad_input(lab.DIR, path, data, records)


RNG = random.Random(20261120)
TRUTH = [make(RNG, seq) for seq in range(60)]


def main():
    lab.run(test_read, test_pages, test_config, test_listen, test_packets, test_advice)
    return tap.end()


sys.exit(main())
