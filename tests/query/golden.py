#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Questions and what they answer, as files: golden/NAME.txt has the question, a blank line, the plan, a blank line, and the rows as CSV
(sorted, where the question gives them no order). The records are made here, byte by byte, without Python's dice, so that they
are the same everywhere. Events and values come from a daemon's stream, which is played here. usage: golden.py PATHLINE [--update NAME… | all]

--update writes the files anew: their difference is the change of behaviour to look at."""
import glob
import http.server
import os
import re
import struct
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
START = 1700000000 * 10**9
QUERY, VALUE_HIGH = 18, 24  # kinds of events
FILES = {"packets": "g.pkt96", "packets96": "g.pkt96", "dns": "g.dns64", "flows": "g.flow128", "drops": "g.drop168", "segments": "g.seg192", "hops": "g.pcap", "paths": "g.pcap",
         "marks": "g.mark128"}
TOLD = {"events": [], "values": []}  # lines of the daemon's stream


class Dice:
    """A linear congruential generator (Knuth's MMIX)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xffffffffffffffff
        return (self.state >> 33) % n

    def of(self, *values):
        return values[self.below(len(values))]


def v4(*b):
    return bytes(10) + b"\xff\xff" + bytes(b)


def packet(dice, ts, kind):
    """Of `kind`: scan, syn, synack, ack, data, udp, icmp6."""
    client, server = v4(10, 0, dice.below(2), 1 + dice.below(6)), v4(192, 0, 2, 1 + dice.below(3))
    sport, dport, flags, pay = 1024 + dice.below(40), dice.of(22, 80, 443), 16, 0
    if kind == "scan":
        client, sport, dport, flags = v4(198, 51, 100, 66), 4000, 1 + dice.below(900), 2
    elif kind in ("syn", "synack"):
        flags = 2 if kind == "syn" else 18
    elif kind == "data":
        flags, pay = 24, dice.of(100, 1400)
    proto = 17 if kind == "udp" else 58 if kind == "icmp6" else 6
    if kind == "icmp6":
        client, server = bytes.fromhex("20010db8" + "00" * 11 + "07"), bytes.fromhex("20010db8" + "00" * 11 + "01")
        sport, dport = 128, 0
    src, dst, sport, dport = (server, client, dport, sport) if kind == "synack" else (client, server, sport, dport)
    seq = dice.below(1 << 32) if proto == 6 else 0
    return struct.pack("<Q16s16sHHBBBBIIHHHH", ts, src, dst, sport, dport, proto, flags if proto == 6 else 0, dice.of(57, 64, 128), 0, seq,
                       0, dice.of(0, 8192) if proto == 6 else 0, 40 + pay, pay, 3) + \
        struct.pack("<IIQIHHHHHH", 0, 0, dice.below(1 << 30), dice.below(99), dice.of(0, 5), 0, 1460, 0, 0, 0)


def segments(dice):
    """Blocks between two points: with a loss, a delay, or without numbers."""
    for i in range(60):
        sent, lost, delay, has = 1 + dice.below(900), dice.of(0, 0, 0, 5), dice.below(3_000_000), dice.of(0, 33, 47)
        yield struct.pack("<Q16s16sHHBBHQQIIIIIBBHIIIIIIQQqqqqqqQQ", START + i * 10**8, v4(10, 0, 0, 1 + dice.below(3)), v4(192, 0, 2, 1), 5000, 80, 17,
                          1, 37, START // 10**9 + i // 10, 10**9, has, 0, 1, 1, 2, 1, 1, 0, 0, 0, 0, 0, 1, 1,
                          *((sent, max(sent - lost, 0), min(lost, sent)) if has else (0, 0, 0)), *((delay,) * 3 if has & 2 else (0, 0, 0)), 0,
                          min(lost, sent) * 10**9 // sent if has else 0, 0, 0)


def marks(dice):
    """Blocks of three flows at two points; the second one lacks a packet now and then, and one block of a flow."""
    for i in range(90):
        block, flow, sent = START // 10**9 + i // 3, i % 3, 10 + dice.below(90)
        for point in (1, 2)[:1 if i == 40 else 2]:
            sent -= dice.of(0, 0, 1, 3) if point == 2 else 0
            first = 1000 * dice.below(5000) - 500_000 + (point - 1) * 2_000_000
            yield struct.pack("<Q16s16sHHBBHQQQQqqqIIIIIHH", block * 10**9, v4(10, 0, 0, 1 + flow), v4(192, 0, 2, 1), 5000 + flow, 80, 17, 1 + flow % 2,
                              2 | (point == 1), block, 10**9, sent, 1000 * sent, sent * first, first, 0, point, flow, 0, 0, 1000, 0, 0)


def event(ts, kind, phase, value, node=0, src=None, query=b"", key=b"", region=b""):
    """Of a node (and flow), of a standing query with the key of a group, or of a value in a region."""
    has = 1 << 4 | (1 << 1 if node else 0) | (1 << 6 if src else 0) | (1 << 28 if query else 0) | (1 << 30 if key else 0) | (1 << 31 if region else 0)
    place = query.ljust(16, b"\0") if query else struct.pack("<QQ", node, 0)
    head = struct.pack("<QBBHI", ts, kind, phase, 0, has) + place + struct.pack("<QQ", value, 0)
    ends = region.ljust(32, b"\0") if region else (src or bytes(16)) + (v4(192, 0, 2, 1) if src else bytes(16))
    return head + ends + struct.pack("<HHBBBB", 0, 0, 6 if src else 0, 0, 1, 0) + key.ljust(40, b"\0")


def value(ts, i, region, number, amount, name=b"", key=b""):
    """A counter's (with what it grew by) or another one's."""
    counter = region == b"sums"
    has = 1 << 1 | (1 << 2 if counter else 1 << 0) | (1 << 3 if name else 0) | (1 << 5 if key else 0)
    return struct.pack("<QBBHIQIIQQ32s16s32s", ts, 3 if counter else 2, 1, 0, has, number, i % 4, 8, amount, amount % 7 if counter else 0, region, name, key)


def tell(dice):
    """The lines of events and values."""
    for i in range(150):
        ts = START + i * 40_000_000
        kind = dice.of("node", "node", "query", "region")
        if kind == "node":
            e = event(ts, dice.below(3), dice.below(3), dice.below(10**6), 1 + dice.below(4), dice.of(None, v4(10, 0, 0, 1 + dice.below(3))))
        elif kind == "query":
            e = event(ts, QUERY, 0, 40 + dice.below(100), query=dice.of(b"ddos", b"portscan"), key=b"192.0.2.%d" % (1 + dice.below(3)))
        else:
            e = event(ts, VALUE_HIGH, 1 + dice.below(2), dice.below(1000), key=b"k%d" % dice.below(3), region=dice.of(b"sums", b"lists"))
        TOLD["events"].append(f"event {e.hex()}\n")
        region = dice.of(b"sums", b"lists", b"scratch")
        v = value(ts + dice.below(20_000_000), i, region, i, dice.below(1000), dice.of(b"", b"queue_depth"), dice.of(b"", b"k0", b"k1", b"k2"))
        TOLD["values"].append(f"value {v.hex()}\n")


class Stream(http.server.BaseHTTPRequestHandler):
    """A daemon's stream that ends behind the last line. The next request shows that all was read, and is refused: the command ends."""

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        self.send_response(404 if self.server.told else 200)
        self.send_header("Connection", "close")
        self.end_headers()
        if not self.server.told:
            self.wfile.write("".join(line for kind in query["kind"][0].split(",") for line in TOLD[kind]).encode())
        self.server.told = True

    def log_message(self, *args):
        pass


def ask_stream(question):
    server = http.server.HTTPServer(("127.0.0.1", 0), Stream)
    server.told = False
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    rows = run("query", "-o", "csv", "--lateness", "1h", question, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    thread.join()
    server.server_close()
    rows.stderr = "".join(line for line in rows.stderr.splitlines(True) if "http://" not in line)
    return rows


def make():
    dice = Dice(26)
    kinds = ("scan", "syn", "syn", "synack", "ack", "data", "data", "data", "udp", "icmp6")
    packets = [packet(dice, START + i * 8_000_000 + dice.below(4_000_000), dice.of(*kinds)) for i in range(1000)]
    # Some pass two points, most of these the second one a millisecond or two later.
    for p in packets[::10]:
        for point in (1, 2)[:dice.of(1, 2, 2, 2)]:
            ts = struct.unpack_from("<Q", p)[0] + (point - 1) * (1_000_000 + dice.below(1_000_000))
            packets.append(struct.pack("<Q", ts) + p[8:62] + struct.pack("<H", point) + p[64:])
    packets.sort(key=lambda p: p[7::-1])
    write("g.pkt96", packets)
    write("g.seg192", segments(dice))
    write("g.mark128", marks(Dice(27)))
    tell(Dice(28))
    run("gen", "int", "-n", 400, "--flows", 6, "-r", 100, "--queue", "exp:60", "-w", lab.path("g.pcap"))
    write("g.dns64", (struct.pack("<Q16s16sHHHHIIHBBI", START + i * 40_000_000, v4(10, 0, 0, 1 + dice.below(3)), v4(192, 0, 2, 253), i // 2,
                                  0x8180 if i % 2 else 0x0100, dice.of(1, 28, 46), (dice.of(0, 3) << 12 | dice.below(3) << 6) if i % 2 else 0,
                                  i // 2 % 9, i // 2 % 3, 12, 3, 90, 0xc0000205 if i % 4 == 1 else 0) for i in range(200)))
    write("g.flow128", (struct.pack("<QQ16s16sHHBBBBQQ12IHHI", START + i * 30_000_000, START + i * 30_000_000 + dice.below(10**9),
                                    v4(10, 0, 0, 1 + dice.below(5)), v4(192, 0, 2, 1 + dice.below(3)), 2000 + i, 443, dice.of(6, 6, 17),
                                    1 + dice.below(4), 27, 27, dice.below(10**6), dice.below(10**5), 1 + dice.below(90), dice.below(90),
                                    dice.below(900), dice.below(900), dice.below(90), dice.below(900), dice.of(0, 0, 2), 0, 0, 0,
                                    dice.below(10**6), dice.below(10**5), 1, 0, i) for i in range(200)))
    write("g.drop168", (packets[i] + struct.pack("<HHIII16s40s", dice.of(3, 4, 13), 0x0800, 2, 1, 60, dice.of(b"eth0", b"eth1", b""),
                                                 dice.of(b"udp_queue_rcv_skb+0x1", b"tcp_v4_rcv+0x2")) for i in range(0, 1000, 5)))


def write(name, records):
    with open(lab.path(name), "wb") as f:
        f.write(b"".join(records))


def answer(question):
    """The plan without the question, and the rows."""
    plan = run("query", f"EXPLAIN {question}")
    if plan.returncode != 0:
        return run("query", question).stderr, ""
    steps = plan.stdout[plan.stdout.index("\nstep 1\n") + 1:]
    streams = set(re.findall(r"^  scan (\w+)", steps, re.M))
    if streams & set(TOLD):
        rows = ask_stream(question)
    else:
        rows = run("query", "-o", "csv", question, *sorted({lab.path(FILES[s]) for s in streams}))
    lines = rows.stdout.splitlines()
    if "order by" not in steps:
        lines[1:] = sorted(lines[1:])
    return steps, "\n".join(lines + [f"# {line}" for line in rows.stderr.splitlines()]) + "\n"


def text_of(question):
    plan, rows = answer(question)
    return f"{question}\n\n{plan.strip()}\n\n{rows}"


def check(path):
    with open(path, encoding="utf-8") as f:
        wanted = f.read()
    question = wanted.split("\n\n", 1)[0]
    got = text_of(question)
    name = os.path.basename(path)[:-4]
    if got == wanted:
        return ok(True, f"{name}: {' '.join(question.split())[:90]}")
    theirs, ours = wanted.splitlines(), got.splitlines()
    return ok(False, f"{name}: {' '.join(question.split())[:90]}", "\n".join(["wanted, and not there:", *[x for x in theirs if x not in ours][:15],
                                                                          "there, and not wanted:", *[x for x in ours if x not in theirs][:15]]))


def main():
    make()
    paths = sorted(glob.glob(os.path.join(HERE, "*.txt")))
    if "--update" in sys.argv:
        names = sys.argv[sys.argv.index("--update") + 1:]
        for path in paths:
            if "all" in names or os.path.basename(path)[:-4] in names:
                with open(path, encoding="utf-8") as f:
                    question = f.read().split("\n\n", 1)[0].rstrip("\n")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text_of(question))
        return 0
    ok(len(paths) >= 50, f"{len(paths)} questions have their answers in files")
    named = {m for path in paths for m in re.findall(r"^(\w+)(?:\(.*\))?$", open(path, encoding="utf-8").read().split("\n", 1)[0])}
    catalogue = set(re.findall(r"^(\w+): ", run("help", "queries").stdout, re.M))
    eq(sorted(catalogue - named), [], "every question by name is among them")
    for path in paths:
        check(path)
    return tap.end()


sys.exit(main())
