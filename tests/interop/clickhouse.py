# SPDX-License-Identifier: BSD-2-Clause
"""A ClickHouse server makes the tables that `pathline schema` prints, takes the files that a tap wrote as they are, and has the
same rows in them as `pathline query`.

The server of Debian 12 (18.16) lacks the types of addresses and times: FixedString(16) and UInt64 stand for them, which have
the same bytes.

usage: clickhouse.py PATHLINE
"""
import ipaddress
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.clickhouse import Server, older  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

# Kind, table, and how a tap is told to write it.
KINDS = (
    ("pkt64", "packets", "file:{}", ()),
    ("pkt96", "packets96", "file:{}?kind=pkt96", ()),
    ("dns64", "dns", "file:{}", ("--dns",)),
    ("flow128", "flows", "file:{}", ("--flows",)),
    ("flow288", "flows288", "file:{}?kind=flow288", ("--flows",)),
)
WORDS = (("end_reason", 1, ("idle", "active", "finished", "evicted", "shutdown")), ("role", 0, ("unknown", "client", "server")),
         ("role_by", 0, ("nothing", "syn", "syn_ack", "listening", "ports")))
def same_rows(server, kind, table, to, options):
    """Every column of every row."""
    path = lab.path(f"records.{kind}")
    made = pathline.run("tap", *options, "--to", to.format(path), lab.path("trace.pcap"))
    eq(made.returncode, 0, f"{kind}: a file of records")
    ours = pathline.answer(pathline.run("query", "-o", "jsonl", f"SELECT * FROM {table}", path).stdout)
    for row in ours:  # a word in our rows is a number in the record
        for name, first, words in WORDS:
            if name in row:
                row[name] = first + words.index(row[name])
    ok(len(ours) > 100, f"{kind}: {len(ours)} rows")
    schema = pathline.run("schema", "clickhouse", kind)
    eq(schema.returncode, 0, f"{kind}: a schema")
    server.ask(older(schema.stdout))
    with open(path, "rb") as f:
        server.ask(f"INSERT INTO {table} FORMAT RowBinary", f.read())
    columns = [line.split("\t")[:2] for line in server.ask(f"DESCRIBE TABLE {table} FORMAT TabSeparated").splitlines()]
    eq([c[0] for c in columns], list(ours[0]), f"{kind}: the same columns")
    listed = ", ".join(f"hex({n}) AS {n}_" if t.startswith("Fixed") else n for n, t in columns)
    theirs = server.ask(f"SELECT {listed} FROM {table} FORMAT TabSeparated").splitlines()
    want = sorted("\t".join(value_of(r[n], t) for n, t in columns) for r in ours)
    ok(sorted(theirs) == want, f"{kind}: the same values",
       f"ours {[r for r in want if r not in theirs][:2]}, "
       f"theirs {[r for r in theirs if r not in want][:2]}")


def value_of(value, kind):
    if kind.startswith("Fixed"):
        a = ipaddress.ip_address(value)
        return (a.packed if a.version == 6 else bytes(10) + b"\xff\xff" + a.packed).hex().upper()
    # A hash is hexadecimal digits to us.
    return str(int(value, 16) if kind == "UInt64" and isinstance(value, str) else value)


def test_topic():
    """The statements that fill a table from a topic are for a server that has a broker; here only what is in them."""
    text = pathline.run("schema", "--kafka", "kafka://a:1,b:2/p", "--table", "t`", "--group", "g\\", "clickhouse", "dns64").stdout
    for part in ("'a:1,b:2'", "'p'", r"`t\`_topic`", r"'g\\'", "'RowBinary'", r"`t\`_from_topic` TO `t\``"):
        ok(part in text, f"{part} is in it", text[-400:])


def test_wrong():
    for words, says in ((("clickhouse", "pkt65"), 'did you mean pkt64?'), (("clickhouse",), "missing system or kind"),
                        (("clikhouse", "pkt64"), "did you mean clickhouse?"),
                        (("--table", "x", "protobuf", "pkt64"), "--table belongs to clickhouse and flink"),
                        (("--group", "x", "clickhouse", "pkt64"), "--group reads a topic"),
                        (("flink", "pkt64"), "flink needs the topic"),
                        (("--kafka", "udp://x", "clickhouse", "pkt64"), "kafka://")):
        r = pathline.run("schema", *words)
        ok(r.returncode == 2 and says in r.stderr and r.stdout == "", f"schema {' '.join(words)}: {says}", r.stderr)


def test_tables(server):
    for kind in KINDS:
        same_rows(server, *kind)


# ---- a tap that inserts ----

def account(run):
    """Of the output, from what --stats printed; every record is accounted for."""
    a = json.loads(run.stdout.splitlines()[-1])["outputs"][0]
    eq(a["records"] + a["recovered"], a["delivered"] + a["waiting"] + a["spooled"] + sum(a["dropped"].values()),
       f"the account is closed: {a['delivered']} delivered, {a['spooled']} spooled, {a['dropped']}")
    return a


def insert(server, table, *options, keys=""):
    uri = f"clickhouse://127.0.0.1:{server.port}/{table}?batch=5000{keys}"
    return pathline.run("tap", "--stats", *options, "--to", uri, lab.path("trace.pcap"))


def test_insert(server):
    """All kinds, into tables that `pathline schema` makes; rows are those of the file."""
    for kind, table, _, options in KINDS:
        name = f"in_{table}"
        server.make(kind, name)
        run = insert(server, name, *options, keys=f"&kind={kind}" if kind in ("pkt96", "flow288") else "")
        a = account(run)
        eq((run.returncode, a["delivered"]), (0, a["records"]), f"{kind}: all delivered")
        columns = ", ".join(line.split("\t")[0] for line in server.ask(f"DESCRIBE TABLE {name} FORMAT TabSeparated").splitlines()
                            if not line.startswith("flow_seq"))  # their order is each flow cache's own
        sums = [server.ask(f"SELECT count(), sum(cityHash64({columns})) FROM {t}") for t in (table, name)]
        eq(sums[1], sums[0], f"{kind}: the rows of the file")


def test_refused(server):
    """A table with another kind of column: the server refuses every batch, and nothing is tried for ever."""
    server.ask("CREATE TABLE narrow (ts_ns UInt64, src String) ENGINE = Memory")
    run = insert(server, "narrow")
    a = account(run)
    ok(run.returncode == 1 and a["delivered"] == 0 and a["dropped"]["closed"] == a["records"],
       "a table without our columns: held for an operator, told, counted", run.stderr)
    ok("no such column" in run.stderr.lower() or "code: 16" in run.stderr.lower(), "the server's words", run.stderr)
    columns = older(pathline.run("schema", "--table", "strings", "clickhouse", "pkt64").stdout)
    server.ask(re.sub(r"ENGINE = MergeTree(.|\n)*", "ENGINE = Memory", columns.replace("src FixedString(16)", "src String")))
    run = insert(server, "strings")
    a = account(run)
    ok(run.returncode == 1 and a["dropped"]["refused"] > 0 and "refused" in run.stderr, "bytes that are no rows: refused and counted", run.stderr)
    ok(a["requests"] < 100, f"{a['requests']} requests: it does not ask for each record")


def test_away(server):
    """Without a server everything is spooled; the next tap delivers it, and the server has each record once."""
    server.make("pkt64", "away")
    server.end()
    spool = lab.path("spool")
    run = insert(server, "away", keys=f"&spool={spool}")
    a = account(run)
    n = a["records"]
    ok(run.returncode == 0 and a["spooled"] == n, f"{n} records: all on disk", run.stderr)
    ok("clickhouse" in run.stderr and "onnect" in run.stderr, "the server's absence is told", run.stderr[-2000:])
    server.begin()
    run = insert(server, "away", keys=f"&spool={spool}")
    a = account(run)
    eq((run.returncode, a["recovered"], a["delivered"]), (0, n, 2 * n), "the server is back: the spool and the rest")
    eq(server.count("away"), 2 * n, "each once")


def test_while_it_runs(server):
    """The server goes and comes back while a tap runs."""
    server.make("pkt64", "live")
    port = lab.free_port()
    uri = f"clickhouse://127.0.0.1:{server.port}/live"
    taps = lab.start([pathline.PATHLINE, "tap", "--stats", "--to", uri, f"udp://127.0.0.1:{port}"], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
    wait(lambda: pathline.run("tap", "--to", f"udp://127.0.0.1:{port}", lab.path("trace.pcap")).returncode == 0 and server.count("live") > 0)
    server.end()
    pathline.run("tap", "--to", f"udp://127.0.0.1:{port}", lab.path("trace.pcap"))
    server.begin()
    before = server.count("live")
    ok(wait(lambda: server.count("live") > before), "records that came meanwhile are stored afterwards")
    taps.terminate()
    printed, said = taps.communicate(timeout=60)
    a = account(subprocess.CompletedProcess([], taps.returncode, printed, said))
    # What the server took before it was killed, and did not say so, is sent again.
    ok(a["delivered"] == a["records"] and server.count("live") >= a["records"], "none is missing", said)


def test_addresses():
    for uri, says in (("clickhouse://127.0.0.1", "HOST:PORT/TABLE"), ("clickhouse:x/y", "HOST:PORT/TABLE"), ("clickhouse://h/t?bach=3", "bach"),
                      ("clickhouse://h/t?batch=0", "batch"), ("clickhouse://h/t?password_file=/x", "user"),
                      ("clickhouse://h/t?spool_bytes=1G", "spool="), ("clickhouse://u:p@h/t", "credentials"), ("clickhouse://h/t?kind=dns64", "kind")):
        r = pathline.run("tap", "--to", uri, lab.path("trace.pcap"))
        ok(r.returncode == 2 and says in r.stderr, f"refused: {uri}", f"{r.returncode} {r.stderr}")


MARK = struct.Struct("<Q16s16sHHBBHQQQQqqqIIIIIHH")  # mark128/1


def blocks_of_marked_packets():
    """Of two points; in block 1 a packet is lost, block 2 is idle, block 3 is not reported by the second."""
    address, zero, second = bytes(10) + b"\xff\xff\x0a\0\0\x01", 1_700_000_000, 10**9
    path = lab.path("counts.mark128")
    with open(path, "wb") as f:
        for block, counts in enumerate(((10, 10), (10, 9), (0, 0), (10, None))):
            for point, n in enumerate(counts, 1):
                if n is not None:
                    f.write(MARK.pack((zero + block) * second, address, address, 1, 2, 17, 1, 2 + (point == 1), zero + block, second, n, 100 * n,
                                      1000 * n * point, 0, 0, point, 0, 0, 0, 0, 0, 0))
    return path


def test_absent(server):
    """Segments: a number that is not known is NULL in the table, and the same questions have the same answers."""
    records = lab.path("lost.seg192")
    server.make("seg192", "segments")
    run = pathline.run("meter", "-w", records, "--to", f"clickhouse://127.0.0.1:{server.port}/segments", "--read", blocks_of_marked_packets())
    eq(run.returncode, 0, "loss and delay into the table")
    eq(server.ask("SELECT loss, loss_ppb, mean_ns, delay_ns, missing_point, sent, from_point FROM segments ORDER BY block FORMAT TabSeparated"),
       "0\t0\t1000\t\\N\t\\N\t10\t1\n1\t100000000\t\\N\t\\N\t\\N\t10\t1\n"
       "0\t\\N\t\\N\t\\N\t\\N\t0\t1\n\\N\t\\N\t\\N\t\\N\t2\t\\N\t1\n", "with NULL where there is no number")
    for question in ("SELECT block, loss, mean_ns FROM segments WHERE loss >= 0",
                     "SELECT count(*) AS n, sum(loss) AS lost, min(mean_ns) AS least FROM segments GROUP BY from_point",
                     "SELECT block FROM segments WHERE NOT (loss = 1) AND NOT incomplete",
                     "SELECT block FROM segments WHERE NOT (mean_ns > 5)",
                     "SELECT block, coalesce(missing_point, 99) AS gone FROM segments WHERE mean_ns < 2000 OR incomplete"):
        ours = pathline.run("query", "-o", "jsonl", question, records)
        own = [{k: v for k, v in r.items() if k not in ("first_ts", "late", "incomplete")} for r in pathline.jsonl(ours.stdout)]
        printed = pathline.run("query", "--export", "clickhouse", question).stdout
        statement = printed[printed.rindex("SELECT" if "WITH" not in printed else "WITH"):].strip().rstrip(";").replace("FALSE", "0")  # older servers
        theirs = [json.loads(line) for line in server.ask("SELECT * FROM (" + statement + ") FORMAT JSONEachRow").splitlines()]
        theirs = [{k: v if v is None else int(v) for k, v in r.items() if v is not None} for r in theirs]
        order = lambda r: sorted(r.items())  # noqa: E731
        eq(sorted(theirs, key=order), sorted(own, key=order), question)
        ok(len(own) > 0, "and there are rows", ours.stderr)


def test_drops(server):
    """Drops of the kernel: texts of a fixed length, reasons as numbers, in the table as in the printed records."""
    server.make("drop168", "drops")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    printed = lab.path("drops.out")
    with open(printed, "wb") as out:
        p = lab.start([pathline.PATHLINE, "tap", "--drops", "-o", "jsonl", "--rule", f"take proto=udp dport={port}", "--rule", "skip", "--to",
                       f"clickhouse://127.0.0.1:{server.port}/drops", "drops:lo"], log=lab.path("drops.log"), stdout=out)
    if not ok(wait(lambda: "tapping" in lab.read("drops.log")), "a tap of drops", lab.read("drops.log")):
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _ in range(20):
            s.sendto(b"lost", ("127.0.0.1", port))
    ok(wait(lambda: lab.read("drops.out").count("NO_SOCKET") == 20), "which prints them", lab.read("drops.out")[:300])
    p.send_signal(signal.SIGTERM)
    eq(p.wait(60), 0, "and inserts all")
    rows = pathline.jsonl(lab.read("drops.out"))
    columns = "ts_ns", "dport", "kernel_reason", "ethertype", "ifindex", "skb_len", "record_seq"
    theirs = server.ask(f"SELECT {', '.join(columns)}, toStringCutToZero(interface), toStringCutToZero(place) FROM drops ORDER BY record_seq FORMAT TabSeparated")
    eq([line.split("\t") for line in theirs.splitlines()], [[str(r[c]) for c in columns] + [r["interface"], r["place"]] for r in rows], "column by column")
    statement = pathline.run("query", "--export", "clickhouse", "SELECT count(*) AS n FROM drops WHERE reason = NO_SOCKET and udp").stdout
    statement = statement[statement.rindex("SELECT"):].strip().rstrip(";")
    eq(server.ask(statement).strip(), "20", "a question by the reason's name")


def main():
    lab.run(test_topic, test_wrong)
    if shutil.which("clickhouse-server") is None:
        tap.skip("rows", "missing: clickhouse-server")
        return tap.end()
    pathline.run("gen", "packets", "--story", "--duration", "3s", "-w", lab.path("trace.pcap"))
    server = Server()
    lab.run(test_tables, test_insert, test_refused, test_away, test_while_it_runs, test_absent, test_drops, given=(server,))
    lab.run(test_addresses)
    return tap.end()


sys.exit(main())
