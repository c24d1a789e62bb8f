#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`pathline help metrics` is complete: every family on the page of a daemon with every part of its configuration, and of a
translator into another host's memory, stands there with the same help; what stands there and on no page is of services that
these two do not run, named here. usage: families.py PATHLINE"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.lab import path  # noqa: E402
from lib.pathline import PATHLINE, Daemon, gen, run  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

REPORTS, DTA, CONTROL, RECORDS, NOWHERE, FAR, MARKS = 23866, 23140, 23571, 23850, 23999, 23141, 23851

CONFIG = f"""sources:
  - uri: udp://127.0.0.1:{REPORTS}
dta:
  listen: udp://127.0.0.1:{DTA}
rdma:
  interface: udp://127.0.0.1
  listen: 127.0.0.1:{CONTROL}
  cm_port: 4791
  allow: [127.0.0.2/32]
regions:
  - {{name: last, path: {path("last.plr")}, writer: dta}}
  - {{name: far, path: {path("far.plr")}, writer: rdma}}
  - {{name: other, path: {path("other.plr")}, writer: other, read: {{every: 100ms}}}}
taps:
  - name: t
    sources: ["udp://127.0.0.1:{RECORDS}"]
    records: flows
    to: ["file:{path("flows.flow128")}", "region:{path("tap.plr")}", "udp://127.0.0.1:{NOWHERE}",
      "clickhouse://127.0.0.1:{NOWHERE}/t", "ipfix://127.0.0.1:{NOWHERE}?transport=tcp",
      "influx://127.0.0.1:{NOWHERE}/d", "dta://127.0.0.1:{NOWHERE}", "jsonl:{path("flows.jsonl")}"]
  - name: d
    sources: ["drops:"]
    records: drops
marks:
  - {{name: m, sources: ["udp://127.0.0.1:{MARKS}", "region:{path("marks.plr")}"], points: [a=1, b=2]}}
queries:
  - {{name: q, query: "SELECT src, count(*) AS n FROM flows TUMBLE(ts, 1s) GROUP BY src", from: t, to: [metrics, events]}}
outputs:
  - {{type: jsonl, path: {path("out.jsonl")}}}
web:
  listen: 127.0.0.1:0
"""
# Of an RDMA NIC, of a switch, of hosts that mark, and of topics of Kafka, which need a server.
OTHERS = r"pathline_(int_\w+|mark_\w+|unmark_\w+|host_mark_\w+|host_meter_\w+|switch_\w+|rdma_nic_\w+|rdma_hardware_total|kafka_\w+|query_member_\w+|query_part\w+|query_output_\w+|tap_\w*spool\w*)"


def families(page):
    """Names with their helps, as the page has them."""
    return dict(re.findall(r"^# HELP (\S+) (.*)$", page, re.M))


def described():
    """The same of `help metrics`, whose helps are folded into a column."""
    found, name = {}, None
    for line in run("help", "metrics").stdout.splitlines()[1:]:
        first = re.match(r"  (\w+)\s*(.*)", line)
        if first:
            name = first.group(1)
            found[name] = first.group(2).strip()
        elif name:
            found[name] = (found[name] + " " + line.strip()).strip()
    return found


def translator_page():
    """The page of a translator that writes into the memory of the daemon."""
    p = lab.start([PATHLINE, "translate", "--web", "127.0.0.1:0", f"udp://127.0.0.1:{FAR}",
                   f"roce://127.0.0.1:{CONTROL}/far?dev=udp://127.0.0.2&service=rc"], stderr=subprocess.PIPE, text=True)
    url = None
    for line in p.stderr:
        found = re.search(r"metrics on (http://\S+)", line)
        url = found.group(1) if found else url
        if "translating from" in line:
            break
    page = subprocess.run(["curl", "-s", url], capture_output=True, text=True).stdout
    p.terminate()
    p.communicate()
    return page


def main():
    for name, *args in (("last", "key-write", "--slots", 64, "--value-bytes", 4), ("other", "counters", "--slots", 64),
                        ("far", "key-write", "--slots", 64, "--value-bytes", 4)):
        made = run("region", "create", path(name + ".plr"), "--primitive", *args)
        ok(made.returncode == 0, f"{name} is made", made.stderr)
    d = Daemon(lab.write("families.yaml", CONFIG))
    sent = gen(REPORTS, "--count", 100, "--rate", 10000)
    wait(lambda: d.metrics().get("pathline_packets_total") == sent)
    here = families(d.get("/metrics")[1])
    far = families(translator_page())
    d.stop()
    helps = described()
    ok(len(here) > 300 and len(far) > 80, f"{len(here)} families on the page of the daemon, {len(far)} of the translator")
    pages = {**far, **here}
    eq(sorted(set(pages) - set(helps)), [], "help metrics has every family of both pages")
    hosts = ["pathline_mark_sent_records_total", "pathline_mark_heard_datagrams_total"]
    eq([n for n in hosts if n not in helps], [], "and the families of two hosts that measure between them")
    words = {name: re.sub(r"\s+", " ", text.replace("\\\\", "\\")) for name, text in pages.items()}
    wrong = [n for n in words if n in helps and re.sub(r"\s+", " ", helps[n]) != words[n] and not (n in here and n in far)]
    eq(wrong, [], "with its help")
    rest = sorted(n for n in set(helps) - set(pages) if not re.fullmatch(OTHERS, n))
    eq(rest, [], "and no family besides, but of services that were not run")
    return tap.end()


sys.exit(main())
