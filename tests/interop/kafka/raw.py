#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reports kept as they arrived in a topic of Kafka (outputs of the type raw), and decoded from there: by `pathline read`, and by
a daemon whose source is the topic. A reader of its own (struct, kcat) is the witness of what the topic has.

    usage: raw.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import json
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.pathline import jsonl, run, total  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

from members import FAST, PATHLINE, QUICK, server_or_skip  # noqa: E402

ONLY = sys.argv[4:]
pathline.PATHLINE = PATHLINE
REPORTS = 3000
# Versions and dialects that one port receives, and damaged ones among them.
KINDS = (("--int", "2.1", "--report", "2.0"), ("--int", "1.0", "--malform", "all:0.1"), ("--int", "0.5", "--dialect", "intcollector"))


def in_topic(server, topic):
    """Entries of all messages by partition: time, source, both ports, bytes. A message that is not whole raises an error."""
    found = {}
    made = subprocess.run(["kcat", "-q", "-C", "-b", server.address, "-t", topic, "-o", "beginning", "-e", "-f", "%p %S\n%s"],
                          capture_output=True, check=True).stdout
    at = 0
    while at < len(made):
        line = made[at:made.index(b"\n", at)]
        partition, size = map(int, line.split())
        value, at = made[at + len(line) + 1:at + len(line) + 1 + size], at + len(line) + 1 + size
        while value:
            ts, src, _, sport, dport, length, wire, link = struct.unpack_from("<Q16s16sHHIIB", value)
            found.setdefault(partition, []).append((ts, src, sport, dport, value[64:64 + length]))
            assert len(value) >= 64 + length and wire == length and link == 4, (len(value), length, link)
            value = value[64 + (length + 7) // 8 * 8:]
    return found


def plain(records):
    """Records of reports without what says which worker made them."""
    return sorted(json.dumps({k: v for k, v in r.items() if k not in ("id", "report_id")}, sort_keys=True)
                  for r in records if r.get("kind", "path") == "path")


def keeper(server, topic, port, more="", keys=""):
    """A daemon that decodes what comes by UDP, and keeps it."""
    live = lab.path(topic + ".live.jsonl")
    config = lab.write(topic + ".yaml", f"""sources:
  - uri: udp://127.0.0.1:{port}
outputs:
  - {{name: here, type: jsonl, path: {live}, rotate: {{size: 0}}, events: false}}
  - {{name: kept, type: raw, to: '{server.uri(topic)}'{keys}}}
web: {{listen: '127.0.0.1:0'}}
decode: {{admit: first}}
{more}""")
    return pathline.Daemon(config, name=topic), live


def kept(values, what):
    return int(values.get(f'pathline_output_{what}{{output="kept"}}', 0))


def settled(daemon, n):
    return wait(lambda: pathline.came(daemon.metrics()) == n and kept(daemon.metrics(), "delivered_total") == n)


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def test_replay(server):
    """The same records from the topic as live, of every kind of report that came, and the same faults."""
    server.create("replay", 3)
    port = lab.free_udp_port()
    daemon, live = keeper(server, "replay", port)
    sent = sum(pathline.gen(port, "-n", REPORTS, "-r", "20000", "--seed", i, *kind) for i, kind in enumerate(KINDS))
    ok(settled(daemon, sent), "all reports are acknowledged", daemon.log())
    values = daemon.metrics()
    pathline.accounts_close(values, "live")
    errors = total(values, "pathline_report_errors_total")
    ok(errors > 0, "and some were damaged")
    eq(daemon.stop(), 0, "the daemon ends well")
    entries = [e for of in in_topic(server, "replay").values() for e in of]
    eq((len(entries), {e[3] for e in entries}, {e[1] for e in entries}),
       (sent, {port}, {bytes(10) + b"\xff\xff\x7f\x00\x00\x01"}), "the witness finds each datagram, with its port and source")
    headers = subprocess.run(["kcat", "-q", "-C", "-b", server.address, "-t", "replay", "-o", "beginning", "-e", "-f", "%h\n"],
                             capture_output=True, check=True).stdout
    ok(headers.startswith(b"f=raw/1,n="), "the header f says raw/1", headers[:40])
    again = run("read", "-o", "jsonl", "--stats", server.uri("replay"))
    eq(again.returncode, 0, "the topic is read to its end: " + again.stderr[-400:])
    records = jsonl(again.stdout)
    stats = records.pop()
    eq((stats["packets"], sum(n for v, n in stats["verdicts"].items() if v != "ok") > 0), (sent, True), "as many packets, faults too")
    there, were = plain(records), plain(lines_of(live))
    ok(len(were) > 2 * REPORTS, "there are records to compare", len(were))
    ok(there == were, "the same records as live", f"{len(there)} and {len(were)}\n{there[:1]}\n{were[:1]}")


def test_fixed(server):
    """A daemon that reads the reports as a dialect that they are not decodes nothing; from the topic they are decoded all."""
    server.create("fixed", 1)
    port = lab.free_udp_port()
    daemon, live = keeper(server, "fixed", port, "profiles:\n  - {match: 127.0.0.0/8, trailing_words: 3}\n")
    sent = pathline.gen(port, "-n", 500, "-r", "20000", "--int", "2.1")
    ok(settled(daemon, sent), "all reports are acknowledged", daemon.log())
    wrong = total(daemon.metrics(), "pathline_report_errors_total")
    daemon.stop()
    hops = sum(len(r["hops"]) for r in lines_of(live))
    again = jsonl(run("read", "-o", "jsonl", server.uri("fixed")).stdout)
    ok(wrong > 0 or hops != sum(len(r["hops"]) for r in again), "live, most is wrong", f"{wrong} errors, {hops} hops")
    eq((len(again), all(r["hops"] for r in again)), (sent, True), "decoded again, all is there")


def follower(server, topic, name, keys=""):
    out = lab.path(name + ".jsonl")
    config = lab.write(name + ".yaml", f"""sources:
  - uri: '{server.uri(topic, keys)}'
outputs:
  - {{type: jsonl, path: {out}, rotate: {{size: 0}}}}
web: {{listen: '127.0.0.1:0'}}
decode: {{admit: first}}
""")
    return pathline.Daemon(config, name=name), out


def test_follow(server):
    """A daemon follows the topic; killed, the next one of its group goes on without a gap."""
    server.create("follow", 2)
    port = lab.free_udp_port()
    daemon, live = keeper(server, "follow", port)
    first, out = follower(server, "follow", "first", f"group.id=decoders&{QUICK}")
    sent = pathline.gen(port, "-n", 1000, "-r", "10000", "--int", "2.1")
    ok(wait(lambda: pathline.came(first.metrics()) == sent), "it has them all", first.log())
    ok(wait(lambda: os.path.getsize(out) > 0), "and writes them")
    first.kill()
    sent += pathline.gen(port, "-n", 1000, "-r", "10000", "--int", "2.1", "--seed", 7)
    ok(settled(daemon, sent), "more come meanwhile", daemon.log())
    second, out2 = follower(server, "follow", "second", f"group.id=decoders&{QUICK}")
    ok(wait(lambda: pathline.came(second.metrics()) >= sent - 1000), "the next one goes on", second.log())
    eq(second.stop(), 0, "it ends well")
    daemon.stop()
    got, were = [set(plain(lines_of(path))) for path in (out2, live)]
    before = lines_of(out)
    newest = max(r["ts_ns"] for r in before)
    ok(set(plain(r for r in lines_of(live) if r["ts_ns"] > newest)) <= got, "nothing of what came meanwhile is missing", len(got))
    ok(got | set(plain(before)) == were, "both together have each report", f"{len(got)} {len(were)}")


def test_spool(server):
    """Without a broker reports go to the spool, and from there into the topic: emitted = delivered + dropped by cause."""
    server.create("spool", 2)
    port = lab.free_udp_port()
    folder = lab.path("raw-spool")
    keys = f", spool: {{path: {folder}}}"
    daemon, live = keeper(server, "spool", port, keys=keys)
    sent = pathline.gen(port, "-n", 1000, "-r", "10000", "--int", "2.1")
    ok(settled(daemon, sent), "the first ones are there", daemon.log())
    server.kill()
    sent += pathline.gen(port, "-n", 20000, "-r", "20000", "--int", "2.1", "--seed", 3)
    ok(wait(lambda: pathline.came(daemon.metrics()) == sent), "reception goes on", daemon.log())
    eq(daemon.stop(), 0, "the daemon ends while there is no broker: " + daemon.log()[-300:])
    server.start()
    daemon, _ = keeper(server, "spool", port, keys=keys)
    ok(wait(lambda: kept(daemon.metrics(), "spooled") + kept(daemon.metrics(), "waiting") == 0), "the next one sends it", daemon.log())
    values = daemon.metrics()
    eq(kept(values, "recovered_total"), kept(values, "delivered_total"), "what was on disk is delivered")
    pathline.accounts_close({k: v for k, v in values.items() if "kept" not in k}, "the next one")
    daemon.stop()
    # A message whose acknowledgement was lost may be there twice.
    entries = [e for of in in_topic(server, "spool").values() for e in of]
    eq(len(set(entries)), sent, f"each is in the topic ({len(entries)} with those that are twice)")


def test_size(server):
    """A topic that takes less than a message of ours usually has gets smaller ones; one that takes no datagram is told of."""
    server.create("slim", 1, "max.message.bytes=70000")
    server.create("tiny", 1, "max.message.bytes=1000")
    for topic, fits in ("slim", True), ("tiny", False):
        port = lab.free_udp_port()
        daemon, _ = keeper(server, topic, port, keys=f", spool: {{path: {lab.path(topic + '.spool')}}}")
        sent = pathline.gen(port, "-n", 4000, "-r", "40000", "--int", "2.1", "--hops", 12)
        if fits:
            ok(settled(daemon, sent), "a topic of small messages: each report is acknowledged", daemon.log())
            eq(len(in_topic(server, topic)[0]), sent, "and is there")
        ok(fits or wait(lambda: "takes messages of 1000 bytes" in daemon.log() and "max.message.bytes of the topic" in daemon.log()),
           f"{topic}: what is wrong is told", daemon.log())
        daemon.stop()


def test_refused(server):
    """What cannot work is told, and counted."""
    run_again = run("read", server.uri("not-there"))
    ok(run_again.returncode == 1 and "not-there" in run_again.stderr, "a topic that is missing", run_again.stderr)
    server.create("records", 1)
    subprocess.run(["kcat", "-P", "-b", server.address, "-t", "records"], input="one\n", text=True, check=True)
    again = run("read", "-o", "jsonl", "--stats", server.uri("records"))
    ok("1 message" in again.stderr, "a message of another format is told of", again.stderr)
    port = lab.free_udp_port()
    daemon, _ = keeper(server, "never-made", port)
    sent = pathline.gen(port, "-n", 100, "--int", "2.1")
    ok(wait(lambda: kept(daemon.metrics(), "offered_total") == sent and
            sum(v for k, v in daemon.metrics().items() if k.startswith("pathline_output_dropped_total") and "kept" in k) == sent),
       "what a missing topic costs is counted", daemon.log())
    ok("never-made" in daemon.log(), "and told of", daemon.log())
    daemon.stop()


def main():
    server = server_or_skip()
    tests = test_replay, test_fixed, test_follow, test_spool, test_size, test_refused
    lab.run(*[t for t in tests if not ONLY or t.__name__ in ONLY], given=(server,))
    return tap.end()


sys.exit(main())
