# SPDX-License-Identifier: BSD-2-Clause
"""Questions of taps in the kernel, asked twice at the same time over the same traffic: with filters that the kernel reads as
rules, packets counted there by key, and with --no-push-down. The answers are the same, and fewer records leave the kernel.

usage: push_down.py PATHLINE [TEST…]
"""
import json
import os
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap, tapping  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

A, B = "10.80.0.1", "10.80.0.2"
WIRE = tapping.Wire("push", A, B)


class Query:
    """`pathline query` in a namespace, up."""

    def __init__(self, side, name, question, source, *args):
        self.out, self.err = lab.path(name + ".out"), lab.path(name + ".err")
        with open(self.out, "w", encoding="utf-8") as out:
            command = (pathline.PATHLINE, "query", "-o", "jsonl", "--stats", "--groups", "8192", *args, question, source)
            self.p = lab.start(WIRE.ns[side].command(*command), log=self.err, stdout=out)
        ok(wait(lambda: "asking" in self.errors() or self.p.poll() is not None) and self.p.poll() is None, f"{name} is up", self.errors())

    def errors(self):
        return lab.read(os.path.basename(self.err))

    def lines(self):
        with open(self.out, encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().splitlines() if line.endswith("}")]

    def rows(self):
        return [line for line in self.lines() if "tap" not in line and "query" not in line]

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        self.p.wait(2 * LIMIT)
        self.stats = {k: v for line in self.lines() if "tap" in line or "query" in line for k, v in line.items()}
        # Two taps stamp a packet one after the other.
        odd = [r for r in self.rows() if r.get("first_ts", 0) < 10**18 or (r["late"], r["exp"], r["incomplete"]) != (0, [0], False)]
        eq(odd[:2], [], "rows say where they are from")
        return sorted(json.dumps({k: v for k, v in r.items() if k != "first_ts"}, sort_keys=True) for r in self.rows())


def ip_packets(stats):
    """Neighbour discovery comes when it likes."""
    return stats["packets"] - stats["not_ip"]


def asked_twice(side, name, question, source, *args):
    return (Query(side, name, question, source, *args), Query(side, name + "-all", question, source, "--no-push-down", *args))


def same(pair, question, some=True, fewer=True):
    """Both are ended; their rows are the same."""
    pushed, whole = pair
    rows, want = pushed.end(), whole.end()
    ok(rows == want and (not some or rows), f"{len(want)} rows: {question[:70]}", f"{rows[:3]}\n{want[:3]}\n{pushed.errors()}{whole.errors()}")
    t, w = pushed.stats["tap"], whole.stats["tap"]
    eq(t["packets"], sum(t[k] for k in ("records", "counted", "not_ip", "broken", "skipped", "not_sampled", "ring_full")), "packets are accounted for")
    eq((ip_packets(t), w["skipped"]), (ip_packets(w), 0), "of the same packets")
    ok((t["skipped"] > 0 and t["records"] < w["records"]) == fewer, f"records that left the kernel: {t['records']} of {w['records']}", t)


QUESTIONS = (
    ("packets | where udp and dport = 6001 | group src, dport agg n=count(), b=sum(wire_len)", True),
    ("packets | where tcp and syn_only or udp and dport in (6001, 6002) | group dst, dport, proto agg n=count()", True),
    ("SELECT tcp_flags, count(*) AS n FROM packets WHERE tcp and tcp_flags & 8 != 0 GROUP BY tcp_flags", True),
    ("SELECT dport, count(*) AS n, max(pay_len) AS most FROM packets WHERE udp and pay_len != 300 GROUP BY dport", True),
    ("SELECT src, count(distinct sport) AS n FROM packets WHERE dst in (10.9.0.0/16) and sport >= 1010 and sport < 1020 GROUP BY src", True),
    ("SELECT src, dst, sport, dport, pay_len FROM packets WHERE not out and udp and pay_len * 2 > wire_len and dport != 53", True),
    ("packets | where not (dst in (10.9.0.0/16)) and not tcp and dport < 6003 | group dst, dport agg n=count()", True),
    ("SELECT vlan, count(*) AS n FROM packets96 WHERE vlan = 7 GROUP BY vlan", True),
    ("SELECT proto, count(*) AS n FROM packets WHERE ttl > 3 GROUP BY proto", False),
    ("WITH u AS (SELECT dst, count(*) AS n FROM packets WHERE udp and dport = 6001 GROUP BY dst), t AS (SELECT dst, count(*) AS n "
     "FROM packets WHERE tcp GROUP BY dst) SELECT u.dst, u.n AS udp, t.n AS tcp FROM u JOIN t ON dst", True),
    ("SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1h) WHERE udp and wire_len > 1200 GROUP BY dst", True),
)


def traffic():
    ok(WIRE.tcp_transfer(500_000), "a TCP transfer is whole")
    for port in (6001, 6002, 6003):
        WIRE.udp_send(60, size=40 + port % 10 * 100, port=port)
    WIRE.udp_send(20, size=5000, port=6001)
    frames = WIRE.frames(200)
    WIRE.send_frames(frames)
    WIRE.send_frames([frame[:12] + b"\x81\0\x20\x07" + frame[12:] for frame in frames[:30]])


def packets(query):
    """Packets that the tap of a query has seen."""
    before = sum("tap" in line for line in query.lines())
    query.p.send_signal(signal.SIGUSR1)
    wait(lambda: sum("tap" in line for line in query.lines()) > before)
    return ip_packets([line for line in query.lines() if "tap" in line][-1]["tap"])


def settled(queries):
    """Every tap has seen all: their numbers are the same, and stay so."""
    def once():
        return {packets(q) for q in queries}
    return wait(lambda: len(seen := once()) == 1 and seen == once())


def test_same_answers():
    for source, questions in (("tc:eth0?ring=16MiB", QUESTIONS), ("tc:eth0?record=pkt64", QUESTIONS[0:8:7])):
        pairs = [asked_twice("b", f"q{i}-{len(source)}", q, source) for i, (q, _) in enumerate(questions)]
        traffic()
        ok(settled([q for pair in pairs for q in pair]), f"{source}: all taps have seen all")
        for pair, (q, fewer) in zip(pairs, questions):
            short = "pkt64" in source and "vlan" in q
            same(pair, q, some=not short, fewer=fewer and not short)


def test_entering():
    """XDP beside traffic control, of what enters."""
    question = "SELECT src, dport, count(*) AS n, sum(pay_len) AS b FROM packets WHERE udp and dport = 6001 GROUP BY src, dport"
    pair = (Query("b", "xdp", question, "xdp:eth0"), Query("b", "xdp-all", question, "tc:eth0?dir=in", "--no-push-down"))
    traffic()
    ok(settled(pair[:1]), "the tap has seen all")
    rows, want = pair[0].end(), pair[1].end()
    ok(rows == want and rows, "xdp: has the rows of tc:", f"{rows} {want}")
    ok(pair[0].stats["tap"]["skipped"] > 0, "and skips in the kernel", pair[0].stats["tap"])


def test_windows_close():
    """Of a window its row comes although no other packet that the rules take comes after it, for longer than times may be ahead."""
    question = "SELECT dport, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE udp and dport = 6001 GROUP BY dport"
    pair = asked_twice("a", "close", question, "tc:eth0?dir=out", "--ahead", "100ms")
    for turn in (1, 2):
        WIRE.udp_send(50, port=6001)
        ok(wait(lambda: all(sum(r["n"] for r in q.rows()) == 50 * turn for q in pair)), f"rows while it runs, {turn}",
           [q.rows() for q in pair])
        WIRE.udp_send(50, port=6002)
    for q in pair:
        q.end()
        eq((sum(r["n"] for r in q.rows()), q.stats["query"]["late"]), (100, 0), "every packet is in one window, and none was late")
    t = pair[0].stats["tap"]
    eq((t["counted"], t["records"]), (100, 0), "they were counted in the kernel, and others skipped")


ADDRESSES_AND_PORTS = "src, dst, sport, dport, proto"

# A question, its source, and whether there is room for all of its keys.
COUNTED = (
    (f"SELECT {ADDRESSES_AND_PORTS}, count(*) AS n, sum(wire_len) AS b, sum(pay_len) AS p FROM packets TUMBLE(ts, 2s) "
     f"GROUP BY {ADDRESSES_AND_PORTS}", "tc:eth0", True),
    (f"SELECT {ADDRESSES_AND_PORTS}, count(*) AS n, sum(wire_len) AS b, sum(pay_len) AS p FROM packets TUMBLE(ts, 2s) "
     f"WHERE sport != 5000 and dport != 5000 GROUP BY {ADDRESSES_AND_PORTS}", "tc:eth0?counts=16&ring=16MiB", False),
    ("SELECT vlan, is_fragment, tos / 4 AS dscp, ttl, count(*) AS n, max(wire_len) AS most, min(pay_len) AS least FROM packets96 "
     "HOP(ts, 4s, 2s) GROUP BY vlan, is_fragment, tos / 4, ttl", "tc:eth0", True),
    ("SELECT src in (fd00::/8) AS six, out, avg(pay_len) AS a, count(distinct sport) AS s FROM packets TUMBLE(ts, 2s) "
     "WHERE udp and pay_len < 1000 GROUP BY src in (fd00::/8), out", "tc:eth0?record=pkt64", True),
    ("SELECT dst, sport, count(*) AS n FROM packets TUMBLE(ts, 2s) WHERE udp GROUP BY dst, sport ORDER BY n DESC LIMIT 7", "tc:eth0", True),
    ("SELECT count(*) AS n, sum(wire_len) AS b FROM packets96 WHERE dport = 53 or vlan = 7", "tc:eth0", True),
)


def six(n):
    """UDP over IPv6, every other one behind a fragment header, the second half of them later fragments."""
    mac = {side: WIRE.ns[side].mac("eth0") for side in "ab"}
    made = []
    for i in range(n):
        udp = struct.pack(">HHHH", 2000 + i % 30, 53, 28, 0) + bytes(20)
        fragment = struct.pack(">BBHI", 17, 0, 1 if i < n // 2 else 800, i) if i % 2 else b""
        ip = struct.pack(">IHBB", 6 << 28 | (i % 4) << 22, len(fragment) + len(udp), 44 if fragment else 17, 60 + i % 3)
        addresses = socket.inet_pton(socket.AF_INET6, f"fd00::{i % 5:x}") + socket.inet_pton(socket.AF_INET6, "fd00::99")
        made.append(mac["b"] + mac["a"] + b"\x86\xdd" + ip + addresses + fragment + udp)
    return made


def in_one_window(send):
    """Whether all of it was in one window of two seconds, so that two clocks cannot disagree about the window."""
    while time.time() % 2 > 0.5:
        time.sleep(0.02)
    time.sleep(0.05)
    number = time.time() // 2
    send()
    return (time.time() + 0.05) // 2 == number


def total(rows):
    return sum(json.loads(r).get("n", 0) for r in rows)


def test_counts():
    """Counted by key in the kernel, over several windows, and with a table that is too small."""
    pairs = [asked_twice("b", f"c{i}", q, source) for i, (q, source, _) in enumerate(COUNTED)]
    frames = WIRE.frames(300)
    sixes = six(200)

    def send():
        WIRE.send_frames(frames + sixes)
        WIRE.send_frames([frame[:12] + b"\x81\0\x20\x07" + frame[12:] for frame in frames[:40] + sixes[:40]])
        WIRE.udp_send(10, size=5000, port=6001)

    whole = [in_one_window(send) for _ in range(3)]
    whole.append(in_one_window(lambda: ok(WIRE.tcp_transfer(200_000), "a TCP transfer is whole")))
    ok(settled([q for pair in pairs for q in pair]), "all taps have seen all")
    for (pushed, plain), (question, _, room) in zip(pairs, COUNTED):
        rows, want = pushed.end(), plain.end()
        if not all(whole) and "(ts, " in question:
            print("# packets came at a change of windows: two clocks may disagree")
            rows, want = total(rows), total(want)
        ok(rows == want and rows, f"{len(want)} rows: {question[:70]}", f"{rows[:3]}\n{want[:3]}\n{pushed.errors()}{plain.errors()}")
        t, w, q = pushed.stats["tap"], plain.stats["tap"], pushed.stats["query"]
        eq(t["packets"], sum(t[k] for k in ("records", "counted", "not_ip", "broken", "skipped", "not_sampled", "ring_full")),
           "packets are accounted for")
        eq((ip_packets(t), w["counted"], q["counted"]), (ip_packets(w), 0, t["counted"]), "of the same packets, each given once")
        eq((q["late"], q["records"]), (0, t["records"]), "none was late, and the others came as records")
        ok(t["counted"] > 0 and (t["records"] == 0) == room and (t["counts_full"] == 0) == room,
           f"counted {t['counted']}, records {t['records']} for want of room, of {w['records']}; {t['counts_read']} counts", t)


def test_explain():
    """Where each part runs, in words."""
    rows = (
        (("packets | where syn_only and dst in (10.0.0.0/8, fd00::/8) and ttl > 3 | group dst agg n=count()", "tc:eth0"), """\
where it runs
  in the kernel (tc:eth0): records of the packets that these rules take
    take dst=10.0.0.0/8 proto=tcp flags=2/23
    take dst=fd00::/8 proto=tcp flags=2/23
    skip
    not counted there by key: rules do not say its filter whole
  in this process alone, as rules cannot say them whole
    step 1, filter ttl >= 4
  in this process: every step, with its filters
"""),
        (("packets96 | where not (dport = 53) and vlan = 7 and pay_len > 0 and not out | group dst agg n=count()",), """\
where it runs
  in the kernel (with a source xdp:IFACE or tc:IFACE): counts of the packets that these rules take
    take dport=0-52 payload=1-65535 vlan=7 dir=in
    take dport=54-65535 payload=1-65535 vlan=7 dir=in
    skip
    counted there by dst; a packet without room for its key becomes a record
  in this process: every step, with its filters
"""),
        (("packets | where udp and dst != 10.0.0.1 and not (src in (10.0.0.0/8) and ttl < 3)", "tc:eth0"), """\
where it runs
  in the kernel (tc:eth0): records of the packets that these rules take
    skip dst=10.0.0.1
    take proto=udp
    skip
    not counted there by key: a row is of one packet
  in this process alone, as rules cannot say them whole
    step 1, filter not ((src in 10.0.0.0/8 and ttl <= 2))
  in this process: every step, with its filters
"""),
        (("--no-push-down", "packets | where tcp", "xdp:eth0"), """\
where it runs
  in the kernel (xdp:eth0): records of all packets
  in this process: every step, with its filters
"""),
        (("packets | where tcp", "packet:eth0"), """\
where it runs
  in this process: the tap of packet:eth0, records of all packets
  in this process: every step, with its filters
"""),
        (("SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dst", "tc:eth0"), """\
where it runs
  in the kernel (tc:eth0): counts of all packets
    counted there by dst and window; a packet without room for its key becomes a record
  in this process: every step, with its filters
"""),
        (("-n", "3", "packets | where udp | group dst agg n=count()", "tc:eth0"), """\
where it runs
  in the kernel (tc:eth0): records of the packets that these rules take
    take proto=udp
    skip
    not counted there by key: -n takes the first rows, in the order of records
  in this process: every step, with its filters
"""),
        (("packets | where udp | group dst agg n=count()", "tc:eth0?hwtstamp=yes"), """\
where it runs
  in the kernel (tc:eth0?hwtstamp=yes): records of the packets that these rules take
    take proto=udp
    skip
    not counted there by key: the NIC gives times, by a clock that does not say which window is open
  in this process: every step, with its filters
"""),
        (("flows | where tcp", "xdp:eth0"), """\
where it runs
  in the kernel (xdp:eth0): records of all packets, as the flow cache needs them
  in this process: the flow cache, every step, with its filters
"""),
        (("packets | where tcp", "udp://:40050"), """\
where it runs
  elsewhere: the taps that send records to udp://:40050
  in this process: every step, with its filters
"""),
    )
    for args, want in rows:
        args = [f"EXPLAIN {arg}" if " " in arg else arg for arg in args]
        run = pathline.run("query", *args)
        eq(run.stdout[run.stdout.find("where it runs"):], want, ' '.join(args)[:70])


WIRE.make()
lab.run(test_explain, test_same_answers, test_counts, test_entering, test_windows_close)
sys.exit(tap.end())
