# SPDX-License-Identifier: BSD-2-Clause
"""What the telemetry actions of the software switch make of packets, read by others: scapy computes every length and checksum
anew, tshark finds nothing malformed, and a reader of INT, IOAM and reports that was written from their documents, here, finds
the values that the nodes put in.

usage: actions.py PROGRAM
"""
import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pcap, tap, with_scapy  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

SEED = "20261125"
ALL = 0xFFFFFFFF


def words_of(bitmap, version, node):
    """The words of a node's block, as the INT specifications order them; None where they are the switch's own affair."""
    wide = version == "2.1"
    times = [struct.unpack("!II", struct.pack("!Q", node[k])) for k in ("in_ns", "out_ns")]
    level2 = (node["in"], node["out"]) if version != "0.5" else (ALL,)
    fields = {0: (node["node"],), 1: (node["in"] << 16 | node["out"],), 2: (node["out_ns"] - node["in_ns"],),
              3: (node["queue"] << 24 | node["depth"],), 4: times[0] if wide else times[0][1:],
              5: times[1] if wide else times[1][1:], 6: level2, 7: (50,), 8: (ALL,), 15: (None,)}
    return [w for bit in range(16) if bitmap >> (15 - bit) & 1 for w in fields[bit]]


def check_stack(int_bytes, version, nodes):
    """Complaints about the INT header that the bytes begin with."""
    length = int_bytes[1] if version == "2.1" else int_bytes[2]
    md, head = int_bytes[4:], 12 if version == "2.1" else 8
    if md[0] >> 4 != {"0.5": 0, "1.0": 1, "2.1": 2}[version]:
        return f"version {md[0] >> 4}"
    bitmap, = struct.unpack_from("!H", md, 4)
    want = [w for node in reversed(nodes) for w in words_of(bitmap, version, node)]
    per_hop = len(want) // len(nodes)
    announced = {"2.1": length - 3, "1.0": length - 3, "0.5": length - 4}[version]
    got = struct.unpack_from(f"!{len(want)}I", md, head)
    if announced != len(want):
        return f"{announced} words of stack, not {len(want)}"
    if version == "0.5":
        if md[1] & 31 != bin(bitmap).count("1") or md[3] != len(nodes):
            return "instruction or hop count"
    elif md[2] & 31 != per_hop:
        return f"hop length {md[2] & 31}"
    bad = [(i, g, w) for i, (g, w) in enumerate(zip(got, want)) if w is not None and g != w]
    return f"words {bad}" if bad else None


def rebuilt(frame):
    """What scapy makes of the frame when it computes lengths and checksums itself."""
    from scapy.all import Ether, IP, IPv6, TCP, UDP

    packet = Ether(frame)
    zero_sum = packet.haslayer(UDP) and packet[UDP].chksum == 0
    for layer in (IP, IPv6, TCP, UDP):
        if packet.haslayer(layer):
            for field in ("len", "plen", "chksum"):
                if field in packet[layer].fields:
                    delattr(packet[layer], field)
    if zero_sum:
        packet[UDP].chksum = 0
    return bytes(packet)


def outer_only():
    """Payloads stay bytes: only the headers that the actions change are scapy's."""
    from scapy.all import GRE, Raw, TCP, UDP

    for layer in (GRE, TCP, UDP):
        layer.guess_payload_class = lambda self, payload: Raw


def l4_of(packet, l3):
    """Offset and protocol of the transport header."""
    if packet[l3] >> 4 == 4:
        return l3 + 4 * (packet[l3] & 15), packet[l3 + 9]
    at, following = l3 + 40, packet[l3 + 6]
    while following in (0, 60):
        at, following = at + 8 * (packet[at + 1] + 1), packet[at]
    return at, following


def find_int(form, packet, l3):
    """The bytes from the INT shim on."""
    at, protocol = l4_of(packet, l3)
    if form == "2.1 gre":
        return packet[at + 4 + (4 if packet[at] & 0x20 else 0):]
    at += 8 if protocol == 17 else 4 * (packet[at + 12] >> 4)
    if form == "2.1 vxlan":
        return packet[at + 8:]
    if form == "2.1 geneve":  # an option, whose header is as long as a shim; its length counts the same
        option = bytearray(packet[at + 8:])
        option[1] = option[3] & 31
        return bytes(option)
    return packet[at:]


def check_int(case):
    form, packet = case["form"], bytes.fromhex(case["behind"])
    if form == "2.1 mx":
        shim = find_int(form, packet, case["l3"])
        return None if shim[:2] == b"\x30\x03" and len(packet) == len(bytes.fromhex(case["before"])) + 16 else "no MX header"
    return check_stack(find_int(form, packet, case["l3"]), form[:3], case["nodes"])


def check_ioam(case):
    packet, l3, nodes = bytes.fromhex(case["behind"]), case["l3"], case["nodes"]
    if packet[l3 + 6] != 0:
        return "no Hop-by-Hop header"
    option = packet[l3 + 40 + 4:]
    kind, ns, flags, kinds = option[3], *struct.unpack_from("!HHI", option, 4)
    if option[0] != 0x31 or kind != (1 if "incremental" in case["form"] else 0) or ns != 123 or kinds >> 8 != 0xFA0000:
        return f"option {option[:12].hex()}"
    words, remaining = flags >> 11, flags & 0x7F
    if words != 6 or remaining != 6:
        return f"node length {words}, remaining {remaining}"
    at = 12 + (4 * remaining if kind == 0 else 0)
    hop_limit = packet[l3 + 7]
    for node in reversed(nodes):
        seconds, ns_rest = divmod(node["in_ns"], 10**9)
        want = (hop_limit << 24 | node["node"], node["in"] << 16 | node["out"], seconds, ns_rest // 1000,
                node["out_ns"] - node["in_ns"], node["depth"])
        got = struct.unpack_from("!6I", option, at)
        if got != want:
            return f"node {node['node']}: {got}, not {want}"
        at += 24
    return None


def check_report(case, version):
    """The header of a report about the packet, and the packet within."""
    frame, packet, node = bytes.fromhex(case[version]), bytes.fromhex(case["behind"]), case["nodes"][-1]
    payload = frame[14 + 20 + 8:]
    queue, ports = node["queue"] << 24 | node["depth"], node["in"] << 16 | node["out"]
    short = node["in_ns"] & ALL
    if version == "0.5":
        want = struct.pack("!IIIIIII", 0x02200007, 0, short, node["node"], ports, queue, node["out_ns"] & ALL)
    elif version == "1.0":  # ports, latency, queue, egress time, utilization
        want = struct.pack("!IIIIIIIII", 1 << 28 | 9 << 24 | 0x3D << 15 | 1 << 6 | 7, node["node"], 0, short, ports,
                           node["out_ns"] - node["in_ns"], queue, node["out_ns"] & ALL, 50)
    else:
        kept = len(payload) - 8
        want = struct.pack("!IIBBBBHHIIIIQQI", 2 << 28 | 7 << 22, node["node"], 0x13, min(255, kept // 4 - 1), 8, 0x20, 0x7D00, 0, 0,
                           ports, node["out_ns"] - node["in_ns"], queue, node["in_ns"], node["out_ns"], 50)
    if payload[:len(want)] != want:
        return f"report {payload[:len(want)].hex()}, not {want.hex()}"
    inner = payload[len(want):]
    inner = inner[:len(packet)]
    if version == "2.0":  # padded to words
        inner = inner.rstrip(b"\0")
    return None if packet.startswith(inner) and len(inner) > 50 else "the packet within"


def tshark(frames, name):
    path = pcap.write(lab.path(name), frames)
    out = subprocess.run(["tshark", "-n", "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o",
                          "tcp.check_checksum:TRUE", "-Y", "ip.checksum.status == 0 || udp.checksum.status == 0 || "
                          "tcp.checksum.status == 0 || (_ws.malformed && !tcp.payload && !udp.payload)"],
                         capture_output=True, text=True, check=True)
    return out.stdout.splitlines()


def main():
    if not with_scapy.there():
        tap.skip_all("missing: scapy")
    run = subprocess.run([sys.argv[1], SEED], capture_output=True, text=True, check=True)
    cases = [json.loads(line) for line in run.stdout.splitlines()]
    forms = sorted({case["form"] for case in cases})
    eq(len(forms), 12, "forms")
    outer_only()
    for form in forms:
        mine = [case for case in cases if case["form"] == form]
        checks = [check_ioam(c) if form.startswith("ioam") else check_int(c) for c in mine]
        eq([c for c in checks if c][:2], [], f"{form}: the header, and what the nodes said")
        frames = [bytes.fromhex(c["behind"]) for c in mine]
        wrong = [f.hex() for f in frames if rebuilt(f) != f]
        eq(wrong[:1], [], f"{form}: scapy computes the same lengths and checksums")
        eq(tshark(frames, form.replace(" ", "-") + ".pcap")[:2], [], f"{form}: tshark finds nothing wrong")
        if form.startswith("ioam"):
            continue
        for version in ("0.5", "1.0", "2.0"):
            told = [check_report(c, version) for c in mine]
            eq([t for t in told if t][:1], [], f"{form}: reports {version}")
            eq(tshark([bytes.fromhex(c[version]) for c in mine], "r.pcap")[:1], [], f"{form}: reports {version}, by tshark")
    ok(all(len(c["behind"]) > len(c["before"]) for c in cases), "every packet was instrumented")
    return tap.end()


sys.exit(main())
