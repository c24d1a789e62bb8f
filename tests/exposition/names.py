#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every metric and label that dashboards, alert rules, README and docs/ name is on a page that the daemon made;
every expression is one that Prometheus' own parser takes. usage: names.py PATHLINE"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.tap import skip  # noqa: E402
from lib.wait import wait  # noqa: E402

# Loopback addresses that no other test has for RoCE, whose port is one.
SERVER, PEER = "127.0.77.1", "127.0.77.2"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def ok(wrong, name):
    """wrong: what is, line by line."""
    tap.ok(not wrong, name, "\n".join(wrong))


def real_page():
    """The page of a daemon that has seen something, with telemetry memory, a tap, marks and a query, and that of a translator to its memory server."""
    port = lab.free_udp_port()
    for name, store in (("last", ["key-write", "--value-bytes", "4"]), ("lists", ["append", "--value-bytes", "4"]),
                        ("peers", ["key-write", "--value-bytes", "4"])):
        pathline.run("region", "create", "--slots", "1024", "--primitive", *store, os.path.join(lab.DIR, name + ".region"))
    dta, control = lab.free_udp_port(), lab.free_port()
    d = pathline.Daemon(lab.write("c.yaml", f"""sources:
  - uri: udp://127.0.0.1:{port}
outputs:
  - path: {lab.DIR}/out.jsonl
dta: {{listen: 'udp://127.0.0.1:{dta}'}}
rdma: {{interface: 'udp://{SERVER}', listen: '{SERVER}:{control}', cm_port: 0}}
regions:
  - {{name: last, path: {lab.DIR}/last.region}}
  - {{name: lists, path: {lab.DIR}/lists.region, writer: dta, read: {{every: 50ms}}, value: {{format: u32be}}}}
  - {{name: peers, path: {lab.DIR}/peers.region, writer: rdma}}
taps: [{{name: t, sources: ['udp://127.0.0.1:{lab.free_udp_port()}'], records: flows}}]
marks: [{{name: m, sources: ['udp://127.0.0.1:{lab.free_udp_port()}'], points: [a=1, b=2]}}]
queries: [{{name: q, query: 'SELECT count(*) FROM packets WINDOW 10s', from: t}}]
web:
  listen: 127.0.0.1:0
"""))
    far = pathline.Daemon(lab.write("far.yaml", f"""dta:
  listen: udp://127.0.0.1:{lab.free_udp_port()}
  to: 'roce://{SERVER}:{control}/peers?dev=udp://{PEER}'
web:
  listen: 127.0.0.1:0
"""), name="far")
    pathline.run("report", "append", "-d", 7, "--data-form", "be32", f"udp://127.0.0.1:{dta}")
    if not wait(lambda: 'pathline_region_value_max{region="lists"} 7' in d.get("/metrics")[1]):
        raise SystemExit("the daemon did not read what was reported")
    pathline.gen(port, "--rate", "2000", "--count", "2000")
    if not wait(lambda: pathline.total(d.metrics(), "pathline_packets_total") == 2000):
        raise SystemExit("the daemon did not receive what was sent")
    page = d.get("/metrics")[1] + far.get("/metrics")[1]
    far.stop()
    d.stop()
    return page


def names_of(page):
    names = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            m = re.match(r'([\w:]+)(\{.*\})? ', line)
            labels = set(re.findall(r'[{,](\w+)="(?:[^"\\]|\\.)*"', m.group(2) or ""))
            names.setdefault(m.group(1), set()).update(labels)
    for line in page.splitlines():  # families without a sample now
        m = re.match(r"# TYPE (\S+) (\w+)", line)
        if m and m.group(2) != "histogram":
            names.setdefault(m.group(1), set())
    return names


GROUP = {"by", "without", "on", "ignoring", "group_left", "group_right"}
# What the server adds, and what a rule or a panel may say of it.
ADDED = {"job", "instance"}


def check_expression(expr, names):
    """Faults of one expression: metrics that are not there, labels their metric does not have."""
    faults = []
    expr = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expr)  # what is in quotes is no name
    for name, matchers in re.findall(r'\b((?:pathline|process)_\w+)\b(\{[^}]*\})?', expr):
        if name not in names:
            faults.append(f"no metric {name}")
            continue
        for label in re.findall(r'[{,]\s*(\w+)\s*(?:=~|!~|!=|=)', matchers):
            if label not in names[name] | ADDED:
                faults.append(f"{name} has no label {label}")
    used = set().union(*(names.get(n, set()) for n in re.findall(r'\b(?:pathline|process)_\w+', expr))) | ADDED
    for word, labels in re.findall(r'\b(\w+)\s*\(([\w\s,]*)\)', expr):
        if word in GROUP:
            faults += [f"{word} ({label}): no metric here has it" for label in re.split(r"[\s,]+", labels)
                       if label and label not in used]
    return faults


def dashboard(path, names):
    """Faults of one dashboard, and its expressions with the variables filled in."""
    faults, expressions, ids = [], [], set()
    d = json.load(open(path, encoding="utf-8"))
    variables = {v["name"]: v for v in d["templating"]["list"]}
    if d.get("uid") or d.get("id"):
        faults.append("it has an id of its own")
    if variables.get("datasource", {}).get("type") != "datasource":
        faults.append("no variable for the data source")
    known = set(variables) | {"__rate_interval", "__range", "__interval"}
    place = set()
    for p in d["panels"]:
        if p["id"] in ids:
            faults.append(f"panel id {p['id']} twice")
        ids.add(p["id"])
        g = p["gridPos"]
        cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
        if cells & place or g["x"] + g["w"] > 24:
            faults.append(f"{p['title']}: lies over another")
        place |= cells
        if p["type"] == "row":
            continue
        if p["datasource"]["uid"] != "${datasource}" or not p.get("title") or not p["targets"]:
            faults.append(f"{p.get('title')}: data source, title or targets")
        if not p["fieldConfig"]["defaults"].get("unit"):
            faults.append(f"{p['title']}: no unit")
        for t in p["targets"]:
            if t["datasource"]["uid"] != "${datasource}":
                faults.append(f"{p['title']}: a data source by name")
            for v in re.findall(r"\$\{?(\w+)", t["expr"]):
                if v not in known:
                    faults.append(f"{p['title']}: no variable {v}")
            faults += [f"{p['title']}: {x}" for x in check_expression(t["expr"], names)]
            for label in re.findall(r"\{\{(\w+)\}\}", t["legendFormat"]):
                if not any(label in names.get(n, set()) for n in re.findall(r"pathline_\w+|process_\w+", t["expr"])) \
                        and label not in ADDED:
                    faults.append(f"{p['title']}: legend of {label}")
            expressions.append(t["expr"])
    for v in variables.values():
        if v["type"] == "query":
            m = re.fullmatch(r"label_values\((.*), (\w+)\)", v["definition"])
            faults += check_expression(m.group(1), names) if m else [f"variable {v['name']}"]
            if m and m.group(2) not in names.get(m.group(1).split("{")[0], set()) | ADDED:
                faults.append(f"variable {v['name']}: no label {m.group(2)}")
    fill = {"__rate_interval": "1m", "__range": "1h", "__interval": "15s"}
    return faults, [re.sub(r"\$\{?(\w+)\}?", lambda m: fill.get(m.group(1), ".*"), e) for e in expressions]


def promtool(expressions):
    """What Prometheus' parser says against them."""
    rules = [{"record": f"r{i}", "expr": e} for i, e in enumerate(expressions)]
    path = lab.write("rules.yml", json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    r = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True)
    return (r.stdout + r.stderr).splitlines() if r.returncode else []


def documents(names, page):
    """Names in prose. Measurements of InfluxDB are documented by a file of their own, so are functions of the library; alerts
    have an event's name."""
    kinds = set(re.findall(r'pathline_events_total\{event="(\w+)"\}', page))
    families = {re.sub(r"_(total|bucket|sum|count)$", "", n) for n in names}
    with open(os.path.join(ROOT, "docs", "formats", "influx.md"), encoding="utf-8") as f:
        measurements = set(re.findall(r"^\| `(pathline_\w+)`", f.read(), re.M))
    # Those of services that the daemon of this test does not run, as the command lists them.
    listed = set(re.findall(r"\bpathline_[a-z0-9_]+", pathline.run("help", "metrics").stdout))
    families |= listed | {re.sub(r"_total$", "", n) for n in listed}
    files = [os.path.join(ROOT, "README.md"), os.path.join(ROOT, "NEWS.md")]
    files += [f for f in glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
              if not f.endswith(("formats/influx.md", "guide/library.md"))]
    faults, n = [], 0
    for f in files:
        # The first column of NEWS' tables of renamed metrics has names that are gone.
        text = re.sub(r"^ +\| `[^`]*` \|", "", open(f, encoding="utf-8").read(), flags=re.M)
        for name in re.findall(r"\bpathline_[a-z][a-z0-9_]*[a-z0-9]\b(?![*/.(-])", text):
            n += 1
            if name not in families | measurements | set(names) and name[len("pathline_"):] not in kinds:
                faults.append(f"{os.path.relpath(f, ROOT)}: no metric {name}")
    return faults, n


def self_test(names):
    """What finds nothing must be able to find something."""
    bad = ["rate(pathline_nothing_total[1m])", 'pathline_packets_total{colour="red"}',
           "sum by (colour) (pathline_queue_depth)", "pathline_hop_latency_seconds"]
    good = ['sum by (node, le) (rate(pathline_hop_latency_seconds_bucket{job=~".*",node="a,b=c"}[1m]))']
    return [f"not found: {b}" for b in bad if not check_expression(b, names)] + \
           [f"found: {g}" for g in good if check_expression(g, names)]


def main():
    page = real_page()
    names = names_of(page)
    ok([] if len(names) > 80 else [str(len(names))], f"a page of {len(names)} names")
    ok(self_test(names), "what is not there is found")
    expressions = []
    boards = sorted(glob.glob(os.path.join(ROOT, "share", "grafana", "*.json")))
    ok([] if len(boards) >= 5 else [str(boards)], f"{len(boards)} dashboards")
    for board in boards:
        faults, exprs = dashboard(board, names)
        expressions += exprs
        ok(faults, f"{os.path.basename(board)}: {len(exprs)} expressions, every metric and label is there")
    rules_path = os.path.join(ROOT, "share", "prometheus", "pathline.rules.yml")
    text = open(rules_path, encoding="utf-8").read()
    ok(check_expression(re.sub(r"(summary|description):.*", "", text), names),
       "alert rules: every metric and label is there")
    if shutil.which("promtool") is None:
        skip("expressions", "missing: promtool (package prometheus)")
    else:
        ok(promtool(expressions), f"promtool takes the {len(expressions)} expressions of dashboards")
        r = subprocess.run(["promtool", "check", "rules", rules_path], capture_output=True, text=True)
        ok((r.stdout + r.stderr).splitlines() if r.returncode else [], "and the alert rules")
        r = subprocess.run(["promtool", "test", "rules", os.path.join(ROOT, "tests", "exposition", "rules_test.yml")],
                           capture_output=True, text=True)
        ok((r.stdout + r.stderr).splitlines() if r.returncode else [], "those of telemetry memory fire when they should")
    faults, n = documents(names, page)
    ok(faults, f"README, NEWS and docs/ name {n} metrics that are there")
    return tap.end()


sys.exit(main())
