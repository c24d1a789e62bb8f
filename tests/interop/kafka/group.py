#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One question asked by the members of a group, against a Kafka server: members are killed and started while records flow, and
the rows have to be those of a slow count in this file, each window and key once.

    usage: group.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import argparse
import collections
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, pcap, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

from members import (BASE, FLOWS, PARTITIONS, PATHLINE, PROGRAM, QUESTION, SECOND, Member, Table, begin, record, rows, server_or_skip,  # noqa: E402
                     values_of)

ONLY = sys.argv[4:]
# A partition that is quiet for longer than --idle holds nothing back, and what it brings behind that is late.
PATIENT = "--idle", "20s"


def check_rows(table, name, exactly_once=False, partials=True):
    want = table.want()

    def there():
        found = rows(table, "-X", "isolation.level=read_committed")
        return len({(m["w0"], m["key"]["sport"]) for _, m in found}) >= len(want) and found

    found = wait(there, 120) or rows(table, "-X", "isolation.level=read_committed")
    got = collections.defaultdict(set)
    for key, m in found:
        got[m["w0"], m["key"]["sport"]].add(values_of(m))
        if not key.startswith(table.topic + "|") or m["q"] != table.topic:
            ok(False, f"{name}: a key that is none", key)
    twice = {k: v for k, v in got.items() if len(v) > 1}
    ok(not twice, f"{name}: what comes again is the same", list(twice.items())[:3])
    wrong = {k: (got.get(k), want.get(k)) for k in set(got) | set(want) if got.get(k) != {want.get(k)}}
    ok(not wrong, f"{name}: {len(want)} rows as the slow count has them", f"{len(wrong)} wrong: {list(wrong.items())[:4]}")
    ok(not any(m["incomplete"] for _, m in found), f"{name}: all of them complete")
    if exactly_once:
        eq(len(found), len(want), f"{name}: each of them once")


def test_two_stages(server):
    """Two members, then one is killed in the middle of windows, again and again."""
    table = begin(server, "killed2", 1)
    members = [Member(table, QUESTION) for _ in range(2)]
    table.send(4)
    for i in range(3):
        table.send(3)
        time.sleep(random.random())
        members[i % 2].kill()
        table.send(2)
        members[i % 2] = Member(table, QUESTION)
    table.send(2)
    check_rows(table, "members killed")
    for m in members:
        eq(m.end(), 0, f"a member ends well, with {lab.read(os.path.basename(m.log)).strip().splitlines()[-1]}")


def test_killed_often(server):
    """A hundred times one of three members is killed at a random instant, while it begins, reads, joins, writes, commits or
    waits for its partitions, and another one is started; records flow on. The rows are those of the slow count, each the same
    however often it comes: no record is missing, and none is counted twice."""
    table = begin(server, "often", 22)
    dice = random.Random(time.time_ns())
    members = [Member(table, QUESTION, *PATIENT, session=1500) for _ in range(3)]
    killed = seen = stood = 0
    while killed < 100:
        table.send(1)
        # Mostly the group has not shared its partitions yet when the next one is killed; each fourth time it is at work.
        if killed % 4 == 0:
            stood += not wait(lambda: len(rows(table)) > seen, 120)
            seen = len(rows(table))
            table.send(1)
        time.sleep(dice.choice((0.01, 0.1, 0.5, 1.5)) * dice.random())
        at = dice.randrange(len(members))
        members[at].kill()
        killed += 1
        # Often the next one is killed before it has said that it asks.
        members[at] = Member(table, QUESTION, *PATIENT, session=1500, patient=dice.random() < 0.5)
    eq(stood, 0, "rows came all the while")
    table.send(3)
    check_rows(table, f"{killed} members killed")
    for m in members:
        eq(m.end(), 0, "a member ends well")


def test_again(server):
    """Messages hold records of windows that are done and of one that is open: what the next member reads again is not late."""
    table = begin(server, "again", 16)
    question = QUESTION.replace("TUMBLE(ts, 1s)", "TUMBLE(ts, 300ms)")

    def windows():
        return {m["w0"] for _, m in rows(table)}

    first = Member(table, question, *PATIENT)
    table.send(3)
    last = BASE + 2 * SECOND
    wait(lambda: max(windows()) >= last)
    eq(first.end(), 0, "the first member ends well")
    second = Member(table, question, *PATIENT)
    table.send(2)
    wait(lambda: max(windows()) >= last + 2 * SECOND)
    eq(second.end(), 0, "the second one, too")
    log = lab.read(os.path.basename(second.log))
    ok("records read again that were done" in log, "records of windows that were done are counted", log)
    ok("too late" not in log, "and are not late", log)
    got = collections.defaultdict(set)
    for _, m in rows(table):
        got[m["w0"], m["key"]["sport"]].add(values_of(m))
    ok(all(len(v) == 1 for v in got.values()), "no window comes again with other values")


def test_join_and_leave(server):
    """Members come and go in order, which moves partitions without a failure."""
    table = begin(server, "moved", 2)
    first = Member(table, QUESTION)
    table.send(3)
    second = Member(table, QUESTION)
    table.send(3)
    first.end()
    table.send(3)
    third = Member(table, QUESTION)
    table.send(2)
    check_rows(table, "partitions moved")
    second.end()
    third.end()


def test_stalled(server):
    """A partition that has nothing while the others go on does not hold them back."""
    table = begin(server, "stalled", 3)
    members = [Member(table, QUESTION) for _ in range(2)]
    table.send(3)
    table.send(4, only=range(1, PARTITIONS))
    check_rows(table, "a partition that stalls")
    for m in members:
        eq(m.end(), 0, "a member ends well")


def test_unseen(server):
    """Nor does one that never had a record: windows close when it has been quiet for --idle."""
    table = begin(server, "unseen", 31)
    members = [Member(table, QUESTION) for _ in range(2)]
    table.send(4, only=range(1, PARTITIONS))
    check_rows(table, "a partition that never had a record")
    for m in members:
        eq(m.end(), 0, "a member ends well")


def test_more_members(server):
    """Members to which no partition is given hold nothing back, and end well."""
    table = begin(server, "more", 21)
    members = [Member(table, QUESTION) for _ in range(PARTITIONS + 2)]
    table.send(4)
    check_rows(table, "more members than partitions")
    for m in members:
        eq(m.end(), 0, "a member ends well")


def page_of(port):
    """Numbers of a page of metrics, by family; the last of those with labels. None while nobody serves it."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return dict(re.findall(r"^(pathline_\w+)(?:{.*})? (\d+)$", answer.read().decode(), re.M))
    except OSError:
        return {}


def test_page(server):
    """A member's page tells its lag, rebalances, and messages that the topic deleted before the group came to them, as its log does."""
    table, port = begin(server, "page", 30), lab.free_port()
    first = Member(table, QUESTION, *PATIENT)
    table.send(6)
    ok(wait(lambda: len(rows(table)) > 0), "a member gives rows")
    eq(first.end(), 0, "and ends, with its position committed")
    table.send(6)
    for partition in range(PARTITIONS):
        subprocess.run([PROGRAM, "delete", server.uri("page"), str(partition), "10"], check=True, timeout=60)
    second = Member(table, QUESTION, *PATIENT, "--stats", "--web", f"127.0.0.1:{port}")

    def page():
        return page_of(port)
    ok(wait(lambda: int(page().get("pathline_kafka_read_records_total", 0)) > 0), "the next one reads what is left", page())
    ok(wait(lambda: int(page().get("pathline_kafka_rebalances_total", 0)) > 0), "its page has the rebalances", page())
    ok(wait(lambda: "pathline_kafka_consumer_lag" in page() and "pathline_query_partials_lag" in page()), "and what it is behind", page())
    ok(wait(lambda: int(page().get("pathline_kafka_expired_total", 0)) > 0), "and that messages were deleted before they were read", page())
    ok("deleted before they were read (retention)" in lab.read(os.path.basename(second.log)), "of which its log tells")
    eq(second.end(), 0, "it ends well")


def test_bad_last(server):
    """Messages that are none of ours, the last of their partition, hold nothing back either."""
    table = begin(server, "bad", 6)
    members = [Member(table, QUESTION) for _ in range(2)]
    table.send(3)
    for _ in range(2):
        table.put(0, [bytes(63)])
    table.send(4, only=range(1, PARTITIONS))
    check_rows(table, "bad messages at the end of a partition")
    bad = 0
    for m in members:
        eq(m.end(), 0, "a member ends well")
        bad += sum(map(int, re.findall(r"(\d+) messages that are none of ours", lab.read(os.path.basename(m.log)))))
    ok(bad >= 2, "both are counted, by each member that read them", bad)


def test_ahead(server):
    """A record whose exporter's clock is years ahead leaves its partition as it was, and is counted."""
    table = begin(server, "ahead", 7)
    members = [Member(table, QUESTION) for _ in range(2)]
    table.send(2)
    table.put(0, [record(BASE + 70 * 365 * 86400 * SECOND, 1, 1, 100)])
    table.send(4)
    check_rows(table, "a record of the far future")
    ahead = 0
    for m in members:
        eq(m.end(), 0, "a member ends well")
        ahead += sum(map(int, re.findall(r"(\d+) records ahead of the clock", lab.read(os.path.basename(m.log)))))
    ok(ahead >= 1, "it is counted", ahead)


def test_small_messages(server):
    """Partial results are cut to what their topic takes; a topic that takes too little is refused at the start."""
    table = begin(server, "small", 8, "max.message.bytes=700")
    members = [Member(table, QUESTION) for _ in range(2)]
    table.send(6)
    check_rows(table, "a topic of small messages")
    for m in members:
        eq(m.end(), 0, "a member ends well")
    begin(server, "tiny", 9, "max.message.bytes=300")
    run = subprocess.run([PATHLINE, "query", QUESTION, "--from", server.uri("tiny"), "--group", "tiny"], capture_output=True,
                         text=True, check=False, timeout=120)
    ok(run.returncode not in (0, 3) and "'tm.partial.tiny' takes 300" in run.stderr and "max.message.bytes" in run.stderr,
       "a topic for which no piece is small enough, and the setting, are named", f"{run.returncode} {run.stderr}")


def test_transactions(server):
    """In transactions a reader of committed messages sees each row once, whoever is killed."""
    table = begin(server, "once", 4)
    limit = "&transaction.timeout.ms=4000&delivery.timeout.ms=3000"
    members = [Member(table, QUESTION, "--transactions", uri=limit) for _ in range(2)]
    table.send(4)
    for i in range(2):
        table.send(3)
        time.sleep(random.random())
        members[i].kill()
        table.send(2)
        members[i] = Member(table, QUESTION, "--transactions", uri=limit)
    table.send(2)
    check_rows(table, "transactions", exactly_once=True)
    for m in members:
        m.end()


def test_transactions_moved(server):
    """Partitions move again and again while transactions are open, and a member stands still until it has lost its own: what the
    brokers refuse is taken back and read again. Each row is there once, and no member ends but those that are told to."""
    table = begin(server, "refused", 15)
    uri = "&transaction.timeout.ms=4000&delivery.timeout.ms=3000"

    def member():
        return Member(table, QUESTION, "--transactions", *PATIENT, uri=uri)

    flowing = threading.Event()

    def flow():
        while not flowing.is_set():
            table.send(1)

    sender = threading.Thread(target=flow)
    members = [member(), member()]
    sender.start()
    told = []
    try:
        for i in range(4):
            members.append(member())
            time.sleep(0.5 + random.random())
            told.append(members.pop(i % 2))
            told[-1].tell()
            time.sleep(random.random())
        still = members[0].process
        still.send_signal(signal.SIGSTOP)
        ok(wait(lambda: server.members("refused") == len(members) - 1), "one that stands still is no member any more")
        still.send_signal(signal.SIGCONT)
        ok(wait(lambda: server.members("refused") == len(members)), "and is one again")
    finally:
        flowing.set()
        sender.join()
    table.send(2)
    check_rows(table, "refused transactions", exactly_once=True)
    eq([m.process.poll() for m in members], [None, None], "no member ended by itself")
    logs = "".join(lab.read(os.path.basename(m.log)) for m in members + told)
    ok("the transaction is taken back" in logs, "transactions were refused, and taken back", logs[-2000:])
    for m in told + members:
        eq(m.end(), 0, f"a member ends well, with {lab.read(os.path.basename(m.log)).strip().splitlines()[-1]}")


def test_refused_for_good(server):
    """The topic of rows takes none of them, while records go on to come: that ends a member, with words."""
    table = Table(server, "never", 17)
    server.create("never.rows", 2, "max.message.bytes=100")
    server.create("tm.partial.never", 3)
    member = Member(table, QUESTION, "--transactions", *PATIENT)
    until = time.monotonic() + 150
    while member.process.poll() is None and time.monotonic() < until:
        table.send(1)
        time.sleep(0.3)
    log = lab.read(os.path.basename(member.log))
    eq(member.process.poll(), 1, f"it ends within minutes, after {log.count('is taken back')} tries")
    if member.process.poll() is None:
        member.kill()
    last = log.strip().splitlines()[-1]
    ok("too large for topic 'never.rows'" in log, "it says why", log[-1500:])
    ok(last.startswith("pathline: "), "in its last line", last)


def test_paused(server):
    """The broker answers nothing for longer than the session of a member lasts."""
    table = begin(server, "paused", 10)
    members = [Member(table, QUESTION, *PATIENT) for _ in range(2)]
    table.send(4)
    wait(lambda: rows(table))
    server.process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(30)
    finally:
        server.process.send_signal(signal.SIGCONT)
    table.send(3)
    check_rows(table, "a broker that paused")
    for m in members:
        eq(m.end(), 0, "a member ends well")


def test_restarted(server):
    """The broker is killed and comes back: the only one, so that each partition is without a leader meanwhile."""
    table = begin(server, "restarted", 11)
    members = [Member(table, QUESTION, *PATIENT) for _ in range(2)]
    table.send(4)
    wait(lambda: rows(table))
    server.kill()
    server.start()
    table.send(3)
    check_rows(table, "a broker that came back")
    for m in members:
        eq(m.end(), 0, "a member ends well")


def test_topics(server):
    """Two topics in one question, named in any order: the records of a window are counted together."""
    table = begin(server, "many", 13)
    other = Table(server, "another", 14)
    other.counts = table.counts
    members = []
    for table.source in "many,another", "another,many":
        members.append(Member(table, QUESTION))
    for i in range(2):
        for one in table, other:
            one.send(3)
        if i == 0:
            members[0].kill()
            members[0] = Member(table, QUESTION)
    check_rows(table, "two topics")
    for m in members:
        eq(m.end(), 0, "a member ends well")
    want = f"n,first_ts,late,exp,incomplete\n{sum(n for n, _, _ in table.counts.values())},"
    for duration in "4s", "20s", "60s":  # how long reading takes is the machine's matter
        run = subprocess.run([PATHLINE, "query", "-o", "csv", "--duration", duration, "SELECT count(*) AS n FROM packets", "--from",
                              server.uri("another,many", "auto.offset.reset=earliest")], capture_output=True, text=True, check=False)
        if run.stdout.startswith(want):
            break
    eq(run.stdout[:len(want)], want, "one reader reads them all, too")


def test_flows(server):
    """Keys that name the flow: no partial results, rows of each partition's own."""
    table = Table(server, "flows", 5)
    server.create("flows.rows", 1)
    members = [Member(table, FLOWS) for _ in range(2)]
    want = collections.Counter()
    for begin_at in 0, 3:
        for partition in range(PARTITIONS):
            messages = []
            for second in range(begin_at, begin_at + 3):
                for flow in range(partition, 24, PARTITIONS):
                    n = 1 + table.random.randrange(5)
                    messages.append(b"".join(record(BASE + second * SECOND + k, flow, 9, 100) for k in range(n)))
                    want[BASE + second * SECOND, flow] += n
            table.put(partition, messages)
        if begin_at == 0:
            members[0].kill()
    members[0] = Member(table, FLOWS)
    wait(lambda: len({(m["w0"], m["key"]["sport"]) for _, m in rows(table)}) >= len(want))
    got = collections.defaultdict(set)
    for _, m in rows(table):
        got[m["w0"], m["key"]["sport"]].add(m["val"]["n"])
    eq({k: list(v) for k, v in got.items()} == {k: [v] for k, v in want.items()}, True,
       f"flows: {len(want)} rows, and those that come again are the same")
    for m in members:
        ok("partial" not in lab.read(os.path.basename(m.log)), "flows: without partial results")
        m.end()


def frame(sport):
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 60, 0, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    return bytes(12) + b"\x08\x00" + ip + struct.pack("!HHHH", sport, 53, 40, 0) + bytes(32)


def counts_by_partition(server, topic):
    out = subprocess.run(["kcat", "-q", "-C", "-b", server.address, "-t", topic, "-o", "beginning", "-e", "-f", "%p %S %h\n"],
                         capture_output=True, check=True).stdout
    found = collections.Counter()
    for line in re.findall(rb"(?m)^(\d+) (\d+) f=", out):
        found[int(line[0])] += int(line[1]) // 64
    return found, b",p=spread" in out


def test_spread(server):
    """Most packets are of one flow. Its partition gets them all, or with partition=spread each as many; then members join what they
    count, and one that was not told does not give wrong rows."""
    flows = [sport for i in range(24000) for sport in ([7] if i % 5 else [7, 1000 + i % 40])]
    capture = pcap.write(lab.path("elephant.pcap"), map(frame, flows), start_ns=BASE, step_ns=SECOND * 3 // len(flows))
    for topic in "elephant", "even":
        server.create(topic, 4)
    server.create("even.rows", 1)
    skews = []
    for topic, keys in ("elephant", ""), ("even", "partition=spread"):
        run = subprocess.run([PATHLINE, "tap", "--stats", "-o", "json", "--to", server.uri(topic, keys), capture],
                             capture_output=True, text=True, check=False, timeout=120)
        output = json.loads(run.stdout.splitlines()[-1])["outputs"][0]
        eq(output["delivered"], len(flows), f"{topic}: all are delivered")
        skews.append(output["skew_percent"])
    mean = len(flows) / 4
    ok(skews[0] > 300 and skews[1] < 110, "the account says how uneven partitions are", skews)
    one, told = counts_by_partition(server, "elephant")
    ok(max(one.values()) > 3 * mean and not told, "by the flow's hash one partition has most", one)
    even, told = counts_by_partition(server, "even")
    ok(max(even.values()) < 1.1 * mean and told, "spread, each has as many, and the messages say so", even)
    asked = [PATHLINE, "query", FLOWS, "--group", "unaware", "--to", "-", "--duration", "30s"]
    run = subprocess.run([*asked, "--from", server.uri("even")], capture_output=True, text=True, check=False, timeout=120)
    ok(run.returncode == 1 and "add partition=spread" in run.stderr, "a member that was not told refuses", run.stderr)
    table = argparse.Namespace(server=server, topic="even", source="even")
    members = [Member(table, FLOWS, uri="&partition=spread", group="aware") for _ in range(2)]
    want = collections.Counter((BASE + i * (SECOND * 3 // len(flows)) // SECOND * SECOND, sport) for i, sport in enumerate(flows))
    wait(lambda: len({(m["w0"], m["key"]["sport"]) for _, m in rows(table)}) >= len(want))
    got = {(m["w0"], m["key"]["sport"]): m["val"]["n"] for _, m in rows(table)}
    ok(got == dict(want), f"told, members give the {len(want)} rows of a slow count", list(got.items())[:3])
    for m in members:
        m.end()


def test_skew(server):
    """While it runs a tap says that one partition gets most, by the flow's hash; with partition=spread it has nothing to say."""
    flows = [7 if i % 5 else 1000 + i % 40 for i in range(2000)]
    capture = pcap.write(lab.path("skew.pcap"), map(frame, flows), start_ns=BASE, step_ns=SECOND // len(flows))
    taps = []
    for topic, keys in ("hashed", ""), ("spread", "partition=spread"):
        server.create(topic, 4)
        log, port = lab.path(topic + ".tap"), lab.free_udp_port()
        process = lab.start([PATHLINE, "tap", "--stats", "--to", server.uri(topic, keys), f"udp://127.0.0.1:{port}"], log=log,
                            stdout=subprocess.PIPE, text=True)
        taps.append((process, port))
        wait(lambda: "tapping" in lab.read(topic + ".tap"))

    def told():
        for _, port in taps:
            subprocess.run([PATHLINE, "tap", "--to", f"udp://127.0.0.1:{port}", "--rate", "2000", capture], capture_output=True, check=True)
        return re.findall(r"partition \d gets (\d\.\d) times the mean of 4 partitions.*partition=spread", lab.read("hashed.tap"))

    times = wait(told)
    ok(times and 3 < float(times[0]) <= 4, "the tap says how uneven its partitions are, and what to do", lab.read("hashed.tap"))
    accounts = []
    for process, _ in taps:
        process.send_signal(signal.SIGTERM)
        accounts.append(json.loads(process.communicate(timeout=60)[0].splitlines()[-1])["outputs"][0])
    eq(len(re.findall("times the mean", lab.read("hashed.tap"))), 1, "once")
    ok("times the mean" not in lab.read("spread.tap") and accounts[1]["delivered"] >= len(flows) and accounts[1]["skew_percent"] < 150,
       "spread evenly there is nothing to say", accounts[1])


PAIRS = ("packets as a | where dport = 9 | left join (packets | where sport = 9) as b on a.src = b.dst and a.dst = b.src and "
         "a.sport = b.dport and a.dport = b.sport and proto within 300ms ")
EACH = PAIRS + "| map a.sport, a.ts as t, b.wire_len as back"
UNANSWERED = PAIRS + "| where missing(b.ts) | group a.wire_len over 1s agg n=count()"


def test_joins(server):
    """Pairs of records of one flow: each a row of its partition, each once; and in windows, of which members merge parts."""
    each, merged = Table(server, "each", 6), Table(server, "merged", 7)
    merged.source = "each"
    for table in each, merged:
        server.create(table.topic + ".rows", 1)
    limit = "&transaction.timeout.ms=4000&delivery.timeout.ms=3000"  # that of a member that was killed holds others up

    def member(table):
        return Member(table, EACH, "--transactions", uri=limit) if table is each else Member(table, UNANSWERED)

    members = [member(table) for _ in range(2) for table in (each, merged)]
    pairs, unanswered = set(), collections.Counter()
    for begin_at in 0, 3:
        for partition in range(PARTITIONS):
            messages = []
            for second in range(begin_at, begin_at + 3):
                values = []
                for k in range(40):
                    at, flow, size = BASE + second * SECOND + k * 15000000 + partition, 100 + 4 * (k % 5) + partition, 50 + k % 3
                    back = each.random.choice((0, 60, 70))  # 0: there is no answer
                    values.append((at, record(at, flow, 9, size)))
                    if back:
                        values.append((at + 250000000, record(at + 250000000, 9, flow, back)))
                    pairs.add((flow, at, back))
                messages.append(b"".join(data for _, data in sorted(values)))
            each.put(partition, messages)
        if begin_at == 0:
            for m in members[:2]:
                m.kill()
    members[:2] = [member(each), member(merged)]
    sent = [(flow, at) for flow, at, _ in pairs]
    answers = collections.defaultdict(list)
    for flow, at, back in pairs:
        if back:
            answers[flow].append((at + 250000000, back))
    want = collections.Counter()
    for flow, at in sent:
        near = [back for ts, back in answers[flow] if abs(ts - at) <= 300000000]
        want.update((flow, at, back) for back in near or [None])
        if not near:
            k = (at - BASE) % SECOND // 15000000
            unanswered[at // SECOND * SECOND, 50 + k % 3] += 1
    wait(lambda: len(rows(each, "-X", "isolation.level=read_committed")) >= sum(want.values()), 120)
    got = collections.Counter((m["key"]["sport"] if "sport" in m["key"] else m["val"]["sport"], m["val"]["t"], m["val"]["back"])
                              for _, m in rows(each, "-X", "isolation.level=read_committed"))
    eq(got == want, True, f"joins: {sum(want.values())} pairs, each once")
    wait(lambda: len({(m["w0"], m["key"]["wire_len"]) for _, m in rows(merged)}) >= len(unanswered), 120)
    counts = collections.defaultdict(set)
    for _, m in rows(merged):
        counts[m["w0"], m["key"]["wire_len"]].add(m["val"]["n"])
    eq(dict(counts), {k: {n} for k, n in unanswered.items()}, "joins: windows of pairs, merged")
    for m in members[1::2]:
        eq(m.end(), 0, "a member ends well")
    for m in members[::2]:
        m.kill()  # one that ends while the group shares partitions anew may have to take its transaction back
    refused = subprocess.run([PATHLINE, "query", PAIRS.replace(" and proto", "") + "| map a.sport", "--from", server.uri("each"),
                              "--group", "g"], capture_output=True, text=True, check=False)
    eq((refused.returncode, "different partitions: join ON src, dst, sport, dport, proto" in refused.stderr), (2, True),
       "a join of other keys is refused, with what to do")


def check_account(m):
    """Of a member that has ended, as --stats told it; none is told when librdkafka ended it (members.py)."""
    told = [line for line in lab.read(os.path.basename(m.log)).splitlines() if line.startswith("{")]
    if not told and m.process.returncode == -6:
        return
    account = json.loads(told[-1])
    read, written = account["kafka"], account["writer"]
    eq(read["received"], read["good"] + read["stale"] + sum(read["bad"].values()), "a member's messages = read + stale + bad")
    eq((written["sent"], written["failed"]), (written["delivered"], 0), "all that it wrote is acknowledged")


def test_wire(server):
    """All of it: a tap on a veth pair, a topic, two members of which one is killed, and alerts: those of one process that asks
    the same records, which the tap writes to a file too."""
    # librdkafka finds no address of IPv4 on a host whose interfaces, loopback aside, have none.
    run = subprocess.run("ip link add wire0 type veth peer name wire1 && ip addr add 10.9.0.1/30 dev wire0 && "
                         "ip link set wire0 up && ip link set wire1 up", shell=True, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        tap.skip("a tap on a veth pair", re.sub(r"\s+", " ", run.stderr).strip())
        return
    table, question, file = begin(server, "wire", 12), "portscan(threshold=20, emit=final)", lab.path("wire.pkt64")
    log = lab.path("wire.log")
    web = lab.free_port()
    # What a busy broker does not take in time waits on disk.
    tapper = lab.start([PATHLINE, "tap", "--stats", "--web", f"127.0.0.1:{web}", "--to",
                        server.uri("wire", f"records=64&spool={lab.path('wire.spool')}"), "--to", "file:" + file, "packet:wire1"],
                       log=log, stdout=subprocess.PIPE, text=True)
    wait(lambda: "tapping" in lab.read("wire.log"))
    members = [Member(table, question, "--stats", "--lateness", "1s", *PATIENT) for _ in range(2)]
    sender = lab.start([PATHLINE, "gen", "packets", "--story", "--duration", "12s", "packet:wire0"], log=lab.path("sender.log"))
    wait(lambda: os.path.getsize(file) > 0)
    time.sleep(5 + random.random())  # the port scan begins
    members[0].kill()
    members[0] = Member(table, question, "--stats", "--lateness", "1s", *PATIENT)
    eq(sender.wait(timeout=120), 0, "the traffic was sent")
    wait(lambda: page_of(web).get("pathline_tap_spool_held") == "0", 120)
    tapper.send_signal(signal.SIGTERM)
    out, _ = tapper.communicate(timeout=120)
    topic, copy = json.loads(out.splitlines()[-1])["outputs"]
    spool = topic["spool"]
    eq((topic["put"], spool["held"], spool["dropped"] + sum(topic["dropped"].values())), (topic["delivered"] + topic["returned"], 0, 0),
       "put = delivered + returned, nothing is dropped")
    eq((topic["put"] - spool["unspooled"] + spool["spooled"] - topic["returned"], os.path.getsize(file)), (copy["records"], 64 * copy["records"]),
       "the file has the same records")
    one = subprocess.run([PATHLINE, "query", question, file, "--into", "file:" + lab.path("one.jsonl")], capture_output=True,
                         text=True, check=False, timeout=120)
    eq(one.returncode, 0, f"one process answers{': ' + one.stderr if one.returncode else ''}")

    def alerts(messages):
        return {(m["w0"], m["key"]["src"], values_of(m), m["incomplete"]) for m in messages}

    want = alerts(map(json.loads, lab.read("one.jsonl").splitlines()))
    ok(any(src == "198.51.100.66" for _, src, _, _ in want), f"{len(want)} alerts, of the port scan too", str(want))
    wait(lambda: alerts(m for _, m in rows(table)) >= want, 120)
    eq(sorted(alerts(m for _, m in rows(table))), sorted(want), "the alerts of the group are those of one process")
    for m in members:
        eq(m.end(), 0, "a member ends well")
        check_account(m)


def main():
    server = server_or_skip()
    tests = (test_two_stages, test_killed_often, test_join_and_leave, test_stalled, test_unseen, test_more_members, test_again, test_page, test_bad_last, test_ahead, test_small_messages, test_transactions,
             test_transactions_moved, test_refused_for_good, test_topics, test_flows, test_spread, test_skew, test_joins, test_paused, test_restarted, test_wire)
    lab.run(*[t for t in tests if not ONLY or t.__name__ in ONLY], given=(server,))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
