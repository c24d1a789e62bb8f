#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`pathline simulate`: the reports of its network, read back, are what its truth says of each packet, joined here by the flow
and the time at the first switch; losses are where the file puts them; the same seed gives the same bytes; a collector gets
every report as a datagram. usage: simulate.py PATHLINE"""
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT  # noqa: E402

# One link that loses, between leaf2 and spine1; and a slow one, in front of which packets are dropped.
NETWORK = """name: t
every_link: {rate: 20M, queue: 4KiB, delay: 10us}
nodes:
  - {name: h1}
  - {name: h2}
  - {name: h3}
  - {name: leaf1, kind: switch}
  - {name: leaf2, kind: switch}
  - {name: spine1, kind: switch}
links:
  - {ends: [h1, leaf1]}
  - {ends: [h2, leaf1]}
  - {ends: [h3, leaf2]}
  - {ends: [leaf1, spine1], rate: 12M}
  - {ends: [leaf2, spine1], loss: 0.05}
"""
LEAF1, LEAF2, SPINE1 = 4, 5, 6
HOP = ("node", "ingress_port", "egress_port", "ingress_ts_ns", "egress_ts_ns", "hop_latency_ns", "queue_depth", "queue")


def key(p):
    return p["flow"]["sport"], p["hops"][0]["ingress_ts_ns"]


def hops(p):
    return [tuple(h[name] for name in HOP) for h in p["hops"]], p["path_id"], p["latency_ns"]


def simulate(n, *options):
    """The truth, and the decoded reports, of one run."""
    answer = run("simulate", path("t.yaml"), "--duration", "2s", "--rate", "9k", "--size", "400", "-w", path(f"{n}.pcap"),
                 "--truth", path(f"{n}.jsonl"), *options)
    eq(answer.returncode, 0, f"run {n} ends")
    with open(path(f"{n}.jsonl"), encoding="utf-8") as f:
        truth = jsonl(f.read())
    return truth, jsonl(run("read", "-o", "jsonl", path(f"{n}.pcap")).stdout)


def read_bytes(name):
    with open(path(name), "rb") as f:
        return f.read()


def test_simulate():
    with open(path("t.yaml"), "w", encoding="utf-8") as f:
        f.write(NETWORK)
    truth, reports = simulate("a")
    paths = [t for t in truth if t["kind"] == "path"]
    delivered = {key(p): hops(p) for p in paths if not p["flags"]["dropped"]}
    told = {key(p): hops(p) for p in reports if p["kind"] == "path" and not p["flags"]["dropped"]}
    ok(len(delivered) > 5000 and any(h[6] > 0 for p in delivered.values() for h in p[0]), f"{len(delivered)} packets, some in queues")
    eq(told == delivered, True, "each report is what happened to its packet, and there is one for each")

    drops = [t for t in truth if t["kind"] == "event"]
    lost = [d for d in drops if "peer" in d]
    ends = {(d["peer"]["node"], d["node"]) for d in lost}
    eq(ends, {(LEAF2, SPINE1), (SPINE1, LEAF2)}, "packets are lost on the link that loses, both ways")
    eq(sorted(p["flow_seq"] for p in paths if p["flags"]["dropped"]) != [], True, "the truth has dropped packets too")
    by_node = {}
    for d in drops:
        # Hosts drop in their own queues, and report nothing.
        if "peer" not in d and d["node"] >= LEAF1:
            by_node[(d["node"], d["flow"]["sport"])] = by_node.get((d["node"], d["flow"]["sport"]), 0) + 1
    reported = {}
    for p in reports:
        if p["kind"] == "path" and p["flags"]["dropped"]:
            at = (p["node"], p["flow"]["sport"])
            reported[at] = reported.get(at, 0) + 1
    ok(len(by_node) > 0, f"{sum(by_node.values())} drops in queues of switches")
    eq(reported, by_node, "and each is reported by its node")

    simulate("b")
    simulate("c", "--seed", "2")
    eq(read_bytes("a.pcap") == read_bytes("b.pcap") and read_bytes("a.jsonl") == read_bytes("b.jsonl"), True, "the same seed, the same bytes")
    eq(read_bytes("a.pcap") == read_bytes("c.pcap"), False, "another seed, others")

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        s.settimeout(LIMIT)
        answer = run("simulate", "diamond", "--duration", "300ms", "--rate", "1k", f"udp://127.0.0.1:{s.getsockname()[1]}")
        count = int(answer.stderr.rsplit("reports: ", 1)[1])
        got = [s.recv(9000) for _ in range(count)]
        ok(count > 100 and all(g[0] >> 4 == 2 for g in got), f"{count} datagrams, reports of version 2.0")

    for args, code in ((["nowhere:3"], 78), ([], 2), (["diamond", "--flows", "0"], 2), (["diamond", "--rate", "0"], 2),
                       (["diamond", "--size", "10"], 2), (["diamond", "-w", "/dev/null/x"], 1), (["diamond", "--truth", "/dev/null/x"], 1)):
        answer = run("simulate", *args)
        eq(answer.returncode, code, f"{args}: {answer.stderr.strip()}")
        ok(answer.stderr.startswith("pathline: "), "which is told")


def test_clocks():
    """Clocks that are wrong: times of telemetry differ from the truth by the clock's offset and drift, to the nanosecond."""
    # By node: the hosts are 1 and 2, s1 is 3.
    clocks = {3: (0, 0), 4: (-3_000_000, 0), 5: (5_000_000_000, 20_000), 6: (0, -500_000)}
    with open(path("clocks.yaml"), "w", encoding="utf-8") as f:
        f.write("shape: line:4\nclocks:\n" + "".join(f"  - {{node: s{n - 2}, offset: {o}ns, drift: {d / 1000}}}\n" for n, (o, d) in clocks.items() if n > 3))
    answer = run("simulate", path("clocks.yaml"), "--duration", "2s", "--rate", "500", "-w", path("k.pcap"), "--truth", path("k.jsonl"))
    eq(answer.returncode, 0, f"a network with three wrong clocks {answer.stderr}")
    with open(path("k.jsonl"), encoding="utf-8") as f:
        truth = [p for p in jsonl(f.read()) if p["kind"] == "path"]
    # Packets of h1, of every other flow, begin at s1, whose clock is right.
    reports = [p for p in jsonl(run("read", "-o", "jsonl", path("k.pcap")).stdout) if p["hops"][0]["node"] == 3]
    first = {(p["flow"]["sport"], p["hops"][0]["ingress_ts_ns"]): p for p in truth}
    start, wrong, n = 1_700_000_000 * 10**9, [], 0
    for p in reports:
        of = first[p["flow"]["sport"], p["hops"][0]["ingress_ts_ns"]]
        for got, true in zip(p["hops"], of["hops"]):
            offset, drift = clocks[got["node"]]
            for key_of in ("ingress_ts_ns", "egress_ts_ns"):
                n += 1
                if got[key_of] - true[key_of] != offset + (true[key_of] - start) * drift // 10**9:
                    wrong.append((got["node"], key_of, got[key_of] - true[key_of]))
    ok(n > 2000 and not wrong, f"{n} times differ by offset and drift", wrong[:5])
    for text, says in (("offset: fast", ":3:24: \"clocks[0].offset\": 'fast' is no offset"), ("drift: 1001", ":3:23: \"clocks[0].drift\": '1001' is no drift"), ("ofset: 1ms", "did you mean \"offset\"")):
        with open(path("bad.yaml"), "w", encoding="utf-8") as f:
            f.write(f"shape: line\nclocks:\n  - {{node: s1, {text}}}\n")
        answer = run("simulate", path("bad.yaml"))
        ok(answer.returncode == 78 and says in answer.stderr, f"refused: {text}", answer.stderr)


def test_by_number():
    """Packets that a link loses, copies and holds back by their number."""
    answer = run("simulate", "line:1", "--duration", "1s", "--rate", "1k", "--impair", "h1>s1:lose=10+2/100,5 copy=7,8 hold=20,30,31 reorder_time=50ms",
                 "--impair", "s1>h2:jitter=uniform:0,20ms jitter_reorders=yes", "--truth-history", path("numbers"))
    eq(answer.returncode, 0, f"a link that has packets by number {answer.stderr}")
    question = "SELECT node, peer_node, sent, lost, duplicated, reordered FROM truth_links"
    links = {(r["node"], r["peer_node"]): r for r in jsonl(run("query", "-o", "jsonl", question, path("numbers")).stdout) if "sent" in r}
    at = links[1, 3]
    lost = 1 + sum(i >= 10 and (i - 10) % 100 < 2 for i in range(at["sent"]))
    ok(at["sent"] > 300, f"{at['sent']} packets")
    eq((at["lost"], at["duplicated"], at["reordered"]), (lost, 2, 3), "two of each hundred are lost, and one; two are copied, three held back")
    eq([links[at]["lost"] for at in ((2, 3), (3, 1), (3, 2))], [0, 0, 0], "no other link loses")
    ok(links[3, 2]["reordered"] > 0 and links[3, 1]["reordered"] == 0, f"{links[3, 2]['reordered']} packets are reordered by jitter")


def marked(network, method, *options):
    """Rows of loss and delay by marking, of one of the examples, and what was added up at the end."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "examples", "marking")
    answer = run("simulate", "--flows", "0", "--marking", method, "-o", "jsonl", *options, os.path.join(folder, network))
    eq(answer.returncode, 0, f"{network}, {method}: {answer.stderr.strip().splitlines()[-1]}")
    return jsonl(answer.stdout), answer.stderr


def test_congestion():
    """The published experiment: what the queue dropped, and how long packets were in it, is found by marking."""
    for method, bits in (("multiplexed", ("--bit", "dscp:0")), ("step", ()), ("pulse", ())):
        rows, told = marked("congestion.yaml", method, "--duration", "16s", *bits)
        link = [r for r in rows if r["from"] == "s1" and "loss" in r]
        dropped = int(told.split("its queue dropped ", 1)[1].split(",", 1)[0])
        eq([r for r in rows if "loss" in r and r["loss"] != r["dropped"] + r["lost"]], [], f"{method}: every block has lost what was lost")
        eq([r for r in rows if "delay_ns" in r and r["delay_ns"] != r["true_delay_ns"]], [], f"{method}: and every delay is that of its packet")
        if method == "pulse":
            # What came behind a flow's last pulse is in no result.
            ok(0 < sum(r["loss"] for r in link) < dropped, f"pulse: of {dropped} drops those between two pulses are found")
            continue
        eq(sum(r["loss"] for r in link), dropped, f"{method}: {dropped} drops, as the queue has booked")
        # 100 Mb/s of background beside 20 on a link of 100: a sixth, behind a queue of 40 ms (1 - C / (m + b), 8 Q / C).
        late = [r for r in link if r["at_s"] in (13, 14)]
        share = sum(r["loss"] for r in late) / sum(r["sent"] for r in late)
        ok(abs(share - 1 / 6) < 0.001, f"{method}: {share:.4f} of the packets when the link is congested, one in six")
        delays = [r["delay_ns"] for r in late if "delay_ns" in r]
        eq([d for d in delays if not 39e6 < d < 40.2e6] + [0] * (not delays and method != "step"), [], f"{method}: and {len(delays)} delays of 40 ms")
        eq([r for r in link if r["at_s"] < 6 and (r["loss"] != 0 or r.get("delay_ns", 101000) != 101000)], [], f"{method}: without background nothing")


CAUSES = """SELECT i.block, i.packets - o.packets AS before_link, q.n AS queue, o.packets - a.packets AS on_link, l.n AS link
    FROM (SELECT block, sum(packets) AS packets FROM marks WHERE point >= 6001 and point <= 6004 GROUP BY block) AS i
    JOIN (SELECT block, sum(packets) AS packets FROM marks WHERE point = 6505 GROUP BY block) AS o ON block
    JOIN (SELECT block, sum(packets) AS packets FROM marks WHERE point = 7001 GROUP BY block) AS a ON block
    LEFT JOIN (SELECT ingress_ts_ns / 1s AS block, count(*) AS n FROM hops
          WHERE flags.dropped and node = 6 and drop_reason = 71 GROUP BY ingress_ts_ns / 1s) AS q ON block
    LEFT JOIN (SELECT ingress_ts_ns / 1s AS block, count(*) AS n FROM hops
          WHERE flags.dropped and node = 6 and drop_reason = 0 GROUP BY ingress_ts_ns / 1s) AS l ON block"""


def test_causes():
    """Loss by marking of the published experiment, whose link loses packets, too: block by block it is what the truth has dropped in
    the queue, and lost on the link."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "examples", "marking")
    with open(os.path.join(folder, "congestion.yaml"), encoding="utf-8") as f:
        text = f.read()
    for method in ("step", "multiplexed"):
        with open(path("marked.yaml"), "w", encoding="utf-8") as f:
            f.write(f"{text}marking: {{method: {method}}}\n")
        answer = run("simulate", "--flows", "0", "--duration", "15s", "--impair", "s1>s2:loss=0.01", "--truth-history", path(method), path("marked.yaml"))
        eq(answer.returncode, 0, f"{method}: {answer.stderr.strip()}")
        dropped, lost = (int(answer.stderr.split(what, 1)[1].split(";", 1)[0]) for what in ("dropped by nodes: ", "lost on links: "))
        rows = [r for r in jsonl(run("query", "-o", "jsonl", CAUSES, path(method)).stdout) if "block" in r]
        eq([r for r in rows if (r["before_link"], r["on_link"]) != (r.get("queue", 0), r.get("link", 0))], [], f"{method}: every loss has its cause, block by block")
        eq((len(rows), sum(r["before_link"] for r in rows), sum(r["on_link"] for r in rows)), (15, dropped, lost), f"{method}: {dropped} and {lost}, all of them")
        ok(dropped > 1000 and lost > 500, f"{method}: of both there are some")
    answer = run("simulate", "--duration", "1s", "--truth-history", path("plain"), "line:2")
    eq((answer.returncode, os.path.exists(path("plain/marks.mark128"))), (0, False), "without marking there are no blocks")


def test_demo():
    """`pathline demo marking` is this experiment, and needs no file."""
    rows, told = marked("congestion.yaml", "multiplexed", "--duration", "28s")
    demo = run("demo", "marking", "-o", "jsonl")
    eq((demo.returncode, jsonl(demo.stdout)), (0, rows), "the same rows")
    ok("loss by marking is not the true one: 0 of " in told and "loss by marking is not the true one: 0 of " in demo.stderr, "and the truth", demo.stderr)


def test_four_switches():
    """The open-source demonstration, in both of its modes: one link loses and delays, and marking says which."""
    for method, options, share in (("double", ("--bit", "dscp:0", "--bit", "dscp:1", "--period", "8s"), 0.05),
                                   ("multiplexed", ("--period", "16s", "--impair", "s2-s4:loss=0.1"), 0.1)):
        rows, told = marked("four-switches.yaml", method, "--duration", "64s", "--delay", "600ms", *options)
        losing = {(r["from"], r["to"]) for r in rows if r.get("loss", 0) != 0}
        slow = {(r["from"], r["to"]) for r in rows if r.get("delay_ns", 0) > 100_000_000}
        eq((losing, slow), ({("s2", "s4")},) * 2, f"{method}: s2 to s4 loses and delays, no other link")
        eq({r["from"] for r in rows}, {"s1", "s2", "s4"}, f"{method}: s3 is idle")
        lost, sent = sum(r.get("loss", 0) for r in rows), sum(r["sent"] for r in rows if r["from"] == "s2")
        eq(lost, int(told.split("s2 to s4", 1)[1].split("the link lost ", 1)[1].split(";", 1)[0]), f"{method}: {lost} packets, as the link has booked")
        ok(abs(lost / sent - share) < 0.02, f"{method}: {lost / sent:.3f} of {sent}")
        eq({r["delay_ns"] for r in rows if r["from"] == "s2" and "delay_ns" in r}, {500_000_000 + 1250 * 8 * 200},
           f"{method}: the delay is that of the link and of sending the frame")


def test_marking_refused():
    for args, says in ((["--marking", "step", "--period", "100ms", "diamond"], "guard band"), (["--marking", "double", "diamond"], "two bits"),
                       (["--marking", "step", "--bit", "dscp:0", "diamond"], "INT"), (["--marking", "step", "--bit", "altmark", "diamond"], "altmark"),
                       (["--bit", "dscp:0", "diamond"], "--marking"), (["--marking", "step", "--truth", "-", "diamond"], "--truth")):
        answer = run("simulate", *args)
        ok(answer.returncode == 2 and says in answer.stderr, f"{args}: {answer.stderr.strip()}")


lab.run(test_simulate, test_clocks, test_by_number, test_congestion, test_causes, test_demo, test_four_switches, test_marking_refused)
sys.exit(tap.end())
