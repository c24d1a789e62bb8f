#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Outputs of the type dta: what a daemon decodes goes into telemetry memory by each primitive, through a translator of another
process and into regions of its own. The JSON lines of the same run say, computed here, what must be in the memory, and region
lookup and dump say what is. Then reloads, a translator that is not there, and what a configuration must not say.
usage: dta_out.py PATHLINE"""
import os
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, gen, jsonl, region, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

PORT = 24866
EVENTS = ["path_change", "queue_depth", "report_loss", "packet_drop", "hop_latency", "link_latency", "tx_util", "buffer_depth"]

# name: how the region is made, and what the output says of it, its keys beside type and region
REGIONS = {
    "reports": (("append", "--slots", 8192, "--lists", 3, "--value-bytes", 128), "primitive: append, record: path, list: 2"),
    "events": (("append", "--slots", 4096, "--value-bytes", 9), "primitive: append, value: [ts_ns, event], byte_order: big"),
    "queues": (("key-write", "--slots", 65536, "--value-bytes", 8),
               "primitive: key-write, record: hop, key: [node, queue], value: [queue_depth, hop_latency_ns]"),
    "flows": (("key-write", "--slots", 65536, "--value-bytes", 8),
              "primitive: key-write, record: path, key: [flow], key_form: hex, byte_order: big, value: [report_id]"),
    "udp": (("counters", "--slots", 65536), "primitive: counters, record: path, key: [flow], where: flow.proto == 17"),
    "depths": (("counters", "--slots", 65536, "--hash", "dta"),
               "primitive: counters, record: hop, key: [node], key_form: be32, value: [queue_depth]"),
    "paths": (("postcards", "--slots", 65536), "primitive: postcards, record: hop, key: [flow]"),
}


def create(prefix, name):
    how = REGIONS[name][0]
    made = run("region", "create", path(f"{prefix}-{name}.plr"), *([] if "dta" in how else ["--seed", 4711]), "--primitive", *how)
    ok(made.returncode == 0, f"{prefix}-{name} is made", made.stderr)


def start_translator():
    """One with all regions and one more, at a port of its own choosing."""
    run("region", "create", path("far-late.plr"), "--primitive", "counters", "--slots", 4096)
    p = lab.start([PATHLINE, "translate", "--stats", "--flush", "20ms", "udp://127.0.0.1:0",
                   *(path(f"far-{n}.plr") for n in REGIONS), path("far-late.plr")],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = p.stderr.readline()
    ok("translating from udp://" in line, "the translator listens", line)
    return p, line.split(" into ")[0].rsplit(":", 1)[1]


def write_config(port, more="", more_regions="", change=lambda text: text):
    regions = "".join(f"  - {{name: {n}, path: {path(f'here-{n}.plr')}, writer: output}}\n" for n in REGIONS)
    outputs = "".join(f"  - {{name: here-{n}, type: dta, region: {n}, {says}}}\n"
                      f"  - {{name: far-{n}, type: dta, to: 'udp://127.0.0.1:{port}', region: {i}, {says}}}\n"
                      for i, (n, (_, says)) in enumerate(REGIONS.items()))
    with open(path("pathline.yaml"), "w", encoding="utf-8") as f:
        f.write(change(f"""sources:
  - uri: udp://127.0.0.1:{PORT}
decode: {{admit: first}}
regions:
{regions}{more_regions}outputs:
  - {{name: file, type: jsonl, path: {path("out.jsonl")}}}
{outputs}{more}web:
  listen: 127.0.0.1:0
"""))


# ---- what must be there, out of the JSON lines ----

def flow_text(flow):
    proto = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp"}.get(flow["proto"], str(flow["proto"]))
    if "sport" not in flow:
        return f"{flow['src']},{flow['dst']}/{proto}"
    a, b = (f"[{flow[x]}]" if ":" in flow[x] else flow[x] for x in ("src", "dst"))
    return f"{a}:{flow['sport']},{b}:{flow['dport']}/{proto}"


def address(text):
    return socket.inet_pton(socket.AF_INET6, text if ":" in text else "::ffff:" + text)


def flow_bytes(flow):
    return address(flow["src"]) + address(flow["dst"]) + struct.pack(">HHB", flow["sport"], flow["dport"], flow["proto"])


class Wanted:
    """The memory as the lines say it must be."""

    def __init__(self, lines):
        self.paths = [line for line in lines if line["kind"] == "path"]
        self.events = [line for line in lines if line["kind"] == "event"]
        self.queues, self.flows, self.udp, self.depths, self.postcards = {}, {}, {}, {}, {}
        self.incomplete = {"queues": 0, "depths": 0}
        self.empty = {"paths": 0, "queues": 0, "depths": 0}
        for p in self.paths:
            self.add(p)

    def add(self, p):
        hops, flow = p.get("hops", []), flow_text(p["flow"])
        self.flows[flow_bytes(p["flow"]).hex()] = struct.pack(">Q", int(p["report_id"], 16)).hex()
        if p["flow"]["proto"] == 17:
            self.udp[flow] = self.udp.get(flow, 0) + 1
        left = {"queues": 0, "depths": 0}
        for h in hops:
            if {"node", "queue", "queue_depth", "hop_latency_ns"} <= h.keys():
                self.queues[f"{h['node']}/{h['queue']}"] = struct.pack("<II", h["queue_depth"], h["hop_latency_ns"]).hex()
            else:
                left["queues"] += 1
            if {"node", "queue_depth"} <= h.keys():
                self.depths[str(h["node"])] = self.depths.get(str(h["node"]), 0) + h["queue_depth"]
            else:
                left["depths"] += 1
        for name, n in left.items():
            if n == len(hops):
                self.empty[name] += 1
            else:
                self.incomplete[name] += n
        if hops and not p["flags"]["partial"] and all("node" in h for h in hops):
            self.postcards[flow] = ">".join(str(h["node"]) for h in hops)
        else:
            self.empty["paths"] += 1


def lookup(file, column, keys, *options):
    """A column of what lookup answers, by key; keys go by standard input."""
    answer = run("region", "lookup", "-o", "jsonl", *options, file, "-", input="".join(k + "\n" for k in keys))
    return {row["key"]: row.get(column) for row in jsonl(answer.stdout)}


def same(got, want, what):
    """Both have many: the differences alone are told."""
    wrong = {k: (got.get(k), v) for k, v in want.items() if got.get(k) != v}
    ok(len(want) > 0 and not wrong, f"{what}: {len(want)} keys", str(dict(list(wrong.items())[:5])))


def check_memory(where, want):
    def file(name):
        return path(f"{where}-{name}.plr")

    entries = [bytes.fromhex(row["value"]) for row in region("dump", file("reports"), "--list", 2)]
    got = [(*struct.unpack_from("<Q", e, 120), *struct.unpack_from("<Q", e, 0), e[48:64]) for e in entries]
    eq(got, [(int(p["report_id"], 16), p["ts_ns"], address(p["flow"]["src"])) for p in want.paths], f"{where}: append, whole reports")
    got = [struct.unpack(">QB", bytes.fromhex(row["value"])) for row in region("dump", file("events"))]
    eq(got, [(e["ts_ns"], EVENTS.index(e["event"])) for e in want.events], f"{where}: append, fields of {len(want.events)} events")
    same(lookup(file("queues"), "value", want.queues), want.queues, f"{where}: key-write, key in text")
    same(lookup(file("flows"), "value", want.flows, "--key-form", "hex"), want.flows, f"{where}: key-write, key in hex")
    same(lookup(file("udp"), "value", want.udp), want.udp, f"{where}: counters, one for each report")
    same(lookup(file("depths"), "value", want.depths, "--key-form", "be32"), want.depths, f"{where}: counters, sums of a field")
    same(lookup(file("paths"), "path", want.postcards), want.postcards, f"{where}: postcards")
    eq(lookup(file("udp"), "value", ["10.9.9.9:1,10.9.9.8:2/udp"]), {"10.9.9.9:1,10.9.9.8:2/udp": 0}, f"{where}: a flow that there was not")


# ---- the daemon ----

def settled(daemon, sent):
    """Whether all of it is decoded and delivered, as its page says."""
    def is_so():
        """nothing waits in an output"""
        now = daemon.metrics()
        return (pathline.total(now, "pathline_packets_total") == sent and pathline.total(now, "pathline_output_waiting") == 0
                and pathline.total(now, "pathline_output_offered_total") > 0
                and all(v == now[k.replace("offered_total", "delivered_total")] + now[k.replace("offered_total", "filtered_total")] +
                        sum(n for s, n in now.items() if s.startswith(k.replace("offered_total", "dropped_total").rstrip("}") + ","))
                        for k, v in now.items() if k.startswith("pathline_output_offered_total")))
    return wait(is_so)


def series(page, family, output, cause=None):
    return int(page[f'pathline_output_{family}_total{{output="{output}"' + (f',cause="{cause}"' if cause else "") + "}"])


def check_accounts(page, want):
    udp = sum(want.udp.values())
    for where in ("here", "far"):
        for name in REGIONS:
            output, empty = f"{where}-{name}", want.empty.get(name, 0)
            n = len(want.events) if name == "events" else len(want.paths)
            filtered = n - udp if name == "udp" else 0
            eq((series(page, "offered", output), series(page, "filtered", output), series(page, "dropped", output, "empty"),
                series(page, "delivered", output)), (n, filtered, empty, n - filtered - empty), f"{output}: its account")
            eq(series(page, "incomplete_records", output), want.incomplete.get(name, 0), f"{output}: records left out")
    pathline.accounts_close(page, "the daemon")


def test_memory():
    for name in REGIONS:
        create("here", name)
        create("far", name)
    translator, port = start_translator()
    write_config(port)
    d = Daemon(path("pathline.yaml"))
    sent = gen(PORT, "--count", 1000, "--rate", 4000, "--flows", 60, "--missing", 0.1, "--story", "-e", "path@100ms+100ms")
    sent += gen(PORT, "--count", 400, "--rate", 4000, "--flows", 20, "--inner-ip", 6, "--proto", "tcp", "--seed", 7)
    ok(settled(d, sent), "all of it is delivered", d.log() + str({k: v for k, v in d.metrics().items() if "output" in k and v}))
    with open(path("out.jsonl"), encoding="utf-8") as f:
        want = Wanted(jsonl(f.read()))
    ok(want.empty["queues"] > 0 and want.incomplete["queues"] > 0 and len(want.events) > 0 and len(want.postcards) > 20,
       "there are missing values, events and paths", str((want.empty, want.incomplete, len(want.events))))
    check_memory("here", want)
    check_accounts(d.metrics(), want)
    return d, translator, port, want


def test_reload(d, port):
    """An output stays as it is, one goes with its region, two come."""
    run("region", "create", path("late.plr"), "--primitive", "counters", "--slots", 4096)
    how = "primitive: counters, record: path, key: [node]"

    def change(text):
        gone = "".join(line for line in text.splitlines(True) if "here-flows" not in line)
        return gone.replace("key: [node, queue]", "key: [queue, node]")
    write_config(port, f"  - {{name: late, type: dta, region: late, {how}}}\n"
                 f"  - {{name: far-late, type: dta, to: 'udp://127.0.0.1:{port}', region: {len(REGIONS)}, {how}}}\n",
                 f"  - {{name: late, path: {path('late.plr')}, writer: output}}\n", change)
    d.p.send_signal(signal.SIGHUP)
    d.wait_for("is in use")
    ok("how it is written of here-queues is not changed" in d.log(), "an output stays as it is, and that is said", d.log())
    before = d.metrics()
    sent = gen(PORT, "--count", 50, "--rate", 4000, "--seed", 3)
    ok(settled(d, int(before["pathline_packets_total"]) + sent), "more comes", d.log())
    for name, what in (("late", "its region"), ("far-late", "to a translator")):
        def sums():
            """all of it is in the region, once the translator has let go of it"""
            return sum(row["value"] for row in region("lookup", path(name + ".plr"), *map(str, range(1, 7)))) == sent
        ok(wait(sums), f"an output that a reload added writes {what}")
    eq(region("info", path("here-flows.plr"))[0].get("clean") in (True, "yes"), True, "an output that it removed closed its region")


def test_end(d, translator, want):
    eq(d.stop(), 0, "it ends well")
    translator.send_signal(signal.SIGTERM)
    out, _ = translator.communicate(timeout=LIMIT)
    account = jsonl(out)[-1]
    eq((sum(account["refused"].values()), account["lost"]), (0, 0), "the translator refused and lost nothing")
    again = Wanted(jsonl(open(path("out.jsonl"), encoding="utf-8").read()))
    ok(len(again.paths) > len(want.paths), "with what came after the reload")
    check_memory("far", again)


def test_absent():
    """A translator that is not there costs what goes to it, and says so."""
    with open(path("absent.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""sources: [{{uri: 'udp://127.0.0.1:{PORT}'}}]
decode: {{admit: first}}
drain: 500ms
web: {{listen: '127.0.0.1:0'}}
outputs: [{{name: gone, type: dta, to: 'udp://127.0.0.1:9', record: path, key: [flow], ring: 16}}]
""")
    d = Daemon(path("absent.yaml"), name="absent")
    sent = gen(PORT, "--count", 500, "--rate", 4000)

    def dropped():
        """all but the last ones are dropped"""
        page = d.metrics()
        return series(page, "offered", "gone") == sent and series(page, "dropped", "gone", "io") + series(
            page, "dropped", "gone", "memory_full") >= sent - 16
    ok(wait(dropped), "entries are dropped with a cause", str(d.metrics()))
    eq(series(d.metrics(), "delivered", "gone"), 0, "none is said to be delivered")
    ok(d.wait_for("the translator at udp://127.0.0.1:9 does not answer"), "the log says why", d.log())
    eq(d.get("/readyz")[0], 503, "it is not ready")
    d.stop()
    ok("16 entries were not delivered" in d.log(), "what waited at the end is told", d.log())


def test_refused():
    region_x = "regions: [{name: x, path: /x, writer: output}]\n"
    for said, text in (("2:21: \"outputs[0].to\": \"udp://:40040\" is not udp://ADDRESS:PORT", "outputs:\n  - {type: dta, to: 'udp://:40040', key: [flow]}"),
                       ("to is missing, or region", "outputs: [{type: dta, key: [flow]}]"),
                       ("no region \"x\" with writer: output", "outputs: [{type: dta, region: x, key: [flow]}]"),
                       ("no output of type dta names it", region_x),
                       ("a region has one writer", region_x + "outputs: [{name: a, type: dta, region: x, key: [flow]}, "
                        "{name: b, type: dta, region: x, key: [flow]}]"),
                       ("no event has a field \"colour\"", "outputs: [{type: dta, to: 'udp://10.0.0.1:1', key: [colour]}]"),
                       ("key is missing", "outputs: [{type: dta, to: 'udp://10.0.0.1:1'}]"),
                       ("region is the number of a region", "outputs: [{type: dta, to: 'udp://10.0.0.1:1', region: x, key: [flow]}]"),
                       ("must be one of key-write, append, counters, postcards", "outputs: [{type: dta, to: 'udp://10.0.0.1:1', primitive: keywrite}]"),
                       ("postcards need record: hop", "outputs: [{type: dta, to: 'udp://10.0.0.1:1', primitive: postcards, key: [flow]}]"),
                       ("does not apply to record: event", "outputs: [{type: dta, to: 'udp://10.0.0.1:1', key: [flow], where: node == 1}]"),
                       ("region does not apply to this type", "outputs: [{type: jsonl, path: /x, region: x}]")):
        checked = run("config", "check", "-", input=text + "\n")
        ok(checked.returncode == 78 and said in checked.stderr, f"refused: {said}", checked.stderr)


# ---- taps, meters and markers ----

def test_records_of_taps():
    """`--to dta://`: records as they are, in the list that was asked for, all confirmed by the translator."""
    capture, want = path("traffic.pcap"), path("traffic.pkt64")
    eq(run("gen", "packets", "--count", 20000, "-w", capture).returncode, 0, "a capture of 20000 packets")
    eq(run("tap", "--to", f"file:{want}", capture).returncode, 0, "its records, in a file")
    with open(want, "rb") as f:
        want = f.read()
    for name, how in (("packets", ("--value-bytes", 64, "--lists", 3)), ("flows", ("--value-bytes", 288,))):
        made = run("region", "create", path(f"tap-{name}.plr"), "--primitive", "append", "--slots", 65536, *how)
        eq(made.returncode, 0, f"a region for {name}")
    p = lab.start([PATHLINE, "translate", "--stats", "--flush", "20ms", "udp://127.0.0.1:0", path("tap-packets.plr"), path("tap-flows.plr")],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = p.stderr.readline().split(" into ")[0].rsplit(":", 1)[1]
    for args, flag in (((f"dta://127.0.0.1:{port}?list=2",), ()), ((f"dta://127.0.0.1:{port}?region=1&kind=flow288",), ("--flows",))):
        sent = run("tap", "--stats", *flag, "--to", *args, capture)
        out = jsonl(sent.stdout)[-1]["outputs"][0] if sent.stdout else {}
        ok(sent.returncode == 0 and out["records"] == out["delivered"] > 0, f"{args[0].split('?')[1]}: the translator confirmed all records", sent.stderr + str(out))
    flows = run("tap", "--flows", "-o", "jsonl", capture)
    p.send_signal(signal.SIGTERM)
    account = jsonl(p.communicate(timeout=LIMIT)[0])[-1]
    eq((sum(account["refused"].values()), account["lost"]), (0, 0), "it refused and lost nothing")
    got = b"".join(bytes.fromhex(row["value"]) for row in region("dump", path("tap-packets.plr"), "--list", 2))
    eq((len(got) // 64, got == want), (20000, True), "the list has every record, byte by byte")
    eq(len(region("dump", path("tap-flows.plr"))), len(jsonl(flows.stdout)), "the other region has the flows")
    # Nobody there.
    gone = run("tap", "--stats", "--to", "dta://127.0.0.1:9", capture)
    out = jsonl(gone.stdout)[-1]["outputs"][0]
    eq((gone.returncode, out["delivered"], out["records"]), (1, 0, sum(out["dropped"].values()) + out["waiting"]), "without a translator all are dropped by cause")
    ok("does not answer" in gone.stderr, "and it is said", gone.stderr)
    for to, said in (("dta://", "a translator is dta://"), ("dta://x:1", "a translator is dta://"), ("dta://10.0.0.1:1?list=x", "'list=x' in the URI: not a number"),
                     ("dta://10.0.0.1:1?region=70000", "'region=70000' in the URI: not between 0 and 65535"), ("dta://10.0.0.1:1?lists=1", "lists")):
        refused = run("tap", "--to", to, capture)
        ok(refused.returncode == 2 and said in refused.stderr, f"{to}: refused", refused.stderr)


def test_block_records():
    """Block records of alternate marking by DTA: what points append to a region of a daemon's is loss between them."""
    SECOND = 10**9
    eq(run("region", "create", path("blocks.plr"), "--primitive", "append", "--slots", 8192, "--value-bytes", 128).returncode, 0, "a region for blocks")
    p = lab.start([PATHLINE, "translate", "--stats", "--flush", "20ms", "udp://127.0.0.1:0", path("blocks.plr")],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = p.stderr.readline().split(" into ")[0].rsplit(":", 1)[1]
    d = Daemon(lab.write("blocks.yaml", f"""sources: []
marks: [{{name: m, sources: ['region:{path("blocks.plr")}'], points: [a=1, b=2], period: 1s, wait: 10s}}]
web: {{listen: "127.0.0.1:0"}}
"""), name="blocks")
    at, log = lab.free_udp_port(), path("blocks.log")
    point = lab.start([PATHLINE, "tap", "--marks", "--to", f"dta://127.0.0.1:{port}", f"udp://127.0.0.1:{at}"], log=log)
    ok(wait(lambda: "tapping" in lab.read("blocks.log")), "a tap that passes records on", lab.read("blocks.log"))
    told = []

    def lost():
        """Of each block 3 of 100 packets; blocks are told while they are young."""
        block = int(time.time()) - 1
        if block not in told:
            told.append(block)
            records = b"".join(struct.pack("<Q16s16sHHBBHQQQQqqqIIIIIHH", block * SECOND, bytes(15) + b"\1", bytes(15) + b"\2", 1, 2, 17, 1, 2 | (n == 1),
                                           block, SECOND, 103 - 3 * n, 100, 0, 0, 0, n, 0, 0, 0, 1000, 0, 0) for n in (1, 2))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.sendto(b"TPK1" + struct.pack("<BBHIIQQ", 1, 6, 2, 1, len(told) - 1, 0, 0) + records, ("127.0.0.1", at))
        return d.metrics().get('pathline_segment_lost_packets_total{domain="m",segment="a>b"}', 0) >= 9
    ok(wait(lost), "loss of three blocks is told", d.log())
    page = d.metrics()
    sent, came, gone = (page[f'pathline_segment_{x}_packets_total{{domain="m",segment="a>b"}}'] for x in ("sent", "received", "lost"))
    eq((sent % 100, sent - came, gone), (0, gone, 3 * sent // 100), "of every block as it was sent")
    point.terminate()
    eq(point.wait(LIMIT), 0, "the tap gave all away")
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=LIMIT)
    eq(d.stop(), 0, "the daemon ends well")


daemon, far, far_port, wanted = test_memory()
test_reload(daemon, far_port)
test_end(daemon, far, wanted)
test_absent()
test_records_of_taps()
test_block_records()
test_refused()
sys.exit(tap.end())
