#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `pathline tap` says to whoever mistypes a source or an output, word by word, and that `pathline config check` says the
same of a configuration. usage: typos_test.py PATHLINE"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

OUTPUTS = "records of a tap go to udp://HOST:PORT, kafka://HOST/TOPIC, clickhouse://HOST/TABLE, ipfix://HOST (flows, marks), influx://HOST/DATABASE, dta://HOST, region:PATH, jsonl:PATH or file:PATH"
MISSING = "No such file or directory"

SOURCES = (
    ("lo", f"lo: {MISSING}; it is the name of an interface: write packet:lo (a tap: also tc:lo or xdp:lo)"),
    ("packets:lo", f"packets:lo: {MISSING}; did you mean packet:lo?"),
    ("xpd:lo", f"xpd:lo: {MISSING}; did you mean xdp:lo?"),
    ("xdp", f"xdp: {MISSING}; for a source of this kind write xdp:INTERFACE"),
    ("udp", f"udp: {MISSING}; for a source of this kind write udp://HOST:PORT"),
    ("nothing.pcap", f"nothing.pcap: {MISSING}"),
    ("packet:", "'packet:': no interface behind the colon"),
    ("tc:", "'tc:': no interface behind the colon"),
    ("pcap:", "'pcap:': no file name behind the colon"),
    ("udp:127.0.0.1:5", "'udp:127.0.0.1:5': write udp://127.0.0.1:5"),
    ("udp://", "'udp://': no address; write udp://HOST:PORT"),
    ("region:", "'region:' is no source of a tap: records that are stored are read by 'pathline query QUESTION region:PATH'"),
    ("kafka://h/t", "'kafka://h/t' is no source of a tap: records that are stored are read by 'pathline query QUESTION kafka://HOST/TOPIC'"),
    ("packet:lo?port=53", "'port' in the URI chooses among reports, and a tap takes every packet; leave it out and use --rule"),
    ("packet:lo?hwtstamp=maybe", "'hwtstamp=maybe' in the URI: write hwtstamp=yes or hwtstamp=no"),
    ("tc:lo?hwtstamp=yes&dir=out", "'hwtstamp=yes' in the URI: the NIC's times go into records of what enters, with record=pkt96; leave it out, or dir=out"),
    ("tc:lo?hwtstamp=yes&record=pkt64", "'hwtstamp=yes' in the URI: the NIC's times go into records of what enters, with record=pkt96; leave it out, or record=pkt64"),
    ("tc:lo?counts=16", "'counts=16' in the URI: a tap makes a record of each packet and counts none; leave it out (it is of 'pathline query', which may count by key)"),
    ("xdp:lo?counts=0", "'counts=0' in the URI: a number of keys from 1 to 4194304"),
    ("packet:lo?block=1M", "'block=1M' in the URI: no such unit, write 1MiB"),
)

TO = (
    ("file", f"'file' is no output, there is nothing behind its kind: {OUTPUTS}"),
    ("file:", "'file:': no path behind the colon; write file:PATH"),
    ("region:?entries=512", "'region:?entries=512': no path behind the colon; write region:PATH"),
    ("/var/tmp/x", f"'/var/tmp/x' is no output (a file is file:PATH): {OUTPUTS}"),
    ("tcp://h:5", f"'tcp://h:5' is no output: {OUTPUTS}"),
    ("file:x?header=maybe", "'header=maybe' in the URI: write header=yes, header=clock or header=no"),
    ("file:x?kind=pkt32", "'kind=pkt32' in the URI: pkt64 or pkt96"),
    ("file:x?headr=yes", "unknown key 'headr' in the URI, did you mean 'header'?"),
    ("region:x?entries=1000", "'entries=1000' in the URI: write a multiple of 256 from 512 on, without a unit, such as 1024 or 1048576"),
    ("region:x?entries=1M", "'entries=1M' in the URI: write a multiple of 256 from 512 on, without a unit, such as 1024 or 1048576"),
    ("region:x?lists=0", "'lists=0' in the URI: write a number from 1 to 65536"),
    ("udp://127.0.0.1", "'127.0.0.1': not HOST:PORT with a port number up to 65535"),
    ("udp://127.0.0.1:9?records=many", "'records=many' in the URI: not a number, nor a size like 64KiB, 16MiB or 1GiB"),
    ("udp://127.0.0.1:9?lanes=65", "'lanes=65' in the URI: not between 1 and 64"),
    ("udp://127.0.0.1:9?sndbuf=4m", "'sndbuf=4m' in the URI: no such unit, write 4MiB"),
    ("clickhouse://h", "a table of ClickHouse is clickhouse://HOST:PORT/TABLE"),
    ("clickhouse://h/t?spool_bytes=1GiB", "clickhouse: spool_bytes= needs spool="),
    ("clickhouse://h/t?memory=64M", "'memory=64M' in the URI: no such unit, write 64MiB"),
)

KAFKA = (
    ("kafka://h/t?spool=x&spool_bytes=1G", "'spool_bytes=1G' in the URI: no such unit, write 1GiB"),
    ("kafka://h/t?spool=x&spool_bytes=100", "'spool_bytes=100' in the URI: not between 1048576 and 17592186044416"),
    ("kafka://h/t?spool_bytes=1GiB", "kafka: spool_bytes= without spool=FOLDER"),
    ("kafka://h/t?kind=pkt32", "'kind=pkt32' in the URI: pkt64 or pkt96"),
    ("kafka://h/t?acks=maybe", "property 'acks': Invalid value for configuration property \"request.required.acks\""),
)


def outputs():
    has_kafka = "without Kafka" not in run("tap", "--to", "kafka://", "nothing.pcap").stderr
    return TO + KAFKA if has_kafka else TO


def test_sources():
    for source, says in SOURCES:
        r = run("tap", source)
        ok(r.returncode not in (0, 3), f"tap {source} is refused", r.returncode)
        eq(r.stderr, f"pathline: {says}\n", "and says why")
    eq(run("read", "tc:lo").stderr, f"pathline: tc:lo: {MISSING}; tc: is a source of 'pathline tap' and 'query' only\n",
       "a command that has no taps in the kernel says who has")


def test_outputs():
    capture = lab.path("one.pcap")
    run("gen", "packets", "--duration", "100ms", "-w", capture)
    for to, says in outputs():
        r = run("tap", "--to", to, capture)
        ok(r.returncode == 2, f"--to {to} is refused", r.returncode)
        eq(r.stderr, f"pathline: {says}\n", "and says why")


def test_configuration():
    """The check of a configuration refuses what the start would, by the same words."""
    for to, says in outputs():
        r = run("config", "check", "-", input=f"taps: [{{name: a, sources: ['udp://:1'], to: ['{to}']}}]\n")
        ok(r.returncode == 78 and says in r.stderr, f"to: {to} is refused by the same words", r.stderr)
    for more, says in (("sources: ['packet:lo?port=53']", "chooses among reports"),
                       ("sources: ['xdp:lo'], inner: true", "the tap in the kernel reads no packets in tunnels"),
                       ("sources: ['tc:lo'], records: dns, to: ['file:x']", "the tap in the kernel reads no DNS messages"),
                       ("sources: ['udp://:1'], records: flows, to: ['file:x?kind=pkt96']", "'kind=pkt96' in the URI: flow128 or flow288")):
        r = run("config", "check", "-", input=f"taps: [{{name: a, {more}}}]\n")
        ok(r.returncode == 78 and says in r.stderr, f"{more}: {says}", r.stderr)
    good = run("config", "check", "-", input="taps: [{name: a, sources: ['packet:lo', 'tc:lo'], "
               "to: ['file:x?header=yes', 'region:y?entries=1024', 'udp://127.0.0.1:9?clock=yes', 'clickhouse://h/t']}]\n")
    eq(good.returncode, 0, "what is right is good")


def test_query():
    """What would do nothing is refused."""
    r = run("query", "--user", "nobody", "SELECT count(*) AS n FROM packets", "x.pkt64")
    eq((r.returncode, r.stderr), (2, "pathline: query: --user and --group do nothing for x.pkt64; start pathline as that user "
                                     "instead\n"), "a file of records has no rights to give up")


test_sources()
test_query()
test_outputs()
test_configuration()
sys.exit(tap.end())
