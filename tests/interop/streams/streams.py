# SPDX-License-Identifier: BSD-2-Clause
"""A topic that a tap writes into a Kafka server, read by others: Kafka Streams answers one of our questions beside us; protoc
reads messages of format=protobuf and format=goflow2 with the schemas that `pathline schema` prints, and ClickHouse's embedded engine
those of goflow2.

usage: streams.py PATHLINE KAFKA ENGINES     (jars of tools/kafka; the folder of tools/engines)
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
        # Messages of one repeated field, one behind the other, are one message. How many rows the first has depends on the time
        # that the tap took.
        message = lab.path(f"{kind}.message")
        with open(message, "wb") as f:
            subprocess.run(["kcat", "-b", broker.address, "-t", f"proto-{kind}", "-C", "-p", "0", "-o", "beginning", "-e", "-q", "-D", ""],
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


# Of goflow2's own flow.proto: what its readers have compiled in.
GOFLOW2 = {"sampling_rate": 3, "sequence_num": 4, "src_addr": 6, "dst_addr": 7, "bytes": 9, "packets": 10, "sampler_address": 11, "proto": 20, "src_port": 21,
           "dst_port": 22, "tcp_flags": 26, "vlan_id": 29, "etype": 30, "icmp_type": 31, "icmp_code": 32, "observation_domain_id": 70,
           "observation_point_id": 71, "time_received_ns": 110, "time_flow_start_ns": 111, "time_flow_end_ns": 112}


def values_of(topic, broker):
    """The values of a topic's messages: kcat puts the length of each in front."""
    made = subprocess.run(["kcat", "-q", "-C", "-b", broker.address, "-t", topic, "-o", "beginning", "-e", "-f", "%S\n%s"],
                          capture_output=True, check=True).stdout
    values = []
    while made:
        size, made = made.split(b"\n", 1)
        values.append(made[:int(size)])
        made = made[int(size):]
    return values


def is_delimited(value):
    """Whether it is one message behind its length, a varint, and nothing else."""
    n = at = 0
    while value[at] > 127:
        n |= (value[at] & 127) << 7 * at
        at += 1
    return (n | value[at] << 7 * at) == len(value) - at - 1


def flow_messages(flow):
    """What goflow2's readers are to get of a flow: one message for each way that has packets."""
    found = []
    icmp = flow["proto"] in (1, 58)
    for way, back in (("fwd", False), ("rev", True)):
        if flow["pkts_" + way] == 0:
            continue
        ends = [("dst", "dport"), ("src", "sport")] if back else [("src", "sport"), ("dst", "dport")]
        m = {"sampling_rate": 1, "sequence_num": flow["flow_seq"], "src_addr": flow[ends[0][0]], "dst_addr": flow[ends[1][0]],
             "bytes": flow["bytes_" + way], "packets": flow["pkts_" + way], "proto": flow["proto"], "tcp_flags": flow["flags_" + way],
             "vlan_id": flow["vlan"], "sampler_address": "192.0.2.7", "etype": 0x86dd if ":" in flow["src"] else 0x800, "observation_domain_id": 77,
             "observation_point_id": flow["obs_rev" if back else "obs"] & 1023, "time_received_ns": flow["last_ts"],
             "time_flow_start_ns": flow["first_ts"], "time_flow_end_ns": flow["last_ts"]}
        if icmp and not back:
            m.update(icmp_type=flow["sport"], icmp_code=flow["dport"])
        elif not icmp:
            m.update(src_port=flow[ends[0][1]], dst_port=flow[ends[1][1]])
        found.append(frozenset((k, v) for k, v in m.items() if v != 0))
    return found


# Columns of ClickHouse for fields of a message.
OF_CLICKHOUSE = {"src_addr": "String", "dst_addr": "String", "proto": "UInt32", "src_port": "UInt32", "dst_port": "UInt32", "bytes": "UInt64",
                 "packets": "UInt64", "tcp_flags": "UInt32", "sampling_rate": "UInt64", "time_flow_start_ns": "UInt64", "time_flow_end_ns": "UInt64"}


def check_clickhouse(values, schema, want):
    """The messages as its format Protobuf reads them, by which its engine Kafka takes those of goflow2."""
    fetched = subprocess.run([os.path.join(HERE, "..", "..", "..", "tools", "engines"), sys.argv[3]], stderr=subprocess.PIPE, text=True,
                             preexec_fn=lab.into_machine_network)
    if fetched.returncode != 0:
        tap.skip("ClickHouse reads flows of goflow2", f"missing: {fetched.stderr.strip()}")
        return
    sys.path.insert(0, sys.argv[3])
    from chdb import session
    path = lab.path("flows.messages")
    with open(path, "wb") as f:
        f.write(b"".join(values))
    columns = ", ".join(f"{name} {of}" for name, of in OF_CLICKHOUSE.items())
    shown = ", ".join(f"lower(hex({name}))" if of == "String" else name for name, of in OF_CLICKHOUSE.items())
    got = str(session.Session(lab.path("chdb")).query(f"SELECT {shown} FROM file('{path}', Protobuf, '{columns}') "
                                                      f"SETTINGS format_schema = '{schema}:FlowMessage'", "TabSeparated")).splitlines()
    rows = []
    for message in map(dict, want):
        rows.append("\t".join(ipaddress.ip_address(message[name]).packed.hex() if of == "String" else str(message.get(name, 0))
                              for name, of in OF_CLICKHOUSE.items()))
    ok(sorted(got) == sorted(rows), "and as ClickHouse reads it", f"{sorted(set(got) - set(rows))[:2]}\n{sorted(set(rows) - set(got))[:2]}")


def test_goflow2(broker):
    """format=goflow2: protoc, with the schema that we print, reads each message; the numbers of fields are goflow2's."""
    printed = pathline.run("schema", "goflow2", "flow288").stdout
    eq({name: int(n) for name, n in re.findall(r"^  \w+ (\w+) = (\d+);$", printed, re.M)}, GOFLOW2, "fields and their numbers are goflow2's")
    schema = lab.write("flow.proto", printed)
    lines = lab.path("flows.jsonl")
    with open(lines, "wb") as out:
        run = subprocess.run([pathline.PATHLINE, "tap", "--flows", "--exporter", "77", "-o", "jsonl", "--to",
                              broker.uri("goflow2", "?format=goflow2&sampler=192.0.2.7"), lab.path("trace.pcap")], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    eq(run.returncode, 0, "a tap writes flows of goflow2: " + run.stderr)
    values = values_of("goflow2", broker)
    eq([v for v in values if not is_delimited(v)], [], "each is one message behind its length")
    # A field of bytes is a tag, a length and the bytes: all of them are one message for protoc.
    every = lab.write("every.proto", 'syntax = "proto3"; import "flow.proto"; message Every { repeated flowpb.FlowMessage flow = 1; }')
    text = subprocess.run(["protoc", "--decode=Every", f"--proto_path={os.path.dirname(schema)}", every],
                          input=b"".join(b"\x0a" + v for v in values), capture_output=True, check=True).stdout
    got = []
    for block in re.findall(rb"flow \{\n(.*?)\n\}", text, re.S):
        pairs = re.findall(rb"^  (\w+): (.*)$", block, re.M)
        got.append(frozenset((name.decode(), address_of(v) if v[:1] == b'"' else int(v)) for name, v in pairs))
    flows = pathline.jsonl(lab.read("flows.jsonl"))
    want = [m for flow in flows for m in flow_messages(flow)]
    ok(len(flows) > 100 and len(want) > len(flows), f"{len(flows)} flows make {len(want)} messages")
    ok(sorted(map(sorted, got)) == sorted(map(sorted, want)), "each field of each, as protoc reads it",
       f"{[sorted(m) for m in set(got) - set(want)][:2]}\n{[sorted(m) for m in set(want) - set(got)][:2]}")
    check_clickhouse(values, schema, want)
    for options, keys, says in (((), "", "--flows"), (("--flows",), "&sampler=host", "sampler=host: an address")):
        run = pathline.run("tap", *options, "--to", broker.uri("goflow2", "?format=goflow2" + keys), lab.path("trace.pcap"))
        ok(run.returncode == 2 and says in run.stderr, f"refused: {says}", f"{run.returncode} {run.stderr}")


def address_of(quoted):
    raw = quoted[1:-1].decode("unicode_escape").encode("latin-1")
    return str(ipaddress.ip_address(raw))


def number(value):
    """A hash is hexadecimal digits in JSON; a reason, a role and the evidence of it are words."""
    if not isinstance(value, str) or "." in value or ":" in value:
        return value
    if len(value) == 16:
        return int(value, 16)
    return {"idle": 1, "active": 2, "finished": 3, "evicted": 4, "shutdown": 5, "unknown": 0, "client": 1, "server": 2, "nothing": 0,
            "syn": 1, "syn_ack": 2, "listening": 3, "ports": 4}[value]


def main():
    if len(sys.argv) < 4:
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
    lab.run(test_streams, test_protobuf, test_goflow2, given=(Broker(jars),))
    return tap.end()


sys.exit(main())
