#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Numbered reports over a link that loses datagrams, and with a translator or reporter that begins anew: what was reported
is there, each report once, and where it cannot be, both sides say so. Over loopback, and in frames of an interface.
usage: dta_loss.py PATHLINE"""
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, pathline, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import PATHLINE  # noqa: E402
from lib.tap import ok  # noqa: E402
from lib.wait import wait  # noqa: E402

SEED = int(os.environ.get("PL_SEED", "1"))
# Ten NACKs are a tenth of a second, in which a busy machine may not come to the reporter at all.
PATIENT = ("--nack-tries", 1000)


class Translator:
    """pathline translate, with the account of its end."""

    def __init__(self, *args, port=0):
        self.process = lab.start([PATHLINE, "translate", "--stats", *(str(a) for a in args if "/" not in str(a)), f"udp://127.0.0.1:{port}",
                                  *(a for a in args if "/" in str(a))],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        ok("translating from udp://" in line, "translate says where it listens", line)
        self.port = int(line.split(" into ")[0].rsplit(":", 1)[1])

    def account(self):
        self.process.send_signal(signal.SIGUSR1)
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        try:
            return json.loads(out)
        except ValueError:
            ok(False, "translate tells its account", out + err)
            sys.exit(tap.end())


class Proxy:
    """Hands datagrams on in both directions and leaves some out, by chance or by number."""

    def __init__(self, to, loss=0.0, drop=()):
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for s in (self.front, self.back):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.front.bind(("127.0.0.1", 0))
        self.back.connect(("127.0.0.1", to))
        self.uri = f"udp://127.0.0.1:{self.front.getsockname()[1]}"
        self.loss, self.drop = loss, drop
        self.dropped = self.seen = 0
        self.client = None
        for work in (self.forth, self.home):
            threading.Thread(target=work, daemon=True).start()

    def forth(self):
        chance = random.Random(SEED)
        while True:
            data, self.client = self.front.recvfrom(65536)
            self.seen += 1
            if self.seen in self.drop or chance.random() < self.loss:
                self.dropped += 1
                continue
            try:
                self.back.send(data)
            except OSError:
                self.dropped += 1

    def home(self):
        chance = random.Random(SEED + 1)
        while True:
            try:
                data = self.back.recv(65536)
                if chance.random() >= self.loss:
                    self.front.sendto(data, self.client)
            except OSError:
                pass


def report(*args, code=0):
    r = pathline.run("report", *args)
    ok(r.returncode == code, "pathline report " + " ".join(map(str, args)), f"exit code {r.returncode}\n{r.stderr}")
    return r.stderr


def create(name):
    r = pathline.run("region", "create", path(name), "--primitive", "append", "--slots", 524288, "--value-bytes", 4)
    ok(r.returncode == 0, "a region", r.stderr)


def entries(name):
    r = pathline.run("region", "dump", path(name), "-o", "json")
    return [int(v, 16) for v in re.findall(r'"value":"([0-9a-f]{8})"', r.stdout)]


def stream(n):
    return ("append", "-d", 0, "--data-form", "be32", "--step-data", "--sequenced", "-n", n)


def numbers(said):
    """NACKs, sent again, too late"""
    return [int(n) for n in re.search(r"(\d+) NACKs, (\d+) reports sent again, (\d+) asked for too late", said).groups()]


# A per cent is lost in both directions: with the rates of the guide, a slow one, and as fast as it goes.
for name, n, options in (("fast", 100000, ()), ("guide", 100000, ("--rate", "100k")), ("slow", 1500, ("--rate", "1k"))):
    create(name)
    t = Translator(*PATIENT, path(name))
    p = Proxy(t.port, 0.01 if n > 10000 else 0.05)
    late = numbers(report(*stream(n), *options, p.uri))[2]
    s = t.stop()
    ok(entries(name) == list(range(n)), f"{name}: each of {n} reports once and in order, {p.dropped} of {p.seen} datagrams lost",
       f"{len(entries(name))} entries, {s}")
    ok(p.dropped > 0 and s["nacks"] > 0 and s["lost"] == 0 == late and s["accepted"] == n, f"{name}: both accounts say so", s)

# A translator that asks for nothing: what it gives up its reporter is told.
create("given")
t = Translator("--nack-tries", 0, path("given"))
p = Proxy(t.port, 0.05)
said = report(*stream(10000), "--rate", "20k", p.uri, code=1)
s = t.stop()
ok(s["lost"] > 0 and f"{s['lost']} reports are lost: the translator gave up" in said, "what a translator gives up its reporter says", (said, s))
ok(len(entries("given")) == s["accepted"] == 10000 - s["lost"], "and it is as many", s)

# A translator of another make: it answers nothing, and its only NACK is for the first report, long after that has gone.
def deaf(nack):
    heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    heard.bind(("127.0.0.1", 0))

    def hear():
        told = False
        while True:
            data, client = heard.recvfrom(65536)
            if nack and not told and struct.unpack_from("!I", data, 8)[0] >= 300:
                heard.sendto(b"\xd1\x80" + bytes(6) + b"\xff" * 4, client)
                told = True

    threading.Thread(target=hear, daemon=True).start()
    return f"udp://127.0.0.1:{heard.getsockname()[1]}"


said = report(*stream(1000), "--ring", 64, "--hold", "1ms", "--rate", "2k", deaf(True), code=1)
ok(numbers(said)[2] >= 236 and re.search(r"report: \d+ reports are lost", said), "what is known to be lost is told", said)
said = report(*stream(1000), "--ring", 64, "--hold", "1ms", deaf(False), code=1)
ok("report: no translator confirmed a report" in said, "without answers and NACKs nothing is known", said)
report(*stream(10), "--ring", 1, deaf(False), code=2)

# A reporter with a port of its own that begins anew, at once: one socket of the proxy's is what the translator sees.
create("again")
t = Translator(*PATIENT, path("again"))
p = Proxy(t.port)
report(*stream(20000), p.uri)
report(*stream(20000), p.uri)
s = t.stop()
ok(entries("again") == 2 * list(range(20000)), "who begins anew on the same port is heard, from the first report on",
   f"{len(entries('again'))} entries, {s}")
ok(s["restarts"] == 1 and s["accepted"] == 40000 and s["lost"] == 0, "and counted", s)

# A translator that is killed and comes back: its reporter has what the first one did not confirm.
create("killed")
t = Translator(*PATIENT, "--batch", 1, path("killed"), port=lab.free_udp_port())  # which nobody takes meanwhile
said = []
reporter = threading.Thread(target=lambda: said.append(report(
    *stream(60000), "--rate", "15k", "--hold", "60s", f"udp://127.0.0.1:{t.port}")))
reporter.start()


def taken():
    """ten thousand reports are there"""
    t.process.send_signal(signal.SIGUSR1)
    return json.loads(t.process.stdout.readline())["accepted"] >= 10000


ok(wait(taken), "it is in the middle of a stream")
t.process.kill()
t.process.wait()
t = Translator(*PATIENT, "--batch", 1, path("killed"), port=t.port)
reporter.join()
s = t.stop()
got = entries("killed")
ok(set(got) == set(range(60000)), "of a translator that was killed and came back nothing is missing",
   f"{60000 - len(set(got))} missing, {len(got) - len(set(got))} twice, {said}, {s}")
ok(s["taken_up"] == 1 and s["taken_up_at"] >= 10000 - 1024 and s["lost"] == 0, "and it says where it took up the stream", s)

# Where nobody sends again, it says so as well.
create("silent")
t = Translator(path("silent"))
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(700, 710):
    sock.sendto(struct.pack("!BBBBHHIII", 0xD1, 2, 0x40, 0, 0, 8, n, 0, n), ("127.0.0.1", t.port))


def seen():
    """its ten reports wait for what comes before"""
    a = t.account()
    return a["reports"] == 10 == a["refused"]["gap"] and a["nacks"] > 0


ok(wait(seen), "the first number is 700")
sock.sendto(struct.pack("!BBBBHHIII", 0xD1, 2, 0x40, 0, 0, 8, 700, 0, 700), ("127.0.0.1", t.port))
s = t.stop()
ok(s["taken_up"] == 1 and s["taken_up_at"] == 700 and s["accepted"] == 1, "taken up at 700", s)

# A quota drops; it does not ask for what it has dropped.
create("quota")
t = Translator("--store-rate", 100, path("quota"))
said = report(*stream(1000), f"udp://127.0.0.1:{t.port}", code=1)
nacks, again, late = numbers(said)
s = t.stop()
ok(f"refused {s['refused']['store_quota']} reports" in said, "the reporter tells how many", (said, s))
ok(nacks == again == late == 0 and s["reports"] < 2000 and s["refused"]["store_quota"] > 0
   and s["accepted"] + s["refused"]["store_quota"] == 1000, "what is above a quota is not asked for again", s)

# A quota of one region is none of the others.
for name in ("r0", "r1"):
    create(name)
t = Translator("--store-rate", "1=20", "--store-rate", "1M", path("r0"), path("r1"))
for store in (0, 1):
    report(*stream(1000), "--store", store, f"udp://127.0.0.1:{t.port}", code=store)
s = t.stop()
ok(entries("r0") == list(range(1000)) and 0 < len(entries("r1")) < 1000
   and s["accepted"] + s["refused"]["store_quota"] == 2000, "20 per second into region 1, as many as come into region 0", s)
for wrong, why in ((0, '"--store-rate": "0" is neither'), ("1=0", '"--store-rate": "1=0"'), ("2=5", "store rate 2=5: "),
                   ("=5", '"--store-rate": "=5"'), ("1=5=6", '"--store-rate": "1=5=6"')):
    r = pathline.run("translate", "--store-rate", wrong, "udp://127.0.0.1:0", path("r0"), path("r1"))
    ok(r.returncode == 2 and why in r.stderr, f"refused: --store-rate {wrong}", r.stderr)

# What is confirmed may have been refused, and the reporter is told.
create("refusing")
t = Translator(path("refusing"))
for what, options in (("another size", ("-d", "five5")), ("no such store", ("-d", "four", "--store", 9)), ("no such list", ("-d", "four", "--list", 7))):
    said = report("append", *options, "--sequenced", "-n", 10, f"udp://127.0.0.1:{t.port}", code=1)
    ok("report: the translator refused 10 reports" in said, f"refused, {what}: told", said)
report(*stream(10), f"udp://127.0.0.1:{t.port}")
s = t.stop()
ok(s["accepted"] == 10 and sum(s["refused"].values()) == 30, "and the translator's account has as many", s)

# Nobody is there.
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind(("127.0.0.1", 0))
    closed = s.getsockname()[1]
said = report(*stream(10), f"udp://127.0.0.1:{closed}", code=1)
ok("report: no translator confirmed a report" in said, "a closed port: told", said)

# Reports that waited for the rate when it was told to end were not sent.
create("loop")
t = Translator(path("loop"))
told = 0
for options in ((), ("--sequenced",)):
    p = lab.start([PATHLINE, "report", "append", *options, "--loop", "--rate", "100", "-d", "four", f"udp://127.0.0.1:{t.port}"],
                  stderr=subprocess.PIPE, text=True)

    def came():
        """another ten reports of the loop"""
        return t.account()["accepted"] >= told + 10

    ok(wait(came), "a loop reports")
    p.send_signal(signal.SIGINT)
    said = p.communicate(timeout=60)[1]
    ok(p.returncode == 0, "it ends", said)
    told += int(said.split()[0])
    ok(wait(lambda: t.account()["accepted"] == told), f"{told} reports were sent, and as many arrived", said)
t.stop()

# A translator that is killed: what it has confirmed is in its regions, although it gathers entries and increments before it writes
# them. Another one in its place gets the rest.
for name, primitive in (("gathered", ("append", "--slots", 65536, "--value-bytes", 4)), ("sums", ("counters", "--slots", 10000))):
    pathline.run("region", "create", "--primitive", *primitive, path(name))
GATHERS = ("--flush", "10s", *PATIENT, path("gathered"), path("sums"))
t = Translator(*GATHERS)
REPORTS = 6000
both = [lab.start([PATHLINE, "report", *args, "--sequenced", "--count", str(REPORTS), "--rate", "2k", "--hold", "20s", f"udp://127.0.0.1:{t.port}"],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for args in (("append", "--step-data", "--data-form", "be32", "-d", "0"), ("increment", "--store", "1", "-k", "all"))]


def begun():
    t.process.send_signal(signal.SIGUSR1)
    return json.loads(t.process.stdout.readline())["accepted"] > REPORTS // 2


ok(wait(begun), "reports come")
t.process.kill()
t.process.wait()
t = Translator(*GATHERS, port=t.port)
said = [p.communicate(timeout=120)[1] for p in both]
ok([p.returncode for p in both] == [0, 0], "reporters end well", str(said))
t.process.kill()
t.process.wait()
got = {int(r["value"], 16) for r in pathline.region("dump", path("gathered"))}
ok(got == set(range(REPORTS)), "every entry is in the list", f"{len(got)} {sorted(got)[:9]}")
found = pathline.region("lookup", path("sums"), "all")
ok(found[0]["value"] >= REPORTS, "the sum is not too low", found)

# Reports in frames of an interface: NACKs and confirmations leave from the address and port that was addressed, and nobody is told
# by ICMP that the port is unreachable. Some are lost on the way, for a route that goes elsewhere in the middle.
NETS = network.pair("answers", {4: {"a": "10.88.0.1", "b": "10.88.0.2"}, 6: {"a": "fd88::1", "b": "fd88::2"}})
# Not what the kernel would choose as the source.
NETS["b"].ip("addr add 10.88.0.3/24 dev eth0")
COUNT = 3000


def unreachables():
    """ICMP of the translator's host that says so, IPv4 and IPv6."""
    both = NETS["b"].sh("cat /proc/net/snmp"), NETS["b"].sh("cat /proc/net/snmp6")
    names, values = (line.split()[1:] for line in both[0].splitlines() if line.startswith("Icmp:"))
    return int(dict(zip(names, values))["OutDestUnreachs"]), int(re.search(r"Icmp6OutDestUnreachs\s+(\d+)", both[1]).group(1))


def over_interface(dev, to, prefix):
    entries = path("frames.plr")
    if os.path.exists(entries):
        os.unlink(entries)
    pathline.run("region", "create", "--primitive", "append", "--slots", 16384, "--value-bytes", 8, entries)
    t = lab.start(NETS["b"].command(PATHLINE, "translate", "--stats", "--nack-tries", "1000", dev, entries), stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True)
    for line in t.stderr:
        if "translating from" in line:
            break
    before = unreachables()
    r = lab.start(NETS["a"].command(PATHLINE, "report", "append", "--sequenced", "--step-data", "--data-form", "u64", "-d", "0", "--count",
                                    str(COUNT), "--rate", "1k", f"udp://{to}:40040"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def taken():
        t.send_signal(signal.SIGUSR1)
        return json.loads(t.stdout.readline())["accepted"]

    def elsewhere():
        return int(NETS["a"].sh("cat /sys/class/net/lo/statistics/rx_packets"))
    wait(lambda: taken() > 100)
    began = elsewhere()
    NETS["a"].ip(f"route add {prefix} dev lo")
    wait(lambda: elsewhere() >= began + 30)
    NETS["a"].ip(f"route del {prefix} dev lo")
    _, err = r.communicate(timeout=120)
    t.send_signal(signal.SIGTERM)
    out, said = t.communicate(timeout=60)
    account = json.loads(out.splitlines()[-1])
    ok(r.returncode == 0 and "confirmed" not in err, f"{dev}, to {to}: all are confirmed", err)
    ok(account["accepted"] == COUNT and account["lost"] == 0 and account["nacks"] > 0, f"{dev}, to {to}: lost ones are sent again", f"{out}\n{said}")
    ok(account["nacks_unsent"] == 0 and unreachables() == before, f"{dev}, to {to}: no answer fails, no ICMP", f"{account} {unreachables()} {before}")


for device in ("packet:eth0", "afxdp:eth0", "udp://:40040", "udp://0.0.0.0:40040"):
    over_interface(device, "10.88.0.3", "10.88.0.3/32")
    if device != "udp://0.0.0.0:40040":
        over_interface(device, "[fd88::2]", "fd88::2/128")

# Where another process has the port, nobody can answer: that is said and counted.
with NETS["b"]:
    taken = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    taken.bind(("::", 40040))
t = lab.start(NETS["b"].command(PATHLINE, "translate", "--stats", "packet:eth0", path("frames.plr")), stdout=subprocess.PIPE,
              stderr=subprocess.PIPE, text=True)
said = t.stderr.readline()
ok("UDP port 40040 is in use" in said, "a port that is taken is named", said)
while "translating from" not in t.stderr.readline():
    pass
r = subprocess.run(NETS["a"].command(PATHLINE, "report", "append", "--sequenced", "-d", "12345678", "--count", "3", "udp://10.88.0.3:40040"),
                   capture_output=True, text=True, timeout=120, check=False)
t.send_signal(signal.SIGTERM)
account = json.loads(t.communicate(timeout=60)[0].splitlines()[-1])
ok("no translator confirmed a report" in r.stderr and account["accepted"] == 3 and account["nacks_unsent"] > 0, "answers that cannot be sent are counted",
   f"{r.stderr} {account}")

sys.exit(tap.end())
