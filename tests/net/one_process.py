#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One configuration file runs the collector of reports, the translator and the memory server in one process: what each of them
wrote is read by region lookup from another process while it runs, and stands on one metrics page; a reload adds an output
and a region of another writer, and what it cannot change it says; SIGTERM drains all three and their accounts close. Then the same
without sources, and each service by itself with pages of its own. usage: one_process.py PATHLINE"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, gen, region, run, samples  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

REPORTS, DTA, CONTROL, FAR = 23766, 23040, 23471, 23041
KEYS = 500


def create(name, *args):
    made = run("region", "create", path(name + ".plr"), "--seed", 4711, "--primitive", *args)
    ok(made.returncode == 0, f"{name} is made", made.stderr)


def report(port, *args):
    sent = run("report", *args, f"udp://127.0.0.1:{port}")
    ok(sent.returncode == 0, f"report {args[0]} is sent", sent.stderr)


def region_rows(*regions):
    return "".join(f"  - {{name: {name}, path: {path(name + '.plr')}, writer: {writer}}}\n" for name, writer in regions)


def write_config(sources=True, more_regions="", outputs="", dta_port=DTA, limits=""):
    """The file that all of it stands in."""
    text = f"sources:\n  - uri: udp://127.0.0.1:{REPORTS}\n" if sources else ""
    text += f"""dta:
  listen: udp://127.0.0.1:{dta_port}
  flush: 20ms
{limits}rdma:
  interface: udp://127.0.0.1
  listen: 127.0.0.1:{CONTROL}
  cm_port: 0
  allow: [127.0.0.2/32]
  allow_read: [127.0.0.3/32]
regions:
{region_rows(("last", "dta"), ("lists", "dta"), ("far", "rdma"))}{more_regions}web:
  listen: 127.0.0.1:0
outputs:
  - {{name: file, type: jsonl, path: {path("out.jsonl")}}}
{outputs}"""
    with open(path("pathline.yaml"), "w", encoding="utf-8") as f:
        f.write(text)


def value(store, key):
    found = region("lookup", path(store + ".plr"), key)
    return found[0].get("value")


def becomes(daemon, **wanted):
    """Whether the page comes to have these sums of families."""
    def has():
        """the page has the numbers"""
        now = daemon.metrics()
        return all(pathline.total(now, "pathline_" + name) == n for name, n in wanted.items())
    return wait(has)


def write_far():
    """A translator of another process writes the region that the memory server has, over RoCE."""
    far = lab.start([PATHLINE, "translate", "--stats", "--flush", "20ms", f"udp://127.0.0.1:{FAR}",
                     f"roce://127.0.0.1:{CONTROL}/far?dev=udp://127.0.0.2&service=rc"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in far.stderr:
        if "translating from" in line:
            break
    report(FAR, "key-write", "-k", "host8", "-d", "far-", "--sequenced")
    wait(lambda: value("far", "host8") == b"far-".hex())
    eq(value("far", "host8"), b"far-".hex(), "a value that came over RoCE is read")
    for reader, found in (("127.0.0.3", True), ("127.0.0.4", False)):
        looked = run("region", "lookup", f"roce://127.0.0.1:{CONTROL}/far?dev=udp://{reader}", "host8")
        ok((b"far-".hex() in looked.stdout) == found, f"rdma.allow_read, asked from {reader}", looked.stderr)
    far.send_signal(signal.SIGTERM)
    out, _ = far.communicate(timeout=LIMIT)
    account = json.loads(out.splitlines()[-1])
    eq(account["out"]["given"], account["out"]["writes"] + account["out"]["adds"], "the account of the translator far away closes")
    return account["out"]["writes"]


def test_together():
    for name in ("last", "far", "other"):
        create(name, "key-write", "--slots", 4096, "--value-bytes", 4)
    create("lists", "append", "--slots", 4096, "--value-bytes", 4, "--lists", 4)
    write_config()
    d = Daemon(path("pathline.yaml"))
    sent = gen(REPORTS, "--count", 1000, "--rate", 20000)
    report(DTA, "key-write", "-k", "host7", "-d", "up--")
    report(DTA, "append", "--store", 1, "--list", 3, "-d", 7, "--data-form", "be32", "--step-data", "--count", KEYS, "--sequenced")
    far_writes = write_far()

    ok(becomes(d, dta_accepted_total=KEYS + 1, region_entries_total=KEYS, packets_total=sent, rdma_writes_total=far_writes),
       "what all three did is on one page", str({k: v for k, v in d.metrics().items() if "dta_" in k or "region" in k}))
    eq(value("last", "host7"), b"up--".hex(), "what DTA wrote is read by lookup")
    page = d.metrics()
    eq(page['pathline_region_head_total{region="lists",list="3"}'], KEYS, "the head of the list")
    # A key has two copies; which slots they take follows from the seed.
    for name in ("last", "far"):
        eq(page[f'pathline_region_fill_ratio{{region="{name}"}}'], 2 / 4096, f"how full {name} is")
    eq(page["pathline_dta_out_writes_total"], page["pathline_dta_writes_total"], "every operation was carried out")
    status, text = d.get("/readyz?verbose")
    ready = json.loads(text)
    eq((status, ready["ready"], ready["translator"]["ready"], ready["memory"]["ready"], ready["collector"]["ready"]),
       (200, True, True, True, True), "ready are all of them")
    return d, sent


def reload(d, words):
    """Whether the log has these words about it."""
    count = len(re.findall("is in use|stays in use", d.log()))
    d.p.send_signal(signal.SIGHUP)
    d.wait_for("is in use|stays in use", count=count + 1)
    return ok(words in d.log(), f"a reload: {words}", d.log())


def test_reload(d):
    report_more = f"  - {{name: more, type: jsonl, path: {path('more.jsonl')}}}\n"
    write_config(more_regions=region_rows(("other", "other")), outputs=report_more)
    reload(d, "is in use")
    ok(becomes(d, regions=4), "a region of another writer is added", d.log())
    ok('pathline_output_offered_total{output="more"}' in d.metrics(), "an output is added", str(d.metrics()))
    write_config(more_regions=region_rows(("absent", "other")), outputs=report_more)
    reload(d, "the old configuration stays in use")
    ok(becomes(d, regions=4), "a region that is not there changes nothing", d.log())
    write_config(outputs=report_more, dta_port=DTA + 7)
    reload(d, "a restart changes them")
    ok(becomes(d, regions=3), "a region of another writer goes", d.log())
    report(DTA, "key-write", "-k", "host9", "-d", "here", "--sequenced")
    ok(wait(lambda: value("last", "host9") == b"here".hex()), "the translator goes on where it was")


def test_end(d, sent):
    d.p.send_signal(signal.SIGUSR1)
    d.wait_for("so far: .*accepted")
    ok(re.search(rf"so far: received {sent} = decoded {sent} ", d.log()), "the collector's account so far has all reports", d.log())
    # Held by the translator for a moment: the drain brings it into memory.
    report(DTA, "append", "--store", 1, "--list", 2, "-d", 1, "--data-form", "be32", "--count", 3)
    eq(d.stop(), 0, "it ends well")
    log = d.log()
    ok(re.search(rf"stopped: received {sent} = decoded {sent} \+ not decoded 0", log), "the collector's account closes", log)
    # A reporter that hears late that its report came sends it again.
    told = re.search(rf"stopped: (\d+) reports in \d+ datagrams: {KEYS + 5} accepted(?:, (\d+) duplicates)?; ", log)
    ok(told and int(told[1]) == KEYS + 5 + int(told[2] or 0), "the translator's account", log)
    ok(re.search(r"subject=memory msg=\"stopped: \d+ packets", log), "the memory server's account", log)
    eq(len(region("dump", path("lists.plr"), "--list", 2)), 3, "what was held was written")
    for name in ("last", "lists", "far"):
        ok(region("info", path(name + ".plr"))[0].get("clean") in (True, "yes"), f"{name} was closed", str(region("info", path(name + ".plr"))))


def test_without_sources():
    write_config(sources=False)
    d = Daemon(path("pathline.yaml"), name="bare")
    report(DTA, "key-write", "-k", "host7", "-d", "down", "--sequenced")
    ok(wait(lambda: value("last", "host7") == b"down".hex()), "without sources the translator writes")
    ok(becomes(d, dta_accepted_total=1, packets_total=0), "and the page is there", d.log())
    eq(d.get("/readyz")[0], 200, "and it is ready")
    eq(d.stop(), 0, "and it ends well")


def test_limits():
    """What the translator accepts, gathers and refuses is told by the file as by its options."""
    write_config(sources=False, limits="  above: ['1=50@0+4']\n  store_rates: ['0=1']\n  batch: 4\n  cache_rows: 16\n  merge: 2\n")
    d = Daemon(path("pathline.yaml"), name="limits")
    for number in (50, 51):
        report(DTA, "append", "--store", 1, "--list", 1, "-d", number, "--data-form", "be32", "--count", 4)
    for _ in range(2):
        report(DTA, "key-write", "-k", "host1", "-d", "once", "--count", 50)
    ok(becomes(d, dta_reports_total=108), "all reports came", d.log())
    page = d.metrics()
    eq(page.get('pathline_dta_refused_total{cause="filtered"}'), 4, "dta.above: not those of 50")
    ok(0 < page.get('pathline_dta_refused_total{cause="store_quota"}', 0) < 100, "dta.store_rates: the rest of a burst is refused", str(page))
    eq(d.stop(), 0, "it ends well")


def page_of(process):
    """The address that a service says its page has."""
    for line in process.stderr:
        found = re.search(r"metrics on (http://[^/]+)/", line)
        if found:
            return found.group(1)
    raise RuntimeError("it has no page")


def fetch(url):
    with urllib.request.urlopen(url, timeout=LIMIT) as r:
        return r.read().decode()


def test_alone(family, *args):
    """A service by itself has the same pages."""
    p = lab.start([PATHLINE, args[0], "--web", "127.0.0.1:0", *args[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    web = page_of(p)
    values = samples(fetch(web + "/metrics"))
    ok(family in values and values["pathline_regions"] == 1, f"{args[0]} has a metrics page", str(values))
    eq(fetch(web + "/healthz"), "ok\n", f"{args[0]} lives")
    eq(json.loads(fetch(web + "/readyz?verbose"))["ready"], True, f"{args[0]} is ready")
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=LIMIT)


def test_not_there():
    """What cannot be opened ends each service with the same code, also its pages, which come last."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    taken.bind(("127.0.0.1", 0))
    taken.listen(1)
    web = f"127.0.0.1:{taken.getsockname()[1]}"
    collect = ("collect", "--listen", f"127.0.0.1:{CONTROL}", "--cm-port", "0", "udp://127.0.0.1")
    translate = ("translate", f"udp://127.0.0.1:{FAR}")

    def code(*args, **kwargs):
        return run(*args, **kwargs).returncode

    def config(region, page):
        return f"regions: [{{name: a, path: {region}, writer: dta}}]\ndta: {{listen: 'udp://127.0.0.1:{FAR}'}}\nweb: {{listen: '{page}'}}\n"

    for what, region, page in (("a page's port that is in use", path("last.plr"), web), ("a region that is not there", path("none.plr"), "127.0.0.1:0")):
        eq([code(*translate, "--web", page, region), code(*collect, "--web", page, region),
            code("run", "-c", "-", input=config(region, page))], [69, 69, 69], f"{what}: translate, collect and run end with 69")
    with open(path("damaged.plr"), "wb") as f:
        f.write(bytes(8192))
    eq([code(*translate, path("damaged.plr")), code(*collect, path("damaged.plr")),
        code("run", "-c", "-", input=config(path("damaged.plr"), "127.0.0.1:0"))], [1, 1, 1], "a damaged region: all end with 1")
    taken.close()


def test_refused():
    """What a file must not say, in words."""
    for said, text in ((b"no dta.listen", "regions: [{name: a, path: /a, writer: dta}]"),
                       (b"no rdma.interface", "regions: [{name: a, path: /a, writer: rdma}]"),
                       (b"nowhere to write", "dta: {listen: 'udp://:40040'}"),
                       (b"nothing to write", "rdma: {interface: 'udp://127.0.0.1'}"),
                       (b"the same name", "regions: [{name: a, path: /a}, {name: a, path: /b}]"),
                       (b"the same path", "regions: [{name: a, path: /a}, {name: b, path: /a}]"),
                       (b"names a region above the last", "regions: [{name: a, path: /a, writer: dta}]\n"
                        "dta: {listen: 'udp://:40040', above: ['1=5']}"),
                       (b"neither RATE nor STORE=RATE", "dta: {store_rates: ['0=0']}"),
                       (b"neither STORE=VALUE", "dta: {above: ['5']}"),
                       (b"peers_each is more than peers", "regions: [{name: a, path: /a, writer: rdma}]\n"
                        "rdma: {interface: 'udp://127.0.0.1', peers_each: 65}"),
                       (b"need the software NIC", "regions: [{name: a, path: /a, writer: rdma}]\n"
                        "rdma: {interface: 'verbs:mlx5_0', vlan: 5}"),
                       (b"neither an IPv4 nor", "rdma: {switch: {gid: fe80}}"),
                       (b"is not a port for reports", "dta: {listen: 'pcap:x.pcap'}")):
        checked = run("config", "check", "-", input=text + "\n")
        ok(checked.returncode == 78 and said.decode() in checked.stderr, f"refused: {said.decode()}", checked.stderr)


daemon, packets = test_together()
test_reload(daemon)
test_end(daemon, packets)
test_without_sources()
test_limits()
test_alone("pathline_dta_reports_total", "translate", f"udp://127.0.0.1:{FAR}", path("last.plr"))
test_alone("pathline_rdma_packets_total", "collect", "--listen", f"127.0.0.1:{CONTROL}", "--cm-port", "0", "udp://127.0.0.1", path("far.plr"))
test_not_there()
test_refused()
sys.exit(tap.end())
