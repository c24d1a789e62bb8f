# SPDX-License-Identifier: BSD-2-Clause
"""A topic that a tap writes into a Kafka server, read by others: Kafka Streams answers one of our questions beside us; protoc
reads messages of format=protobuf with the schema that `pathline schema protobuf` prints.

usage: streams.py PATHLINE KAFKA     (jars of tools/kafka)
"""
import ipaddress
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.kafka import Broker, java  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

THRESHOLD = 30


def addresses(packed):
    a = ipaddress.IPv6Address(packed)
    return str(a.ipv4_mapped or a)


def test_streams(broker):
    run = pathline.run("tap", "--to", broker.uri("packets"), lab.path("trace.pcap"))
    records = int(re.search(r"(\d+) records", run.stderr).group(1))
    classes = lab.path("classes")
    subprocess.run(["javac", "-cp", os.path.join(broker.jars, "*"), "-d", classes, os.path.join(HERE, "Opened.java")], check=True)
    command = java(broker.jars, "Opened", broker.address, "packets", lab.path("streams"), str(records), str(THRESHOLD))
    command[command.index("-cp") + 1] += ":" + classes
    command[command.index("-Xmx128m")] = "-Xmx256m"
    theirs = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = theirs.stdout.splitlines()
    eq(lines[:1], [f"seen {records}"], "Kafka Streams has seen every record")
    ours = pathline.run("query", "-o", "jsonl", "--duration", "3s", "--lateness", "60s", f"new_conns(threshold={THRESHOLD}, emit=final)",
                        broker.uri("packets", "?auto.offset.reset=earliest"))
    want = sorted((r["window_start"], r["dst"], r["n"]) for r in pathline.jsonl(ours.stdout))
    got = sorted((int(w), addresses(bytes.fromhex(dst)), int(n)) for w, dst, n in map(str.split, lines[1:]))
    ok(len(want) > 0 and got == want, f"new_conns: {len(want)} rows, the same from Kafka Streams", f"ours {want}\ntheirs {got}\n{theirs.stderr[-2000:]}")


def decoded(kind, path):
    """The rows of a message, field by field, as protoc reads them."""
    schema = lab.write(f"{kind}.proto", pathline.run("schema", "protobuf", kind).stdout)
    with open(path, "rb") as f:
        run = subprocess.run(["protoc", f"--decode=pathline.{kind.capitalize()}Batch", f"--proto_path={os.path.dirname(schema)}", schema],
                             stdin=f, capture_output=True, check=False)
    rows = []
    for block in re.findall(rb"row \{\n(.*?)\n\}", run.stdout, re.S):
        row = {}
        for name, value in re.findall(rb"^  (\w+): (.*)$", block, re.M):
            if value[:1] == b'"':
                raw = value[1:-1].decode("unicode_escape").encode("latin-1")
                row[name.decode()] = addresses(raw)
            else:
                row[name.decode()] = int(value)
        rows.append(row)
    return rows, run.stderr.decode()


def test_protobuf(broker):
    for kind, table, options, keys in (("pkt64", "packets", (), ""), ("pkt96", "packets96", (), "&kind=pkt96"), ("dns64", "dns", ("--dns",), ""),
                                       ("flow128", "flows", ("--flows",), ""), ("flow288", "flows288", ("--flows",), "&kind=flow288")):
        run = pathline.run("tap", *options, "--to", broker.uri(f"proto-{kind}", f"?format=protobuf&records=1000{keys}"), lab.path("trace.pcap"))
        eq(run.returncode, 0, f"{kind}: messages")
        message = lab.path(f"{kind}.message")
        with open(message, "wb") as f:
            subprocess.run(["kcat", "-b", broker.address, "-t", f"proto-{kind}", "-C", "-p", "0", "-o", "beginning", "-c", "1", "-e", "-q", "-D", ""],
                           stdout=f, stderr=subprocess.DEVNULL, check=False)
        rows, said = decoded(kind, message)
        ours = pathline.answer(pathline.run("query", "-o", "jsonl", f"SELECT * FROM {table}", lab.path("trace.pcap")).stdout)
        for r in rows + ours:
            r.pop("flow_seq", None)  # each flow cache has an order of its own
        have = {frozenset((k, number(v)) for k, v in r.items() if number(v) != 0) for r in ours}
        missing = [r for r in rows if frozenset(r.items()) not in have]
        ok(len(rows) > 100 and not missing, f"{kind}: protoc reads {len(rows)} rows, all of them ours", f"{said} {len(rows)} {missing[:2]}\n{ours[:1]}")
    run = pathline.run("query", "--duration", "2s", "SELECT count(*) AS n FROM packets", broker.uri("proto-pkt64", "?auto.offset.reset=earliest"))
    ok(re.search(r" 0 records, [1-9]\d* messages that are none of ours", run.stderr), "a reader of RowBinary takes none of them, and says so", run.stderr)


def number(value):
    """A hash is hexadecimal digits in JSON; a reason, a role and the evidence of it are words."""
    if not isinstance(value, str) or "." in value or ":" in value:
        return value
    if len(value) == 16:
        return int(value, 16)
    return {"idle": 1, "active": 2, "finished": 3, "evicted": 4, "shutdown": 5, "unknown": 0, "client": 1, "server": 2, "nothing": 0,
            "syn": 1, "syn_ack": 2, "listening": 3, "ports": 4}[value]


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    missing = next((p for p in ("javac", "kcat", "protoc") if shutil.which(p) is None), None)
    jars = os.path.abspath(sys.argv[2])
    if missing is None:
        fetched = subprocess.run([os.path.join(HERE, "..", "..", "..", "tools", "kafka"), jars], stderr=subprocess.PIPE, text=True)
        missing = fetched.stderr.strip() if fetched.returncode != 0 else None
    if missing:
        tap.skip("readers of topics", f"missing: {missing}")
        return tap.end()
    pathline.run("gen", "packets", "--story", "--duration", "12s", "-w", lab.path("trace.pcap"))
    lab.run(test_streams, test_protobuf, given=(Broker(jars),))
    return tap.end()


sys.exit(main())
