#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What wire/roce and wire/cm write, read by tshark, field by field; and the ICRC by a definition of its own.

    usage: roce.py ROCE     (the program made from roce.c)

Is skipped when tshark is not there.
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import pcap, tap  # noqa: E402
from lib.roce import icrc  # noqa: E402
from lib.tap import ok  # noqa: E402

RETH = {"infiniband.reth.va": 0x1122334455667788, "infiniband.reth.r_key": 0x99aabbcc,
        "infiniband.reth.dmalen": 0x01020304}
ATOMIC = {"infiniband.reth.va": 0x1122334455667788, "infiniband.reth.r_key": 0x99aabbcc,
          "infiniband.atomiceth.swapdt": 0x0102030405060708, "infiniband.atomiceth.cmpdt": 0x1112131415161718}
AETH = {"infiniband.aeth.syndrome": 0x62, "infiniband.aeth.msn": 0x654321}
ORIGINAL = {"infiniband.atomicacketh.origremdt": 0x2122232425262728}
IMM = {"infiniband.immdt": 0xcafef00d}
IETH = {"infiniband.ieth": 0x99aabbcc}
DETH = {"infiniband.deth.q_key": 0x80010000, "infiniband.deth.srcqp": 0x777}
HEADERS = {0x03: [IMM], 0x05: [IMM], 0x06: [RETH], 0x09: [IMM], 0x0a: [RETH], 0x0b: [RETH, IMM], 0x0c: [RETH],
           0x0d: [AETH], 0x0f: [AETH], 0x10: [AETH], 0x11: [AETH], 0x12: [AETH, ORIGINAL], 0x13: [ATOMIC],
           0x14: [ATOMIC], 0x16: [IETH], 0x17: [IETH]}
BTH = {"infiniband.bth.se": 1, "infiniband.bth.m": 1, "infiniband.bth.tver": 0, "infiniband.bth.p_key": 0x8123,
       "infiniband.bth.destqp": 0x123456, "infiniband.bth.a": 1, "infiniband.bth.psn": 0xabcdef}
CM = {
    0x10: {"infiniband.cm.req": 0x41424344, "infiniband.cm.req.serviceid.dport": 1337,
           "infiniband.cm.req.localqpn": 0x616263, "infiniband.cm.req.startpsn": 0x717273,
           "infiniband.cm.req.responderres": 5, "infiniband.cm.req.initdepth": 3,
           "infiniband.cm.req.transpsvctype": 1, "infiniband.cm.req.remoteresptout": 20,
           "infiniband.cm.req.localresptout": 19, "infiniband.cm.req.retrcount": 7,
           "infiniband.cm.req.rnrretrcount": 6, "infiniband.cm.req.maxcmretr": 15,
           "infiniband.cm.req.pppmtu": 3, "infiniband.cm.req.pkey": 0xffff,
           "infiniband.cm.req.prim_hoplim": 64, "infiniband.cm.req.prim_localacktout": 14,
           "infiniband.cm.req.ip_cm.sport": 50001},
    0x13: {"infiniband.cm.rep": 0x41424344, "infiniband.cm.rep.remotecommid": 0x51525354,
           "infiniband.cm.rep.localqpn": 0x616263, "infiniband.cm.rep.startpsn": 0x717273,
           "infiniband.cm.rep.respres": 5, "infiniband.cm.rep.initdepth": 3},
    0x12: {"infiniband.cm.rej.localcommid": 0x41424344, "infiniband.cm.rej.remotecommid": 0x51525354,
           "infiniband.cm.rej.msgrej": 1, "infiniband.cm.rej.reason": 28},
    0x14: {"infiniband.cm.rtu.localcommid": 0x41424344, "infiniband.cm.rtu.remotecommid": 0x51525354},
    0x15: {"infiniband.cm.dreq.localcommid": 0x41424344, "infiniband.cm.dreq.remotecommid": 0x51525354},
    0x16: {"infiniband.cm.drsp.localcommid": 0x41424344, "infiniband.cm.drsp.remotecommid": 0x51525354},
}


def icrc_of(frame):
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    return icrc(frame[at:-4], grh=frame[at - 2:at] == b"\x89\x15")


def number(text):
    text = text.split(",")[0]
    if text in ("True", "False"):
        return int(text == "True")
    try:
        return int(text, 0)
    except ValueError:
        return int(text.replace(":", ""), 16)


def known_fields():
    out = subprocess.run(["tshark", "-G", "fields"], capture_output=True, text=True, check=True).stdout
    return {line.split("\t")[2] for line in out.splitlines() if line.startswith("F\t")}


def dissect(frames, fields):
    with tempfile.NamedTemporaryFile(suffix=".pcap") as f:
        pcap.write(f.name, frames)
        args = ["tshark", "--disable-protocol", "rpcordma", "-r", f.name, "-T", "fields", "-E", "separator=\t"]
        for name in fields:
            args += ["-e", name]
        out = subprocess.run(args, capture_output=True, text=True, check=True)
    return [dict(zip(fields, line.split("\t"))) for line in out.stdout.split("\n")[:-1]]


def main():
    if shutil.which("tshark") is None:
        tap.skip_all("missing: tshark")
    lines = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines()
    cases = []
    for line in lines:
        carrier, opcode, text = line.split()
        opcode = int(opcode, 16)
        want = {}
        if carrier == "cm":
            want = dict(CM.get(opcode, {}))
        else:
            want.update(BTH)
            want["infiniband.bth.opcode"] = opcode
            want["infiniband.bth.padcnt"] = -(opcode % 11) % 4
            for part in HEADERS.get(opcode & 0x1f, []):
                want.update(part)
            if opcode >= 0x60:
                want.update(DETH)
        cases.append((f"{carrier} {opcode:02x}", bytes.fromhex(text), want))
    known = known_fields()
    fields = sorted({f for _, _, want in cases for f in want} & known | {"_ws.malformed", "infiniband.invariant.crc"})
    missing = sorted({f for _, _, want in cases for f in want} - known)
    ok(not missing, "tshark knows every field", missing)
    got = dissect([frame for _, frame, _ in cases], fields)
    ok(len(got) == len(cases) and len(cases) > 4 * 30, f"{len(cases)} frames")
    for (name, frame, want), row in zip(cases, got):
        wrong = [(f, row.get(f), v) for f, v in want.items()
                 if f in row and (row[f] == "" or number(row[f]) != v)]
        ok(row["_ws.malformed"] == "" and not wrong, f"{name}: tshark", wrong or row["_ws.malformed"])
        ok(frame[-4:] == icrc_of(frame), f"{name}: ICRC")
    return tap.end()


sys.exit(main())
