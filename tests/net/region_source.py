#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Telemetry memory as a source of `pathline run`: with one configuration file, what DTA reports wrote into regions is told once
each, with its value, in the JSON lines, in tail, in the tables of values and regions, in top and on the metrics page; the sums
are those of what was sent. Records in a list enter the pipeline as records. A region that another process writes goes away and
comes back. usage: region_source.py PATHLINE"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, gen, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

REPORTS, DTA = 23866, 23140
# With this seed no two keys share a slot: a value that another one takes turns with is told again.
SEED, SLOTS = 1, 65536
KEYS, ENTRIES, FLOWS = 100, 3000, 400
CAUSES = ("overrun", "damaged", "repeated", "keyed", "invalid")


def create(name, *args, folder=""):
    made = run("region", "create", path(folder + name + ".plr"), "--seed", 4711, "--primitive", *args)
    ok(made.returncode == 0, f"{name} is made", made.stderr)


def write_config(regions, more=""):
    with open(path("pathline.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""sources:
  - uri: udp://127.0.0.1:{REPORTS}
dta:
  listen: udp://127.0.0.1:{DTA}
  flush: 20ms
regions:
{regions}web:
  listen: 127.0.0.1:0
outputs:
  - {{name: file, type: jsonl, path: {path("out.jsonl")}}}
{more}""")


def entry(name, writer="dta", read="{every: 50ms}", **keys):
    more = "".join(f", {key}: {value}" for key, value in keys.items())
    return f"  - {{name: {name}, path: {path(name + '.plr')}, writer: {writer}, read: {read}{more}}}\n"


def report(*args):
    sent = run("report", *args, f"udp://127.0.0.1:{DTA}")
    ok(sent.returncode == 0, f"report {args[0]} is sent", sent.stderr)


def series(daemon, name, region, **labels):
    labels = "".join(f',{key}="{value}"' for key, value in labels.items())
    return daemon.metrics().get(f'pathline_region_{name}{{region="{region}"{labels}}}')


def lines(region=None):
    """The values in the JSON lines."""
    with open(path("out.jsonl"), encoding="utf-8") as f:
        values = [v for v in jsonl(f.read()) if v["kind"] == "value"]
    return [v for v in values if region in (None, v["region"])]


def rows(daemon, table):
    return json.loads(daemon.get(f"/api/v1/{table}")[1])["rows"]


def account_closes(daemon, name, found):
    """Of one region: what was found, and all that became of it."""
    page = daemon.metrics()

    def get(family, more=""):
        return page[f'pathline_region_{family}_total{{region="{name}"{more}}}']
    dropped = sum(get("dropped", f',cause="{cause}"') for cause in CAUSES)
    eq(get("found"), get("told") + get("counted") + dropped, f"{name}: found = told + counted + dropped")
    if found is not None:
        eq(get("found"), found, f"{name}: found what was sent")


def start_tail(daemon, *args):
    """A reader of the stream that has begun."""
    def streams():
        return len(json.loads(daemon.get("/api/v1/status")[1])["streams"])
    before = streams()
    p = lab.start([PATHLINE, "tail", "--url", daemon.web, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait(lambda: streams() == before + 1)
    return p


def send():
    """Lists, values of keys and increments, all by DTA."""
    report("append", "--store", 0, "--list", 3, "-d", 0, "--data-form", "be32", "--step-data", "--count", ENTRIES, "--sequenced")
    for _ in (1, 2):
        report("key-write", "--store", 1, "-k", 0, "--key-form", "u32", "--step-key", "-d", 5000, "--data-form", "be32", "--step-data",
               "--count", KEYS, "--sequenced")
    report("increment", "--store", 2, "-k", 0, "--key-form", "u32", "--step-key", "--by", 3, "--count", FLOWS, "--sequenced")
    report("postcard", "--store", 3, "-k", "flow", "--hops", "1,2,3,4,5", "--sequenced")


def test_told():
    create("lists", "append", "--slots", 4096, "--value-bytes", 4, "--lists", 4)
    create("last", "key-write", "--slots", SLOTS, "--value-bytes", 4, "--seed", SEED)
    create("sums", "counters", "--slots", 65536)
    create("ways", "postcards", "--slots", 4096)
    create("wide", "append", "--slots", 4096, "--value-bytes", 40)
    write_config(entry("lists", value="{format: u32be, name: queue_depth}") + entry("last", value="{format: u32be}") + entry("sums") +
                 entry("ways") + entry("wide", value="{format: u16le, at: 2}"))
    d = Daemon(path("pathline.yaml"))
    tail = start_tail(d, "--values", "-o", "jsonl", "--where", "region == lists", "-n", str(ENTRIES))
    send()

    wait(lambda: len(lines("lists")) == ENTRIES)
    told = lines("lists")
    eq([(v["list"], v["number"], v["value"]) for v in told], [(3, i, i) for i in range(ENTRIES)],
       "every entry of the list is a JSON line, in order")
    eq({(v["primitive"], v["name"], v["length"]) for v in told}, {("append", "queue_depth", 4)}, "with what it is")
    ok(all("bytes" not in v for v in told), "a number that is all there is needs no bytes")
    out, words = tail.communicate(timeout=LIMIT)
    eq([v["value"] for v in jsonl(out)], list(range(ENTRIES)), "and a line of tail")
    ok("dropped" not in words, "of which none was dropped", words)

    wait(lambda: series(d, "found_total", "last") is not None and {v["value"] for v in lines("last")} >= set(range(5000, 5000 + KEYS)))
    wait(lambda: sum(v["increase"] for v in lines("sums")) == 3 * FLOWS)
    eq({v["value"] for v in lines("last")}, set(range(5000, 5000 + KEYS)), "every key's value is told")
    eq(len(lines("last")), KEYS, "once, though each has two copies and was written twice")
    eq({(v["key"], v["value"]) for v in lines("last")}, {("0x" + i.to_bytes(4, "little").hex(), 5000 + i) for i in range(KEYS)},
       "with the key that it was reported with")
    eq(sum(v["increase"] for v in lines("sums")), 3 * FLOWS, "what the counters grew by is what was sent")
    eq(series(d, "increase_total", "sums"), 3 * FLOWS, "also on the metrics page")
    account_closes(d, "lists", ENTRIES)
    account_closes(d, "last", None)
    account_closes(d, "sums", None)
    wait(lambda: series(d, "dropped_total", "ways", cause="keyed"))
    account_closes(d, "ways", None)
    eq(lines("ways"), [], "paths of postcards are counted, not told")
    eq(series(d, "told_total", "lists"), ENTRIES, "told, by the metrics page")
    eq((series(d, "value", "lists"), series(d, "readable", "lists")), (ENTRIES - 1, 1), "the newest value")
    return d


def test_wide(d):
    """Values with more than a number in them."""
    data = bytes(range(40)).hex()
    report("append", "--store", 4, "-d", data, "--data-form", "hex", "--sequenced")
    wait(lambda: len(lines("wide")) == 1)
    v = lines("wide")[0]
    eq((v["length"], v["value"], v["bytes"]), (40, 0x0302, data[:62]), "31 bytes are told, with the true length")


def test_views(d):
    regions = {r["region"]: r for r in rows(d, "regions")}
    eq((regions["lists"]["found"], regions["lists"]["told"], regions["lists"]["writer"], regions["lists"]["state"]),
       (ENTRIES, ENTRIES, "dta", "ok"), "the table of regions")
    eq(regions["sums"]["increase"], 3 * FLOWS, "has the sum of counters")
    eq(regions["last"]["in_use"], round(SLOTS * series(d, "fill_ratio", "last")), "and how many slots are in use")
    values = json.loads(d.get("/api/v1/values?where=region==wide&sort=-value&limit=1")[1])["rows"]
    eq([v["value"] for v in values], [0x0302], "the table of values")
    top = run("top", "--url", d.web, "-b", "-s", "regions")
    ok(top.returncode == 0 and all(name in top.stdout for name in ("lists", "key-write", "counters", str(ENTRIES))),
       "top shows regions", top.stdout + top.stderr)
    top = run("top", "--url", d.web, "-b", "-s", "values", "-o", "json")
    ok(top.returncode == 0 and json.loads(top.stdout)["rows"], "and values", top.stderr)


def test_end(d):
    """What the translator held when it was told to end is told too."""
    report("append", "--store", 0, "--list", 1, "-d", 9, "--data-form", "be32", "--count", 5)
    before = len(lines("lists"))
    eq(d.stop(), 0, "it ends well")
    told = [v for v in lines("lists") if v["list"] == 1]
    eq(len(told), 5, f"what came last is told ({before} before)")


def test_start():
    """What is there at the start is not new, unless that is asked for."""
    os.unlink(path("out.jsonl"))
    write_config(entry("lists") + entry("last", value="{format: u32be}"))
    d = Daemon(path("pathline.yaml"), name="again")
    report("key-write", "--store", 1, "-k", "new", "-d", 77, "--data-form", "be32", "--sequenced")
    wait(lambda: lines("last"))
    eq([v["value"] for v in lines("last")], [77], "a restart tells what is new")
    eq(d.stop(), 0, "it ends well")
    os.unlink(path("out.jsonl"))
    write_config(entry("lists", read="{every: 50ms, from: all}") + entry("last"))
    d = Daemon(path("pathline.yaml"), name="all")
    wait(lambda: len(lines("lists")) == ENTRIES + 5)
    eq(len(lines("lists")), ENTRIES + 5, "from: all tells what is there")
    eq(lines("last"), [], "of one region only")
    eq(d.stop(), 0, "it ends well")


def test_killed():
    """The reader is killed while a list is written, and started again: by the numbers that its output has, every entry was told by the first or the
    second, or is in the account of what the second skipped."""
    create("going", "append", "--slots", 1 << 16, "--value-bytes", 4)
    translator = translate(path("going.plr"))
    os.unlink(path("out.jsonl"))
    config = lab.write("killed.yaml", f"""regions:
{entry("going", writer="other")}web: {{listen: '127.0.0.1:0'}}
outputs:
  - {{name: file, type: jsonl, path: {path("out.jsonl")}}}
""")

    def append(n):
        report("append", "--store", 0, "-d", 0, "--data-form", "be32", "--step-data", "--count", n, "--sequenced")
    d = Daemon(config, name="killed")
    append(500)
    wait(lambda: lines("going"))
    writer = lab.start([PATHLINE, "report", "append", "--store", "0", "-d", "0", "--data-form", "be32", "--count", "20000", "--sequenced", "--rate", "20k", f"udp://127.0.0.1:{DTA}"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait(lambda: len(lines("going")) > 2000)
    d.p.kill()
    d.p.wait()
    with open(path("out.jsonl"), encoding="utf-8") as f:
        first = [v["number"] for v in jsonl(f.read().rpartition("\n")[0])]
    os.unlink(path("out.jsonl"))
    writer.wait()
    d.start()
    skipped = series(d, "skipped_total", "going")
    append(100)
    wait(lambda: lines("going") and len(lines("going")) >= 100)
    second = [v["number"] for v in lines("going")]
    eq(first, list(range(len(first))), f"the first told {len(first)} entries, each number once")
    ok(skipped >= len(first) > 2000, f"the second skipped {skipped:.0f}, which is all that was written before", len(first))
    eq(second, list(range(int(skipped), int(skipped) + 100)), f"and told from there on: {int(skipped) - len(first)} reached no output, as the numbers say")
    d.stop()
    translator.terminate()
    translator.wait()


def translate(*regions):
    """A translator of its own: another process that writes."""
    p = lab.start([PATHLINE, "translate", "--flush", "20ms", f"udp://127.0.0.1:{DTA}", *regions], stdout=subprocess.DEVNULL,
                  stderr=subprocess.PIPE, text=True)
    for line in p.stderr:
        if "translating from" in line:
            return p
    raise RuntimeError("no translator")


def test_records():
    """Hops in a list, as a daemon's history has them, are hops for detection and outputs."""
    history = path("history")
    with open(path("pathline.yaml"), "w", encoding="utf-8") as f:
        f.write(f"sources: [{{uri: 'udp://127.0.0.1:{REPORTS}'}}]\nweb: {{listen: '127.0.0.1:0'}}\n"
                f"outputs: [{{type: region, path: {history}}}]\n")
    d = Daemon(path("pathline.yaml"), name="history")
    sent = gen(REPORTS, "--count", 500, "--rate", 20000)
    wait(lambda: pathline.total(d.metrics(), "pathline_output_delivered_total") >= sent)
    hops = d.metrics()["pathline_hops_total"]
    eq(d.stop(), 0, "a history is made")
    os.unlink(path("out.jsonl"))
    with open(path("pathline.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""sources: [{{uri: 'udp://127.0.0.1:{REPORTS}'}}]
regions: [{{name: hops, path: {history}/hops.region, read: {{every: 50ms, from: all}}, value: {{format: record}}}}]
web: {{listen: '127.0.0.1:0'}}
outputs: [{{type: jsonl, path: {path("out.jsonl")}}}]
""")
    d = Daemon(path("pathline.yaml"), name="records")

    def paths():
        with open(path("out.jsonl"), encoding="utf-8") as f:
            return [p for p in jsonl(f.read()) if p["kind"] == "path"]
    wait(lambda: len(paths()) == hops)
    eq(len(paths()), hops, "each hop comes as a record")
    ok(all(len(p["hops"]) == 1 and p["flags"]["partial"] for p in paths()), "by itself, as a part of a path")
    ok(rows(d, "queues"), "the tables of queues are made of them", str(rows(d, "queues")))
    account_closes(d, "hops", hops)
    eq(d.stop(), 0, "it ends well")


def test_lost_and_found():
    """A region of another process goes away, is made anew with another geometry, and is cut."""
    os.unlink(path("out.jsonl"))
    create("far", "append", "--slots", 1024, "--value-bytes", 4)
    with open(path("pathline.yaml"), "w", encoding="utf-8") as f:
        f.write(f"sources: [{{uri: 'udp://127.0.0.1:{REPORTS}'}}]\nregions:\n" +
                entry("far", "other", value="{format: u32be}") +
                f"web: {{listen: '127.0.0.1:0'}}\noutputs: [{{type: jsonl, path: {path('out.jsonl')}}}]\n")
    d = Daemon(path("pathline.yaml"), name="lost")
    writer = translate(path("far.plr"))
    report("append", "-d", 1, "--data-form", "be32", "--step-data", "--count", 10, "--sequenced")
    wait(lambda: len(lines("far")) == 10)
    eq([v["value"] for v in lines("far")], list(range(1, 11)), "what another process writes is told")
    writer.terminate()
    writer.communicate(timeout=LIMIT)
    os.unlink(path("far.plr"))
    wait(lambda: series(d, "readable", "far") == 0)
    eq(series(d, "losses_total", "far"), 1, "a region that is gone is counted")
    status, text = d.get("/readyz?verbose")
    ok(status == 503 and "region far" in text, "and said", text)
    create("far", "append", "--slots", 256, "--value-bytes", 4, "--lists", 2)
    writer = translate(path("far.plr"))
    report("append", "--list", 1, "-d", 100, "--data-form", "be32", "--step-data", "--count", 10, "--sequenced")
    wait(lambda: len(lines("far")) == 20)
    eq([(v["list"], v["value"]) for v in lines("far")[10:]], [(1, i) for i in range(100, 110)], "another one in its place is read")
    wait(lambda: d.get("/readyz")[0] == 200)
    eq(d.get("/readyz")[0], 200, "and it is ready again")
    os.truncate(path("far.plr"), 4096)
    wait(lambda: series(d, "losses_total", "far") == 2)
    eq((series(d, "losses_total", "far"), series(d, "readable", "far")), (2, 0), "so is one that was cut")
    account_closes(d, "far", 20)
    writer.terminate()
    writer.communicate(timeout=LIMIT)
    eq(d.get("/readyz")[0], 503, "then it is not ready")
    os.unlink(path("far.plr"))
    create("far", "append", "--slots", 512, "--value-bytes", 4)
    wait(lambda: d.get("/readyz")[0] == 200)
    eq((d.get("/readyz")[0], series(d, "bytes", "far", primitive="append")), (200, 64 + 512 * 16), "until there is one again, of its own size")
    d.stop()


daemon = test_told()
test_wide(daemon)
test_views(daemon)
test_end(daemon)
test_start()
test_killed()
test_records()
test_lost_and_found()
sys.exit(tap.end())
