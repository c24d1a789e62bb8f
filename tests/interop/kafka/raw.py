#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reports kept as they arrived in a topic of Kafka (outputs of the type raw), and decoded from there: by `pathline read`, and by
a daemon whose source is the topic. A reader of its own (struct, kcat) is the witness of what the topic has.

    usage: raw.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import http.server
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.pathline import jsonl, run, total  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

from members import FAST, JARS, PATHLINE, PROPERTIES, QUICK, Server, server_or_skip  # noqa: E402

ONLY = sys.argv[4:]
SOON = "session.timeout.ms=1000&heartbeat.interval.ms=200&fetch.min.bytes=1"  # a killed member is missed after a second
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


class Database:
    """Takes points of hops over HTTP as InfluxDB does. While it holds, requests get no answer, and it keeps nothing of them."""

    def __init__(self):
        self.hops, self.lines, self.holds = set(), 0, threading.Event()
        database = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if database.holds.is_set():
                    self.connection.recv(1)  # until the daemon is gone
                    return
                found = re.findall(r"^pathline_hop,node=(\d+)\S* \S*ingress_ts_ns=(\d+)i", body, re.M)
                database.hops.update((int(node), int(ts)) for node, ts in found)
                database.lines += len(found)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def into_database(server, topic, name, database):
    config = lab.write(name + ".yaml", f"""sources:
  - uri: '{server.uri(topic, f"group.id={topic}&{SOON}")}'
outputs:
  - {{name: kept, type: influx, url: '{database.url}', database: any, paths: true, events: false, gzip: false,
     batch: {{age: 100ms}}}}
web: {{listen: '127.0.0.1:0'}}
decode: {{admit: first}}
drain: 30s
""")
    return pathline.Daemon(config, name=name)


def hops_of(path):
    return {(h["node"], h["ingress_ts_ns"]) for r in lines_of(path) for h in r["hops"]}


def test_killed(server):
    """A daemon whose database is slow and still is killed at any instant, and another one goes on: each report reaches it."""
    seed = int(os.environ.get("SEED", "0")) or random.randrange(1, 1 << 30)
    chance = random.Random(seed)
    server.create("killed", 2)
    port = lab.free_udp_port()
    keeping, live = keeper(server, "killed", port)
    database = Database()
    # Until the lives are over: each is to find reports.
    source = pathline.start_gen(port, "-n", 1000000, "-r", "500", "--int", "2.1")
    dropped, read_again, holding = 0, 0, 0
    for life in range(6):
        daemon = into_database(server, "killed", f"life{life}", database)
        ok(wait(lambda: pathline.came(daemon.metrics()) > 0), f"life {life}: it reads (seed {seed})", daemon.log())
        time.sleep(chance.uniform(0, 1.5))
        database.holds.set()
        before = pathline.came(daemon.metrics())
        # What was decoded a second ago and more would be committed, if that were enough.
        ok(wait(lambda: pathline.came(daemon.metrics()) > before + 500), f"life {life}: it decodes while nothing is taken")
        time.sleep(chance.uniform(0, 1.5))
        values = daemon.metrics()
        holding += kept(values, "waiting") > 0
        dropped += sum(v for k, v in values.items() if k.startswith("pathline_output_dropped_total"))
        read_again += pathline.came(values)
        daemon.kill()
        database.holds.clear()
    source.send_signal(signal.SIGINT)
    sent = pathline.sent_by(source)
    ok(settled(keeping, sent), "all reports are in the topic", keeping.log())
    eq((keeping.stop(), dropped, holding), (0, 0, 6), "nothing was dropped, and each life ended with something on its way")
    daemon = into_database(server, "killed", "last", database)
    wanted = hops_of(live)
    ok(wait(lambda: len(wanted - database.hops) == 0), f"every hop of {sent} reports is in the database (seed {seed})",
       f"{len(wanted - database.hops)} of {len(wanted)} are missing\n{daemon.log()[-500:]}")
    eq(len(database.hops - wanted), 0, "and no other")
    eq(daemon.stop(), 0, "the last one ends well")
    lines = database.lines
    ok(lines > len(wanted), "some were written twice", lines)
    rest = run("read", "-o", "jsonl", server.uri("killed", f"group.id=killed&{SOON}"))
    eq((rest.returncode, rest.stdout), (0, ""), "it left nothing that its group would read again")


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


def small_server(megabytes):
    """A server whose log folder is a file system of its own, and what takes the room there; None without the right to mount one."""
    if not lab.mount(lab.path("small"), f"{megabytes}m"):
        return None, None
    # Without room its own topics are not to be what fails first.
    server = Server(JARS, PROPERTIES + "log.index.size.max.bytes=65536\nlog.segment.bytes=1048576\n", name="small")
    return server, lab.path("small/other")


def leave_room(path, room):
    """Takes the rest of the file system."""
    fs = os.statvfs(os.path.dirname(path))
    with open(path, "wb") as f:
        f.write(bytes(fs.f_bavail * fs.f_bsize - room))


def test_broker_full(server):
    """The disk of the broker fills, and the broker ends: each datagram of a collector and each record of a tap is delivered, in a
    spool, or dropped by a cause. When there is room again, what was spooled is delivered."""
    del server
    small, other = small_server(64)
    if small is None:
        tap.skip("a broker whose disk is full", "no right to mount a small disk")
        return
    for topic in "datagrams", "packets":
        small.create(topic, 2)
    port, folder = lab.free_udp_port(), lab.path("datagrams-spool")
    config = lab.write("datagrams.yaml", f"""sources:
  - uri: udp://127.0.0.1:{port}
outputs:
  - {{name: kept, type: raw, to: '{small.uri("datagrams", "delivery.timeout.ms=2000&compression.codec=none")}', spool: {{path: {folder}}}}}
web: {{listen: '127.0.0.1:0'}}
decode: {{admit: first}}
""")
    daemon = pathline.Daemon(config, name="datagrams")
    trace = lab.path("packets.pcap")
    run("gen", "packets", "--duration", "20s", "-w", trace)
    packets = len(run("tap", "-o", "jsonl", trace).stdout.splitlines())
    records = small.uri("packets", f"spool={lab.path('packets-spool')}&delivery.timeout.ms=2000&compression.codec=none")
    sent = pathline.gen(port, "-n", 1000, "-r", "10000", "--int", "2.1")
    ok(wait(lambda: kept(daemon.metrics(), "delivered_total") == sent), "with room all is delivered", daemon.log())
    leave_room(other, 2 << 20)
    tapping = lab.start([PATHLINE, "tap", "--stats", "--rate", str(packets // 5), "--to", records, trace], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
    sent += pathline.gen(port, "-n", 20000, "-r", "5000", "--int", "2.1", "--hops", 6, "--seed", 2)
    ok(wait(lambda: small.process.poll() is not None), "the broker ends without room", lab.read("small1.log")[-1000:])
    ok("No space left on device" in lab.read("small1.log"), "for that reason", lab.read("small1.log")[-1000:])
    out, _ = tapping.communicate(timeout=120)
    first = json.loads(out.splitlines()[-1])["outputs"][0]
    spool = first["spool"]
    eq(first["put"], first["delivered"] + first["returned"] + sum(first["dropped"].values()), "tap: put = delivered + returned + dropped")
    eq(first["delivered"] + spool["held"] + spool["dropped"] + sum(first["dropped"].values()), packets,
       f"tap: delivered + spooled + dropped, of every record ({first['delivered']} + {spool['held']} + {spool['dropped']})")
    ok(spool["held"] > 0, "some are in its spool", spool)
    ok(wait(lambda: kept(daemon.metrics(), "waiting") == 0 and pathline.came(daemon.metrics()) == sent), "collector: nothing is on its way")
    values = daemon.metrics()
    dropped = sum(v for k, v in values.items() if k.startswith("pathline_output_dropped_total") and "kept" in k)
    eq(kept(values, "delivered_total") + kept(values, "spooled") + dropped, sent, "collector: delivered + spooled + dropped, of every datagram "
       f"({kept(values, 'delivered_total')} + {kept(values, 'spooled')} + {int(dropped)})")
    ok(kept(values, "spooled") > 0, "some are in its spool")
    os.unlink(other)
    small.start()
    ok(wait(lambda: kept(daemon.metrics(), "spooled") + kept(daemon.metrics(), "waiting") == 0), "with room again it is delivered", daemon.log())
    values = daemon.metrics()
    eq((kept(values, "delivered_total"), dropped), (sent, 0), "collector: each datagram, and none is dropped")
    # A message whose acknowledgement was lost may be there twice.
    eq(len({e for of in in_topic(small, "datagrams").values() for e in of}), sent, "and is in the topic")
    eq(daemon.stop(), 0, "the daemon ends well")
    tapping = lab.start([PATHLINE, "tap", "--stats", "--to", records, f"udp://127.0.0.1:{lab.free_udp_port()}"], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
    ok(wait(lambda: stored_records(small, "packets") >= first["delivered"] + spool["held"]), "the next tap sends what was spooled",
       (stored_records(small, "packets"), first))
    tapping.terminate()
    out, _ = tapping.communicate(timeout=60)
    second = json.loads(out.splitlines()[-1])["outputs"][0]
    eq((second["delivered"], second["spool"]["held"], second["spool"]["dropped"] + second["spool"]["damaged"]), (spool["held"], 0, 0),
       "each record of it, and nothing is left")


def stored_records(server, topic):
    made = subprocess.run(["kcat", "-q", "-C", "-b", server.address, "-t", topic, "-o", "beginning", "-e", "-f", "%S\n"],
                          capture_output=True, text=True, check=True).stdout
    return sum(map(int, made.split())) // 64


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
    tests = test_replay, test_fixed, test_follow, test_killed, test_spool, test_broker_full, test_size, test_refused
    lab.run(*[t for t in tests if not ONLY or t.__name__ in ONLY], given=(server,))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
