#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The published P4-to-RDMA collection as a lab: what a switch forwards comes into the mapped file of a collector by WRITEs of its
own, each packet once and in its order, and records that a link loses are the entries that are empty; the controller takes what
is sensible and nothing else. usage: lab_rdma.py PATHLINE"""
import json
import os
import signal
import struct
import subprocess
import sys

# As in labs.py: a leak is looked for by a process that cannot see its parent.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE, jsonl  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

NAME = f"p{os.getpid()}"
SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "examples", "lab", "p4-to-rdma.yaml")
FOLDER = f"/run/pathline/lab/{NAME}"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
# Says what is given in hexadecimal, and what is answered.
TELL = """import socket, sys
s = socket.create_connection(("10.1.3.1", 19876), timeout=60)
s.sendall(bytes.fromhex(sys.argv[1]))
s.shutdown(socket.SHUT_WR)
print(s.recv(100).hex())"""


def run(*words):
    return subprocess.run([PATHLINE, *words], capture_output=True, text=True, timeout=120, check=False)


def entries():
    """By number."""
    return {x["number"]: bytes.fromhex(x["value"]) for x in jsonl(run("region", "dump", "-o", "jsonl", f"{FOLDER}/records.plr").stdout)
            if "number" in x}


def log_of(name):
    with open(f"{FOLDER}/{name}.log", encoding="utf-8") as f:
        return f.read()


def traffic(kind):
    got = run("lab", "traffic", NAME, kind, "h1", "h2", "--rate", "160k", "--duration", "1s", "-o", "json")
    account = json.loads(got.stdout)
    return account["senders"][0]["sent"], account["receiver"]["came"]


def written():
    return sum(x["packets"] for x in json.loads(run("switch", "counters", "-s", f"{FOLDER}/s1.sock", "roce_write.writes", "-o", "json").stdout)["counters"])


def lost():
    """By the books of the link to the collector."""
    return next(d["line"]["lost_listed"] for d in jsonl(run("lab", "truth", NAME).stdout) if (d["from"], d["to"]) == ("s1", "store"))


def arrives():
    sent, came = traffic("udp")
    eq((came, sent), (sent, 20), "h2 has all that h1 sent")
    ok(wait(lambda: len(entries()) == sent), "and the file has a record of each", len(entries()))
    got = entries()
    eq(sorted(got), list(range(sent)), "one behind the other")
    fields = [struct.unpack("<16s16sHHIQ", got[i]) for i in range(sent)]
    eq({(f[0][12:], f[1][12:], f[3], f[4]) for f in fields}, {(b"\x0a\1\0\1", b"\x0a\1\1\1", 5201, 1)}, "of its flow and port")
    times = [f[5] for f in fields]
    ok(times == sorted(set(times)), "in the order in which packets came", times)
    return sent


def loses(before):
    eq(run("lab", "impair", NAME, "s1>store", "lose=3,10").returncode, 0, "two records are to be lost")
    sent, came = traffic("udp")
    eq(came, sent, "h2 has all")
    ok(wait(lambda: len(entries()) == before + sent), "the file has what came", len(entries()))
    got = entries()
    eq([i - before for i, value in got.items() if value == bytes(48)], [3, 10], "the lost ones are the empty entries")
    eq((written(), lost()), (before + sent, 2), "written is what the file has and the link lost")


def signals(total):
    """The published immediate of each record wakes a worker."""
    lines = [x for x in jsonl("\n".join(line for line in log_of("collect").splitlines() if line.startswith('{"store"')))]
    ok(len({x["entry"] for x in lines}) > 0 and all(x["store"] == "records" and x["entry"] < total for x in lines), "workers read entries", lines[-1:])


def tells(text):
    got = run("lab", "exec", NAME, "h1", "--", PYTHON, "-c", TELL, text)
    return got.stdout.strip(), got.stderr


def controller():
    rows = run("switch", "table", "dump", "-s", f"{FOLDER}/s1.sock", "routes").stdout
    for what, text in (("a queue pair above 24 bits", "00" * 12 + "01000000" + "00" * 18), ("half of it", "00" * 17), ("nothing", "")):
        eq(tells(text)[0], "", f"{what} has no answer")
    eq(run("switch", "table", "dump", "-s", f"{FOLDER}/s1.sock", "routes").stdout.count("qpn="), rows.count("qpn="), "and no entry")
    good = struct.pack(">QIIH16s", 0x200000, 7, 9, 0, bytes(16)).hex()
    eq(tells(good)[0], good, "34 bytes come back")
    ok("qpn=9 " in run("switch", "table", "dump", "-s", f"{FOLDER}/s1.sock", "routes").stdout.replace("\n", " "), "and stand in the entry")
    other = run("switch", "controller", "-s", f"{FOLDER}/s1.sock", "127.0.0.1:0", "routes", "ip.dst=10.1.1.1/32 -> drop")
    ok(other.returncode == 2 and "no {va}" in other.stderr, "an entry without a place for them is refused", other.stderr)
    refused = subprocess.Popen([PATHLINE, "lab", "exec", NAME, "h2", "--", "sh", "-c",
                                f"exec pathline switch controller -s {FOLDER}/s1.sock 10.1.1.1:19876 nothing 'x -> y va={{va}} rkey={{rkey}} qpn={{qpn}}'"],
                               stderr=subprocess.PIPE, text=True)
    lab.running.append(refused)
    ok("listens on 10.1.1.1:19876" in refused.stderr.readline(), "another one, for a table that is not there")
    got = run("lab", "exec", NAME, "h1", "--", PYTHON, "-c", TELL.replace("10.1.3.1", "10.1.1.1"), good)
    eq(got.stdout.strip(), "", "does not answer")
    ok("refuses the entry" in refused.stderr.readline(), "and says why")
    refused.send_signal(signal.SIGTERM)
    refused.wait(60)
    lab.running.remove(refused)


def up():
    """The network that comes with the program, under a name of its own."""
    with open(SHIPPED, encoding="utf-8") as f:
        path = lab.write("net.yaml", f.read().replace("name: p4-to-rdma\n", f"name: {NAME}\n"))
    got = run("lab", "up", path)
    ok(got.returncode == 0, "up", got.stderr)
    lab.undo(PATHLINE, "lab", "down", NAME)


def test_published():
    up()
    n = arrives()
    loses(n)
    signals(2 * n)
    got = run("lab", "check", NAME)
    ok(got.returncode == 0 and f"{2 * n} records written, {2 * n} in the file" in got.stdout, "check counts them", got.stdout + got.stderr)
    eq(run("lab", "down", NAME).returncode, 0, "down")


def test_controller():
    up()
    controller()
    eq(run("lab", "down", NAME).returncode, 0, "down")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    lab.run(test_published, test_controller)
    return tap.end()


sys.exit(main())
