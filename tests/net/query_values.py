#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Questions over what a daemon has beside reports: values of its regions, as a standing query and asked over its API, and records of
its taps over the API. What the daemon wrote itself says what the answers must be. usage: query_values.py PATHLINE"""
import collections
import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.lab import free_udp_port, path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, answer, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

DTA, TAP = free_udp_port(), free_udp_port()
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


def taps_config(taps, more=""):
    text = "taps:\n" + "".join(f"  - {{name: {name}, sources: ['{source}'], {keys}}}\n" for name, source, keys in taps)
    return lab.write("taps.yaml", text + more + "web: {listen: '127.0.0.1:0'}\n")


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
    ok("by themselves" in d.get("/api/v1/tail?kind=packets,flows&form=jsonl")[1], "packets beside flows")
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
    ok(wait(lambda: json.loads(d.get("/api/v1/status")[1])["streams"][0]["waiting_bytes"] == 0), "the rest is read")
    s = json.loads(d.get("/api/v1/status")[1])["streams"][0]
    p.send_signal(signal.SIGINT)
    p.wait(60)
    told = int(re.search(r"(\d+) records were dropped", lab.read("slow.err")).group(1))
    eq((s["seen"], told, answer(lab.read("slow.rows"))[0]["n"]), (s["sent"] + s["dropped"], s["dropped"], s["sent"]), "seen = sent + dropped, and told")
    d.stop()


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
    ok(refused.returncode != 0 and "no tap is configured" in refused.stderr, "no tap at all", refused.stderr)
    d.stop()


def test_refused():
    for question, source, says in (
            ("SELECT count() AS n FROM values", path("trace.pcap"), "come from the daemon that reads them"),
            ("SELECT count() AS n FROM marks", "http://127.0.0.1:1", "asked for where they come from"),
            ("SELECT a.client FROM dns AS a JOIN packets AS b ON a.client = b.src WITHIN 1s", "http://127.0.0.1:1", "not in one question"),
            ("SELECT a.src FROM flows AS a JOIN packets AS b ON a.src = b.src WITHIN 1s", "http://127.0.0.1:1", "not in one question"),
            ("SELECT a.src FROM flows AS a JOIN events AS b ON a.src = b.flow.src WITHIN 1s", "http://127.0.0.1:1", "not in one question"),
            ("SELECT region FROM values WHERE region < a", "http://127.0.0.1:1", "have no order")):
        refused = run("query", question, source)
        ok(refused.returncode == 2 and says in refused.stderr, f"refused: {question}", refused.stderr)
    two = run("query", "SELECT count() AS n FROM flows", "http://127.0.0.1:1", path("trace.pcap"))
    ok(two.returncode == 2 and "the only source" in two.stderr, "a daemon beside a capture", two.stderr)


lab.run(test_values, test_packets, test_slow, test_dns, test_none, test_refused)
sys.exit(tap.end())
