# SPDX-License-Identifier: BSD-2-Clause
"""What `pathline query --export flink` prints, run by Flink over the topic that a tap wrote: equal rows.

usage: flink.py PATHLINE FLINK KAFKA     (jars of tools/flink and tools/kafka)
"""
import calendar
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.kafka import Broker  # noqa: E402
from lib.tap import eq, ok  # noqa: E402

FORMAT = os.path.join(HERE, "..", "..", "..", "share", "flink", "PathlineFormatFactory.java")
# Parameters with which the generated traffic has answers.
BY_NAME = {
    "packets": ("new_conns(threshold=30, emit=final)", "superspreader(threshold=30)", "portscan(threshold=30)", "ddos(threshold=30)",
                "syn_flood", "incomplete_flows(window=5s)", "slowloris(ratio=100000)", "heavy_hitter(bytes=40000)",
                "udp_asym(threshold=1)", "top_talkers(k=3)", "pkt_size_hist(bin=256)", "zero_window", "dupack(threshold=1)",
                "microburst(bits=10000000)", "ssh_brute(port=443, threshold=2)",
                "zorro(port=443)", "SELECT src, dst, count(*) AS n, avg(wire_len) AS mean, stddev(wire_len) AS s FROM packets WHERE tcp "
                "GROUP BY src, dst HAVING n > 60",
                "SELECT dst, min(ttl) AS lo, max(ttl) AS hi, count(*) AS n FROM packets HOP(ts, 4s, 2s) WHERE not syn GROUP BY dst HAVING n > 300"),
    "dns": ("fastflux(threshold=1)", "dns_names(threshold=2)", "dns_reflection"),
    "flows": ("retrans(percent=0)", "ooo(percent=0)", "elephant(bytes=4000)"),
}


def plain(value):
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, float):
        return value
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short


def of_ours(question, uri, duration):
    run = pathline.run("query", "-o", "jsonl", "--duration", duration, "--lateness", "60s", question, uri + "?auto.offset.reset=earliest")
    final = [line for line in run.stdout.splitlines() if json.loads(line).get("final", True)]
    return [json.dumps({k: plain(v) for k, v in r.items() if k != "window_end"}, sort_keys=True) for r in pathline.answer("\n".join(final))]


def of_row(line):
    r = {k: plain(v) for k, v in json.loads(line).items() if k != "window_end"}
    if "window_start" in r:
        whole, _, part = r["window_start"].replace("T", " ").partition(".")
        whole += ":00" if whole.count(":") == 1 else ""
        r["window_start"] = calendar.timegm(time.strptime(whole, "%Y-%m-%d %H:%M:%S")) * 10**9 + int((part or "0").ljust(9, "0"))
    return json.dumps(r, sort_keys=True)


def of_theirs(text):
    """For each file its rows; the changes of an unbounded result taken together."""
    answers, name = {}, None
    for line in text.splitlines():
        if line.startswith("# "):
            name = line[2:]
            answers[name] = []
        elif line.startswith("! "):
            answers[name] = line
        elif line.startswith("+{"):
            answers[name].append(of_row(line[1:]))
        elif line.startswith("-{"):
            answers[name].remove(of_row(line[1:]))
    return answers


def compiled(flink):
    out = lab.path("classes")
    os.makedirs(os.path.join(out, "META-INF", "services"))
    with open(os.path.join(out, "META-INF/services/org.apache.flink.table.factories.Factory"), "w", encoding="ascii") as f:
        f.write("PathlineFormatFactory\n")
    subprocess.run(["javac", "-nowarn", "-cp", os.path.join(flink, "*"), "-d", out, FORMAT, os.path.join(HERE, "Answer.java")], check=True)
    return ["java", "-Xmx600m", "--add-opens=java.base/java.util=ALL-UNNAMED", "-cp", f"{out}:{flink}/*", "Answer"]


def test_equal(broker, answer):
    capture = lab.path("trace.pcap")
    pathline.run("gen", "packets", "--story", "--duration", "13s", "--loss", "0.01", "-w", capture)
    asked, files = [], []
    for topic, options in (("packets", ()), ("dns", ("--dns",)), ("flows", ("--flows",))):
        run = pathline.run("tap", *options, "--to", broker.uri(topic), capture)
        eq(run.returncode, 0, f"{topic}: a topic")
        for question in BY_NAME[topic]:
            export = pathline.run("query", "--export", "flink", question, broker.uri(topic))
            if export.returncode != 0:
                ok(False, question, export.stderr)
                continue
            # The job ends, and waits for what comes late, as ours is told to.
            text = export.stdout.replace("'format' =", "'scan.bounded.mode' = 'latest-offset',\n    'format' =", 1)
            text = re.sub(r"INTERVAL '0 00:00:(00.200|25.000)'", "INTERVAL '0 00:00:59.000'", text)
            files.append(lab.write(f"q{len(files)}.sql", text))
            asked.append((question, topic))
    with open(lab.path("flink.out"), "w", encoding="utf-8") as out:
        subprocess.run([*answer, *files], stdout=out, stderr=open(lab.path("flink.err"), "w", encoding="utf-8"), check=False)
    answers = of_theirs(lab.read("flink.out"))
    with ThreadPoolExecutor(6) as pool:
        of_us = list(pool.map(lambda a: of_ours(a[0], broker.uri(a[1]), "5s"), asked))
    for path, (question, topic), ours in zip(files, asked, of_us):
        theirs = answers.get(path, "! no answer")
        # A topic has no end for ours: on a slow machine it may not have read all of it in that time.
        if isinstance(theirs, list) and sorted(ours) != sorted(theirs):
            ours = of_ours(question, broker.uri(topic), "60s")
        good = isinstance(theirs, list) and sorted(ours) == sorted(theirs)
        ok(good, f"{len(ours)} rows: {question[:80]}",
           theirs if isinstance(theirs, str) else f"ours {sorted(set(ours) - set(theirs))[:3]}, theirs {sorted(set(theirs) - set(ours))[:3]}")


def main():
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    flink, kafka = map(os.path.abspath, sys.argv[2:4])
    for tool, folder in (("kafka", kafka), ("flink", flink)):
        there = subprocess.run([os.path.join(HERE, "..", "..", "..", "tools", tool), folder], capture_output=True, text=True, check=False,
                               preexec_fn=lab.into_machine_network)
        if there.returncode != 0:
            tap.skip_all(" ".join(there.stderr.split()))
    lab.run(test_equal, given=(Broker(kafka), compiled(flink)))
    return tap.end()


sys.exit(main())
