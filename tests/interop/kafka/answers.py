#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The same hour of records, in one topic, answered by pathline in one process, by a group of members of which one is killed, by
Kafka Streams, and by ClickHouse in the tables that `pathline schema` prints: each has the same rows. ClickHouse's own query says
that its table is complete, and what is missing when it is not.

The server of Debian 12 (18.16) reads the topic by the Kafka engine, in the table of the schema. Its engine has no columns of a message's
place and headers: for the view that uses them a consumer without code of ours reads the topic, and a table with these columns stands
for the engine's; the view and the table behind it are those of the schema.

    usage: answers.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.clickhouse import Server, older  # noqa: E402
from lib.kafka import java  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

from members import JARS, PARTITIONS, PATHLINE, PROGRAM, Member, Table, rows, server_or_skip  # noqa: E402

ONLY = sys.argv[4:]
pathline.PATHLINE = PATHLINE
THRESHOLD = 3
QUESTION = f"new_conns(threshold={THRESHOLD}, emit=final)"
GUIDE = os.path.join(HERE, "..", "..", "..", "docs", "guide", "clickhouse.md")


def address(packed):
    a = ipaddress.IPv6Address(packed)
    return str(a.ipv4_mapped or a)


# ---- who answers ----

def by_one_process(trace):
    return sorted((r["window_start"], r["dst"], r["n"]) for r in pathline.jsonl(pathline.run("query", "-o", "jsonl", QUESTION, trace).stdout))


def by_group(table, want):
    """Three members read the topic from its beginning; one is killed when the first rows are there, and another one comes."""
    def found():
        # What comes again after a failure is the same row.
        return sorted({(m["w0"], m["key"]["dst"], m["val"]["n"]) for _, m in rows(table)})

    def member():
        return Member(table, QUESTION, "--lateness", "1s", "--idle", "20s")

    members = [member() for _ in range(3)]
    wait(lambda: rows(table), 120)
    members[0].kill()
    members[0] = member()
    wait(lambda: len(found()) >= len(want), 240)
    answer = found()
    eq([m.end() for m in members], [0] * 3, "the members end well")
    eq([m["key"] for _, m in rows(table) if m["incomplete"]], [], "no row of theirs is incomplete")
    return answer


def by_streams(server, topic, records):
    classes = lab.path("classes")
    subprocess.run(["javac", "-cp", os.path.join(JARS, "*"), "-d", classes, os.path.join(HERE, "..", "streams", "Opened.java")], check=True)
    command = java(JARS, "Opened", server.address, topic, lab.path("streams"), str(records), str(THRESHOLD))
    command[command.index("-cp") + 1] += ":" + classes
    command[command.index("-Xmx128m")] = "-Xmx512m"
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    ok(lines[:1] == [f"seen {records}"], "Kafka Streams has seen each record", run.stderr[-2000:])
    return sorted((int(w), address(bytes.fromhex(dst)), int(n)) for w, dst, n in map(str.split, lines[1:]))


def by_clickhouse(clickhouse, name="hour"):
    text = pathline.run("query", "--export", "clickhouse", QUESTION).stdout
    statement = text[text.rindex("SELECT"):].strip().rstrip(";").replace("`packets`", f"`{name}`")
    # Times are numbers there.
    statement = re.sub(r"toUnixTimestamp64Nano\((.*?)\)", r"\1", statement)
    statement = re.sub(r"fromUnixTimestamp64Nano\((.*), 'UTC'\) AS window_start", r"\1 AS window_start", statement)
    return sorted((int(w), address(bytes.fromhex(dst)), int(n))
                  for w, dst, n in clickhouse.rows(f"SELECT window_start, hex(dst), n FROM ({statement})"))


# ---- the topic in ClickHouse ----

def messages(server, topic):
    """Partition, offset, headers and value of each."""
    made = subprocess.run([PROGRAM, "dump", server.uri(topic), str(PARTITIONS)], capture_output=True, check=True).stdout
    at = 0
    while at < len(made):
        end = made.index(b"\n", at)
        partition, offset, size, *headers = made[at:end].decode().split()
        at = end + 1 + int(size)
        yield int(partition), int(offset), [h.split("=") for h in headers], made[end + 1:at]


def make_tables(clickhouse, server):
    """Those of the schema; the Kafka table is one that keeps nothing and has the Kafka engine's columns too."""
    statements = pathline.run("schema", "--table", "hour", "--kafka", server.uri("hour"), "clickhouse", "pkt64").stdout.split(";\n")
    table, topic, view = [older(s) for s in statements[:3]]
    eq([s.strip() for s in statements[3:]], [""], "the schema has three statements")
    topic = re.sub(r"\n\)\nENGINE = Kafka(.|\n)*", ",\n _partition UInt64, _offset UInt64, `_headers.name` Array(String), `_headers.value` "
                   "Array(String)\n) ENGINE = Null", topic)
    for statement in table, topic, view:
        clickhouse.ask(statement)
    clickhouse.ask(older(re.sub(r"ENGINE = MergeTree(.|\n)*", "ENGINE = Memory", pathline.run(
        "schema", "--table", "value", "clickhouse", "pkt64").stdout)))


def consume(clickhouse, server, topic, records):
    """By the server's Kafka engine, as the schema says it; a view without columns of messages moves the rows."""
    printed = pathline.run("schema", "--table", "engine", "--kafka", server.uri(topic), "clickhouse", "pkt64").stdout.split(";\n")
    clickhouse.ask(older(pathline.run("schema", "--table", "engine", "clickhouse", "pkt64").stdout))
    clickhouse.ask(older(printed[1]))
    clickhouse.ask("CREATE MATERIALIZED VIEW engine_from_topic TO engine AS SELECT * FROM engine_topic")
    ok(wait(lambda: clickhouse.count("engine") >= records, 120), "ClickHouse's Kafka engine reads the topic", clickhouse.count("engine"))
    eq(clickhouse.count("engine"), records, "each record once")


def insert(clickhouse, partition, offset, headers, value):
    """As the Kafka engine gives a message to the view."""
    clickhouse.ask("TRUNCATE TABLE value")
    clickhouse.ask("INSERT INTO value FORMAT RowBinary", value)
    names = ", ".join(f"'{name}'" for name, _ in headers)
    texts = ", ".join(f"unhex('{text}')" for _, text in headers)
    clickhouse.ask(f"INSERT INTO hour_topic SELECT *, toUInt64({partition}), toUInt64({offset}), [{names}], [{texts}] FROM value")


def statements_of_guide():
    """The queries of the guide that prove completeness: of offsets, and of the numbers of messages."""
    with open(GUIDE, encoding="utf-8") as f:
        section = f.read().split("### Is it all there?")[1].split("\n### ")[0]
    return [s.replace("packets", "hour").strip().rstrip(";") for s in re.findall(r"```sql\n(.*?)```", section, re.S)]


def completeness(clickhouse):
    offsets, numbers = statements_of_guide()
    return ({int(r[0]): tuple(map(int, r[3:])) for r in clickhouse.rows(offsets)},
            {int(r[0]): int(r[1]) for r in clickhouse.rows(numbers)})


def filled(server, trace, records):
    """A topic that has them all: a tap drops what finds no buffer, as it may where the machine stands still."""
    for attempt in range(5):
        table = Table(server, f"hour{attempt}", 1)
        run = pathline.run("tap", "--stats", "--exporter", "7", "--rate", "20000", "--to", server.uri(table.topic), trace)
        account = json.loads(run.stdout.splitlines()[-1])["outputs"][0]
        if account["delivered"] == records:
            break
    eq((account["delivered"], sum(account["dropped"].values())), (records, 0), f"{records} records are in a topic")
    server.create(table.topic + ".rows", 2)
    server.create("tm.partial." + table.topic, 3)
    return table


def test_hour(server):
    trace, file = lab.path("hour.pcap"), lab.path("hour.pkt64")
    pathline.run("gen", "packets", "--connections", "2", "--servers", "1", "--duration", "3600s", "-w", trace)
    pathline.run("tap", "--to", "file:" + file, trace)
    records = os.path.getsize(file) // 64
    table = filled(server, trace, records)
    want = by_one_process(file)
    ok(len(want) > 500 and want[-1][0] - want[0][0] > 3400e9, f"one process: {len(want)} rows over an hour")
    for name, rows_of in (("the group", lambda: by_group(table, want)), ("Kafka Streams", lambda: by_streams(server, table.topic, records))):
        got = rows_of()
        ok(got == want, f"{name} has the same rows", f"{len(got)}: {[r for r in got if r not in want][:3]}, {[r for r in want if r not in got][:3]}")
    if shutil.which("clickhouse-server") is None:
        tap.skip("ClickHouse", "missing: clickhouse-server")
        return
    clickhouse = Server()
    consume(clickhouse, server, table.topic, records)
    got = by_clickhouse(clickhouse, "engine")
    ok(got == want, "and has the same rows", f"{len(got)}: {[r for r in got if r not in want][:3]}, {[r for r in want if r not in got][:3]}")
    make_tables(clickhouse, server)
    found = list(messages(server, table.topic))
    for message in found:
        insert(clickhouse, *message)
    got = by_clickhouse(clickhouse)
    ok(got == want, "ClickHouse has the same rows", f"{len(got)}: {[r for r in got if r not in want][:3]}, {[r for r in want if r not in got][:3]}")
    partitions = {m[0] for m in found}
    eq((clickhouse.count("hour"), completeness(clickhouse)), (records, ({p: (0, 0, 0) for p in partitions}, {7: 0})),
       f"its table is complete: {len(found)} messages of {len(partitions)} partitions")
    check_faults(clickhouse, found)


def check_faults(clickhouse, found):
    """What the guide's queries say when a message is missing, was cut, came twice, or is of another format."""
    clickhouse.ask("TRUNCATE TABLE hour")
    of_first = [m for m in found if m[0] == found[0][0]]
    gone, cut, twice = of_first[1], of_first[2], of_first[3]
    for message in of_first:
        partition, offset, headers, value = message
        if message != gone:
            insert(clickhouse, partition, offset, headers, value[:-64] if message == cut else value)
        if message == twice:
            insert(clickhouse, *message)
    count = clickhouse.count("hour")
    foreign = [[name, b"pkt64/2".hex() if name == "f" else text] for name, text in gone[2]]
    insert(clickhouse, gone[0], gone[1], foreign, gone[3])
    eq(clickhouse.count("hour"), count, "a message of another version of the format is left out")
    offsets, numbers = completeness(clickhouse)
    eq(offsets, {gone[0]: (1, 1, 1)}, "a message that is missing, one that was cut, and one that came twice are told")
    ok(numbers[7] > 0, "and that messages are missing of those that the exporter sent", numbers)


def main():
    server = server_or_skip()
    if shutil.which("javac") is None:
        tap.skip_all("missing: javac")
    lab.run(*[t for t in (test_hour,) if not ONLY or t.__name__ in ONLY], given=(server,))
    return tap.end()


sys.exit(main())
