# SPDX-License-Identifier: BSD-2-Clause
"""Members of a group that ask one question, for the tests against a Kafka server: topics of records with a slow count of what
was sent, the members, and the rows that they give. The program's arguments are INTEROP_KAFKA FOLDER PATHLINE [TEST]…"""
import collections
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

from lib import lab, tap
from lib.kafka import Broker
from lib.wait import wait

PROGRAM, JARS, PATHLINE = sys.argv[1:4]
BASE = 1700000000000000000
SECOND = 1000000000
PARTITIONS = 4
QUESTION = ("SELECT sport, count(*) AS n, sum(wire_len) AS b, count(distinct dport) AS d FROM packets TUMBLE(ts, 1s) "
            "GROUP BY sport")
FLOWS = ("SELECT src, dst, sport, dport, proto, count(*) AS n FROM packets TUMBLE(ts, 1s) "
         "GROUP BY src, dst, sport, dport, proto")
# Members that are killed are missed after six seconds.
QUICK = "session.timeout.ms=6000&heartbeat.interval.ms=300&fetch.min.bytes=1&socket.keepalive.enable=true"

# The first metadata of a topic that was just made may not know its leaders yet.
FAST = "topic.metadata.refresh.interval.ms=500&retry.backoff.ms=50&reconnect.backoff.max.ms=500"
PROPERTIES = """auto.create.topics.enable=false
group.min.session.timeout.ms=500
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
"""


class Server(Broker):
    def uri(self, topic, keys=""):
        return super().uri(topic, f"?{FAST}{'&' + keys if keys else ''}")

    def create(self, topic, partitions, *setting):
        run = subprocess.run([PROGRAM, "create", self.uri(topic), str(partitions), *setting], capture_output=True, text=True,
                             check=False)
        if run.returncode != 0:
            raise RuntimeError(run.stderr)

    def members(self, group):
        """How many the brokers know of."""
        run = subprocess.run([PROGRAM, "members", self.uri(group), group], capture_output=True, text=True, check=False)
        return int(run.stdout)


def record(at, sport, dport, wire_len):
    """A pkt64 record, and what the counts below need of it."""
    src = dst = bytes(10) + b"\xff\xff\x0a\x00\x00\x01"
    head = struct.pack("<Q16s16sHHBBBBIIHHHH", at, src, dst, sport, dport, 17, 0, 64, 0, 0, 0, 0, 0, 0, 0)
    assert len(head) == 64
    return head[:58] + struct.pack("<H", wire_len) + head[60:]


class Table:
    """Records in seconds of their own time, spread over the partitions, and what was sent of them."""

    def __init__(self, server, topic, seed):
        self.server, self.topic, self.random = server, topic, random.Random(seed)
        self.source = topic  # what members read
        self.second = 0
        self.counts = collections.defaultdict(lambda: [0, 0, set()])
        server.create(topic, PARTITIONS)

    def send(self, seconds, only=range(PARTITIONS)):
        """`seconds` more of them, into these partitions, in order of time within each."""
        for partition in only:
            messages = []
            for second in range(self.second, self.second + seconds):
                values = []
                for k in range(40):
                    sport, dport = self.random.randrange(6), self.random.randrange(50)
                    size = self.random.randrange(40, 1500)
                    at = BASE + second * SECOND + k * 20000000 + partition
                    values.append(record(at, sport, dport, size))
                    count = self.counts[BASE + second * SECOND, sport]
                    count[0] += 1
                    count[1] += size
                    count[2].add(dport)
                messages.append(b"".join(values))
            self.put(partition, messages)
        self.second += seconds

    def put(self, partition, messages):
        file = lab.path(f"{self.topic}.bin")
        with open(file, "wb") as f:
            for m in messages:
                f.write(struct.pack("<I", len(m)) + m)
        subprocess.run([PROGRAM, "raw", self.server.uri(self.topic), str(partition), file], check=True, timeout=60)

    def want(self):
        """Every window that is closed once later records or silence have come."""
        return {(w0, sport): (n, size, len(dports)) for (w0, sport), (n, size, dports) in self.counts.items()}


class Member:
    """session: milliseconds after which the brokers miss it. patient: until it asks."""

    def __init__(self, table, question, *more, group=None, uri="", session=6000, patient=True):
        self.log = lab.path(f"member{random.random()}.log")
        self.process = lab.start(
            [PATHLINE, "query", question, "--from", table.server.uri(table.source, QUICK.replace("6000", str(session)) + uri), "--group", group or table.topic,
             "--to", f"kafka://127.0.0.1:{table.server.port}/{table.topic}.rows", "--lateness", "0", "--idle", "6s", *more],
            log=self.log)
        self.told = False
        self.ready = lambda: "asking" in open(self.log, encoding="utf-8").read()
        if patient and not wait(self.ready):
            raise RuntimeError(open(self.log, encoding="utf-8").read())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def tell(self):
        """To end. It is told once: the second time it stops at once, whatever it waits for."""
        if not self.told:
            self.process.terminate()
        self.told = True

    def end(self):
        """Its exit code. 0 too when it ended by an assertion of librdkafka 2.0.2 about its own assignor's state, which leaving
        a group while partitions move can hit (docs/guide/kafka.md): all that it had done is committed by then."""
        self.tell()
        code = self.process.wait(timeout=300)  # its waits for acknowledgements, commits and closing are 60 s each at most
        if code == 1:
            tap.comment(open(self.log, encoding="utf-8").read()[-1000:])
        if code == 3:  # none of the rows was this member's to give
            return 0
        return 0 if code == -6 and "rdkafka_sticky_assignor.c" in open(self.log, encoding="utf-8").read() else code


def rows(table, *more):
    """All result messages: window and key, and the values."""
    try:
        run = subprocess.run(["kcat", "-q", "-C", "-b", f"127.0.0.1:{table.server.port}", "-t", table.topic + ".rows", "-o",
                              "beginning", "-e", "-f", "%k\t%s\n", *more], capture_output=True, text=True, check=False,
                             timeout=60)
    except subprocess.TimeoutExpired as e:
        raise OSError(f"kcat reads no end within {e.timeout} s") from e
    found = []
    for line in run.stdout.splitlines():
        key, value = line.split("\t")
        found.append((key, json.loads(value)))
    return found


def values_of(message):
    return tuple(message["val"].values())


def begin(server, topic, seed, *setting):
    """setting: of the topic of partial results."""
    table = Table(server, topic, seed)
    server.create(topic + ".rows", 2)
    server.create("tm.partial." + topic, 3, *setting)
    return table


def server_or_skip(more=""):
    missing = next((p for p in ("java", "kcat", "openssl") if shutil.which(p) is None), None)
    if missing:
        tap.skip_all(f"missing: {missing}")
    fetch = subprocess.run([os.path.join(os.path.dirname(__file__), "..", "..", "..", "tools", "kafka"), JARS], capture_output=True,
                           text=True, check=False, preexec_fn=lab.into_machine_network)
    if fetch.returncode != 0:
        tap.skip_all("missing: " + re.sub(r"\s+", " ", fetch.stderr).strip())
    return Server(JARS, (lambda *ports: PROPERTIES + more(*ports)) if callable(more) else PROPERTIES + more)
