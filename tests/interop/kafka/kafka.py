#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Our producer and consumer against a Kafka server, with kcat as the witness of what the server has. The server is paused,
killed and started again, and every record has to be in our accounts, and where they say.

    usage: kafka.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

PROGRAM, JARS, PATHLINE = sys.argv[1:4]
ONLY = sys.argv[4:]
BASE = 1700000000000000000
JAVA = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-cp", os.path.join(JARS, "*")]
# Retention goes by the times of messages, which are those of records, and the records here are years old.
SERVER = """process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},TLS://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,TLS:SASL_SSL,CONTROLLER:PLAINTEXT
listener.name.tls.ssl.keystore.type=PEM
listener.name.tls.ssl.keystore.location={certificate}
listener.name.tls.sasl.enabled.mechanisms=PLAIN
listener.name.tls.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_tap="p=w#d";
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
log.cleaner.dedupe.buffer.size=4194304
log.retention.ms=-1
"""
# The first metadata of a topic that was just made may not know its leaders yet.
FAST = "topic.metadata.refresh.interval.ms=500&retry.backoff.ms=50&reconnect.backoff.max.ms=500"


def certificate(name):
    """One that signs itself, with its key in the same file; the path of it. NAME.crt has the certificate alone."""
    key, crt = lab.path(name + ".key"), lab.path(name + ".crt")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", crt, "-days", "2",
                    "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True, check=True)
    return lab.write(name + ".pem", lab.read(name + ".key") + lab.read(name + ".crt"))


class Server:
    def __init__(self):
        self.port = lab.free_port()
        self.tls = lab.free_port()
        self.config = lab.write("server.properties", SERVER.format(port=self.port, tls=self.tls, controller=lab.free_port(),
                                                                   certificate=certificate("server"), data=lab.path("data")))
        self.starts = 0
        run = subprocess.run(JAVA + ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", self.config],
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError("the server's folder cannot be made\n" + run.stdout + run.stderr)
        self.start()

    def start(self):
        self.starts += 1
        log = f"server{self.starts}.log"
        self.process = lab.start(JAVA + ["kafka.Kafka", self.config], log=lab.path(log))
        if not wait(lambda: "Kafka Server started" in lab.read(log)):
            raise RuntimeError("the server does not start\n" + lab.read(log)[-4000:])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def uri(self, topic, more=""):
        return f"kafka://127.0.0.1:{self.port}/{topic}?{FAST}{'&' + more if more else ''}"

    def create(self, topic, partitions, *more):
        run = subprocess.run([PROGRAM, "create", self.uri(topic), str(partitions), *more], capture_output=True, text=True,
                             check=False)
        if run.returncode != 0:
            raise RuntimeError(run.stderr)


def produce(uri, n, close_ms=60000):
    """The numbers of a producer of n records."""
    run = subprocess.run([PROGRAM, "produce", uri, str(n), str(close_ms)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout.splitlines()[-1])


class Producer:
    """One that goes on until it is told to end."""

    def __init__(self, uri, close_ms):
        self.process = lab.start([PROGRAM, "produce", uri, "0", str(close_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(self.process.stderr.read())

    def end(self):
        out, err = self.process.communicate("\n", timeout=120)
        if self.process.returncode != 0:
            raise RuntimeError(err)
        return json.loads(out.splitlines()[-1])


def stored(server, topic, *more):
    """Every value of the topic, one behind the other."""
    run = subprocess.run(["kcat", "-q", "-C", "-b", f"127.0.0.1:{server.port}", "-t", topic, "-o", "beginning", "-e", "-D", "",
                          "-f", "%s", *more], capture_output=True, check=True, timeout=60)
    return run.stdout


def one(server, topic, partition="0"):
    """Whether a message is in the partition."""
    run = subprocess.run(["kcat", "-q", "-C", "-b", f"127.0.0.1:{server.port}", "-t", topic, "-p", partition, "-o", "beginning",
                          "-e", "-c", "1", "-f", "%S"], capture_output=True, check=False, timeout=60)
    return run.stdout


def record(i):
    return struct.pack("<8Q", BASE + i, *[i] * 7)


def numbers_of(values):
    """The records' numbers; None for bytes that are none of ours."""
    found = []
    for at in range(0, len(values), 64):
        i = struct.unpack_from("<Q", values, at + 8)[0] if at + 64 <= len(values) else None
        found.append(i if i is not None and values[at:at + 64] == record(i) else None)
    return found


def check_accounts(stats, when):
    dropped = sum(v for name, v in stats.items() if name.startswith("drop_"))
    eq(stats["delivered"] + dropped, stats["put"], f"{when}: put = delivered + dropped, {stats['put']} = "
       f"{stats['delivered']} + {dropped}")
    eq(stats["waiting"], 0, f"{when}: nothing waits at the end")
    return dropped


def test_exact(server):
    n = 200000
    server.create("exact", 4)
    for codec in "lz4", "none", "zstd":
        topic = "exact" if codec == "lz4" else codec
        server.create(topic, 4 if codec != "lz4" else 5)
        stats = produce(server.uri(topic, "compression.codec=" + codec), n)
        eq(check_accounts(stats, codec), 0, f"{codec}: nothing is dropped")
        values = stored(server, topic)
        eq(len(values), n * 64, f"{codec}: bytes that kcat reads")
        eq(sorted(values[at:at + 64] for at in range(0, len(values), 64)) == sorted(record(i) for i in range(n)), True,
           f"{codec}: every record once, as it was")
    found = stored(server, "none", "-c", "1", "-p", "0", "-f", "%h %S %T")
    ok(found.startswith(b"f=pkt64/1,n="), "the headers begin with the format", found)
    size, when = found.split()[-2:]
    eq(int(size) % 64, 0, "whole records")
    eq(int(when), BASE // 1000000, "the time of a record in the message's time")
    run = subprocess.run([PROGRAM, "consume", server.uri("exact", "group.id=g&auto.offset.reset=earliest"), str(n)],
                         capture_output=True, text=True, check=False)
    stats = json.loads(run.stdout)
    eq((stats["records"], stats["partitions"]), (n, n), "our consumer reads them all, each as it was")
    eq(stats["received"], stats["good"], "without one bad message")
    eq(stats["commits_failed"], 0, "and commits")


def test_topics(server):
    run = subprocess.run([PROGRAM, "produce", server.uri("absent"), "10", "1000"], capture_output=True, text=True, check=False)
    eq(run.returncode, 1, "a topic that is not there")
    ok("'absent'" in run.stderr and "Unknown topic" in run.stderr, "is named", run.stderr)
    server.create("small", 1, "max.message.bytes=2000")
    stats = produce(server.uri("small", "compression.codec=none"), 2048)
    check_accounts(stats, "a topic of small messages")
    eq((stats["drop_too_large"], len(stored(server, "small"))), (0, 2048 * 64), "gets messages that it takes")


def test_more_partitions(server):
    server.create("grows", 2)
    producer = Producer(server.uri("grows"), 60000)
    wait(lambda: one(server, "grows"))
    server.create("grows", 6)
    ok(wait(lambda: one(server, "grows", "5")), "records go to a partition that was added")
    stats = producer.end()
    eq(stats["partitions"], 6, "the producer knows of it")
    eq(check_accounts(stats, "more partitions"), 0, "nothing is dropped")
    eq(sorted(numbers_of(stored(server, "grows"))) == list(range(stats["put"])), True, "every record is there once")


def test_paused(server):
    """Nothing is lost to a pause that is shorter than delivery.timeout.ms and smaller than the buffers."""
    server.create("paused", 2)
    producer = Producer(server.uri("paused"), 60000)
    wait(lambda: one(server, "paused"))
    server.process.send_signal(signal.SIGSTOP)
    try:
        # Full batches of 1024 records wait in 64 buffers, and what comes then is dropped.
        time.sleep(2)
    finally:
        server.process.send_signal(signal.SIGCONT)
    stats = producer.end()
    dropped = check_accounts(stats, "paused")
    eq(dropped, stats["drop_no_buffer"], "what is dropped found no buffer")
    found = numbers_of(stored(server, "paused"))
    eq(len(found), stats["delivered"], "kcat finds as many as were delivered")
    eq(len(set(found)), len(found), "none of them twice")
    ok(None not in found, "each as it was")


def test_closed_while_paused(server):
    server.create("stopped", 2)
    producer = Producer(server.uri("stopped"), 300)
    wait(lambda: one(server, "stopped"))
    server.process.send_signal(signal.SIGSTOP)
    try:
        stats = producer.end()
    finally:
        server.process.send_signal(signal.SIGCONT)
    check_accounts(stats, "closed while the server is paused")
    ok(stats["drop_purged"] > 0, "what was not acknowledged is given up", stats)
    wait(lambda: len(stored(server, "stopped")) // 64 >= stats["delivered"])
    found = numbers_of(stored(server, "stopped"))
    ok(stats["delivered"] <= len(found) <= stats["delivered"] + stats["drop_purged"],
       "at least those that were acknowledged are there", f"{len(found)} records, {stats}")
    ok(None not in found and len(set(found)) == len(found), "each once and as it was")


def test_killed(server):
    server.create("killed", 2)
    producer = Producer(server.uri("killed", "delivery.timeout.ms=1000"), 60000)
    wait(lambda: one(server, "killed"))
    server.kill()
    stats = producer.end()
    check_accounts(stats, "the server is killed")
    ok(stats["drop_timed_out"] > 0, "records are given up when their time is over", stats)
    ok(stats["errors"] > 0, "the client tells of it")
    server.start()
    ok(wait(lambda: len(stored(server, "killed")) // 64 >= stats["delivered"]), "all that was acknowledged is there again")
    found = numbers_of(stored(server, "killed"))
    ok(len(found) <= stats["put"] and len(set(found)) == len(found), "none of it twice",
       f"{len(found)} records, {stats}")


def test_spool(server):
    """A tap with a spool while the server is away: nothing is lost, and what is left at the end is there at the next start."""
    server.create("spooled", 2)
    trace, folder = lab.path("spooled.pcap"), lab.path("spool")
    pathline("gen", "packets", "--duration", "4s", "-w", trace)
    want = len(pathline("tap", "-o", "jsonl", trace).stdout.splitlines())
    uri = server.uri("spooled", f"spool={folder}&delivery.timeout.ms=2000&records=16")
    process = lab.start([PATHLINE, "tap", "--stats", "--to", uri, "--rate", "1000", trace], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
    wait(lambda: len(one(server, "spooled")) > 0)

    def on_disk():
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
    before = on_disk()
    server.kill()
    ok(wait(lambda: on_disk() > before), "records go to disk")
    server.start()
    out, err = process.communicate(timeout=120)
    first = json.loads(out.splitlines()[-1])["outputs"][0]
    ok(first["spool"]["spooled"] > 0, f"{first['spool']['spooled']} records went to disk", str(first))
    eq(first["spool"]["dropped"] + sum(first["dropped"].values()), 0, "none is dropped" + (": " + err if process.returncode else ""))
    eq(first["spool"]["spooled"], first["spool"]["unspooled"] + first["spool"]["held"], "spooled = unspooled + held")
    eq(first["put"], first["delivered"] + first["returned"], "put = delivered + returned")
    eq(first["put"] - first["spool"]["unspooled"] + first["spool"]["spooled"] - first["returned"], want, "of every record")
    # With the server away from its start to its end.
    there = len(stored(server, "spooled")) // 64
    server.kill()
    run = pathline("tap", "--stats", "--to", uri, trace)
    second = json.loads(run.stdout.splitlines()[-1])["outputs"][0]
    # An entry on disk that was sent in part, of 4096 records at most, comes again.
    ok(0 <= second["spool"]["found"] - first["spool"]["held"] < 4096, "the next tap finds what was held", (first, second))
    eq((run.returncode, second["spool"]["held"]), (0, want + second["spool"]["found"]), "without a server all is kept on disk")
    server.start()
    live = lab.start([PATHLINE, "tap", "--stats", "--to", uri, "udp://127.0.0.1:40051"], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
    all_of_it = there + second["spool"]["held"]
    ok(wait(lambda: len(stored(server, "spooled")) // 64 >= all_of_it), "the next tap sends it",
       f"{len(stored(server, 'spooled')) // 64} of {all_of_it}")
    live.send_signal(signal.SIGTERM)
    out, err = live.communicate(timeout=60)
    third = json.loads(out.splitlines()[-1])["outputs"][0]
    eq((third["spool"]["found"], third["spool"]["held"]), (second["spool"]["held"], 0), "and has nothing left")
    values = stored(server, "spooled")
    found = [values[at:at + 64] for at in range(0, len(values), 64)]
    eq(len(set(found)), len(set(found) | set(packets_of(trace))), "every packet's record is in the topic")


def test_spool_of_json(server):
    """Objects and rows of Protocol Buffers have a spool, too: with the server away at the start all records are on disk, and the next
    tap makes messages of them, those that a tap without a spool makes."""
    trace = lab.path("json.pcap")
    pathline("gen", "packets", "--duration", "2s", "-w", trace)
    want = sorted(pathline("tap", "-o", "jsonl", trace).stdout.splitlines())
    for form, keys in ("json", "kind=pkt96&"), ("protobuf", ""):
        server.create("kept-" + form, 2)
        server.kill()
        uri = server.uri("kept-" + form, f"format={form}&{keys}spool={lab.path(form + '.spool')}")
        run = pathline("tap", "--stats", "--to", uri, trace)
        first = json.loads(run.stdout.splitlines()[-1])["outputs"][0]
        eq((run.returncode, first["spool"]["held"]), (0, len(want)), f"{form}: without a server all is kept on disk")
        server.start()
        live = lab.start([PATHLINE, "tap", "--stats", "--to", uri, f"udp://127.0.0.1:{lab.free_udp_port()}"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)

        def there(form=form):
            return len(stored(server, "kept-" + form)) // 107 if form == "protobuf" else stored(server, "kept-json", "-f", "%s\n").count(b"\n")
        ok(wait(lambda: there() >= len(want)), f"{form}: the next tap sends them", f"{there()} of {len(want)}")
        live.send_signal(signal.SIGTERM)
        second = json.loads(live.communicate(timeout=60)[0].splitlines()[-1])["outputs"][0]
        eq((second["spool"]["found"], second["spool"]["held"], second["delivered"]), (len(want), 0, len(want)), f"{form}: each once")
    found = stored(server, "kept-json", "-f", "%s\n").decode().splitlines()
    ok(sorted(found) == want, "the objects are those that a tap prints; on disk records have no clock", str(found[:1] + want[:1]))
    server.create("direct", 2)
    run = pathline("tap", "--to", server.uri("direct", "format=protobuf"), trace)

    def rows_of(topic):
        data = stored(server, topic)
        return sorted(data[at:at + 107] for at in range(0, len(data), 107))
    ok(run.returncode == 0 and rows_of("kept-protobuf") == rows_of("direct"), "the rows are those of a tap that has the server", run.stderr)


def live_tap(uri, *more):
    """A tap of what comes to the port that is returned, too."""
    port = lab.free_udp_port()
    process = lab.start([PATHLINE, "tap", "--stats", *more, "--to", uri, f"udp://127.0.0.1:{port}"], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
    return process, port


def numbers(web):
    """Those of a page of metrics, the sum of each family; none while nobody serves it."""
    found = {}
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/metrics", timeout=60) as answer:
            for name, value in re.findall(r"^(\w+)(?:{.*})? (\d+)$", answer.read().decode(), re.M):
                found[name] = found.get(name, 0) + int(value)
    except OSError:
        pass
    return found


def came(web):
    """Records that a tap has received."""
    return numbers(web).get("pathline_tmpkt_records_total", 0)


def feed(port, trace):
    """Until the tap is there: its port refuses before."""
    return wait(lambda: pathline("tap", "--to", f"udp://127.0.0.1:{port}", "--rate", "3000", trace).returncode == 0)


def test_spool_paused(server):
    """A server that stands still for 30 s, as long as a message may wait: what is not acknowledged in time goes to disk, the tap
    goes on receiving, and all is in the topic in the end."""
    server.create("still", 2)
    trace = lab.path("still.pcap")
    pathline("gen", "packets", "--duration", "2s", "-w", trace)
    web = lab.free_port()
    process, port = live_tap(server.uri("still", f"spool={lab.path('still.spool')}&records=16"), "--web", f"127.0.0.1:{web}")
    ok(feed(port, trace) and wait(lambda: len(one(server, "still")) > 0), "a tap sends to a server")
    server.process.send_signal(signal.SIGSTOP)
    try:
        end = time.monotonic() + 30
        rounds = grew = 0
        while time.monotonic() < end:
            before = came(web)
            rounds += feed(port, trace)
            grew += bool(wait(lambda before=before: came(web) > before))
    finally:
        server.process.send_signal(signal.SIGCONT)
    ok(rounds > 0 and grew == rounds, "the tap goes on receiving meanwhile", f"{grew} of {rounds} captures")
    ok(wait(lambda: numbers(web).get("pathline_tap_spool_held") == 0, 120), "then what was on disk is sent")
    process.send_signal(signal.SIGTERM)
    account = json.loads(process.communicate(timeout=180)[0].splitlines()[-1])
    a, received = account["outputs"][0], account["tmpkt"]["records"]
    eq((sum(a["dropped"].values()), a["spool"]["dropped"], a["spool"]["held"]), (0, 0, 0), f"nothing is dropped and nothing is left of {rounds} captures")
    ok(a["spool"]["spooled"] > 0, f"{a['spool']['spooled']} records were on disk", str(a))
    eq(a["put"] - a["spool"]["unspooled"] + a["spool"]["spooled"] - a["returned"], received, "of every record that the tap received")
    values = stored(server, "still")
    ok(len(values) // 64 >= received > 1000, "and each is in the topic", f"{len(values) // 64} of {received}")


def test_spool_denied(server):
    """A password that the server refuses: records wait on disk, and that is told; the next tap, with the right one, sends them."""
    server.create("denied", 2)
    trace = lab.path("denied.pcap")
    pathline("gen", "packets", "--duration", "2s", "-w", trace)
    want = sorted(packets_of(trace))
    address = f"kafka://127.0.0.1:{server.tls}/denied?{FAST}&spool={lab.path('denied.spool')}&properties="
    process, port = live_tap(address + secrets("refused", "other", "server.crt"))
    ok(feed(port, trace), "a tap takes records, though the server refuses its password")
    wait(lambda: sum(os.path.getsize(os.path.join(lab.path("denied.spool"), n)) for n in os.listdir(lab.path("denied.spool"))) > 64000)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=180)
    first, received = json.loads(out.splitlines()[-1])["outputs"][0], json.loads(out.splitlines()[-1])["tmpkt"]["records"]
    eq((first["spool"]["held"], first["delivered"], first["spool"]["dropped"] + sum(first["dropped"].values())), (received, 0, 0),
       "all that it received is on disk, none is dropped")
    ok("uthentication" in err, "why is told", err)
    process, _ = live_tap(address + secrets("granted", "p=w#d", "server.crt"))
    ok(wait(lambda: len(stored(server, "denied")) // 64 >= received), "with the right one it is sent")
    process.send_signal(signal.SIGTERM)
    second = json.loads(process.communicate(timeout=180)[0].splitlines()[-1])["outputs"][0]
    values = stored(server, "denied")
    found = {values[at:at + 64] for at in range(0, len(values), 64)}
    eq((second["spool"]["held"], len(values) // 64, len(found)), (0, received, received), "each record is there, once")
    ok(found <= set(want), "as it was")


def test_disk_full(server):
    """A spool on a disk that fills up while the server is away: each record is delivered, on disk, or counted as dropped."""
    small = lab.path("small")
    if not lab.mount(small, "6m"):
        tap.skip("a spool on a disk that is full", "no right to mount a small disk")
        return
    server.create("full", 2)
    trace = lab.path("full.pcap")
    pathline("gen", "packets", "--duration", "4s", "-w", trace)
    want = len(pathline("tap", "-o", "jsonl", trace).stdout.splitlines())
    uri = server.uri("full", f"spool={small}/spool&spool_bytes=256MiB&delivery.timeout.ms=1000&records=16"
                     "&queue.buffering.max.kbytes=64")
    server.kill()
    # The spool's own files take room as well; what is left of the disk is less than the records.
    with open(os.path.join(small, "other"), "wb") as f:
        f.write(bytes((6 << 20) - want * 64 // 2 - 65536))
    run = pathline("tap", "--stats", "--to", uri, trace)
    first = json.loads(run.stdout.splitlines()[-1])["outputs"][0]
    ok(run.returncode == 1 and "No space left" in run.stderr and f"did not take {first['spool']['dropped']} records" in run.stderr,
       "a tap says that records are lost, how many, and why", f"{run.returncode} {run.stderr}")
    ok(first["spool"]["held"] > 0 and first["spool"]["dropped"] > 0, "some are on disk, some are not", str(first))
    server.start()
    eq(first["delivered"] + sum(first["dropped"].values()) + first["spool"]["held"] + first["spool"]["dropped"], want,
       "delivered + dropped + on disk, of every record")
    live = lab.start([PATHLINE, "tap", "--stats", "--to", uri, f"udp://127.0.0.1:{lab.free_udp_port()}"], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
    ok(wait(lambda: len(stored(server, "full")) // 64 >= first["spool"]["held"] + first["delivered"], 120),
       "what is on disk comes when the server is back")
    live.send_signal(signal.SIGTERM)
    out, _ = live.communicate(timeout=60)
    second = json.loads(out.splitlines()[-1])["outputs"][0]
    eq((second["spool"]["held"], second["spool"]["damaged"]), (0, 0), "nothing is left, nothing was damaged")


def test_message_size(server):
    """Topics that take less than a message usually has: messages, and batches of them, are made as large as fits, also when the
    broker was away at the start; where not even one record fits, a tap says so at the start."""
    trace = lab.path("size.pcap")
    pathline("gen", "packets", "--duration", "3s", "-w", trace)
    want = sorted(packets_of(trace))
    server.create("slim", 1, "max.message.bytes=20000")
    run = pathline("tap", "--stats", "--to", server.uri("slim", "compression.codec=none&linger.ms=500"), trace)
    account = json.loads(run.stdout.splitlines()[-1])["outputs"][0]
    ok(len(want) > 4000 and (run.returncode, account["delivered"], sum(account["dropped"].values())) == (0, len(want), 0),
       f"{len(want)} records in messages of what the topic takes", f"{run.stderr} {account}")
    values = stored(server, "slim")
    ok(sorted(values[at:at + 64] for at in range(0, len(values), 64)) == want, "all of them are there")
    for keys, least in (("", 64), ("format=json", 600)):
        server.create(f"tiny{least}", 1, "max.message.bytes=500")
        run = pathline("tap", "--to", server.uri(f"tiny{least}", keys), trace)
        said = re.search(r"takes messages of 500 bytes, and (\d+) are needed: raise max.message.bytes of the topic", run.stderr)
        ok(run.returncode != 0 and said and int(said.group(1)) > least, f"{keys or 'records'}: refused, with what to do",
           f"{run.returncode} {run.stderr}")
    server.create("slimrows", 1, "max.message.bytes=2000")
    run = pathline("query", "--stats", "SELECT src, dst, sport, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY src, dst, sport INTO "
                   f"'{server.uri('slimrows', 'linger.ms=500')}'", trace)
    account = json.loads(run.stdout.splitlines()[-1])["into"]
    ok(account["rows"] > 200 and (account["delivered"], sum(account["dropped"].values())) == (account["rows"], 0),
       "rows of a question go in batches that fit, too", f"{run.stderr} {account}")
    server.create("slimmer", 1, "max.message.bytes=9000")
    server.kill()
    web = lab.free_port()
    keys = f"spool={lab.path('size.spool')}&compression.codec=none&linger.ms=500"
    live, port = live_tap(server.uri("slimmer", keys), "--web", f"127.0.0.1:{web}")
    ok(feed(port, trace), "a tap without a broker")
    ok(wait(lambda: numbers(web).get("pathline_tap_spool_held", 0) > 1000), "keeps records on disk")
    server.start()
    ok(wait(lambda: numbers(web).get("pathline_tap_spool_held") == 0, 120), "the broker comes, and gets them")
    live.send_signal(signal.SIGTERM)
    account = json.loads(live.communicate(timeout=180)[0].splitlines()[-1])
    a = account["outputs"][0]
    eq((sum(a["dropped"].values()), a["spool"]["held"], a["spool"]["dropped"]), (0, 0, 0), "in messages of what its topic takes")
    eq(len(stored(server, "slimmer")) // 64, account["tmpkt"]["records"], "all that the tap received")


def packets_of(trace):
    file = lab.path("all.pkt64")
    pathline("tap", "--to", "file:" + file, trace)
    with open(file, "rb") as f:
        data = f.read()
    os.unlink(file)
    return [data[at:at + 64] for at in range(0, len(data), 64)]


def secrets(name, password, authority):
    """A file of properties."""
    path = lab.write(name, "# who we are\nsecurity.protocol=sasl_ssl\nsasl.mechanism=PLAIN\nsasl.username=tap\n"
                     f"sasl.password={password}\nssl.ca.location={lab.path(authority)}\n")
    os.chmod(path, 0o600)
    return path


def pathline(*words):
    return subprocess.run([PATHLINE, *words], capture_output=True, text=True, check=False, timeout=120)


def ask(good, uri):
    """A question over all of a topic, asked for longer until its answer is good: how long reading takes is the machine's matter."""
    for duration in "3s", "20s", "60s":
        run = pathline("query", "-o", "csv", "--duration", duration, "SELECT count(*) AS n FROM packets", uri + "&auto.offset.reset=earliest")
        if good(run):
            break
    return run


def flow_of(text):
    """Of an object of TCP or UDP, the same for both directions; None of others."""
    r = json.loads(text)
    return (r["proto"], frozenset(((r["src"], r["sport"]), (r["dst"], r["dport"])))) if r["proto"] in (6, 17) else None


def by_flow(objects):
    flows = {}
    for text in objects:
        flows.setdefault(flow_of(text), []).append(text)
    flows.pop(None, None)
    return flows


def test_json(server):
    """A message for each record, an object of JSON: the lines that a tap prints, each flow in one partition in its order."""
    server.create("objects", 3)
    trace = lab.path("objects.pcap")
    pathline("gen", "packets", "--duration", "2s", "-w", trace)
    want = [line[:-1] + ',"clock":"capture"}' for line in pathline("tap", "--community-id", "-o", "jsonl", trace).stdout.splitlines()]
    run = pathline("tap", "--stats", "--to", server.uri("objects", "format=json&kind=pkt96&community_id=yes"), "--rate", "1500", trace)
    eq(run.returncode, 0, f"a tap writes objects{': ' + run.stderr if run.returncode else ''}")
    stats = json.loads(run.stdout.splitlines()[-1])["outputs"][0]
    eq((stats["put"], stats["delivered"]), (len(want), len(want)), "put = delivered, to the record")
    eq(stats["messages"], len(want), "a message is a record")
    ok(stats["partitions"] == 3 and stats["brokers_up"] == 1, "the client's own statistics are in the account", str(stats))
    placed = [line.split(" ", 1) for line in stored(server, "objects", "-f", "%p %s\n").decode().splitlines()]
    found = [text for _, text in placed]
    ok(len(want) > 20 and sorted(found) == sorted(want), f"{len(want)} objects, as they are printed, with Community ID and clock", str(found[:1] + want[:1]))
    places = {}
    for partition, text in placed:
        places.setdefault(flow_of(text), set()).add(partition)
    eq(({len(of) for flow, of in places.items() if flow}, len(set.union(*places.values()))), ({1}, 3),
       "both directions of a flow are in one partition, and each partition has flows")
    eq(by_flow(found) == by_flow(want), True, "in their order")
    run = ask(lambda run: "none of ours" in run.stderr, server.uri("objects"))
    ok("none of ours" in run.stderr and run.stdout.split() != ["n", str(len(want))], "a question leaves them out and says so",
       f"{run.returncode} {run.stderr}")


def test_secured(server):
    """TLS and a password, both out of a file: a tap into a topic, and a question about it."""
    server.create("secured", 3)
    certificate("stranger")
    trace, file = lab.path("trace.pcap"), lab.path("trace.pkt64")
    pathline("gen", "packets", "--duration", "3s", "-w", trace)
    pathline("tap", "--to", "file:" + file, trace)
    with open(file, "rb") as f:
        want = f.read()
    address = f"kafka://127.0.0.1:{server.tls}/secured?{FAST}&properties="
    good = address + secrets("good", "p=w#d", "server.crt")
    run = pathline("tap", "--to", good, trace)
    eq(run.returncode, 0, f"a tap by TLS with a password{': ' + run.stderr if run.returncode else ''}")
    values = stored(server, "secured")
    records = [sorted(data[at:at + 64] for at in range(0, len(data), 64)) for data in (values, want)]
    ok(len(want) > 64000 and records[0] == records[1], f"{len(want) // 64} records are in the topic, as in a file",
       f"{len(values)} and {len(want)} bytes")
    count = f"n,first_ts,late,exp,incomplete\n{len(want) // 64},"
    run = ask(lambda run: run.stdout.startswith(count), good)
    ok(run.stdout.startswith(count), f"a question reads them all{': ' + run.stderr if run.returncode else ''}", run.stdout)
    for name, path, says in (("a wrong password", secrets("wrong", "other", "server.crt"), "uthentication"),
                             ("a server that another authority has signed", secrets("other", "p=w#d", "stranger.crt"),
                              "certificate")):
        run = pathline("tap", "--to", address + path, trace)
        ok(run.returncode in (69, 77) and says in run.stderr, f"{name}: refused, with a text", f"{run.returncode} {run.stderr}")
        ok("p=w#d" not in run.stderr and "other" not in run.stderr.replace("another", ""), f"{name}: which tells no password",
           run.stderr)
    eq(len(stored(server, "secured")), len(want), "nothing came of those")


def test_standing(server):
    """A standing query of the daemon over a topic: its counts are those of the records, and its page has the consumer's."""
    server.create("asked", 3)
    trace, file = lab.path("asked.pcap"), lab.path("asked.jsonl")
    pathline("gen", "packets", "--duration", "3s", "-w", trace)
    want = {}
    for line in pathline("tap", "-o", "jsonl", trace).stdout.splitlines():
        proto = json.loads(line)["proto"]
        want[proto] = want.get(proto, 0) + 1
    filled = pathline("tap", "--to", server.uri("asked"), trace)
    ok(filled.returncode == 0, "a tap fills the topic", filled.stderr)
    port = lab.free_port()
    # Partitions are read one behind the other: none of them is to close the windows of the others.
    config = lab.write("asked.yaml", f"""queries:
  - name: asked
    query: "SELECT proto, count(*) AS n FROM packets TUMBLE(ts, 10000h) GROUP BY proto"
    from: "{server.uri("asked", "auto.offset.reset=earliest")}"
    lateness: 1h
    to: ["file:{file}"]
web: {{listen: "127.0.0.1:{port}"}}
""")
    process = lab.start([PATHLINE, "run", "-c", config], log=lab.path("asked.log"))

    def read():
        """the records that the page says were read"""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
                return re.findall(r'^pathline_kafka_read_records_total{query="asked"} (\d+)', page.read().decode(), re.M)
        except OSError:
            return []
    wait(lambda: read() == [str(sum(want.values()))])
    process.send_signal(signal.SIGTERM)
    eq((process.wait(timeout=60), read()), (0, []), "the daemon reads the topic, and ends well")
    found = [json.loads(line) for line in lab.read("asked.jsonl").splitlines()]
    eq({row["key"]["proto"]: row["val"]["n"] for row in found}, want, "its rows are the counts of the records")


def messages(server, topic):
    """Key and object of each message."""
    lines = stored(server, topic, "-f", "%k\t%s\n").decode().splitlines()
    return [(key, json.loads(value)) for key, value in (line.split("\t") for line in lines)]


def test_results(server):
    """Rows of a question into a topic are the lines that go to a file."""
    server.create("rows", 3)
    trace, file = lab.path("rows.pcap"), lab.path("rows.jsonl")
    pathline("gen", "packets", "--duration", "3s", "-w", trace)
    question = "SELECT src, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY src"
    run = pathline("query", question, trace, "--into", "file:" + file)
    eq(run.returncode, 0, f"into a file{': ' + run.stderr if run.returncode else ''}")
    want = sorted(lab.read("rows.jsonl").splitlines())
    run = pathline("query", "--stats", f"{question} INTO '{server.uri('rows')}'", trace)
    eq(run.returncode, 0, f"into a topic{': ' + run.stderr if run.returncode else ''}")
    account = json.loads(run.stdout.splitlines()[-1])["into"]
    eq((account["rows"], account["delivered"], account["waiting"], sum(account["dropped"].values())), (len(want), len(want), 0, 0),
       "rows = delivered, nothing is dropped")
    found = messages(server, "rows")
    ok(len(want) > 20 and sorted(json.dumps(m, separators=(",", ":")) for _, m in found) == want,
       f"{len(want)} messages are the lines of the file", str(found[:1] + want[:1]))
    eq([key for key, m in found if key != "query|" + m["key"]["src"]], [], "each has the key of its group")


def test_standing_results(server):
    """A standing query whose rows go to a file and to a topic that a reload brings: both have the same, over a reload that
    changes the topic's neighbours, and over a server that is away for a while."""
    for topic in "told", "more":
        server.create(topic, 2)
    traces = [lab.path(f"told{seed}.pcap") for seed in range(3)]
    for seed, trace in enumerate(traces):
        pathline("gen", "packets", "--duration", "2s", "--seed", str(seed + 1), "-w", trace)
    port, udp = lab.free_port(), lab.free_udp_port()
    keys = "delivery.timeout.ms=2000&linger.ms=1&spool=" + lab.path("told.spool")

    def configure(*topics):
        outputs = ", ".join(f'"{uri}"' for uri in ("file:" + lab.path("told.jsonl"), *topics))
        return lab.write("told.yaml", f"""taps: [{{name: t, sources: ["udp://127.0.0.1:{udp}"]}}]
queries:
  - {{name: told, query: "SELECT ts, src, dst, sport FROM packets WHERE syn", from: t, to: [{outputs}]}}
web: {{listen: "127.0.0.1:{port}"}}
""")

    process = lab.start([PATHLINE, "run", "-c", configure()], log=lab.path("told.log"))

    def fetch():
        """the page of metrics, empty while nobody serves it"""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    def page(family):
        """the numbers of a family, by output"""
        return {topic: int(n) for topic, n in re.findall(rf'^{family}{{query="told",output="[^"]*/(\w+)"}} (\d+)', fetch(), re.M)}

    def account():
        """rows, and what became of them, of the topic that stays"""
        def of(name):
            return page("pathline_query_output_" + name).get("told", -1)
        return of("rows_total"), of("delivered_total") + of("waiting") + of("spool_held")

    def send(trace):
        ok(wait(lambda: "told" in page("pathline_query_output_rows_total")), "the daemon serves")
        before = page("pathline_query_output_rows_total")["told"]
        run = pathline("tap", "--to", f"udp://127.0.0.1:{udp}", trace)
        ok(run.returncode == 0 and wait(lambda: page("pathline_query_output_rows_total")["told"] > before), "rows come", run.stderr)

    ok(wait(lambda: 'pathline_query_rows_total{query="told"}' in fetch()), "a query that has no topic runs")
    configure(server.uri("told", keys))
    process.send_signal(signal.SIGHUP)
    send(traces[0])
    ok(wait(lambda: page("pathline_query_output_delivered_total")["told"] == page("pathline_query_output_rows_total")["told"]),
       "and are delivered")
    # This topic has no spool: its rows wait for the server however long it takes to start.
    configure(server.uri("told", keys), server.uri("more", "delivery.timeout.ms=600000"))
    process.send_signal(signal.SIGHUP)
    ok(wait(lambda: "more" in page("pathline_query_output_rows_total")), "a reload adds a topic")
    ok(page("pathline_query_output_delivered_total")["told"] > 0, "the other one goes on with its account")
    send(traces[1])
    server.kill()
    send(traces[2])
    ok(wait(lambda: page("pathline_query_output_spool_held")["told"] > 0), "while the server is away rows go to the spool")
    server.start()
    ok(wait(lambda: page("pathline_query_output_spool_held")["told"] == 0 and account()[0] == account()[1]), "and come out of it",
       str(account()))
    process.send_signal(signal.SIGTERM)
    eq(process.wait(timeout=60), 0, f"the daemon ends well{': ' + lab.read('told.log')[-500:] if process.returncode else ''}")
    want = set(lab.read("told.jsonl").splitlines())
    found = {json.dumps(m, separators=(",", ":")) for _, m in messages(server, "told")}
    ok(len(want) > 100 and found == want, f"the topic has the {len(want)} rows that the file has",
       f"{len(found - want)} more, {len(want - found)} missing")


def main():
    missing = next((p for p in ("java", "kcat", "openssl") if shutil.which(p) is None), None)
    if missing:
        tap.skip_all(f"missing: {missing}")
    fetch = subprocess.run([os.path.join(HERE, "..", "..", "..", "tools", "kafka"), JARS], capture_output=True, text=True,
                           check=False, preexec_fn=lab.into_machine_network)
    if fetch.returncode != 0:
        tap.skip_all("missing: " + re.sub(r"\s+", " ", fetch.stderr).strip())
    server = Server()
    tests = (test_exact, test_json, test_secured, test_topics, test_more_partitions, test_paused, test_closed_while_paused, test_killed,
             test_spool, test_spool_of_json, test_spool_paused, test_spool_denied, test_disk_full, test_message_size, test_standing, test_results, test_standing_results)
    lab.run(*[t for t in tests if not ONLY or t.__name__ in ONLY], given=(server,))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
