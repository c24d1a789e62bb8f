# SPDX-License-Identifier: BSD-2-Clause
"""Paths and hops as IPFIX to collectors of others: nfdump, pmacct, tshark, and one of this test that has every value. What they say is
what the same daemon writes as JSON lines. Over TCP: a collector that is away and comes; a reload; what a configuration must not say.

usage: ipfix_paths.py PATHLINE [TEST…]
"""
import collections
import json
import os
import re
import shutil
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import collectors, lab, pathline, tap  # noqa: E402
from lib.collectors import Nfdump, Pmacct, Tcp, Udp, ms  # noqa: E402
from lib.pathline import Daemon, accounts_close, gen, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

PORT, PEN = lab.free_port(socket.SOCK_DGRAM), 64512
# Elements of a path, and of a hop, by the names of the JSON lines; under the enterprise number, or standard ones.
PATH = {"seq": (PEN, 105), "node": (PEN, 103), "path_id": (PEN, 102), "latency_ns": (PEN, 104), "report_id": (PEN, 101), "hop_count": (PEN, 111),
        "hw_id": (PEN, 114), "drop_reason": (PEN, 113), "flow_seq": (PEN, 106), "flow_id": (PEN, 107), "lost_count": (PEN, 108),
        "exporter_port": 217, "src": 8, "dst": 12, "src6": 27, "dst6": 28, "sport": 7, "dport": 11, "proto": 4, "dscp": 195, "vlan": 58,
        "vni": (PEN, 109), "exporter": 130}
HOP = {"ingress_ts_ns": (PEN, 133), "egress_ts_ns": (PEN, 134), "node": (PEN, 131), "ingress_port": 10, "egress_port": 14,
       "hop_latency_ns": (PEN, 140), "queue_depth": (PEN, 141), "tx_util": (PEN, 142), "buffer_depth": (PEN, 143), "queue": (PEN, 145),
       "buffer": (PEN, 147), "index": (PEN, 146), "link_latency_ns": (PEN, 135), "ingress_port2": (PEN, 138), "egress_port2": (PEN, 139),
       "congestion": (PEN, 144), "clock": (PEN, 148), "hop_limit": 192, "node_wide": (PEN, 132), "queue_bytes": (PEN, 136),
       "buffer_bytes": (PEN, 137)}
CLOCKS = {"ok": 0, "skewed": 1, "implausible": 2, "mixed": 3}
MODES = ["md", "mx", "xd", "ioam-trace", "ioam-dex", "ioam-e2e", "ioam-pot", "drop-summary"]
FLAGS = ["dropped", "congested", "tracked", "partial", "copy", "intermediate", "instrumented", "unproven"]


def number(key, value):
    if key in ("src", "dst", "exporter", "src6", "dst6"):
        return int.from_bytes(socket.inet_pton(socket.AF_INET6 if ":" in value else socket.AF_INET, value), "big")
    if key in ("path_id", "report_id"):
        return int(value, 16)
    return CLOCKS[value] if key == "clock" else value % 2**64


def flow_of(line):
    """Of a path, and of each of its hops."""
    flow = dict(line.get("flow", {}))
    for end in "src", "dst":
        if ":" in flow.get(end, ""):
            flow[end + "6"] = flow.pop(end)
    return flow


def wanted(line):
    """The data records that this path becomes: of itself, and of each hop."""
    flow, at = flow_of(line), line["ts_ns"] // 1000000
    times = {152: at, 153: at}
    key = {PATH[k]: number(k, v) for k, v in flow.items() if k in ("src", "dst", "src6", "dst6", "sport", "dport", "proto")}
    path = {**times, **{PATH[k]: number(k, v) for k, v in {**line, **flow}.items() if k in PATH},
            (PEN, 112): MODES.index(line["mode"]), (PEN, 110): sum(line["flags"][f] << i for i, f in enumerate(FLAGS)),
            89: 0x80 if line["flags"]["dropped"] else 0x40}
    same = {(PEN, 101): number("report_id", line["report_id"])}
    if "path_id" in line:
        same[(PEN, 102)] = number("path_id", line["path_id"])
    return [path] + [{**times, **key, **same, **{HOP[k]: number(k, v) for k, v in hop.items() if k in HOP}} for hop in line["hops"]]


def counted(records):
    return collections.Counter(tuple(sorted(r.items(), key=str)) for r in records)


def config(name, *outputs):
    web = "web: {listen: '127.0.0.1:0'}\n"
    lines = "".join(f"  - {{type: ipfix, to: '{o}'}}\n" for o in outputs)
    return lab.write(name + ".yaml", f"sources: [{{uri: 'udp://127.0.0.1:{PORT}'}}]\ndecode: {{admit: first}}\noutputs:\n"
                     f"  - {{type: jsonl, path: {lab.path(name + '.jsonl')}}}\n{lines}{web}")


def lines_of(name):
    return [x for x in pathline.jsonl(lab.read(name + ".jsonl")) if x["kind"] == "path"]


def send(*options):
    """Traffic of several kinds: drops, values that are missing, other dialects."""
    gen(PORT, "--seed", 11, "-n", 300, *options)


def test_collectors():
    """Every value that the JSON lines have, under its element; nfdump and pmacct have what the standard has elements for."""
    os.environ["TZ"] = "UTC"
    mine, nfdump, pmacct = Udp(), Nfdump(lab.free_port(socket.SOCK_DGRAM)), Pmacct(lab.free_port(socket.SOCK_DGRAM))
    d = Daemon(config("paths", *(f"ipfix://127.0.0.1:{c.at}?pen={PEN}&domain=5" for c in (mine, nfdump, pmacct))))
    send("--event", "drop@0s:ratio=0.1", "--missing", "0.1")
    ok(wait(lambda: len(lines_of("paths")) >= 300), "paths are written down")
    want = counted(r for line in lines_of("paths") for r in wanted(line))
    ok(wait(lambda: len(mine.reader.records) >= sum(want.values())), "as many data records as paths and hops", f"{len(mine.reader.records)} of {sum(want.values())}")
    got = counted(mine.reader.records)
    eq((list((got - want).items())[:1], list((want - got).items())[:1]), ([], []), "each value is under its element, and no other is there")
    eq((mine.reader.faults, mine.reader.domains), ([], {5}), "messages are well formed, in sequence, every template known")
    ok(any(r.get(89) == 0x80 for r in mine.reader.records) and len(mine.reader.templates) > 10, "drops among them, and several sets of values",
       len(mine.reader.templates))
    accounts_close(d.metrics(), "the daemon's account")
    eq(d.stop(), 0, "the daemon ends")
    flows = collections.Counter((r["src"], r["dst"], r["sport"], r["dport"], r["proto"], at)
                                for line in lines_of("paths") for r, at in [(line["flow"], line["ts_ns"] // 1000000)] * (1 + len(line["hops"])))
    got = collections.Counter((f["src4_addr"], f["dst4_addr"], f["src_port"], f["dst_port"], f["proto"], ms(f["first"])) for f in nfdump.flows())
    eq((list((got - flows).items())[:1], list((flows - got).items())[:1]), ([], []), "nfdump has the flow and the time of each")
    wait(lambda: len(pmacct.flows()) >= len(flows))
    names = {"tcp": 6, "udp": 17, "icmp": 1}
    got = {(f["ip_src"], f["ip_dst"], f["port_src"], f["port_dst"], names[f["ip_proto"]], round(float(f["timestamp_start"]) * 1000)) for f in pmacct.flows()}
    eq(got ^ set(flows), set(), "and so has pmacct")
    look_at(mine)


def look_at(collector):
    """tshark finds nothing wrong, and reads the same values."""
    if shutil.which("tshark") is None:
        tap.skip("tshark", "missing: tshark")
        return
    read = collectors.Tshark(lab.path("paths.pcap"), collector)
    eq(read.bad[:3], [], "tshark finds no fault")
    eq(read.own, collectors.own_values(collector), "and every value under the enterprise number")
    eq(sum(sum(read.numbers(name).elements()) for name in ("cflow.inputint", "cflow.outputint")),
       sum(r.get(10, 0) + r.get(14, 0) for r in collector.reader.records), "ports of hops as interfaces")


def test_tcp():
    """Paths wait for a collector that is away; one that comes back gets its templates first."""
    spot = Tcp()
    at = spot.at
    spot.close()
    d = Daemon(config("tcp", f"ipfix://127.0.0.1:{at}?pen={PEN}&transport=tcp&time=ms"), name="tcp")
    send()
    ok(d.wait_for("Connection refused") is not None, "a collector that is away is told", d.log())
    first = Tcp(at)
    ok(wait(lambda: len(lines_of("tcp")) >= 300), "paths are written down")
    want = counted(r for line in lines_of("tcp") for r in wanted(line))
    ok(wait(lambda: len(first.records()) >= sum(want.values())), "what waited comes")
    eq(counted(first.records()) == want, True, "all of it")
    first.end()
    ok(d.wait_for("closed the connection") is not None, "that it is gone is told")
    second = Tcp(at)
    send()
    ok(wait(lambda: len(second.records()) >= sum(want.values())), "the next one gets what comes then")
    eq(first.faults() + second.faults(), [], "each session begins with its templates, and at number 0")
    accounts_close(d.metrics(), "the account closes")
    eq(d.stop(), 0, "the daemon ends")
    second.close()


def test_words():
    cases = (("ipfix://h", "'pen=N' is missing"), ("udp://127.0.0.1:1", "ipfix://HOST[:PORT]?pen=N"), ("ipfix://h?pen=1&biflow=yes", "biflow"),
             ("ipfix://h?pen=1&domain=x", "domain"), ("ipfix://?pen=1", "ipfix://HOST[:PORT]"), ("http://h", "is none of udp://ADDRESS:PORT, ipfix://HOST[:PORT] and kafka://HOST[:PORT]/TOPIC"))
    for uri, says in cases:
        out = run("config", "check", config("wrong", uri))
        ok(out.returncode != 0 and says in out.stderr, f"{uri}: {says}", out.stderr)
    config("right", "ipfix://h?pen=1")
    text = lab.read("right.yaml")
    for change, says in ((("type: ipfix, to", "type: ipfix, events: true, to"), "cannot write events"), (("type: ipfix, to", "type: ipfix, path: x, to"), "path does not apply"),
                         (("type: ipfix, to: 'ipfix://h?pen=1'", "type: ipfix"), "to is missing"), (("type: ipfix, to", "type: jsonl, path: x, to"), "to does not apply"),
                         (("type: ipfix, to: 'ipfix://h?pen=1'", "type: dta, record: event, to: 'ipfix://h?pen=1'"), "udp://ADDRESS:PORT")):
        out = run("config", "check", lab.write("wrong2.yaml", text.replace(*change)))
        ok(out.returncode != 0 and says in out.stderr, f"{change[1]}: {says}", out.stderr)
    help_page = run("help", "ipfix").stdout
    missing = [k for k in [*PATH.values(), *HOP.values(), (PEN, 110), (PEN, 112)] if isinstance(k, tuple) and f"\n  {k[1]} pathline" not in help_page]
    eq(missing, [], "help has every element under the enterprise number")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/protocols/ipfix.md"), encoding="utf-8") as f:
        page = f.read()
    names = [name for number, name in re.findall(r"(?m)^  (\d+) (pathline\w+) \(", help_page) if 100 < int(number) < 200]
    eq((len(set(names)), [n for n in names if n not in page]), (32, []), "and the documents have those of paths and hops")
    d = Daemon(config("unresolved", f"ipfix://no.such.invalid?pen={PEN}"), name="unresolved", ready=False)
    d.p.wait()
    ok("ipfix://no.such.invalid:4739" in d.log(), "a host that there is not is named", d.log())


lab.run(test_collectors, test_tcp, test_words)
sys.exit(tap.end())
