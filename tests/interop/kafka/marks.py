#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Block records of alternate marking through a topic: two domains of one daemon get the records of the same points, one by UDP and
one out of the topic, and tell the same results. What is no block record, a sender that began anew, and a broker that is away are
told of.

    usage: marks.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import os
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

from members import PATHLINE, server_or_skip  # noqa: E402

ONLY = sys.argv[4:]
pathline.PATHLINE = PATHLINE
SECOND = 1000000000
BLOCKS = 6
SOCKET = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def record(block, point, sport, packets, offset_ns):
    """A mark128 record as docs/formats/records.md has it: method step, a synchronised clock, periods of a second."""
    src, dst = (bytes(10) + b"\xff\xff\x0a\x00\x00" + bytes([n]) for n in (1, 2))
    r = struct.pack("<Q16s16sHHBBHQQQQqqqIIIIIHH", block * SECOND, src, dst, sport, 6010, 17, 1, 2 | (point == 1), block, SECOND, packets,
                    100 * packets, packets * offset_ns, offset_ns, 0, point, 0, 0, 0, 1000, 0, 0)
    assert len(r) == 128
    return r


class Point:
    """A point's sender: a tap that is given the records and passes them on, both ways."""

    def __init__(self, server, topic, number, wire):
        self.number, self.port, self.sequence = number, lab.free_udp_port(), 0
        self.args = [PATHLINE, "tap", "--marks", "--exporter", str(number), "--to", f"udp://127.0.0.1:{wire}", "--to", server.uri(topic),
                     f"udp://127.0.0.1:{self.port}"]
        self.begin()

    def begin(self):
        log = f"point{self.number}.{self.sequence}.log"
        self.p = lab.start(self.args, log=lab.path(log))
        ok(wait(lambda: self.p.poll() is None and bound(self.port)), f"point {self.number} is up", lab.read(log))

    def send(self, *records):
        head = b"TPK1" + struct.pack("<BBHIIQQ", 1, 6, len(records), self.number, self.sequence, 0, 0)
        SOCKET.sendto(head + b"".join(records), ("127.0.0.1", self.port))
        self.sequence += 1

    def end(self):
        self.p.terminate()
        eq(self.p.wait(60), 0, f"point {self.number} ends well")


def bound(port):
    with open("/proc/net/udp", encoding="ascii") as f:
        return any(line.split()[1].endswith(f":{port:04X}") for line in list(f)[1:])


def daemon_of(server, topic, wire):
    files = {name: lab.path(f"{topic}.{name}.seg192") for name in ("wire", "topic")}
    # `allow` is about addresses: it says nothing of a topic.
    return pathline.Daemon(lab.write(topic + ".yaml", f"""sources: []
marks:
  - {{name: wire, sources: ['udp://127.0.0.1:{wire}'], points: [a=1, b=2], period: 1s, wait: 4s, to: ['file:{files["wire"]}']}}
  - {{name: topic, sources: ['{server.uri(topic)}'], allow: [192.0.2.0/24], points: [a=1, b=2], period: 1s, wait: 4s,
     to: ['file:{files["topic"]}']}}
web: {{listen: '127.0.0.1:0'}}
"""), name=topic), files


def metric(daemon, name, domain="topic"):
    return sum(v for k, v in daemon.metrics().items() if k.startswith(f"pathline_{name}{{") and f'domain="{domain}"' in k)


def now_block():
    return time.time_ns() // SECOND


def send_block(points, block):
    """Flow 1 loses a tenth of its packets, and needs 2 ms; flow 2 loses nothing. Of flow 3 the second point sees nothing."""
    points[0].send(record(block, 1, 1, 100, 1000), record(block, 1, 2, 50, 2000), record(block, 1, 3, 10, 3000))
    points[1].send(record(block, 2, 1, 90, 2001000), record(block, 2, 2, 50, 1002000))


def results(path, first, last):
    """Results of these blocks, as the records that they are."""
    with open(path, "rb") as f:
        data = f.read()
    records = [data[i:i + 192] for i in range(0, len(data), 192)]
    return sorted(r for r in records if first <= struct.unpack_from("<Q", r)[0] // SECOND <= last)


def each_second(points, until):
    """Sends blocks of the present until that is so; the first block and the last."""
    first = last = now_block()

    def one_more():
        nonlocal last
        if now_block() > last:
            last = now_block()
            send_block(points, last - 1)
        return until()
    return first, wait(one_more), last - 1


def test_same(server):
    """The same results by UDP and out of a topic, also where a point saw nothing of a flow."""
    server.create("blocks", 1)
    wire = lab.free_udp_port()
    daemon, files = daemon_of(server, "blocks", wire)
    points = [Point(server, "blocks", n, wire) for n in (1, 2)]
    _, came, first = each_second(points, lambda: metric(daemon, "mark_topic_records_total") > 0)
    ok(came, "records come out of the topic", daemon.log())
    # What stood in the topic before the reader had its partition is not read.
    first += 2
    _, _, last = each_second(points, lambda: now_block() > first + BLOCKS + 2)
    ok(last > first + BLOCKS, "blocks are sent", (first, last))
    wanted = 3 * BLOCKS
    ok(wait(lambda: min(len(results(f, first, first + BLOCKS - 1)) for f in files.values()) == wanted), "each block of each flow is told",
       [len(results(f, first, first + BLOCKS - 1)) for f in files.values()])
    there, were = (results(files[n], first, first + BLOCKS - 1) for n in ("topic", "wire"))
    ok(there == were, "the same results, to the byte", f"{there[:1]}\n{were[:1]}")
    ok(metric(daemon, "segment_lost_packets_total") >= 20 * (BLOCKS - 1), "with flow 3, of which the second point saw nothing",
       metric(daemon, "segment_lost_packets_total"))
    values = daemon.metrics()
    topic = f'{{domain="topic",topic="{server.uri("blocks").split("?")[0]}"}}'
    numbers = {n: values[f"pathline_mark_topic_{n}_total{topic}"] for n in ("messages", "good", "bad", "records", "torn")}
    eq(numbers["messages"], numbers["good"] + numbers["bad"], "the account of the topic closes")
    eq(values['pathline_mark_domain_records_total{domain="topic"}'], numbers["records"], "the domain got what was read")
    eq(values['pathline_mark_domain_not_allowed_total{domain="topic"}'], 0, "whatever addresses are allowed")
    eq((numbers["bad"], numbers["torn"]), (0, 2), "only before the first message of each point others may be missing")
    for p in points:
        p.end()
    eq(daemon.stop(), 0, "the daemon ends well")


def test_faults(server):
    """What is no block record is counted. A sender that begins anew may have lost some; a broker that is away is a condition."""
    server.create("faults", 1)
    wire = lab.free_udp_port()
    daemon, _ = daemon_of(server, "faults", wire)
    points = [Point(server, "faults", n, wire) for n in (1, 2)]
    ok(each_second(points, lambda: metric(daemon, "mark_topic_torn_total") == 2)[1], "both points are heard", daemon.log())
    subprocess.run(["kcat", "-P", "-b", server.address, "-t", "faults"], input="one\n", text=True, check=True)
    ok(wait(lambda: metric(daemon, "mark_topic_bad_total") == 1), "a message of another kind")
    points[1].p.kill()
    points[1].p.wait()
    points[1].begin()
    ok(each_second(points, lambda: metric(daemon, "mark_topic_torn_total") == 3)[1], "a sender that began anew")
    server.kill()

    def told():
        return "faults cannot be read, and is waited for" in daemon.get("/readyz?verbose")[1]
    ok(wait(told), "a broker that is away is told", daemon.log())
    server.start()
    ok(wait(lambda: not told()), "until it is back")
    before = metric(daemon, "mark_topic_records_total")
    ok(each_second(points, lambda: metric(daemon, "mark_topic_records_total") > before)[1], "and records come again", daemon.log())
    for p in points:
        p.end()
    eq(daemon.stop(), 0, "the daemon ends well")


def test_refused(server):
    """What cannot be meant is refused with the reason."""
    for keys, words in (("group.id=x", "group.id does not apply"), ("format=json", "rowbinary"), ("auto.offset.reset=never", "auto.offset.reset")):
        config = lab.write("refused.yaml", f"""sources: []
marks:
  - {{name: m, sources: ['{server.uri("t", keys)}'], points: [a=1, b=2]}}
web: {{listen: '127.0.0.1:0'}}
""")
        run = subprocess.run([PATHLINE, "run", "-c", config], capture_output=True, text=True, timeout=60, check=False)
        ok(run.returncode != 0 and words in run.stderr, keys, run.stderr)


def main():
    server = server_or_skip()
    lab.run(*[t for t in (test_same, test_faults, test_refused) if not ONLY or t.__name__ in ONLY], given=(server,))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
