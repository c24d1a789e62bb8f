#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with a part of the process is told by all that tells of it: /readyz, `pathline status` with its exit code, `pathline
top`, /api/v1/status and /metrics. Faults of each service in turn: the interface of the memory server is down, reports are refused,
regions are removed and made anew under who writes or reads them, ended epochs find no room. usage: conditions.py PATHLINE [TEST]…"""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, network, tap  # noqa: E402
from lib.lab import free_port, path  # noqa: E402
from lib.network import sh  # noqa: E402
from lib.pathline import PATHLINE, Daemon, region, run, total  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402

DTA, REPORTS = 23050, 23768


def create(name, *args):
    made = run("region", "create", path(name + ".plr"), *args)
    ok(made.returncode == 0, f"{name} is made", made.stderr)


def daemon(name, text):
    return Daemon(lab.write(name + ".yaml", text + "web: {listen: '127.0.0.1:0'}\n"), name=name)


def append(text, *args):
    sent = run("report", "append", *args, "-d", text, f"udp://127.0.0.1:{DTA}")
    ok(sent.returncode == 0, "a report is sent", sent.stderr)


def all_tell(d, part, condition, words, what, fault=True):
    """Once one of them tells of a condition, the others do."""
    def series():
        return d.metrics().get(f'pathline_condition{{part="{part}",condition="{condition}"}}', 0)
    wait(lambda: series() > 0)
    eq(series() > 0, True, f"{what}: the metrics have the condition")
    eq(d.metrics().get(f'pathline_ready{{part="{part}"}}'), 0 if fault else 1, f"{what}: and whether it is ready")
    http, verbose = d.get("/readyz?verbose")
    eq(http, 503 if fault else 200, f"{what}: readiness")
    ok(words in verbose, f"{what}: in words", verbose)
    status = run("status", "--url", d.web)
    ok(status.returncode == 3 and words in status.stdout and "all is well" not in status.stdout, f"{what}: status", status.stdout + status.stderr)
    listed = [c for c in json.loads(d.get("/api/v1/status")[1])["conditions"] if (c["part"], c["condition"]) == (part, condition)]
    ok(listed and all(c["level"] == ("fault" if fault else "warning") for c in listed), f"{what}: /api/v1/status", str(listed))
    top = run("top", "--batch", "--screen", "queues", "--url", d.web)
    ok("NOT WELL" in top.stdout.splitlines()[0], f"{what}: top", top.stdout + top.stderr)


def is_well(d, what):
    def well():
        """all of them say that nothing is wrong"""
        return run("status", "--url", d.web).returncode == 0
    wait(well)
    status = run("status", "--url", d.web)
    ok(status.returncode == 0 and "all is well" in status.stdout, f"{what}: status", status.stdout)
    eq(d.get("/readyz")[0], 200, f"{what}: readiness")
    eq(total(d.metrics(), "pathline_condition"), 0, f"{what}: no condition")
    top = run("top", "--batch", "--screen", "queues", "--url", d.web)
    ok("all is well" in top.stdout.splitlines()[0], f"{what}: top", top.stdout + top.stderr)


def test_services():
    """The memory server and the translator in one process with a collector that has nothing to complain of."""
    sh("ip link add v0 type veth peer name v1")
    sh("ip addr add 10.78.0.1/24 dev v0")
    for end in ("v0", "v1"):
        sh(f"ip link set {end} up")
    create("last", "--primitive", "append", "--slots", 1024, "--value-bytes", 4)
    create("sums", "--primitive", "key-write", "--slots", 1000)
    d = daemon("services", f"""dta: {{listen: 'udp://127.0.0.1:{DTA}'}}
rdma: {{interface: 'packet:v0', listen: none, allow: [10.78.0.2/32]}}
regions:
  - {{name: last, path: {path('last.plr')}, writer: dta}}
  - {{name: sums, path: {path('sums.plr')}, writer: rdma}}
""")
    is_well(d, "at first")
    sh("ip link set v0 down")
    all_tell(d, "memory", "interface_down", "the interface is down", "an interface that is down")
    sh("ip link set v0 up")
    is_well(d, "the interface is up again")
    for _ in range(5):
        append("xxxx", "--store", 7)
    all_tell(d, "translator", "reports_refused", "5 refused (store)", "refused reports", fault=False)
    ok("0 accepted, 5 refused (store)" in run("status", "--url", d.web).stdout, "status has the account of the translator")
    os.rename(path("sums.plr"), path("away.plr"))
    all_tell(d, "memory", "region_removed", "sums.plr was removed or made anew", "a region of the memory server that is removed")
    eq(d.metrics().get("pathline_rdma_gone_regions"), 1, "which is counted")
    os.rename(path("away.plr"), path("sums.plr"))
    wait(lambda: d.get("/readyz")[0] == 200)
    eq((d.get("/readyz")[0], d.metrics().get("pathline_rdma_removals_total")), (200, 1), "back at its place it is the same one")
    eq(d.stop(), 0, "nothing is lost in the end")


def test_reload():
    d = daemon("reload", f"sources: [{{uri: 'udp://127.0.0.1:{REPORTS}'}}]\n")
    lab.write("reload.yaml", "nonsense: 1\n")
    d.p.send_signal(signal.SIGHUP)
    all_tell(d, "collector", "reload_failed", "the last reload failed", "a reload that failed", fault=False)
    lab.write("reload.yaml", f"sources: [{{uri: 'udp://127.0.0.1:{REPORTS}'}}]\nweb: {{listen: '127.0.0.1:0'}}\n")
    d.p.send_signal(signal.SIGHUP)
    is_well(d, "a good one")
    d.stop()


def test_profile():
    """An exporter of a dialect that the daemon was not told: the entry that it proposes, put into the configuration as it stands, reads it."""
    plain = f"sources: [{{uri: 'udp://127.0.0.1:{REPORTS}'}}]\n"

    def send(*args):
        sent = run("gen", "int", *args, "--count", 40, "--rate", 1000, f"udp://127.0.0.1:{REPORTS}")
        ok(sent.returncode == 0, "packets are sent", sent.stderr)

    for what, args, reason in (("shims of length 0", ("--preset", "intcollector-test2"), "do not decode (shim_length_min)"),
                               ("a queue word of 16 + 16 bits", ("--int", "1.0", "--fields", "0xfc00", "--dialect", "intcollector"),
                                "queue depths above 65535 at every hop")):
        d = daemon("profile", plain)
        is_well(d, what)

        def told():
            """the daemon proposes a profile"""
            send(*args)
            return d.metrics().get('pathline_condition{part="collector",condition="profile_missing"}')
        wait(told)
        all_tell(d, "collector", "profile_missing", reason, what, fault=False)
        text = next(c["text"] for c in json.loads(d.get("/api/v1/status")[1])["conditions"] if c["condition"] == "profile_missing")
        entry = text[text.index("{"):text.index("}") + 1]
        eq(entry, "{match: 127.0.0.1, dialect: intcollector}", f"{what}: the entry")
        eq(d.log().count("add " + entry), 1, f"{what}: told once in the log")
        lab.write("profile.yaml", plain + f"profiles:\n  - {entry}\nweb: {{listen: '127.0.0.1:0'}}\n")
        d.p.send_signal(signal.SIGHUP)
        is_well(d, f"{what}, with the profile")
        before = d.metrics()
        send(*args)
        wait(lambda: total(d.metrics(), "pathline_packets_total") >= total(before, "pathline_packets_total") + 40)
        after = d.metrics()
        bad = [k for k in after if k.startswith("pathline_verdicts_total") and '"ok"' not in k and after[k] > before.get(k, 0)]
        eq(bad, [], f"{what}: with it all packets decode")
        is_well(d, f"{what}, with the profile and packets")
        d.stop()


def test_translator_region():
    """A region that is removed, then made anew, under the translator; the reader of values in the same process goes on with what
    is written."""
    create("l", "--primitive", "append", "--slots", 1024, "--value-bytes", 8)
    d = daemon("removed", f"""dta: {{listen: 'udp://127.0.0.1:{DTA}', flush: 20ms}}
regions: [{{name: l, path: {path('l.plr')}, writer: dta, value: {{format: u64le}}, read: {{every: 50ms}}}}]
outputs: [{{name: j, type: jsonl, path: {path('removed.jsonl')}}}]
""")

    def of_region(name):
        return d.metrics().get(f'pathline_region_{name}{{region="l"}}')
    append("AAAAAAAA", "--sequenced")
    wait(lambda: of_region("told_total") == 1)
    os.unlink(path("l.plr"))
    all_tell(d, "translator", "region_removed", "l.plr was removed or made anew", "a region that is removed")
    all_tell(d, "collector", "source_down", "region l: ", "the reader of its values")
    ok("l.plr was removed or made anew while it was open" in d.log(), "the log has it", d.log())
    create("l", "--primitive", "append", "--slots", 1024, "--value-bytes", 8)
    append("BBBBBBBB", "--sequenced")
    wait(lambda: of_region("told_total") == 2)
    all_tell(d, "translator", "region_removed", "restart", "a region that is made anew")
    page = d.metrics()
    eq((of_region("losses_total"), of_region("readable"), page["pathline_dta_out_gone_regions"], page["pathline_dta_out_removals_total"]),
       (1, 0, 1, 1), "counted once")
    eq(region("dump", path("l.plr")), [], "the new one has nothing")
    eq(of_region("told_total"), 2, "what came meanwhile is told")
    eq(d.stop(), 1, "the exit code says that something is lost")
    ok("1 region files were removed or made anew" in d.log(), "and the account", d.log())


def test_readers():
    """Regions that others write, as they are shown, and those of marks."""
    create("other", "--primitive", "key-write", "--slots", 1000, "--value-bytes", 4)
    create("blocks", "--primitive", "append", "--slots", 1024, "--value-bytes", 128)
    d = daemon("readers", f"""sources: [{{uri: 'udp://127.0.0.1:{REPORTS}'}}]
regions: [{{name: other, path: {path('other.plr')}, writer: output}}]
outputs: [{{name: written, type: dta, region: other, primitive: key-write, record: hop, key: [node, queue], value: [queue_depth]}}]
marks: [{{name: lab, sources: ['region:{path('blocks.plr')}'], points: [a=1, b=2], period: 1s}}]
""")
    is_well(d, "at first")
    os.rename(path("other.plr"), path("away.plr"))
    all_tell(d, "regions", "region_removed", "other.plr was removed", "a region that is shown")
    all_tell(d, "collector", "output_failing", "other.plr was removed or made anew", "its output")
    os.rename(path("away.plr"), path("other.plr"))
    is_well(d, "it is back")
    os.unlink(path("blocks.plr"))
    all_tell(d, "marks", "region_unreadable", "blocks.plr cannot be read", "a region of marks")
    create("blocks", "--primitive", "append", "--slots", 512, "--value-bytes", 128)
    is_well(d, "there is another one")
    eq(d.metrics().get('pathline_mark_region_losses_total{domain="lab"}'), 1, "which is counted")
    d.stop()


def test_tap_region():
    d = daemon("taps", f"""taps: [{{name: t, sources: ['udp://127.0.0.1:{REPORTS}'], to: ['region:{path('packets.plr')}?entries=1024']}}]
""")
    is_well(d, "at first")
    os.unlink(path("packets.plr"))
    all_tell(d, "taps", "region_removed", "packets.plr was removed or made anew", "a region that a tap writes")
    d.stop()


def alone(command, *args):
    """The pages of a service that is a process by itself."""
    p = lab.start([PATHLINE, command, "--web", "127.0.0.1:0", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return started(p)


def started(p):
    d = Daemon.__new__(Daemon)
    for line in p.stderr:
        if "metrics on" in line:
            d.p, d.web = p, line.split()[-1].rsplit("/metrics", 1)[0]
            return d
    raise RuntimeError("it has no page")


def test_alone():
    for command, part, args in (("translate", "translator", [f"udp://127.0.0.1:{DTA}", path("alone.plr")]),
                                ("collect", "memory", ["--allow", "127.0.0.2/32", "--listen", "127.0.0.1:0", "udp://127.0.0.1", path("alone.plr")])):
        create("alone", "--primitive", "key-write", "--slots", 1000)
        d = alone(command, *args)
        eq((d.get("/readyz")[0], d.metrics()[f'pathline_ready{{part="{part}"}}']), (200, 1), f"{command} is ready")
        os.unlink(path("alone.plr"))
        wait(lambda: d.get("/readyz")[0] == 503)
        http, verbose = d.get("/readyz?verbose")
        ok(http == 503 and "alone.plr was removed or made anew" in verbose, f"{command}: a region that is removed", verbose)
        eq(d.metrics().get(f'pathline_condition{{part="{part}",condition="region_removed"}}'), 1, f"{command}: the metrics have it")
        d.p.send_signal(signal.SIGTERM)
        d.p.communicate(timeout=LIMIT)
        eq(d.p.returncode, 1, f"{command}: the exit code says so")


def test_epochs():
    """Ended epochs are kept in a folder that is full: the next one waits, until there is room."""
    folder = path("kept")
    if not lab.mount(folder, "2m"):
        skip("epochs on a full disk", "tmpfs cannot be mounted")
        return
    create("ep", "--primitive", "counters", "--slots", 50000, "--halves", 2)
    d = daemon("epochs", f"""dta: {{listen: 'udp://127.0.0.1:{DTA}', epoch: 200ms, keep_epochs: {folder}}}
regions: [{{name: ep, path: {path('ep.plr')}, writer: dta}}]
""")
    all_tell(d, "translator", "epoch_not_kept", "the next epoch waits", "an epoch that cannot be kept")
    put_off = d.metrics()["pathline_dta_out_epochs_put_off_total"]
    ok(put_off >= 1, "it is counted", str(put_off))
    wait(lambda: d.metrics()["pathline_dta_out_epochs_put_off_total"] >= put_off + 2)
    eq(d.log().count("cannot keep the ended epoch"), 1, "and told once")
    stuck = d.metrics()['pathline_region_epoch{region="ep"}']
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    wait(lambda: d.metrics()['pathline_region_epoch{region="ep"}'] > stuck)
    ok(d.metrics()['pathline_region_epoch{region="ep"}'] > stuck, "with room it goes on")
    ok("the ended epoch is kept now" in d.log(), "which is told", d.log())
    d.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_small_mtu():
    """An interface whose MTU becomes smaller than the path MTU of a connection, then than the smallest one of RoCE."""
    ns = network.pair("mtu", {4: {"a": "10.88.0.1", "b": "10.88.0.2"}, 6: {"a": "fd88::1", "b": "fd88::2"}})
    create("far", "--primitive", "key-write", "--slots", 1000, "--value-bytes", 600)
    collect = (PATHLINE, "collect", "--allow", "10.88.0.1/32", "--read", "packet:eth0", path("far.plr"))
    translate = (PATHLINE, "translate", "--stats", "--web", "127.0.0.1:0", f"udp://127.0.0.1:{DTA}", "roce://10.88.0.2:7471/far?dev=packet:eth0")

    def report(key):
        return subprocess.run(ns["a"].command(PATHLINE, "report", "key-write", "--sequenced", "-k", key, "-d", "x" * 600, f"udp://127.0.0.1:{DTA}"),
                              capture_output=True, text=True, timeout=LIMIT, check=False)

    def arrives(key):
        report(key)
        return region("lookup", path("far.plr"), key)[0].get("value") == "78" * 600

    def get(page):
        return ns["a"].call(lambda: d.get(page))

    ns["b"].ip("link set eth0 mtu 300")
    r = subprocess.run(ns["b"].command(*collect), capture_output=True, text=True, timeout=LIMIT, check=False)
    ok(r.returncode != 0 and "eth0 has an MTU of 300" in r.stderr, "a collector on too small an interface is refused", r.stderr)
    ns["b"].ip("link set eth0 mtu 1500")
    server = lab.start(ns["b"].command(*collect), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ok("collecting on" in server.stderr.readline(), "with 1500 it runs")
    d = started(lab.start(ns["a"].command(*translate), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    ok(wait(lambda: arrives("k1")), "a value arrives")
    ns["a"].ip("link set eth0 mtu 700")
    ok(wait(lambda: arrives("k2")), "by a smaller path MTU too")
    ns["a"].ip("link set eth0 mtu 300")
    ok(wait(lambda: get("/readyz")[0] == 503), "by none that fits: it is not ready")
    ok(wait(lambda: "eth0 has an MTU of 300" in get("/readyz?verbose")[1]), "and says why", get("/readyz?verbose")[1])
    said = report("k3").stderr
    ok("did not confirm" in said, "nothing is confirmed", said)
    ns["a"].ip("link set eth0 mtu 1500")
    ok(wait(lambda: arrives("k4")), "with 1500 again it goes on")
    ok(wait(lambda: get("/readyz")[0] == 200), "and is ready", get("/readyz?verbose")[1])
    d.p.send_signal(signal.SIGTERM)
    out, _ = d.p.communicate(timeout=LIMIT)
    account = json.loads(out.splitlines()[-1])["out"]["collectors"][0]
    eq(account["posted"], account["done"] + account["lost"], "the account closes")
    server.terminate()
    server.communicate(timeout=LIMIT)


def test_rows():
    """Where rows of standing queries go is away: each of them is told."""
    run("gen", "packets", "--story", "--duration", "3s", "-w", path("rows.pcap"))
    port, to = free_port(), ["kafka://127.0.0.1:{}/rows", "influx://127.0.0.1:{}/rows", "clickhouse://127.0.0.1:{}/rows"]
    if "TSAN_OPTIONS" in os.environ:
        # The thread sanitizer of GCC 12 does not know threads of thrd_create(), which librdkafka starts, and crashes in them.
        to = to[1:]
    outs = ", ".join(f"'{one.format(port)}'" for one in to)
    d = daemon("rows", f"""taps: [{{name: t, sources: ['pcap:{path('rows.pcap')}']}}]
queries: [{{name: top, query: 'SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dst', from: t, to: [{outs}]}}]
""")
    for one in to:
        scheme = one.split(":")[0]
        wait(lambda scheme=scheme: f"query top: {scheme}://" in d.get("/readyz?verbose")[1])
        all_tell(d, "queries", "output_failing", f"query top: {one.format(port)}: ", f"{scheme} is away")
    ok("TSAN_OPTIONS" in os.environ or "no broker is up" in d.get("/readyz?verbose")[1], "of brokers it says so", d.get("/readyz?verbose")[1])
    eq(d.metrics().get('pathline_condition{part="queries",condition="output_failing"}'), len(to), "each output")
    d.stop()


tests = [test_rows, test_services, test_reload, test_profile, test_translator_region, test_readers, test_tap_region, test_alone, test_epochs, test_small_mtu]
for test in tests:
    if not sys.argv[2:] or test.__name__ in sys.argv[2:]:
        test()
sys.exit(tap.end())
