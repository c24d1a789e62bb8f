#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rules on values of regions in `pathline run`: a spike that DTA reports wrote into a list, a value of key-write and a counter that
grows become events at a webhook, in the JSON lines, in the tables, in top, tail and on the metrics page, with their begins and
ends; what is within the bounds becomes none. A scrape after the spike has it still. A reload changes the rules, and what it
takes away ends; rules that contradict themselves or the region are refused with their line. usage: region_alerts.py PATHLINE"""
import http.server
import json
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import Daemon, jsonl, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

DTA = 23141
RULES = "above: 1000, end_hold: 20ms"


class Hook(http.server.BaseHTTPRequestHandler):
    """A webhook that keeps the alerts it is sent."""
    alerts = []

    def do_POST(self):
        """An array of alerts, as Alertmanager takes it."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.alerts.extend(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        """Nothing."""


hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
threading.Thread(target=hook.serve_forever, daemon=True).start()


def create(name, *args):
    made = run("region", "create", path(name + ".plr"), "--seed", 4711, "--primitive", *args)
    ok(made.returncode == 0, f"{name} is made", made.stderr)


def write_config(lists, more=""):
    """The rules of the list, and of the other regions."""
    with open(path("pathline.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""dta:
  listen: udp://127.0.0.1:{DTA}
  flush: 20ms
regions:
  - name: lists
    path: {path("lists.plr")}
    writer: dta
    read: {{every: 50ms}}
    value: {{format: u32be}}
    alert: {{{lists}}}
  - name: last
    path: {path("last.plr")}
    writer: dta
    read: {{every: 50ms, tell: false}}
    value: {{format: u32be}}
    alert: {{above: 100000, below: 10, end_hold: 20ms}}
  - name: sums
    path: {path("sums.plr")}
    writer: dta
    read: {{every: 50ms}}
    alert: {{rate: 1000000, end_hold: 20ms}}
web:
  listen: 127.0.0.1:0
outputs:
  - {{name: file, type: jsonl, path: {path("out.jsonl")}}}
  - {{name: hook, type: webhook, url: 'http://127.0.0.1:{hook.server_port}/api/v2/alerts', batch: {{age: 20ms}}}}
{more}""")


def report(*args):
    sent = run("report", *args, f"udp://127.0.0.1:{DTA}")
    ok(sent.returncode == 0, f"report {args[0]} is sent", sent.stderr)


def entry(value, number=0):
    report("append", "--store", 0, "--list", number, "-d", value, "--data-form", "be32", "--sequenced")


def events(kind=None):
    with open(path("out.jsonl"), encoding="utf-8") as f:
        told = [e for e in jsonl(f.read()) if e["kind"] == "event"]
    return [e for e in told if kind in (None, e["event"])]


def phases(kind):
    return [(e["phase"], e["region"], e["value"]) for e in events(kind)]


def values_told():
    with open(path("out.jsonl"), encoding="utf-8") as f:
        return [e for e in jsonl(f.read()) if e["kind"] == "value"]


def values():
    return [v["value"] for v in values_told()]


def of_kind(d, kind):
    return d.metrics().get(f'pathline_events_total{{event="{kind}"}}')


def test_quiet(d):
    """Values within the bounds."""
    for value in (5, 1000, 7):
        entry(value)
    report("key-write", "--store", 1, "-k", 1, "--key-form", "u32", "-d", 100000, "--data-form", "be32", "--sequenced")
    report("increment", "--store", 2, "-k", 1, "--key-form", "u32", "--by", 3, "--sequenced")
    wait(lambda: len(values()) >= 4)
    wait(lambda: d.metrics()['pathline_region_counted_total{region="last"}'] >= 1)
    eq(events(), [], "values at the bounds and within them are no event")
    ok(not [v for v in values_told() if "key" in v], "entries of lists have no key")
    eq([of_kind(d, k) for k in ("value_high", "value_low", "value_rate")], [0, 0, 0], "nor on the metrics page")


def test_spike(d):
    """In a list: begin and end, everywhere."""
    entry(900000, 2)
    entry(7, 2)
    wait(lambda: len(events("value_high")) == 2)
    eq(phases("value_high"), [("begin", "lists", 900000), ("end", "lists", 900000)], "a spike is an event, with its end")
    begin, end = events("value_high")
    eq((begin["place"], begin["threshold"], end["place"]), (2, 1000, 2), "of its list, with the bound")
    ok("duration_ns" in end and "node" not in begin and "flow" not in begin, "and nothing that it is not of", str(begin))
    for value in range(3):
        entry(value, 2)
    wait(lambda: len(values()) >= 9)
    eq(d.metrics()['pathline_region_value_max{region="lists"}'], 900000, "a scrape after many readings has the spike still")
    eq(of_kind(d, "value_high"), 2, "events are counted by kind")
    wait(lambda: [a for a in Hook.alerts if a["labels"].get("region") == "lists"])
    alert = [a for a in Hook.alerts if a["labels"].get("region") == "lists"][0]
    eq(alert["labels"], {"alertname": "pathline_value_high", "region": "lists", "place": "2"}, "an alert at the webhook")
    eq((alert["annotations"]["value"], alert["annotations"]["threshold"]), ("900000", "1000"), "with value and bound")
    eq(alert["annotations"]["summary"], "value high in region lists at 2: 900000", "and a summary")
    rows = json.loads(d.get("/api/v1/events?where=event==value_high")[1])["rows"]
    eq({(r["region"], r["place"], r["phase"]) for r in rows}, {("lists", 2, "begin"), ("lists", 2, "end")}, "in the table of events")
    top = run("top", "--url", d.web, "-b", "-s", "events")
    ok("value_high" in top.stdout and "lists at 2" in top.stdout, "in top", top.stdout + top.stderr)


def test_slots(d):
    """A value of key-write that stays above, one below, and a counter."""
    report("key-write", "--store", 1, "-k", 1, "--key-form", "u32", "-d", 100001, "--data-form", "be32", "--sequenced")
    wait(lambda: events("value_high")[2:])
    eq(phases("value_high")[2:], [("begin", "last", 100001)], "a value of key-write, also where values are only counted")
    wait(lambda: d.metrics()['pathline_region_alerts_raised{region="last"}'] == 1)
    eq(events("value_high")[2].get("key"), "0x01000000", "with its key, which the translator of this process knows")
    report("key-write", "--store", 1, "-k", 1, "--key-form", "u32", "-d", 9, "--data-form", "be32", "--sequenced")
    wait(lambda: len(events("value_high")) == 4 and events("value_low"))
    eq(phases("value_high")[3:], [("end", "last", 100001)], "ends when another is there")
    eq(phases("value_low"), [("begin", "last", 9)], "which is below")
    report("increment", "--store", 2, "-k", 1, "--key-form", "u32", "--by", 100000000, "--sequenced")
    wait(lambda: len(events("value_rate")) == 2)
    begin, end = events("value_rate")
    ok(begin["region"] == "sums" and begin["value"] > 1000000 and end["phase"] == "end", "a counter that grows", str(begin))


def test_reload(d):
    """Rules change; what they began goes on or ends; cursors stay."""
    entry(5000, 3)
    wait(lambda: ("begin", "lists", 5000) in phases("value_high"))
    before = len(values())
    write_config("below: 1")
    d.p.send_signal(signal.SIGHUP)
    d.wait_for("reload")
    wait(lambda: ("end", "lists", 5000) in phases("value_high"))
    ok(("end", "lists", 5000) in phases("value_high"), "a rule that is taken away ends what it began")
    entry(6000, 3)
    entry(0, 3)
    wait(lambda: ("begin", "lists", 0) in phases("value_low"))
    ok(("begin", "lists", 0) in phases("value_low"), "a new rule begins")
    ok(not [p for p in phases("value_high") if p[2] == 6000], "the old one does not")
    eq(len(values()), before + 2, "no entry is told twice or skipped")


def test_refused():
    """Each with the line of the key at fault."""
    for rules, line, words in (("above: 3, below: 5", 10, "alert.below is more than alert.above"),
                               ("above: 3, low: 4", 10, "alert.low is more than alert.above"),
                               ("below: 3, high: 2", 10, "alert.high is less than alert.below"),
                               ("rate: 3, low: 2", 10, "alert.low without alert.above"),
                               ("above: many", 10, "many")):
        write_config(rules)
        checked = run("config", "check", path("pathline.yaml"))
        ok(checked.returncode != 0 and f":{line}:" in checked.stderr and words in checked.stderr, f"refused: {rules}",
           checked.stdout + checked.stderr)
    write_config("above: 3")
    with open(path("pathline.yaml"), encoding="utf-8") as f:
        text = f.read()
    for there, instead, words in (("value: {format: u32be}", "value: {format: hex}", "value.format must say"),
                                  ("value: {format: u32be}", "value: {format: record}", "region of records"),
                                  ("read: {every: 50ms}", "read: {every: 0s}", "not read")):
        with open(path("pathline.yaml"), "w", encoding="utf-8") as f:
            f.write(text.replace(there, instead, 1))
        checked = run("config", "check", path("pathline.yaml"))
        ok(checked.returncode != 0 and ":10:" in checked.stderr and words in checked.stderr, f"refused: {instead}",
           checked.stdout + checked.stderr)


create("lists", "append", "--slots", 4096, "--value-bytes", 4, "--lists", 4)
create("last", "key-write", "--slots", 65536, "--value-bytes", 4)
create("sums", "counters", "--slots", 65536)
test_refused()
write_config(RULES)
daemon = Daemon(path("pathline.yaml"))
test_quiet(daemon)
test_spike(daemon)
test_slots(daemon)
test_reload(daemon)
eq(daemon.stop(), 0, "it ends well")
hook.shutdown()
sys.exit(tap.end())
