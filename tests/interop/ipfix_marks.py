# SPDX-License-Identifier: BSD-2-Clause
"""Alternate marking as IPFIX: results and block records of marked captures, read by tshark and by a collector of this test, are those that
the same run writes as JSON lines, value by value; a number that is not known is no element.

usage: ipfix_marks.py PATHLINE [TEST…]
"""
import collections
import os
import random
import shutil
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import collectors, lab, pathline, tap  # noqa: E402
from lib.collectors import Tcp, Udp  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

PEN, SECOND, ZERO = 64512, 10**9, 1_700_000_000
BITS = "--method", "double", "--bit", "dscp:0", "--bit", "dscp:1"
METHODS = ["", "step", "pulse", "double", "multiplexed"]
# Elements by the names of the JSON lines; under the enterprise number, or standard ones.
KEY = {"flow_id": (PEN, 201), "block": (PEN, 202), "period_ns": (PEN, 203), "tai_offset": (PEN, 205), "late": (PEN, 207), "early": (PEN, 208),
       "proto": 4}
SEGMENT = {**KEY, "clock_error_ns": (PEN, 206), "segment": (PEN, 221), "from_point": (PEN, 222), "to_point": (PEN, 223), "from_count": (PEN, 224),
           "to_count": (PEN, 225), "missing_count": (PEN, 226), "missing_point": (PEN, 227), "alarms": (PEN, 228), "pulses_sent": (PEN, 229),
           "pulses_received": (PEN, 230), "sent": (PEN, 231), "received": (PEN, 232), "loss": (PEN, 233), "loss_ppb": (PEN, 234),
           "delay_ns": (PEN, 235), "mean_ns": (PEN, 236), "first_ns": (PEN, 237), "jitter_ns": (PEN, 238), "since": (PEN, 239)}
POINT = {**KEY, "point": 138, "packets": 2, "bytes": 1, "mark_flags": (PEN, 251), "pulses": (PEN, 252), "sum_ns": (PEN, 253)}
del POINT["flow_id"]
SIGNED = 2**64


def frame(flow, colour, pulse, six):
    payload = struct.pack(">HHHH", 1000 + flow, 2000, 108, 0) + bytes(100)
    if six:
        head = struct.pack(">IHBB", 6 << 28 | (colour << 2 | pulse << 3) << 20, len(payload), 17, 64)
        return bytes(12) + b"\x86\xdd" + head + socket.inet_pton(socket.AF_INET6, "2001:db8::1") + socket.inet_pton(socket.AF_INET6, "2001:db8::2") + payload
    head = struct.pack(">BBHHHBBH", 0x45, colour << 2 | pulse << 3, 20 + len(payload), 0, 0, 64, 17, 0)
    return bytes(12) + b"\x08\0" + head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + payload


def write(path, packets):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for ns, data in sorted(packets):
            f.write(struct.pack("<IIII", ns // SECOND, ns % SECOND, len(data), len(data)) + data)
    return path


def captures():
    """Two points; packets overtake each other, some are lost, of one flow all of a block, and some come twice."""
    dice, sent, came = random.Random(28), [], []
    for flow in range(6):
        for block in range(6):
            for i in range(40):
                at = (ZERO + block) * SECOND + (2 * i + 1) * SECOND // 80
                data = frame(flow, block & 1, i == 20, flow % 2 == 1)
                sent.append((at, data))
                if (flow > 3 and dice.random() < 0.1) or (flow == 5 and block == 3):
                    continue
                came += [(at + 10_000_000 + dice.randrange(5_000_000), data)] * (2 if flow == 2 and i == 7 else 1)
    return ["--read", "in=" + write(lab.path("in.pcap"), sent), "--read", "out=" + write(lab.path("out.pcap"), came)]


def wanted(row, elements):
    """The data record that this line becomes."""
    at = row["ts_ns"]
    record = {152: at // 1000000, 153: (at + row["period_ns"]) // 1000000, (PEN, 204): METHODS.index(row["method"])}
    record.update({elements[k]: v % SIGNED for k, v in row.items() if k in elements})
    for end, elements_of in (("src", (8, 27)), ("dst", (12, 28))):
        six = ":" in row[end]
        record[elements_of[six]] = int.from_bytes(socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, row[end]), "big")
    record.update({7: row["sport"], 11: row["dport"]})
    return record


def wanted_segment(row):
    return wanted(row, SEGMENT)


def wanted_point(row):
    record = wanted(row, POINT)
    if row["packets"]:
        record[PEN, 254] = row["first_ns"] % SIGNED
    if row["pulses"]:
        record[PEN, 255] = row["pulse_ns"] % SIGNED
    if row["clock_error_ns"] != 2**32 - 1:
        record[PEN, 206] = row["clock_error_ns"]
    return record


def counted(records):
    return collections.Counter(tuple(sorted(r.items(), key=str)) for r in records)


def compare(name, want_of, *args):
    """What came, and the lines."""
    mine, lines = Udp(), lab.path(name + ".jsonl")
    run = pathline.run("meter", *BITS, *args, "--to", f"ipfix://127.0.0.1:{mine.at}?pen={PEN}", "--to", "jsonl:" + lines)
    ok(run.returncode == 0, f"{name}: the run ends well", run.stderr)
    rows = pathline.jsonl(lab.read(name + ".jsonl"))
    want = counted(want_of(row) for row in rows)
    ok(wait(lambda: len(mine.reader.records) >= len(rows)) and len(rows) > 30, f"{name}: as many data records as lines", (len(mine.reader.records), len(rows)))
    got = counted(mine.reader.records)
    eq((list((got - want).items())[:1], list((want - got).items())[:1]), ([], []), f"{name}: each value is under its element, and no other is there")
    eq(mine.reader.faults, [], f"{name}: messages are well formed, in sequence, every template known")
    return mine, rows


def by_tshark(name, mine):
    if shutil.which("tshark") is None:
        tap.skip("tshark", "missing: tshark")
        return
    read = collectors.Tshark(lab.path(name + ".pcap"), mine)
    eq(read.bad[:3], [], f"{name}: tshark finds no fault")
    eq(read.own, collectors.own_values(mine), f"{name}: tshark reads every value under the enterprise number")
    for field, element in (("cflow.srcport", 7), ("cflow.dstport", 11), ("cflow.protocol", 4), ("cflow.packets", 2), ("cflow.octets", 1),
                           ("cflow.observation_point_id", 138)):
        eq(read.numbers(field), collections.Counter(r[element] for r in mine.reader.records if element in r), f"{name}: and {field}")
    for field, element, family in (("cflow.srcaddr", 8, socket.AF_INET), ("cflow.dstaddr", 12, socket.AF_INET),
                                   ("cflow.srcaddrv6", 27, socket.AF_INET6), ("cflow.dstaddrv6", 28, socket.AF_INET6)):
        size = 4 if family == socket.AF_INET else 16
        eq(read.texts(field), collections.Counter(socket.inet_ntop(family, r[element].to_bytes(size, "big")) for r in mine.reader.records if element in r),
           f"{name}: and {field}")


def test_segments():
    mine, rows = compare("segments", wanted_segment, *captures())
    ok(any("delay_ns" not in r for r in rows) and any("mean_ns" not in r for r in rows) and any(r["loss"] < 0 for r in rows if "loss" in r),
       "some have no delay or mean, some a loss below zero")
    ok(len(mine.reader.templates) > 3, "sets of values have templates of their own", len(mine.reader.templates))
    by_tshark("segments", mine)


def test_points():
    mine, _ = compare("points", wanted_point, "--records", *captures())
    by_tshark("points", mine)


def test_tcp():
    spot, lines = Tcp(), lab.path("tcp.jsonl")
    run = pathline.run("meter", *BITS, *captures(), "--to", f"ipfix://127.0.0.1:{spot.at}?pen={PEN}&transport=tcp", "--to", "jsonl:" + lines)
    ok(run.returncode == 0, "the run ends well", run.stderr)
    rows = pathline.jsonl(lab.read("tcp.jsonl"))
    ok(wait(lambda: len(spot.records()) >= len(rows)), "all come over TCP", (len(spot.records()), len(rows)))
    eq(counted(spot.records()) == counted(map(wanted_segment, rows)), True, "with their values")
    eq(spot.faults(), [], "and no fault")
    spot.close()


def test_words():
    for uri, words in (("ipfix://127.0.0.1", "'pen=N' is missing"), (f"ipfix://127.0.0.1?pen={PEN}&biflow=yes", "biflow")):
        run = pathline.run("meter", *BITS, *captures(), "--to", uri)
        ok(run.returncode != 0 and words in run.stderr, f"{uri}: {words}", run.stderr)
    page = pathline.run("help", "ipfix").stdout
    elements = [k for k in [*SEGMENT.values(), *POINT.values(), (PEN, 204), (PEN, 254), (PEN, 255)] if isinstance(k, tuple)]
    eq([k for k in elements if f"\n  {k[1]} pathline" not in page], [], "help has every element under the enterprise number")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/protocols/ipfix.md"), encoding="utf-8") as f:
        document = f.read()
    eq([k for k in elements if f"N/{k[1]}" not in document], [], "and the documents have them")


lab.run(test_segments, test_points, test_tcp, test_words)
sys.exit(tap.end())
