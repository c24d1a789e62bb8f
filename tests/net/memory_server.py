#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline collect over a veth pair between two namespaces, by packet: and afxdp:. The peer is this script, which asks for
queue pairs and writes RoCE frames byte by byte by definitions of its own: what it writes is found by pathline region from
another process; what is forged is counted and changes nothing; the host's ping and TCP pass; a queue pair ends with its
connection; a collector that is killed begins again on the same regions. With --epochs only what is of epochs, which has
threads of its own. usage: memory_server.py PATHLINE [CAPTURES|--epochs]"""
import errno
import json
import os
import re
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, pcap, roce, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import region as rows  # noqa: E402
from lib.roce import RC, UC, icrc, raw  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

ONLY_EPOCHS = sys.argv[2:] == ["--epochs"]
CAPTURES = sys.argv[2] if len(sys.argv) > 2 and not ONLY_EPOCHS else None
NS, MAC, MAC6 = {}, {}, {}
IF = {"a": "plca", "b": "plcb"}
IF6 = {"a": "plca6", "b": "plcb6"}
IP = {"a": "10.78.0.1", "b": "10.78.0.2"}
IP6 = {"a": "fd00:78::1", "b": "fd00:78::2", "other": "fd00:78::9"}
PORT = 21471
SLOTS = 1 << 16


def make_namespaces():
    for side in "ab":
        NS[side] = network.Namespace("col-" + side, ipv6=False)


def make_wire(interfaces, addresses, macs):
    network.join(NS["a"], interfaces["a"], NS["b"], interfaces["b"])
    for side in "ab":
        if ":" in addresses[side]:
            NS[side].sysctl(f"ipv6.conf.{interfaces[side]}.disable_ipv6", 0)
        NS[side].up(interfaces[side], addresses[side] + ("/64" if ":" in addresses[side] else "/24"))
        macs[side] = NS[side].mac(interfaces[side])
    network.wait_for_carrier(*[(NS[side], interfaces[side]) for side in "ab"])


# ---- a peer ----

class Wire:
    """Frames in and out of this side, past the host. None is lost: what the pair drops because its ring, or the queue of
    the processor that others flood, is full, is sent again."""

    def __init__(self, interface=None):
        self.interface = interface or IF["a"]
        self.macs = MAC6 if self.interface == IF6["a"] else MAC
        self.socket = roce.packet_socket(NS["a"], self.interface)
        self.socket.setblocking(False)
        with NS["a"]:
            self.counters = open("/proc/thread-self/net/dev", encoding="ascii")

    def dropped(self):
        self.counters.seek(0)
        line = next(line for line in self.counters if line.strip().startswith(self.interface + ":"))
        return int(line.split(":")[1].split()[11])

    def send(self, *frames):
        for one in frames:
            while True:
                before = self.dropped()
                try:
                    self.socket.send(one)
                except OSError as e:
                    if e.errno not in (errno.EAGAIN, errno.ENOBUFS):
                        raise
                    time.sleep(0.001)
                    continue
                if self.dropped() == before:
                    break
                time.sleep(0.001)

    def deliver(self, one):
        """A reliable request, again and again until it is acknowledged; how often it was sent."""
        psn = one[51:54]
        for n in range(1, LIMIT):
            self.send(one)
            until = time.monotonic() + 1
            while time.monotonic() < until:
                if any(f[42] == 0x11 and f[51:54] == psn and f[54] < 0x20 for f in self.acks()):
                    return n
                time.sleep(0.001)
        return LIMIT

    def seen(self):
        """What came from the other side since."""
        frames = []
        while True:
            try:
                one = self.socket.recv(4096)
            except BlockingIOError:
                return frames
            if one[6:12] == self.macs["b"]:
                frames.append(one)

    def acks(self):
        """RoCE packets that came back."""
        return [one for one in self.seen() if roce.is_roce(one)]


def request(store, service=UC, address=None):
    return roce.request(store, service, address or IP["a"], MAC["a"])


def exchange(sent):
    """Everything that comes back for it, to the end."""
    with connect(IP["b"]) as tcp:
        tcp.sendall(sent)
        got = b""
        while more := tcp.recv(4096):
            got += more
    return got


def connect(address, source=None):
    with NS["a"]:
        return socket.create_connection((address, PORT), timeout=LIMIT, source_address=(source, 0) if source else None)


class Peer(roce.QueuePair):
    """A queue pair over there, asked for over TCP. address: who it says that it is."""

    def __init__(self, store, service=UC, address=None, source=None):
        super().__init__(connect(IP["b"], source), request(store, service, address), service, IP["a"], IP["b"],
                         (MAC["b"], MAC["a"]))


class Peer6(roce.QueuePair):
    """The same exchange with an address of 16 bytes, over TCP by IPv6. UDP checksums as IPv6 wants them."""

    def __init__(self, store, service=UC, address=None):
        super().__init__(connect(IP6["b"]), roce.request(store, service, address or IP6["a"], MAC6["a"]), service, IP6["a"],
                         IP6["b"], (MAC6["b"], MAC6["a"]))

    def frame(self, opcode, rest, checksum=True, **kwargs):
        return super().frame(opcode, rest, checksum=checksum, **kwargs)


def entry(key, value):
    return roce.entry(key, value, SLOTS)


def ping():
    """An echo request to the host over there is answered."""
    with NS["a"]:
        s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    s.settimeout(LIMIT)
    body = struct.pack(">BBHHH", 8, 0, 0, 77, 1)
    check = ~sum(struct.unpack(">4H", body)) & 0xffff
    s.sendto(body[:2] + struct.pack(">H", check) + body[4:], (IP["b"], 0))
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        if s.recv(1500)[20:21] == b"\0":
            return True
    return False


# ---- a collector ----

class Collector(roce.Collector):
    STORES = ("last.plr", "sums.plr", "lists=appended.plr")

    def __init__(self, uri, *args):
        stores = [store.replace("=", "=" + lab.DIR + "/") if "=" in store else path(store) for store in self.STORES]
        self.uri = uri
        super().__init__(NS["b"], "--listen", f":{PORT}", *args, uri, *stores)
        ok("collecting on" in self.line, f"{uri}: says what it does", self.line)

    def stop(self, how=signal.SIGTERM):
        s = super().stop(how)
        if s is not None:
            port = s["port"]
            eq(port["packets"], s["packets"], "and is the port's")
            eq([port["ring_sent"], port["ring_drops"], port["unsent"]],
               [port["sent"] if self.uri.startswith("afxdp:") else 0, 0, 0],
               f"{self.uri}: {port['sent']} frames were sent, by the ring where there is one")
            ok(sum(p["packets"] for p in s["peers"]) <= s["packets"], "peers' packets are among them", s)
        return s


def make_regions():
    roce.make_regions(last=f"--primitive key-write --slots {SLOTS} --value-bytes 4 --copies 1 --hash dta",
                      sums="--primitive counters --slots 1024",
                      appended="--primitive append --slots 1024 --lists 4 --value-bytes 4 --unsealed")


def values(first, n):
    """What region lookup says of n keys: {key: value}, found ones only."""
    found = rows("lookup", path("last.plr"), "--key-form", "u32", *range(first, first + n))
    return {int(r["key"], 0): int(r["value"], 16) for r in found if r.get("answer") == "found"}


def region_bytes():
    with open(path("last.plr"), "rb") as f:
        f.seek(4096)
        return f.read()


def genuine_frames():
    """Frames that soft-RoCE wrote, of the captures of tests/rdma."""
    frames = []
    for name in sorted(os.listdir(CAPTURES)) if CAPTURES else []:
        if not name.endswith(".pcap"):
            continue
        frames += [MAC["b"] + MAC["a"] + one[12:] for one in pcap.frames_of(os.path.join(CAPTURES, name))
                   if len(one) <= 1514 and one[12:14] == b"\x08\x00" and roce.is_roce(one)]
    return frames[:500]


def run(uri):
    make_regions()
    c = Collector(uri)
    wire = Wire()

    # What is written is found, from another process, while it runs.
    uc = Peer("last")
    eq(len(uc.answer), 184, f"{uri}: an answer with the store's geometry")
    eq(uc.bytes, SLOTS * 8, "its length is the store's")
    eq(struct.unpack("<IIQIIQII", uc.params[:40]), (1, 2, 0, 0, 0, SLOTS, 4, 1), "its parameters as in the file")
    wire.send(*[uc.write(*entry(k, 1000 + k)) for k in range(1, 201)])
    ok(wait(lambda: len(values(1, 200)) >= 198), "200 unreliable writes are found", values(1, 200))
    got = values(1, 200)
    eq([k for k in got if got[k] != 1000 + k], [], "and right")

    rc = Peer("last", RC)
    wire.seen()
    wire.send(*[rc.write(*entry(k, 2000 + k), ack=k == 250) for k in range(201, 251)])
    acks = wait(wire.acks)
    ok(acks, "the last of 50 reliable writes is acknowledged")
    if acks:
        ack = acks[0]
        eq(ack[42], 0x11, "by an ACK")
        eq(int.from_bytes(ack[51:54], "big"), (rc.psn - 1) & 0xffffff, "of its number")
        eq(ack[54], 0x1f, "that is positive")
        eq(ack[-4:], icrc(ack[14:-4]), "with a right ICRC")
        eq(ack[:6], MAC["a"], "to this side's MAC address")
    got = values(201, 50)
    ok(len(got) >= 49 and all(got[k] == 2000 + k for k in got), "they are found", got)

    sums = Peer("sums", RC)
    wire.send(*[sums.add(8, 3) for _ in range(10)])
    ok(wait(lambda: any(r.get("value") == 30 for r in rows("dump", path("sums.plr")))), "ten atomics add up to thirty",
       rows("dump", path("sums.plr")))

    # What is forged is counted and changes nothing.
    none = Peer("nothing")
    eq((len(none.answer), none.refusal), (100, 1), "a store that is not there is refused by its name")
    got = exchange(request("last") + request("sums", RC) + b"GET / HTTP/1.0\r\n\r\n" * 1000)
    eq([len(got), got[:4], got[184:188], got[40], got[184 + 40]], [368, b"PLRX", b"PLRX", 0, 0],
       "garbage behind two requests: both are answered, then the connection ends")
    before = region_bytes()
    spot = entry(7, 99)
    wire.send(uc.write(*spot, key=uc.key ^ 1),
              uc.write(*spot, qpn=uc.qpn ^ 1),
              uc.write(*spot, damaged=True),
              uc.write(*spot, src="10.78.0.9"),
              uc.write(SLOTS * 8 - 7, b"x" * 8),
              uc.write(-4096, b"x" * 8),
              uc.write(*spot, key=sums.key),
              uc.write(*spot)[:60],
              roce.frame(MAC["b"], MAC["a"], roce.packet(IP["a"], IP["b"], roce.bth(RC | 0x0a, uc.qpn, uc.psn) +
                                                         struct.pack(">QII", uc.va, uc.key, 4) + b"evil")))
    genuine = genuine_frames()
    wire.send(*genuine)
    wire.send(uc.write(*entry(300, 1)))
    ok(wait(lambda: 300 in values(300, 1)), "behind all of it the stream goes on")
    after = bytearray(region_bytes())
    at, data = entry(300, 1)
    ok(after[at:at + 8] == data, "it is where it belongs")
    after[at:at + 8] = before[at:at + 8]
    ok(bytes(after) == before, "nothing else was written")

    # The host's own.
    with NS["b"]:
        host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    host.bind((IP["b"], 21472))
    host.settimeout(LIMIT)
    with NS["a"], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"hello", (IP["b"], 21472))
    eq(host.recv(16), b"hello", "datagrams to other ports pass")
    ok(ping(), "ping passes")
    unreachable = [f for f in wire.seen() if f[12:14] == b"\x08\x00" and f[23] == 1 and f[34] == 3]
    eq(unreachable, [], "the host complained of no RoCE packet")

    # The end of a connection is the end of its queue pair.
    uc.tcp.close()
    again = Peer("last")
    wire.send(*[uc.write(*entry(k, 5)) for k in range(400, 410)])
    wire.send(again.write(*entry(411, 6)))
    ok(wait(lambda: 411 in values(411, 1)), "another queue pair for another connection")
    eq(values(400, 10), {}, "the old one writes nothing any more")
    s = c.stop()
    causes = s["causes"]
    want = {"key": 1, "domain": 1, "bounds": 2, "peer": 1, "service": 1}
    eq({k: causes[k] for k in want}, want, "each forged packet by its cause")
    ok(causes["icrc"] >= 1 and causes["unknown_qp"] >= 11 and causes["ok"] == 200 + 50 + 10 + 2, "stale and unknown ones, and the good ones",
       causes)
    mine = {(p["store"]): p for p in s["peers"] if p["peer"] == IP["a"]}
    eq(s["control"]["garbage"], 1, "garbage by itself")
    ok(s["port"]["sent"] >= s["acks"] + s["atomic_acks"] + s["naks"] > 0, "answers were sent", s)
    ok(mine["last"]["tcp"] == 4 and mine["last"]["packets"] - mine["last"]["refused"] == 252 and
       mine["sums"]["packets"] == 10, "and by peer", s["peers"])
    eq(rows("info", path("last.plr"))[0].get("clean"), True, "the regions are closed cleanly")
    # Whole numbers: a queue pair may be 17 by chance, which is in many.
    told = set(map(int, re.findall(r"\d+", json.dumps(s) + c.line + c.err)))
    ok(not told & {uc.key, uc.qpn, rc.key}, "no key and no queue pair is told to anybody")

    # Killed, and begun again.
    c = Collector(uri)
    first = Peer("last")
    wire.send(first.write(*entry(500, 77)))
    ok(wait(lambda: 500 in values(500, 1)), "written before it is killed")
    c.stop(signal.SIGKILL)
    wire.send(first.write(*entry(501, 78)))
    c = Collector(uri, "--allow", f"{IP['a']}/32", "--proxy", f"{IP['a']}/32")
    second = Peer("last")
    ok((first.qpn, first.key) != (second.qpn, second.key), "a new queue pair and a new key")
    wire.send(first.write(*entry(502, 79)), second.write(*entry(503, 80)))
    ok(wait(lambda: 503 in values(503, 1)), "the regions attach, and are written")
    eq(values(500, 4), {500: 77, 503: 80}, "what was there is there; nothing by the old queue pair")

    # Who may.
    NS["a"].ip(f"addr add 10.78.0.3/24 dev {IF['a']}")
    eq(Peer("last", address="10.78.0.3").refusal, 2, "an address that is not allowed to write")
    eq(len(Peer("last", source="10.78.0.3").answer), 0, "one that is not allowed to connect")
    NS["a"].ip(f"addr del 10.78.0.3/24 dev {IF['a']}")
    c.stop(signal.SIGINT)

    # Entries and values that are announced are printed by workers: an entry, then the head that counts it.
    c = Collector(uri, "--on-immediate", "--workers", "2")
    lists, last = Peer("lists"), Peer("last")
    stride = 64 + 1024 * 4
    for i in range(20):
        at = (i % 4) * stride
        wire.send(lists.write(at + 64 + i // 4 * 4, struct.pack(">I", 0xab00 + i)),
                  lists.write_imm(at, struct.pack("<Q", i // 4 + 1), 2 << 28 | i % 4))
    spot = entry(600, 81)
    wire.send(last.write_imm(*spot, 1 << 28 | spot[0] // 8), last.write_imm(*spot, 7 << 28))
    ok(wait(lambda: 600 in values(600, 1)), "announced values are found as others")
    s = c.stop()
    by_list = {i: [(x["entry"], x["value"]) for x in c.lines if x.get("list") == i] for i in range(4)}
    eq(by_list, {i: [(k, "%08x" % (0xab00 + 4 * k + i)) for k in range(5)] for i in range(4)},
       "every entry is printed once, each list in its order")
    eq([x for x in c.lines if "slot" in x],
       [{"store": "last", "slot": spot[0] // 8, "value": "00000051"}], "and the value")
    w = s["workers"]
    ok(w["signals"] == 22 and w["taken"] == 21 and w["strange"] == 1 and w["items"] == 21 and
       w["latency_ns"]["count"] == 21 and w["latency_ns"]["p50"] > 0 and s["signals"] == 22,
       "signals are accounted for, with their latency", w)
    if CAPTURES:
        ok(len(genuine) > 100, "frames of soft-RoCE were among the refused", len(genuine))


class Turning(Collector):
    """A collector of stores of values, of sums and of a sketch, each in two halves."""

    STORES = ("last=turn.plr", "sums=sums2.plr", "lists=listed.plr", "sketch=sketch.plr")

    def turn(self, to):
        self.process.send_signal(signal.SIGUSR2)
        return wait(lambda: epoch_of("turn.plr") == to and epoch_of("sums2.plr") == to)


COLUMNS = 16


def columns(peer, first, n, epoch):
    """Columns of a sketch, and how many are complete then, as a translator writes them."""
    cells = b"".join(struct.pack("<I", 100 * (epoch + 1) + c) for c in range(first, first + n))
    wire = [peer.write(64 + 4 * first, cells, ack=True)] if n else []
    return wire + [peer.write(0, struct.pack("<Q", first + n), ack=True)]


def cells_in(name, *args):
    return [int(r["value"]) for r in rows("dump", name, *args) if "value" in r]


def run_sketch_epochs(wire, c, kept):
    """A sketch turns when it is whole, however often it is asked for: its columns go on over the turn."""
    s, number = Peer("sketch", RC), epoch_of("sketch.plr")
    for turn in range(3):
        want = [100 * (turn + 1) + i for i in range(COLUMNS)]
        wire.send(*columns(s, 0, 0, turn), *columns(s, 0, 5, turn))
        ok(wait(lambda: len(cells_in(path("sketch.plr"))) == 5), "a third of a sketch", cells_in(path("sketch.plr")))
        ok(c.turn(epoch_of("turn.plr") + 1), "the other stores turn")
        ok(c.turn(epoch_of("turn.plr") + 1), "and once more")
        eq(epoch_of("sketch.plr"), number, "it does not")
        wire.send(*columns(s, 5, COLUMNS - 5, turn))
        ok(wait(lambda: epoch_of("sketch.plr") == number + 1), "when it is whole it does, once")
        eq(cells_in(path("sketch.plr")), [], "its next epoch is empty")
        eq(cells_in(path("sketch.plr"), "--epoch", str(number)), want, "the one before has every column")
        ok(wait(lambda: os.path.exists(f"{kept}/sketch-{number}.plr")), "it is kept at once, and not at the next turn")
        eq(cells_in(f"{kept}/sketch-{number}.plr"), want, "whole")
        asked = pathline.run("lookup", "-o", "json", "key", f"{kept}/sketch-{number}.plr", "host7")
        ok(asked.returncode == 0 and json.loads(asked.stdout)[0]["value"] in want, "and can be asked by key",
           asked.stdout + asked.stderr)
        number += 1
    wire.send(*columns(s, 0, 0, 3), *columns(s, 0, 2, 3))
    ok(wait(lambda: cells_in(path("sketch.plr")) == [400, 401]), "what is incomplete stays", cells_in(path("sketch.plr")))


def epoch_of(name):
    return int(rows("info", path(name))[0].get("epoch", -1))


def values_in(name, keys, *args):
    """{key: value} of one epoch; None: there is no such epoch."""
    found = rows("lookup", name, *args, "--key-form", "u32", *keys)
    if found and "error" in found[0]:
        return None
    return {int(r["key"], 0): int(r["value"], 16) for r in found if r.get("answer") == "found"}


def sum_in(name, *args):
    found = rows("dump", name, *args)
    return sum(int(r["value"]) for r in found if "value" in r)


def has_come(key, kept):
    """Whether the key is in the present epoch, or in the file of one that ended."""
    files = [path("turn.plr")] + [f"{kept}/{f}" for f in os.listdir(kept) if re.fullmatch(r"turn-\d+\.plr", f)]
    return any(values_in(f, [key]) for f in files)


def run_epochs(uri):
    """One queue pair writes through turns that nobody tells it of; each epoch answers for what came in it."""
    roce.make_regions(turn=f"--halves 2 --primitive key-write --slots {SLOTS} --value-bytes 4 --copies 1 --hash dta",
                      sums2="--halves 2 --primitive counters --slots 64 --rows 1",
                      listed="--halves 2 --primitive append --slots 64 --value-bytes 4",
                      sketch=f"--halves 2 --primitive sketch --slots {COLUMNS} --rows 1 --cell-bytes 4")
    kept = path("kept")
    os.mkdir(kept)
    c = Turning(uri, "--keep-epochs", kept)
    wire, last, sums = Wire(), Peer("last"), Peer("sums", RC)
    sent = []
    for epoch in range(4):
        # Half of the keys are those of the epoch before, with other values.
        mine = {k: 1000 * (epoch + 1) + k for k in range(25 * epoch, 25 * epoch + 50)}
        sent.append(mine)
        wire.send(*[last.write(*entry(k, v)) for k, v in mine.items()], *[sums.add(8, epoch + 1) for _ in range(10)])
        ok(wait(lambda: values_in(path("turn.plr"), mine) == mine and sum_in(path("sums2.plr")) == 10 * (epoch + 1)),
           f"{uri}: epoch {epoch} has what was sent in it", (values_in(path("turn.plr"), mine), sum_in(path("sums2.plr"))))
        ok(c.turn(epoch + 1), f"SIGUSR2: epoch {epoch + 1} begins", c.line)
        eq(values_in(path("turn.plr"), mine), {}, "and is empty")
        eq(values_in(path("turn.plr"), range(200), "--epoch", str(epoch)), mine, "the epoch before answers, and nothing but that")
        eq(sum_in(path("sums2.plr"), "--epoch", str(epoch)), 10 * (epoch + 1), "its sums too")
        if epoch > 0:
            eq(values_in(path("turn.plr"), [1], "--epoch", str(epoch - 1)), None, "the one before that is not in the region")
    ok(wait(lambda: os.path.exists(f"{kept}/sums2-3.plr")), "every epoch that ended is kept")
    for epoch, mine in enumerate(sent):
        eq(values_in(f"{kept}/turn-{epoch}.plr", range(200)), mine, f"epoch {epoch} is in its file")
        eq(sum_in(f"{kept}/sums2-{epoch}.plr"), 10 * (epoch + 1), "with its sums")

    # What cannot be kept is not emptied.
    with open(f"{kept}/turn-4.plr", "w", encoding="utf-8") as f:
        f.write("something else")
    wire.send(last.write(*entry(7, 4444)))
    ok(wait(lambda: values_in(path("turn.plr"), [7]) == {7: 4444}) and c.turn(5), "an epoch whose file is there already ends")
    c.process.send_signal(signal.SIGUSR2)
    ok("cannot keep the ended epoch" in c.process.stderr.readline(), "it is told that it cannot be kept")
    tried = c.counters()["epochs"]["put_off"]
    ok(wait(lambda: c.counters()["epochs"]["put_off"] > tried + 1), "it is tried again and again")
    eq((epoch_of("turn.plr"), values_in(path("turn.plr"), [7], "--epoch", "4")), (5, {7: 4444}), "and stays: the next one waits")
    os.unlink(f"{kept}/turn-4.plr")
    ok(wait(lambda: epoch_of("turn.plr") == 6), "until there is room")
    eq(values_in(f"{kept}/turn-4.plr", [7]), {7: 4444}, "it is kept by then")
    ok(wait(lambda: os.path.exists(f"{kept}/turn-5.plr") and not any(f.endswith(".part") for f in os.listdir(kept))),
       "nothing half made is left")
    ok(not os.path.exists(f"{kept}/listed-0.plr"), "lists have no epochs")

    # Killed: the epoch goes on, and what ended is kept by the next one.
    wire.send(last.write(*entry(8, 6666)))
    ok(wait(lambda: values_in(path("turn.plr"), [8]) == {8: 6666}), "written before it is killed")
    c.stop(signal.SIGKILL)
    os.unlink(f"{kept}/turn-5.plr")
    c = Turning(uri, "--keep-epochs", kept, "--epoch", "300ms", "--on-immediate")
    last = Peer("last", RC)
    # Keys in turn, no two of one slot, through turns by the clock: every one in one epoch, and epochs one behind the other. Each
    # is announced, once however often it is sent, and printed as it is in its epoch.
    keys, slots, times = [], {}, 0
    for k in range(1000, 20000):
        spot = entry(k, k)
        if spot[0] // 8 in slots:
            continue
        keys.append(k)
        slots[spot[0] // 8] = "%08x" % k
        one = last.write_imm(*spot, 1 << 28 | spot[0] // 8, ack=True)
        times += wire.deliver(one)
        if k % 50 == 0:
            times += wire.deliver(one)
            if len(keys) >= 600 and epoch_of("turn.plr") >= 9:
                break
    ok(epoch_of("turn.plr") >= 9, "--epoch begins them by the clock")
    ok(wait(lambda: has_come(keys[-1], kept)), "and the last key comes")
    s = c.stop()
    now = epoch_of("turn.plr")
    ok(s["epochs"]["turned"] >= 3 and s["epochs"]["put_off"] == 0 and
       [(x["store"], x["epoch"]) for x in s["epochs"]["stores"]] == [("last", now), ("sums", now), ("sketch", 0)] and
       s["epochs"]["late"] == 1, "and counts them; an empty sketch waits", s["epochs"])
    w = s["workers"]
    # A worker that came too late for its epoch, on a busy machine, says so.
    ok(w["signals"] == w["taken"] == len(keys) and w["items"] + w["gone"] == len(keys) and w["items"] > 0 and
       len(c.lines) == w["items"], "each is announced once", (times, w, s["causes"], s["port"]))
    ok(all(x["value"] == slots[x["slot"]] for x in c.lines), "none of them with another value", c.lines[:3])
    eq(values_in(f"{kept}/turn-6.plr", [8]), {8: 6666}, "what was there when it was killed is in its epoch's file")
    ok(os.path.exists(f"{kept}/turn-5.plr"), "the one before was kept after the kill")
    found = []
    for epoch in range(6, now):
        found.append(values_in(f"{kept}/turn-{epoch}.plr", keys))
    found.append(values_in(path("turn.plr"), keys))
    every = [k for f in found for k in sorted(f)]
    eq(every, keys, f"{len(keys)} keys through {len(found)} epochs: each in one, in the order in which they were sent")
    ok(all(v == k for f in found for k, v in f.items()) and sum(1 for f in found if f) >= 3, "none is wrong")
    eq(rows("info", path("turn.plr"))[0].get("clean"), True, "the region is closed cleanly")
    c = Turning(uri, "--keep-epochs", kept)
    run_sketch_epochs(wire, c, kept)
    c.stop()
    with NS["b"]:
        r = pathline.run("collect", "--epoch", "1s", *roce.EVERY_NET, uri, path("listed.plr"))
    ok(r.returncode == 2 and "no store has epochs" in r.stderr, "a region of one half has no epochs", r.stderr)


# ---- IPv6 ----

def run_ipv6(uri):
    """RoCEv2 over IPv6: queue pairs by TCP, and a switch whose controller is told by 34 bytes."""
    make_regions()
    c = Collector(uri, "--allow", f"{IP6['a']}/128", "--allow", "10.0.0.0/8")
    ok(f"RDMA-CM on {IP6['b']}" in c.line, f"{uri}: RDMA-CM answers for the IPv6 address where there is no other", c.line)
    wire, uc, rc, sums = Wire(IF6["a"]), Peer6("last"), Peer6("last", RC), Peer6("sums", RC)
    eq([len(p.answer) for p in (uc, rc, sums)], [184] * 3, "answers to addresses of IPv6")
    eq(uc.answer[8:24], raw(IP6["b"]), "with an address of IPv6")
    wire.send(*[uc.write(*entry(k, 1000 + k), checksum=k % 2 == 0, hops=1 + k % 255, flow=k * 4099 & 0xfffff)
                for k in range(1, 101)])
    ok(wait(lambda: len(values(1, 100)) >= 99), "100 unreliable writes are found, whatever routers change", values(1, 100))
    eq([k for k, v in values(1, 100).items() if v != 1000 + k], [], "and right")
    wire.acks()
    wire.send(*[rc.write(*entry(k, 2000 + k), ack=k == 250) for k in range(201, 251)])
    acks = wait(wire.acks)
    ok(acks, "the last of 50 reliable writes is acknowledged")
    if acks:
        ack = acks[0]
        ok(ack[62] == 0x11 and int.from_bytes(ack[71:74], "big") == (rc.psn - 1) & 0xffffff and ack[74] == 0x1f,
           "by an ACK of its number", ack.hex())
        eq((ack[22:38], ack[38:54]), (raw(IP6["b"]), raw(IP6["a"])), "from and to the right addresses")
        eq((ack[:6], ack[-4:]), (MAC6["a"], icrc(ack[14:-4])), "to this side's MAC address, with a right ICRC")
    ok(len(values(201, 50)) >= 49, "they are found")
    wire.send(*[sums.add(8, 3) for _ in range(10)])
    ok(wait(lambda: any(r.get("value") == 30 for r in rows("dump", path("sums.plr")))), "ten atomics add up to thirty")

    before = region_bytes()
    spot = entry(7, 99)
    # A queue pair of IPv6 is none of IPv4, and of no other address.
    rest = struct.pack(">QII", uc.va + spot[0], uc.key, 8) + spot[1]
    one = uc.write(*spot)
    wire.send(uc.write(*spot, damaged=True), uc.write(*spot, src=IP6["other"]), one[:80],
              roce.frame(MAC6["b"], MAC6["a"], roce.packet(IP["a"], IP["b"], roce.bth(UC | 0x0a, uc.qpn, uc.psn) + rest)),
              one[:60] + bytes([one[60] ^ 1]) + one[61:])
    wire.send(uc.write(*entry(300, 1)))
    ok(wait(lambda: 300 in values(300, 1)), "behind what is forged the stream goes on")
    after = bytearray(region_bytes())
    at, data = entry(300, 1)
    after[at:at + 8] = before[at:at + 8]
    ok(bytes(after) == before, "nothing else was written")
    eq(Peer6("last", address=IP6["other"]).refusal, 8, "an address from which the connection does not come")
    s = c.stop()
    ok(s["causes"]["ok"] == 100 + 50 + 10 + 1 and s["causes"]["icrc"] >= 1 and s["causes"]["peer"] == 2, "each by its cause",
       s["causes"])
    eq(sorted({p["peer"] for p in s["peers"]}), [IP6["a"]], "accounts by its address")

    # The compact exchange: the controller of a switch.
    roce.make_regions(records="--primitive append --unsealed --lists 1 --slots 64 --value-bytes 48")
    with NS["a"]:
        controller = socket.create_server((IP6["a"], 19876), family=socket.AF_INET6)
    controller.settimeout(LIMIT)
    c = roce.Collector(NS["b"], "--listen", "none", "--cm-port", 0, "--controller", f"[{IP6['a']}]:19876",
                       "--switch-gid", IP6["a"], "--switch-roce", "v2", uri, path("records.plr"), until=None)
    tcp, _ = controller.accept()
    told = b""
    while len(told) < 34 and (more := tcp.recv(34 - len(told))):
        told += more
    tcp.sendall(told)
    va, key, qpn, lid = struct.unpack(">QIIH", told[:18])
    eq((lid, told[18:]), (0, raw(IP6["b"])), "34 bytes with the collector's address of IPv6")
    ok("collecting on" in c.first_word(), "it begins when they come back", c.line)
    for i in range(40):
        body = roce.bth(0x0a, qpn, i) + struct.pack(">QII", va + 48 * i, key, 48) + bytes([i]) * 48
        wire.send(roce.frame(MAC6["b"], MAC6["a"], roce.packet(IP6["a"], IP6["b"], body, checksum=True)))

    def numbers():
        return [r.get("value") for r in rows("dump", path("records.plr"))]
    ok(wait(lambda: len(numbers()) == 40), "a switch's records are published")
    eq(numbers(), [("%02x" % i) * 48 for i in range(40)], "and are what it wrote")
    eq(c.stop()["causes"]["ok"], 40, "all of them are accounted for")
    controller.close()


def ports(interface):
    """The drivers that are built."""
    return [f"packet:{interface}"] + ([f"afxdp:{interface}"] if "afxdp" in pathline.run("help", "collect").stdout else [])


def test_collect():
    for uri in ports(IF["b"]):
        run(uri)


def test_ipv6():
    make_wire(IF6, IP6, MAC6)
    for uri in ports(IF6["b"]):
        run_ipv6(uri)


def test_epochs():
    run_epochs(f"packet:{IF['b']}")


def test_cut():
    """Regions that somebody cuts under the collector: told, counted, and the exit code says so."""
    make_regions()
    uri = f"packet:{IF['b']}"
    c = Collector(uri)
    os.truncate(path("last.plr"), 5000)
    line = c.process.stderr.readline()
    ok(path("last.plr") in line and "was truncated while it was open" in line, "a cut region is told", line)
    c.process.send_signal(signal.SIGTERM)
    out, err = c.process.communicate(timeout=LIMIT)
    s = json.loads(out.splitlines()[-1])
    ok(c.process.returncode == 1 and "1 region files were truncated" in err and "while it was open" not in err, "once, and at the end", err)
    eq(s["cut_regions"], 1, "and counted")


def test_no_ring():
    """A queue that does not send: answers are sent through a packet socket, and that is told."""
    if "afxdp" not in pathline.run("help", "collect").stdout:
        return
    network.sh(f"ip link add plnr numtxqueues 1 numrxqueues 2 netns {NS['b']} type veth peer name plns numtxqueues 2 numrxqueues 1 "
               f"netns {NS['a']}")
    NS["a"].up("plns")
    NS["b"].up("plnr", "10.79.0.1/24")
    make_regions()
    for queues, note in (("1", "queue 1 of plnr cannot send"), ("0-1", "")):
        c = roce.Collector(NS["b"], "--listen", f"127.0.0.1:{PORT}", f"afxdp:plnr?queues={queues}", path("last.plr"))
        if note:
            ok("answers are sent through a packet socket" in c.line and note in c.line, f"queues={queues}: what sends is told", c.line)
        else:
            ok("collecting on" in c.line, f"queues={queues}: the first queue sends, there is nothing to tell", c.line)
        c.stop()


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    make_namespaces()
    make_wire(IF, IP, MAC)
    lab.run(*[test_epochs] if ONLY_EPOCHS else [test_collect, test_ipv6, test_cut, test_no_ring])
    return tap.end()


sys.exit(main())
