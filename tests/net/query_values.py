#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Questions over what a daemon has beside reports: values of its regions, as a standing query and asked over its API, and records of
its taps over the API. What the daemon wrote itself says what the answers must be. usage: query_values.py PATHLINE"""
import collections
import json
import os
import re
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.lab import free_udp_port, path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, answer, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

DTA, TAP = free_udp_port(), free_udp_port()
SECOND = 1000000000
SOCKET = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# A window that outlasts the test: rows come when the asking ends.
BY_REGION = ("SELECT region, name, count() AS n, max(value) AS most, count(distinct list) AS lists FROM values TUMBLE(ts, 10000h) "
             "WHERE region != unwanted GROUP BY region, name")
WORDS = "SELECT region, key, value FROM values WHERE region == sums or region == 'lists-2' and value < 3"
PACKETS = "SELECT src, dport, count() AS n, sum(wire_len) AS b, min(point) AS p FROM packets96 TUMBLE(ts, 10000h) WHERE tcp GROUP BY src, dport"
FLOWS = "SELECT proto, dport, role, count() AS n, sum(bytes_fwd) AS b FROM flows288 TUMBLE(ts, 10000h) GROUP BY proto, dport, role"


def create(name, *args):
    made = run("region", "create", path(name + ".plr"), "--primitive", *args)
    ok(made.returncode == 0, f"{name} is made", made.stderr)


def write_config():
    text = f"dta: {{listen: 'udp://127.0.0.1:{DTA}', flush: 20ms}}\nregions:\n"
    for name, more in (("lists", ", name: queue_depth"), ("lists-2", "")):
        text += f"  - {{name: {name}, path: {path(name + '.plr')}, writer: dta, read: {{every: 20ms}}, value: {{format: u32be{more}}}}}\n"
    text += f"  - {{name: sums, path: {path('sums.plr')}, writer: dta, read: {{every: 20ms}}}}\n"
    text += f"taps:\n  - {{name: t, records: flows, flows: {{idle: 1s}}, sources: ['udp://127.0.0.1:{TAP}'], to: ['file:{path('flows.flow288')}?kind=flow288']}}\n"
    text += f"queries:\n  - {{name: by-region, query: \"{BY_REGION}\", from: values, lateness: 1h, to: ['file:{path('rows.jsonl')}']}}\n"
    return lab.write("values.yaml", text + f"web: {{listen: '127.0.0.1:0'}}\noutputs:\n  - {{type: jsonl, path: {path('out.jsonl')}}}\n")


def told():
    return [v for v in jsonl(lab.read("out.jsonl")) if v["kind"] == "value"]


def report(*args):
    sent = run("report", *args, f"udp://127.0.0.1:{DTA}")
    ok(sent.returncode == 0, f"report {args[0]} is sent", sent.stderr)


def send():
    for i in range(6):
        report("append", "--store", i % 2, "--list", i % 3, "-d", i, "--data-form", "be32", "--sequenced")
    for i in range(3):
        report("increment", "--store", 2, "-k", i, "--key-form", "u32", "--by", 10 + i, "--sequenced")


def ask(daemon, name, question):
    """The command asks the daemon in the background."""
    with open(path(name + ".rows"), "w", encoding="utf-8") as out:
        return lab.start([PATHLINE, "query", "-o", "jsonl", question, daemon.web], log=path(name + ".err"), stdout=out)


def streams(daemon):
    return len(json.loads(daemon.get("/api/v1/status")[1])["streams"])


def by_region(values):
    groups = collections.defaultdict(list)
    for v in values:
        groups[v["region"], v.get("name")].append(v)
    return {key: (len(vs), max(v["value"] for v in vs), len({v["list"] for v in vs if "list" in v})) for key, vs in groups.items()}


def test_values():
    for name in ("lists", "lists-2"):
        create(name, "append", "--slots", 256, "--lists", 4, "--value-bytes", 4)
    create("sums", "counters", "--slots", 1000)
    d = Daemon(write_config())
    asked = {"by": ask(d, "by", BY_REGION), "words": ask(d, "words", WORDS), "flows": ask(d, "flows", FLOWS)}
    ok(wait(lambda: streams(d) == 3), "three questions are asked of the daemon", lab.read("by.err") + lab.read("flows.err"))
    send()
    ok(wait(lambda: len({(v["region"], v["number"], v.get("list")) for v in told()}) >= 7), "the daemon tells of the values", told())
    ok(wait(lambda: sum(v.get("increase", 0) for v in told() if v["region"] == "sums") >= 33), "and of all increments", told())
    run("gen", "packets", "--story", "--duration", "8s", "-w", path("trace.pcap"))
    run("tap", "--to", f"udp://127.0.0.1:{TAP}?kind=pkt96", path("trace.pcap"))
    ok(wait(lambda: d.metrics().get('pathline_flow_live{tap="t"}') == 0 and os.path.getsize(path("flows.flow288")) > 288 * 100), "flows are over")
    for name, p in asked.items():
        p.send_signal(signal.SIGINT)
        eq(p.wait(60), 0, f"{name}: the command ends well")
    eq(d.stop(), 0, "the daemon ends well")
    check()


def check():
    wanted = by_region(told())
    ok(len(wanted) == 3 and (wanted["lists", "queue_depth"][1], wanted["lists-2", None][2]) == (4, 3), "values of three regions", wanted)
    rows = {(r["key"]["region"], r["key"]["name"]): (r["val"]["n"], r["val"]["most"], r["val"]["lists"]) for r in jsonl(lab.read("rows.jsonl"))}
    eq(rows, wanted, "the standing query's rows are those of the JSON lines")
    eq({(r["region"], r.get("name")): (r["n"], r["most"], r["lists"]) for r in answer(lab.read("by.rows"))}, wanted, "so are the command's over the API")
    eq(sorted((r["region"], r.get("key", ""), r["value"]) for r in answer(lab.read("words.rows"))),
       sorted((v["region"], v.get("key", ""), v["value"]) for v in told() if v["region"] == "sums" or (v["region"] == "lists-2" and v["value"] < 3)),
       "conditions on texts, and keys of counters")
    flows = collections.defaultdict(lambda: [0, 0])
    for f in jsonl(run("query", "-o", "jsonl", "SELECT * FROM flows288", path("flows.flow288")).stdout):
        of = flows[f["proto"], f["dport"], f["role"]]
        of[0] += 1
        of[1] += f["bytes_fwd"]
    eq({(r["proto"], r["dport"], r["role"]): [r["n"], r["b"]] for r in answer(lab.read("flows.rows"))}, dict(flows),
       "flows of the tap over the API are those of its file")


def taps_config(taps, more="", web=""):
    text = "taps:\n" + "".join(f"  - {{name: {name}, sources: ['{source}'], {keys}}}\n" for name, source, keys in taps)
    return lab.write("taps.yaml", text + more + f"web: {{listen: '127.0.0.1:0'{web}}}\n")


def test_packets():
    """Packets of two taps, as each is tapped; those of a tap of flows alone are none."""
    ports = [free_udp_port(), free_udp_port()]
    d = Daemon(taps_config([(f"t{i}", f"udp://127.0.0.1:{ports[i]}", f"to: ['file:{path(f'p{i}.pkt96')}']") for i in range(2)] +
                           [("f", f"udp://127.0.0.1:{free_udp_port()}", f"records: flows, to: ['jsonl:{path('f.jsonl')}']")]), name="packets")
    p = ask(d, "packets", PACKETS)
    ok(wait(lambda: streams(d) == 1), "a question of packets is asked of the daemon", lab.read("packets.err"))
    sent = run("gen", "packets", "--story", "--duration", "3s", "-w", path("short.pcap"))
    for i, port in enumerate(ports):
        sent = run("tap", "--point", 3 + i, "--to", f"udp://127.0.0.1:{port}?kind=pkt96", path("short.pcap"))
        eq(sent.returncode, 0, "packets are sent")
    n = len(jsonl(run("tap", "-o", "jsonl", path("short.pcap")).stdout))
    ok(wait(lambda: json.loads(d.get("/api/v1/status")[1])["streams"][0]["seen"] == 2 * n), "the stream has seen all")
    stream = json.loads(d.get("/api/v1/status")[1])["streams"][0]
    eq((stream["packets"], stream["sent"] + stream["dropped"]), (True, 2 * n), "each is sent or counted")
    ok(wait(lambda: json.loads(d.get("/api/v1/status")[1])["streams"][0]["waiting_bytes"] == 0), "all are read")
    p.send_signal(signal.SIGINT)
    eq(p.wait(60), 0, "the command ends well")
    ok("in the form record only" in d.get("/api/v1/tail?kind=packets,flows&form=jsonl")[1], "packets beside flows have one form")
    ok("forms jsonl and record" in d.get("/api/v1/tail?kind=packets&form=csv")[1], "forms that there are not")
    d.stop()
    whole = answer(run("query", "-o", "jsonl", PACKETS, path("p0.pkt96"), path("p1.pkt96")).stdout)
    got = answer(lab.read("packets.rows"))
    if stream["dropped"] == 0:
        eq(sorted(map(str, got)), sorted(map(str, whole)), "the answer is that over the taps' files")
    else:
        ok("were dropped on the way" in lab.read("packets.err"), "what was dropped is told", lab.read("packets.err"))
    ok(len(whole) > 10, f"{len(whole)} rows")


def test_slow():
    """A reader that does not read: the tap goes on, and what it missed is counted and told."""
    port = free_udp_port()
    d = Daemon(taps_config([("t", f"udp://127.0.0.1:{port}", f"to: ['file:{path('slow.pkt96')}']")]), name="slow")
    p = ask(d, "slow", "SELECT count() AS n FROM packets TUMBLE(ts, 10000h)")
    ok(wait(lambda: streams(d) == 1), "a question is asked")
    p.send_signal(signal.SIGSTOP)

    def some_are_dropped():
        run("tap", "--to", f"udp://127.0.0.1:{port}?kind=pkt96", path("trace.pcap"))
        return json.loads(d.get("/api/v1/status")[1])["streams"][0]["dropped"] > 0
    ok(wait(some_are_dropped), "some have no room")
    p.send_signal(signal.SIGCONT)
    ok(wait(lambda: json.loads(d.get("/api/v1/status")[1])["streams"][0]["waiting_bytes"] == 0), "the rest is under way")
    s = json.loads(d.get("/api/v1/status")[1])["streams"][0]
    # Ended by a signal before that, the reader would leave what is still in its socket.
    d.stop()
    ok(wait(lambda: "the stream has ended" in lab.read("slow.err")), "it reads to the end of the stream")
    p.send_signal(signal.SIGINT)
    p.wait(60)
    told = int(re.search(r"(\d+) records were dropped", lab.read("slow.err")).group(1))
    eq((s["seen"], told, answer(lab.read("slow.rows"))[0]["n"]), (s["sent"] + s["dropped"], s["dropped"], s["sent"]), "seen = sent + dropped, and told")


def test_dns():
    """DNS messages of a tap: asked of the daemon they are those of its file, and tail prints them."""
    port, question = free_udp_port(), "SELECT client, count() AS n, count(distinct name_hash) AS names FROM dns TUMBLE(ts, 10000h) GROUP BY client"
    d = Daemon(taps_config([("d", f"udp://127.0.0.1:{port}", f"records: dns, to: ['file:{path('d.dns64')}']")]), name="dns")
    p = ask(d, "dns", question)
    with open(path("tail.rows"), "w", encoding="utf-8") as out:
        tail = lab.start([PATHLINE, "tail", "--url", d.web, "--dns", "-o", "jsonl", "--where", "qtype == 1"], log=path("tail.err"), stdout=out)
    ok(wait(lambda: [s["dns"] for s in json.loads(d.get("/api/v1/status")[1])["streams"]] == [True, True]), "DNS messages are asked of the daemon",
       lab.read("dns.err") + lab.read("tail.err"))
    run("gen", "packets", "--story", "--duration", "5s", "-w", path("dns.pcap"))
    sent = run("tap", "--dns", "--to", f"udp://127.0.0.1:{port}", path("dns.pcap"))
    messages = jsonl(run("tap", "--dns", "-o", "jsonl", path("dns.pcap")).stdout)
    ok(sent.returncode == 0 and len(messages) > 20, f"{len(messages)} DNS messages are sent", sent.stderr)
    status = lambda: json.loads(d.get("/api/v1/status")[1])["streams"]  # noqa: E731
    ok(wait(lambda: [s["seen"] for s in status()] == [len(messages)] * 2 and not any(s["waiting_bytes"] for s in status())), "both streams have seen all", status())
    for process in (p, tail):
        process.send_signal(signal.SIGINT)
        eq(process.wait(60), 0, "it ends well")
    no = d.get("/api/v1/tail?kind=drops&form=jsonl")[1]
    ok("no_drops" in no and "no tap of this process makes records of drops" in no, "drops there are none", no)
    d.stop()
    whole = answer(run("query", "-o", "jsonl", question, path("d.dns64")).stdout)
    eq(sorted(map(str, answer(lab.read("dns.rows")))), sorted(map(str, whole)), "the answer is that over the tap's file")
    ok(len(whole) > 1, f"{len(whole)} rows")
    eq(sorted(map(str, jsonl(lab.read("tail.rows")))), sorted(str(m) for m in messages if m["qtype"] == 1), "tail prints those that match")


def test_none():
    d = Daemon(taps_config([("f", f"udp://127.0.0.1:{free_udp_port()}", f"records: flows, to: ['jsonl:{path('f.jsonl')}']")]), name="none")
    for kind in ("packets", "dns", "drops"):
        for refused in (run("query", f"SELECT count() AS n FROM {kind}", d.web), run("tail", "--url", d.web, f"--{kind}")):
            ok(refused.returncode != 0 and f"no tap of this process makes records of {kind}" in refused.stderr, f"{kind} of a tap of flows alone", refused.stderr)
    d.stop()
    d = Daemon(lab.write("bare.yaml", "web: {listen: '127.0.0.1:0'}\n"), name="bare")
    refused = run("query", "SELECT count() AS n FROM packets", d.web)
    ok(refused.returncode != 0 and "no tap and no marking domain is configured" in refused.stderr, "no tap at all", refused.stderr)
    d.stop()


def test_refused():
    for question, source, says in (
            ("SELECT count() AS n FROM values", path("trace.pcap"), "come from the daemon that reads them"),
            ("SELECT count() AS n FROM truth_links", "http://127.0.0.1:1", "asked for where they come from"),
            ("SELECT region FROM values WHERE region < a", "http://127.0.0.1:1", "have no order")):
        refused = run("query", question, source)
        ok(refused.returncode == 2 and says in refused.stderr, f"refused: {question}", refused.stderr)
    two = run("query", "SELECT count() AS n FROM flows", "http://127.0.0.1:1", path("trace.pcap"))
    ok(two.returncode == 2 and "the only source" in two.stderr, "a daemon beside a capture", two.stderr)


def mark(block, point, packets, offset_ns):
    """A mark128 record as docs/formats/records.md has it: method step, a synchronised clock, periods of a second."""
    src, dst = (bytes(10) + b"\xff\xff\x0a\x00\x00" + bytes([n]) for n in (1, 2))
    return struct.pack("<Q16s16sHHBBHQQQQqqqIIIIIHH", block * SECOND, src, dst, 1, 6010, 17, 1, 2 | (point == 1), block, SECOND, packets,
                       100 * packets, packets * offset_ns, offset_ns, 0, point, 0, 0, 0, 1000, 0, 0)


def send_marks(port, point, sequence, *records):
    head = b"TPK1" + struct.pack("<BBHIIQQ", 1, 6, len(records), point, sequence, 0, 0)
    SOCKET.sendto(head + b"".join(records), ("127.0.0.1", port))


def test_together():
    """Records of several kinds of one daemon in one question: DNS messages with the packets that carry them, packets with reports."""
    packets, dns, reports = (free_udp_port() for _ in range(3))
    d = Daemon(taps_config([("p", f"udp://127.0.0.1:{packets}", f"to: ['file:{path('both.pkt96')}']"),
                            ("d", f"udp://127.0.0.1:{dns}", f"records: dns, to: ['file:{path('both.dns64')}']")],
                           f"sources: [{{uri: 'udp://127.0.0.1:{reports}'}}]\noutputs: [{{type: jsonl, path: {path('both.jsonl')}}}]\n", ", stream_buffer: 16MiB"), name="both")
    joined = ("dns as q | where not response | join (packets | where udp) as p on q.client = p.src and q.server = p.dst within 1ms "
              "| group client over 10000h agg n=count(), bytes=sum(p.wire_len)")
    beside = ("SELECT a.dst, a.n AS reports, b.n AS packets FROM (SELECT flow.dst AS dst, count() AS n FROM paths TUMBLE(ts, 10000h) GROUP BY flow.dst) AS a "
              "LEFT JOIN (SELECT dst, count() AS n FROM packets TUMBLE(ts, 10000h) GROUP BY dst) AS b ON dst")
    asked = {}
    for name, question in (("joined", joined), ("beside", beside)):
        with open(path(name + ".rows"), "w", encoding="utf-8") as out:
            asked[name] = lab.start([PATHLINE, "query", "-o", "jsonl", "--lateness", "1h", question, d.web], log=path(name + ".err"), stdout=out)
    reported = lambda: [r for r in jsonl(lab.read("both.jsonl")) if r["kind"] == "path"]  # noqa: E731
    status = lambda: json.loads(d.get("/api/v1/status")[1])["streams"]  # noqa: E731
    ok(wait(lambda: sorted((s["paths"], s["packets"], s["dns"]) for s in status()) == [(False, True, True), (True, True, False)]),
       "each question has one stream with both kinds", lab.read("joined.err") + lab.read("beside.err"))
    run("gen", "packets", "--story", "--duration", "5s", "-w", path("both.pcap"))
    n = [len(jsonl(run("tap", *more, "-o", "jsonl", path("both.pcap")).stdout)) for more in ((), ("--dns",))]
    run("tap", "--dns", "--to", f"udp://127.0.0.1:{dns}", path("both.pcap"))
    run("tap", "--to", f"udp://127.0.0.1:{packets}?kind=pkt96", path("both.pcap"))
    run("gen", "int", "-n", 200, "--flows", 6, "-r", 2000, f"udp://127.0.0.1:{reports}")
    ok(wait(lambda: len(reported()) >= 190), "reports are decoded")
    ok(wait(lambda: sorted(s["seen"] for s in status()) == sorted((sum(n), n[0] + len(reported()))) and not any(s["waiting_bytes"] for s in status())),
       "the streams have seen all", status())
    dropped = sum(s["dropped"] + s["missed"] for s in status())
    for name, p in asked.items():
        p.send_signal(signal.SIGINT)
        eq(p.wait(60), 0, f"{name}: the command ends well")
    d.stop()
    eq(dropped, 0, "nothing was dropped on the way")
    whole = answer(run("query", "-o", "jsonl", joined, path("both.pcap")).stdout)
    differ = {str(r) for r in answer(lab.read("joined.rows"))} ^ {str(r) for r in whole}
    ok(not differ, "the join's answer is that over the capture", (lab.read("joined.err"), sorted(differ)[:8]))
    ok(len(whole) > 1, f"{len(whole)} rows")
    by_dst = collections.Counter(p["flow"]["dst"] for p in reported())
    to_dst = collections.Counter(p["dst"] for p in jsonl(run("tap", "-o", "jsonl", path("both.pcap")).stdout))
    eq({r["dst"]: (r["reports"], r.get("packets")) for r in answer(lab.read("beside.rows"))},
       {dst: (count, to_dst.get(dst)) for dst, count in by_dst.items()}, "so are reports beside packets")


def test_marks():
    """Block records that marking domains accept, and what they come to, asked of the daemon alone and together."""
    ports = [free_udp_port(), free_udp_port()]
    keys = "points: [a=1, b=2], period: 1s, wait: 2s"
    blocks = "SELECT point, count() AS n, sum(packets) AS p FROM marks TUMBLE(ts, 10000h) GROUP BY point"
    d = Daemon(lab.write("marks.yaml", f"""marks:
  - {{name: m, sources: ['udp://127.0.0.1:{ports[0]}'], {keys}, to: ['file:{path('m.seg192')}']}}
  - {{name: closed, sources: ['udp://127.0.0.1:{ports[1]}'], allow: [192.0.2.0/24], {keys}}}
queries:
  - {{name: stands, from: [m, closed], query: '{blocks}', lateness: 1h, to: ['file:{path('marks.rows')}']}}
web: {{listen: '127.0.0.1:0'}}
"""), name="marks")
    questions = {"blocks": blocks,
                 "losses": ("SELECT a.dst, a.n AS blocks, b.n AS results, b.lost FROM (SELECT dst, count() AS n FROM marks TUMBLE(ts, 10000h) GROUP BY dst) AS a "
                            "JOIN (SELECT dst, count() AS n, sum(loss) AS lost FROM segments TUMBLE(ts, 10000h) GROUP BY dst) AS b ON dst")}
    asked = {name: ask(d, name, question) for name, question in questions.items()}
    status = lambda: json.loads(d.get("/api/v1/status")[1])["streams"]  # noqa: E731
    ok(wait(lambda: sorted((s["marks"], s["segments"]) for s in status()) == [(True, False), (True, True)]), "marks are asked of the daemon",
       lab.read("blocks.err") + lab.read("losses.err"))
    first = time.time_ns() // SECOND - 1
    for sequence, block in enumerate(range(first, first + 4)):
        wait(lambda: time.time_ns() // SECOND > block)  # noqa: B023
        for port in ports:
            send_marks(port, 1, sequence, mark(block, 1, 100, 1000))
            send_marks(port, 2, sequence, mark(block, 2, 90, 2000))
    metric = lambda name: sum(v for k, v in d.metrics().items() if k.startswith(f'pathline_{name}{{domain="closed"'))  # noqa: E731
    ok(wait(lambda: os.path.getsize(path("m.seg192")) >= 192 * 4 and metric("mark_domain_not_allowed_total") >= 8), "blocks are over", d.metrics())
    ok(wait(lambda: not any(s["waiting_bytes"] for s in status())), "all are read")
    for name, p in asked.items():
        p.send_signal(signal.SIGINT)
        eq(p.wait(60), 0, f"{name}: the command ends well")
    eq(d.stop(), 0, "the daemon ends well")
    eq(sorted((r["point"], r["n"], r["p"]) for r in answer(lab.read("blocks.rows"))), [(1, 4, 400), (2, 4, 360)], "blocks of the domain that takes them")
    eq(sorted((r["key"]["point"], r["val"]["n"], r["val"]["p"]) for r in jsonl(lab.read("marks.rows"))), [(1, 4, 400), (2, 4, 360)],
       "a standing query has the same")
    eq([(r["blocks"], r["results"], r["lost"]) for r in answer(lab.read("losses.rows"))], [(8, 4, 40)], "blocks beside what they come to")


lab.run(test_values, test_packets, test_slow, test_dns, test_together, test_marks, test_none, test_refused)
sys.exit(tap.end())
