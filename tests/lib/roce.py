# SPDX-License-Identifier: BSD-2-Clause
"""RoCE by struct, from the specification and not from our C: frames, the exchange that makes a queue pair, and `pathline
collect`, which is at the other end."""
import ipaddress
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import time
import zlib

from . import lab
from .pathline import PATHLINE
from .tap import eq
from .wait import LIMIT

UC, RC = 0x20, 0x00
PORT = 4791


# ---- frames ----

def raw(address):
    return ipaddress.ip_address(address).packed


def gid(address):
    return raw(address) if ":" in address else bytes(10) + b"\xff\xff" + raw(address)


def ones_sum(data):
    """The Internet checksum."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def icrc(packet, grh=False):
    """Over a packet from its IP header or GRH, with ones for what routers may change, the UDP checksum and the BTH's reserved
    byte (annexes A16 and A17.3.3)."""
    p = bytearray(packet)
    if p[0] >> 4 == 4:
        ones = (1, 8, 10, 11, 26, 27, 32)
    else:
        p[0] |= 0x0f
        ones = (1, 2, 3, 7, 44) if grh else (1, 2, 3, 7, 46, 47, 52)
    for at in ones:
        p[at] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(p)))


def with_icrc(packet, grh=False, damaged=False):
    check = icrc(packet, grh)
    return packet + (bytes([check[0] ^ 1]) + check[1:] if damaged else check)


def bth(opcode, qpn, psn, ack=False, head=0):
    """head: the byte before the queue pair, which has the notifications of congestion."""
    return struct.pack(">BBHII", opcode, 0x40, 0xffff, head << 24 | qpn, (0x80000000 if ack else 0) | psn)


def ipv4(src, dst, protocol, payload):
    """A datagram with its checksum."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 7, 0x4000, 64, protocol, 0) + raw(src) + raw(dst)
    return head[:10] + struct.pack(">H", ones_sum(head)) + head[12:] + payload


def packet(src, dst, body, damaged=False, checksum=False, hops=64, flow=0x12345):
    """RoCEv2 from the IP header to the ICRC; the body is BTH and what follows. checksum: UDP's, which IPv6 wants and RoCE does
    not have."""
    n = 8 + len(body) + 4
    udp = struct.pack(">HHHH", 0xc123, PORT, n, 0)
    if ":" not in src:
        return with_icrc(ipv4(src, dst, 17, udp + body + bytes(4))[:-4], damaged=damaged)
    addresses = raw(src) + raw(dst)
    ip = struct.pack(">IHBB", 6 << 28 | 0x20 << 20 | flow, n, 17, hops) + addresses
    whole = with_icrc(ip + udp + body, damaged=damaged)
    if checksum:
        sum_ = ones_sum(addresses + struct.pack(">II", n, 17) + whole[40:]) or 0xffff
        whole = whole[:46] + struct.pack(">H", sum_) + whole[48:]
    return whole


def frame(dst_mac, src_mac, packet_):
    """In Ethernet, by the packet's version."""
    return dst_mac + src_mac + (b"\x08\x00" if packet_[0] >> 4 == 4 else b"\x86\xdd") + packet_


def is_roce(one):
    """A frame of RoCEv2, of either version of IP."""
    kind = one[12:14]
    if kind == b"\x08\x00":
        return one[23] == 17 and one[36:38] == b"\x12\xb7"
    return kind == b"\x86\xdd" and one[20] == 17 and one[56:58] == b"\x12\xb7"


def entry(key, value, slots):
    """Place and bytes of a key in a key-write store with the hash of the published code, its only copy."""
    word = struct.pack("<I", key)
    return (zlib.crc32(word + b"\0") & (slots - 1)) * 8, struct.pack("<I", zlib.crc32(word)) + struct.pack(">I", value)


# ---- the exchange ----

QPNS = itertools.count(0x123)


def request(store, service, address, mac, qpn=None, mtu=1024, depth=16, access=7):
    """What asks for a queue pair over TCP. qpn: that of this side, of which no two are alike."""
    qpn = next(QPNS) if qpn is None else qpn
    ask = struct.pack(">4sBBH16s6sHQQQIIIHBB24s", b"PLRX", 1, service, 100, gid(address), mac, 0xffff, 0, 0, 0, 0, qpn, 0, mtu,
                      depth, access, store.encode())
    return ask + struct.pack(">I", zlib.crc32(ask))


def answer_from(tcp):
    """What comes back for one request, or as much of it as does."""
    answer = b""
    while len(answer) < 8 or len(answer) < struct.unpack_from(">H", answer, 6)[0]:
        try:
            more = tcp.recv(512)
        except ConnectionResetError:
            break
        if not more:
            break
        answer += more
    return answer


class QueuePair:
    """Over there, asked for by a TCP connection, with which it ends. Who has it says how frames are made: see packet()."""

    def __init__(self, tcp, ask, service, src, dst, macs):
        self.tcp, self.service, self.src, self.dst, self.macs = tcp, service, src, dst, macs
        tcp.sendall(ask)
        self.answer = answer_from(tcp)
        self.refusal = self.answer[40] if len(self.answer) > 40 else None
        if len(self.answer) == 184:
            self.va, = struct.unpack(">Q", self.answer[32:40])
            self.bytes, self.key, self.qpn, self.psn = struct.unpack(">QIII", self.answer[48:68])
            self.params = self.answer[116:180]

    def frame(self, opcode, rest, qpn=None, ack=False, src=None, **kwargs):
        """The next request."""
        body = bth(opcode, self.qpn if qpn is None else qpn, self.psn, ack) + rest
        self.psn = (self.psn + 1) & 0xffffff
        return frame(*self.macs, packet(src or self.src, self.dst, body, **kwargs))

    def write(self, offset, data, key=None, **kwargs):
        rest = struct.pack(">QII", self.va + offset, self.key if key is None else key, len(data)) + data
        return self.frame(self.service | 0x0a, rest, **kwargs)

    def write_imm(self, offset, data, imm, **kwargs):
        rest = struct.pack(">QIII", self.va + offset, self.key, len(data), imm) + data
        return self.frame(self.service | 0x0b, rest, **kwargs)

    def add(self, offset, value):
        return self.frame(0x14, struct.pack(">QIQQ", self.va + offset, self.key, value, 0), ack=True)


def packet_socket(namespace, interface, protocol=3):
    """Frames in and out of an interface, past the host. protocol 0: out only."""
    with namespace:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
        s.bind((interface, protocol))
    return s


# ---- pathline collect ----

EVERY_NET = ("--allow", "10.0.0.0/8", "--allow", "fd00::/8")  # of tests


class Collector:
    """In a namespace; every address of tests may write unless the arguments say which. What it says first is in line, what it
    printed, when it has ended, in lines but for the account."""

    def __init__(self, namespace, *args, until="collecting on"):
        allow = () if "--allow" in args else EVERY_NET
        self.args = namespace.command(PATHLINE, "collect", "--stats", *allow, *map(str, args))
        ends = time.monotonic() + LIMIT
        self.start(until)
        # The kernel clears up behind a process that was killed, on a loaded machine some time later.
        while "AF_XDP socket of another process" in self.line and time.monotonic() < ends:
            self.process.wait()
            time.sleep(0.5)
            self.start(until)

    def start(self, until):
        self.process = lab.start(self.args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.line = ""
        if until:
            self.first_word()

    def first_word(self):
        """The line behind those about interfaces."""
        self.line = self.process.stderr.readline()
        while "is up" in self.line or "is down" in self.line:
            self.line = self.process.stderr.readline()
        return self.line

    def counters(self):
        self.process.send_signal(signal.SIGUSR1)
        return json.loads(self.process.stdout.readline())

    def wait(self):
        """Until it has ended by itself."""
        self.out, self.err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode

    def stop(self, how=signal.SIGTERM):
        """Its account; None of one that is killed."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.wait()
        if how == signal.SIGKILL:
            return None
        eq(code, 0, "ends well")
        self.lines = [json.loads(line) for line in self.out.splitlines()]
        account = self.lines.pop()
        eq(sum(account["causes"].values()), account["packets"], "every packet has its cause")
        return account


def make_regions(**what):
    """Files of the test's folder, made anew: name: options of `pathline region create`. With a seed that is not drawn:
    which keys are written over is the same in each run."""
    for name, options in what.items():
        path = lab.path(name + ".plr")
        if os.path.exists(path):
            os.unlink(path)
        seed = [] if "--hash dta" in options else ["--seed", "4711"]
        subprocess.run([PATHLINE, "region", "create", path, *seed, *options.split()], check=True, capture_output=True,
                       timeout=LIMIT)
