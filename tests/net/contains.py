#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rules that look into payloads (contains=): Zorro as Sonata asks it, over captures and live; packets that are cut, padded, joined; sources
that cannot. usage: contains.py PATHLINE [TEST…]"""
import os
import random
import signal
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pcap, tap, tapping  # noqa: E402
from lib.pathline import jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

RULED = 2048
WIRE = tapping.Wire("contains", "10.84.0.1", "10.84.0.2")
MARK = "mark proto=tcp dport=23 contains=zorro"


def telnet(src, dst, payload, dport=23, padding=b""):
    """A TCP segment with its payload. The length of its IP header does not include the padding."""
    tcp = struct.pack("!HHIIBBHHH", 30000, dport, 1, 1, 0x50, 0x18, 1000, 0, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 7, 0, 64, 6, 0, socket.inet_aton(src), socket.inet_aton(dst))
    return bytes(12) + b"\x08\0" + ip + tcp + payload + padding


def attack(word, victim="10.2.0.9"):
    """45 sources send packets of one length to a telnet server, one of which carries the word."""
    made = [telnet(f"10.1.0.{i}", victim, bytes(rng.randrange(97, 123) for _ in range(40))) for rng in (random.Random(5),) for i in range(1, 45)]
    return made + [telnet("10.1.0.45", victim, b"login: " + word + b"; wget x" + bytes(40 - 15 - len(word)))]


def victims(frames):
    """Sonata's question, by Python: servers with one length of packets from at least 40 sources, and the packets that contain the word."""
    sources, marked = {}, {}
    for frame in frames:
        dst, payload = frame[30:34], frame[54:14 + int.from_bytes(frame[16:18], "big")]
        sources.setdefault((dst, len(payload)), set()).add(frame[26:30])
        marked[dst] = marked.get(dst, 0) + (b"zorro" in payload)
    return {socket.inet_ntoa(dst): marked[dst] for (dst, _), of in sources.items() if len(of) >= 40 and marked[dst] >= 1}


def asked(frames, rule=MARK):
    rows = jsonl(run("query", "zorro", "-o", "jsonl", "--rule", rule, pcap.write(lab.path("telnet.pcap"), frames)).stdout)
    return {row["dst"]: row["n"] for row in rows}


def test_zorro():
    """The answer is Python's: with the word, without it, in padding, to another server, twice."""
    again = [telnet("10.1.0.7", "10.2.0.9", b"zorro" + bytes(i)) for i in range(3)]
    for what, frames, found in (("the word in one packet", attack(b"zorro"), 1),
                                ("another word", attack(b"zorra"), 0),
                                ("a capital letter", attack(b"Zorro"), 0),
                                ("four packets", attack(b"zorro") + again, 1),
                                ("the word goes to another server", attack(b"none!") + [telnet("10.1.0.1", "10.2.0.8", b"zorro")], 0),
                                ("the word is in the padding only", attack(b"none!") + [telnet("10.1.0.1", "10.2.0.9", b"x", padding=b"zorro")], 0),
                                ("two servers", attack(b"zorro") + attack(b"zorro", "10.2.0.7") + again, 2),
                                ("39 sources", attack(b"zorro")[:38] + attack(b"zorro")[-1:], 0)):
        got = asked(frames)
        eq((got, len(got)), (victims(frames), found), f"zorro: {what}")
    eq(asked([telnet("10.1.0.1", "10.2.0.9", b"zorro", dport=24)] + attack(b"none!")), {}, "zorro: the word goes to another port")


def marked(file, rule, *options):
    rows = jsonl(run("tap", "-o", "jsonl", "--stats", "--rule", rule, *options, file).stdout)
    return [bool(r["obs"] & RULED) for r in rows[:-1]], rows[-1]["tap"]["unseen"]


def test_bytes():
    """Words of all bytes, at the begin and the end, against Python's `in`; a packet that the capture has in part is counted."""
    rng = random.Random(84)
    frames = [telnet("10.1.0.1", "10.2.0.1", bytes(rng.choice(b"ab c\0%") for _ in range(rng.randrange(0, 12)))) for _ in range(800)]
    file = pcap.write(lab.path("bytes.pcap"), frames)
    for text, word in (("a", b"a"), ("ab", b"ab"), ("%20", b" "), ("%00", b"\0"), ("b%20c", b"b c"), ("%25%25", b"%%"), ("a%20%00%25", b"a \0%"), ("abc", b"abc")):
        want = [word in frame[54:] for frame in frames]
        got, unseen = marked(file, f"mark contains={text}")
        eq((got, unseen), (want, 0), f"contains={text}: {sum(want)} of 800 packets")
    whole = telnet("10.1.0.1", "10.2.0.1", b"zorro" + bytes(95))
    late = telnet("10.1.0.1", "10.2.0.1", bytes(95) + b"zorro")
    file = pcap.write(lab.path("cut.pcap"), [whole, (whole[:60], len(whole)), late, (late[:100], len(late)), (late[:40], len(late))])
    eq(marked(file, "mark contains=zorro"), ([True, True, True, False, False], 2), "packets that the capture has in part")


def test_live():
    """Whole packets come to user space, so that a word at their end is found."""
    for source in ("packet:eth0", "afxdp:eth0"):
        t = tapping.Tap(WIRE.ns["b"], source.replace(":", "-"), "-o", "jsonl", "--rule", MARK, "--rule", "skip", source)
        head = WIRE.frames(1)[0][:12]
        WIRE.send_frames([head + telnet("10.9.0.1", "10.9.0.2", bytes(1400) + word)[12:] for word in (b"zorro", b"zorra") * 20])
        ok(wait(lambda: len([r for r in t.lines() if "src" in r]) >= 20), f"{source}: packets with the word have records", t.errors())
        ok(wait(lambda: t.look()["tap"]["packets"] >= 40), f"{source}: all came")
        stats = t.end()
        eq((len(t.records), {r["obs"] & RULED for r in t.records}, stats["tap"]["unseen"]), (20, {RULED}, 0), f"{source}: those with it alone, marked")
        ok((MARK, 20) in [(r["rule"], r["matches"]) for r in stats["rules"]], f"{source}: the rule by its text, and its matches", stats["rules"])
        tapping.closes(stats, source)


def test_joined():
    """Of a frame that stands for several packets the rule marks those that carry the word."""
    rng, word = random.Random(3), b"a-word-of-16-byt"
    sent = bytearray(rng.randbytes(600_000))
    places = sorted(rng.sample(range(0, len(sent) - 16, 64), 60))
    for place in places:
        sent[place:place + 16] = word
    t = tapping.Tap(WIRE.ns["b"], "joined", "-o", "jsonl", "--rule", f"mark proto=tcp dport=7000 contains={word.decode()}",
                    "--rule", "take proto=tcp dport=7000", "--rule", "skip", "packet:eth0")
    ok(WIRE.tcp_send(bytes(sent), 7000), "a transfer")
    ok(wait(lambda: [r for r in t.lines() if "src" in r and r["tcp_flags"] & 1]), "its last packet has a record", t.errors())
    t.end()
    first = min(t.records, key=lambda r: r["ts_ns"])["tcp_seq"] + 1
    wrong, some = [], 0
    for r in t.records:
        if r["pay_len"] == 0:
            continue
        begin = (r["tcp_seq"] - first) % 2**32
        holds = any(begin <= place and place + 16 <= begin + r["pay_len"] for place in places)
        some += holds
        if holds != bool(r["obs"] & RULED):
            wrong.append((begin, r["pay_len"], r["obs"]))
    ok(len(t.records) > 200 and some > 20 and not wrong, f"{some} packets with the word are marked, and no other", (len(t.records), wrong[:5]))


def test_reload():
    """Rules with contains= are taken at a reload when the sockets copy whole packets, and refused otherwise."""
    rules = lab.path("rules")

    def write(text):
        with open(rules, "w", encoding="utf-8") as f:
            f.write(text)
    for before, after, says in (("take contains=one\nskip\n", "take contains=two\nskip\n", "in force: 2"),
                                ("take port=1\nskip\n", "take contains=two\nskip\n", "stay as they are: contains= needs whole packets")):
        write(before)
        t = tapping.Tap(WIRE.ns["b"], "reload", "-o", "jsonl", "--rules", rules, "packet:eth0")
        write(after)
        t.p.send_signal(signal.SIGHUP)
        ok(wait(lambda t=t, says=says: says in t.errors()), says, t.errors())
        head = WIRE.frames(1)[0][:12]
        WIRE.send_frames([head + telnet("10.9.0.1", "10.9.0.2", word, dport=1)[12:] for word in (b"one", b"two", b"two")])
        want = 2 if "force" in says else 3
        ok(wait(lambda t=t, want=want: len([r for r in t.lines() if "src" in r]) >= want), f"{want} records", t.errors())
        t.end()
        eq(len(t.records), want, "by the rules that hold")


def test_refused():
    """Nothing takes such a rule that does not look into payloads."""
    capture = pcap.write(lab.path("one.pcap"), attack(b"zorro"))
    rule = ("--rule", "take contains=zorro")
    config = lab.path("kernel.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("taps:\n  - name: t\n    sources: ['tc:lo']\n    rules: ['take contains=zorro']\n    to: ['udp://127.0.0.1:9']\n")
    for args, words in ((("tap", *rule, "tc:lo"), "tc:lo does not give payloads"),
                        (("tap", *rule, "xdp:lo"), "xdp:lo does not give payloads"),
                        (("tap", *rule, "packet:lo", "tc:lo"), "tc:lo does not give payloads"),
                        (("tap", *rule, "udp://127.0.0.1:0"), "udp://127.0.0.1:0 does not give payloads"),
                        (("tap", "--drops", *rule, "drops:"), "drops: does not give payloads"),
                        (("query", "zorro", *rule, "tc:lo"), "tc:lo does not give payloads"),
                        (("meter", *rule, "--read", capture, "--read", capture), "contains= is for taps of frames in user space"),
                        (("int", "source", "--dev", "lo", "--node", "1", *rule), "contains= is for taps of frames in user space"),
                        (("tap", "--rule", "take contains=", capture), "contains wants 1 to 32 bytes"),
                        (("tap", "--rule", "take contains=%2", capture), "contains wants 1 to 32 bytes"),
                        (("tap", "--rule", "take contains=" + "x" * 33, capture), "contains wants 1 to 32 bytes"),
                        (("config", "check", config), "tc:lo does not give payloads")):
        r = run(*args)
        ok(r.returncode != 0 and words in r.stderr, f"{' '.join(args)}: {words}", f"{r.returncode} {r.stderr}")


WIRE.make()
lab.run(test_zorro, test_bytes, test_live, test_joined, test_reload, test_refused)
sys.exit(tap.end())
