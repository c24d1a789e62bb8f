#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A real change of leader: of two brokers the one that leads a topic is killed while a tap writes into it and a query reads it.
Every record that the tap put is delivered or dropped by cause, and is in the topic once.

    usage: leader.py INTEROP_KAFKA FOLDER PATHLINE     (the server's jars, tools/kafka)
"""
import json
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, tap  # noqa: E402
from lib.kafka import Second  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

from members import PATHLINE, server_or_skip  # noqa: E402


def leaders(server):
    said = subprocess.run(["kcat", "-L", "-J", "-b", server.address, "-t", "moved"], capture_output=True, text=True, check=False).stdout
    return [p["leader"] for t in json.loads(said or "{}").get("topics", []) for p in t["partitions"]]


def test_leader(server):
    second = Second(server)
    server.create("moved", 4)
    ok(wait(lambda: set(leaders(server)) == {1, 2}), "both brokers lead partitions of a topic of two replicas", str(leaders(server)))
    port, uri = lab.free_udp_port(), server.uri("moved", "records=16")
    log = lab.path("tap.log")
    tapper = lab.start([PATHLINE, "tap", "--stats", "--to", uri, "--to", "file:" + lab.path("copy.pkt64"), f"udp://127.0.0.1:{port}"], log=log,
                       stdout=subprocess.PIPE, text=True)
    wait(lambda: "tapping" in lab.read("tap.log"))
    with open(lab.path("read.csv"), "w", encoding="ascii") as f:
        reader = lab.start([PATHLINE, "query", "-o", "csv", "SELECT sport FROM packets", "--from",
                            uri + "&auto.offset.reset=earliest&fetch.min.bytes=1"], log=lab.path("reader.log"), stdout=f)
    wait(lambda: "asking" in lab.read("reader.log"))
    trace = lab.path("trace.pcap")
    subprocess.run([PATHLINE, "gen", "packets", "--story", "--duration", "4s", "-w", trace], check=True, capture_output=True)

    def send():
        subprocess.run([PATHLINE, "tap", "--to", f"udp://127.0.0.1:{port}", trace], check=True, capture_output=True)

    send()
    second.kill()
    send()
    ok(wait(lambda: leaders(server) == [1] * 4), "the first broker leads all of them now", str(leaders(server)))
    send()

    def size():
        return os.path.getsize(lab.path("copy.pkt64")) // 64

    sizes = []
    wait(lambda: sizes.append(size()) or (len(sizes) > 3 and sizes[-1] == sizes[-3] > 0))
    tapper.send_signal(signal.SIGTERM)
    out, _ = tapper.communicate(timeout=120)
    topic, copy = json.loads(out.splitlines()[-1])["outputs"]
    eq(topic["put"], topic["delivered"] + sum(topic["dropped"].values()), "put = delivered + dropped by cause")
    eq(topic["put"], copy["records"], "and the file has as many")
    ok(topic["delivered"] > 0, "records were delivered", str(topic))

    def in_topic():
        said = subprocess.run(["kcat", "-q", "-C", "-b", server.address, "-t", "moved", "-o", "beginning", "-e", "-f", "%S\n"],
                              capture_output=True, text=True, check=False).stdout
        return sum(map(int, re.findall(r"\d+", said))) // 64

    eq(in_topic(), topic["delivered"], "the topic has each record that was delivered once")

    def read():
        return len(lab.read("read.csv").splitlines()) - 1  # the first one has the name of the column

    wait(lambda: read() >= topic["delivered"])
    reader.terminate()
    reader.wait(timeout=60)
    eq(read(), topic["delivered"], "the reader went on at the new leader, and has each once")


lab.run(test_leader, given=(server_or_skip("default.replication.factor=2\noffsets.topic.replication.factor=2\n"),))
sys.exit(tap.end())
