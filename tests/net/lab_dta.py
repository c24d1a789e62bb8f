#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Direct Telemetry Access as a lab: generators, translator, RoCE, collector, regions, and what `lab check` says of them. The shipped
network; switches that report; regions as the published code has them, sketches of two reporters; epochs; frames lost on the link; a part
that stands still, one that is killed; without root. No answer may be wrong, every account closes, and what is lost is where the link's books have
it. usage: lab_dta.py PATHLINE [TEST…]"""
import json
import os
import re
import subprocess
import sys

# As in labs.py: a leak is looked for by a process that cannot see its parent.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE, region as rows  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

NAME = f"d{os.getpid()}"
FOLDER = f"/run/pathline/lab/{NAME}"
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "examples", "lab")
SHIPPED, SWITCHES = os.path.join(EXAMPLES, "dta.yaml"), os.path.join(EXAMPLES, "dta-switch.yaml")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
# Three packets of each of 16 flows to h2.
SEND = """import socket
for i in range(16):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("", 20000 + i))
        for _ in range(3):
            s.sendto(b"x", ("10.1.1.1", 9))"""
LIMIT = 300


def run(*words, prefix=(), program=PATHLINE, **more):
    return subprocess.run([*prefix, program, "lab", *words], capture_output=True, text=True, timeout=LIMIT, check=False, **more)


NETWORK = """name: {name}
nodes:
  - {{name: reporter}}
  - {{name: translator, kind: router}}
  - {{name: collector}}
links:
  - {{ends: [reporter, translator], bare: true}}
  - {{ends: [translator, collector], rate: 1G, queue: 1MiB, loss: {loss}}}
run:
  - name: collect
    node: collector
    ready: collecting
    account: true
    command: >-
      set -e; {create}
      exec pathline collect --stats --read {collect} --listen 10.1.1.1:7471 --allow 10.1.1.0/32 packet:translator {stores}
  - name: translate
    node: translator
    ready: translating from
    account: true
    command: "exec pathline translate --stats {translate} udp://:40040 'roce://10.1.1.1:7471/{names}?dev=packet:collector&service={service}'"
"""
GENERATOR = """  - name: {name}
    node: reporter
    account: true
    command: exec pathline gen dta --store {store} {stream} --rate {rate} udp://10.255.0.1:40040
"""


def chain(stores, loss=0, service="uc", collect="", translate="", more=""):
    """The file of a lab. Stores: (name, what `region create` gets, the stream, its rate, how many send it)."""
    names = [s[0] for s in stores]
    create = " ".join(f"pathline region create --primitive {s[1]} {s[0]}.plr;" for s in stores)
    text = NETWORK.format(name=NAME, loss=loss, service=service, collect=collect, translate=translate, create=create,
                          stores=" ".join(n + ".plr" for n in names), names=",".join(names))
    for i, (name, _, stream, rate, *many) in enumerate(stores):
        count = many[0] if many else 1
        for k in range(count):
            text += GENERATOR.format(name=name if k == 0 else f"{name}{k + 1}", store=i, stream=stream, rate=rate)
            if k == 0:
                regions = f"$(ls {name}.plr {name}-[0-9]*.plr 2> /dev/null | sed 's/^/--against /')"
                text += f'    check: "pathline gen dta {stream} --reporters {count} -o json {regions}"\n'
    return text + more


def up(text):
    got = run("up", lab.write("chain.yaml", text))
    eq((got.returncode, got.stderr), (0, ""), "up")
    return got


def checked(what, **more):
    """What `lab check` found, by name of the store, and the account; nothing, and a failed point, where it says nothing."""
    got = run("check", NAME, "-o", "json", **more)
    try:
        seen = json.loads(got.stdout)
        stores, account = {c["name"]: json.loads(c["said"]) for c in seen["checks"]}, seen["account"]
    except (ValueError, KeyError):
        ok(False, f"{what}: what it found", got.stdout + got.stderr)
        return {}, {}
    # Where reports are dropped, a sketch may have no whole column: no answer of it is right, then.
    nothing = not undisturbed(account) and any(s["right"] == 0 for s in stores.values())
    ok(got.returncode == nothing, what, got.stdout + got.stderr)
    return stores, account


def down():
    eq(run("down", NAME).returncode, 0, "down")


def shown(**more):
    got = run("show", NAME, "-o", "json", **more)
    return {c["name"]: c for c in json.loads(got.stdout)["commands"]}


def undisturbed(a):
    """A machine that is too busy drops: that is told, and then more is missing."""
    return a.get("kernel_drops") == 0 and a.get("refused") == 0 and a.get("lost_on_the_wire") == 0


def test_shipped():
    """The network that comes with the program, as it is."""
    with open(SHIPPED, encoding="utf-8") as f:
        text = f.read()
    eq(run("up", "--dry-run", "dta").stdout, run("up", "--dry-run", SHIPPED).stdout, "`dta` is the file of the documentation")
    up(re.sub("^name: dta$", f"name: {NAME}", text, flags=re.M))
    table = run("show", NAME).stdout
    ok("operations executed" in table and "reports sent" in table and "accepted" in table, "show has every part's account", table)
    got = run("check", NAME)
    ok(got.returncode == 0, "check says that all is right", got.stdout + got.stderr)
    found = re.findall(r"^(\w+) +([\w-]+): asked (\d+), right (\d+), wrong 0, not found (\d+) \((\d+) expected\)$", got.stdout, re.M)
    eq([f[:2] for f in found], [("last", "key-write"), ("lists", "append"), ("sums", "counters"), ("paths", "postcards"), ("sketch", "sketch")],
       "a store of each of the five primitives")
    ok(all(int(f[2]) == int(f[3]) + int(f[4]) > 0 for f in found), "each answer is one of the three", found)
    ok(re.search(r"^accounts +close$", got.stdout, re.M), "accounts close", got.stdout)
    ok(rows("lookup", f"{FOLDER}/last.plr", "--key-form", "be32", "49999")[0].get("answer") == "found", "the last key can be looked up still")
    ok(all(c["state"] == "exit code 0" and c["pid"] is None for c in shown().values()), "all have ended by themselves or in turn", shown())
    down()


def test_switches():
    """Two switches send postcards: the collector's memory has the path of each flow that passed them, and of no other."""
    with open(SWITCHES, encoding="utf-8") as f:
        up(re.sub("^name: dta-switch$", f"name: {NAME}", f.read(), flags=re.M))
    ok(wait(lambda: shown()["postcards"]["state"] == "exit code 0"), "both have their entry", shown())
    numbers = {n["name"]: i + 1 for i, n in enumerate(json.loads(run("show", NAME, "-o", "json").stdout)["nodes"])}
    eq(run("exec", NAME, "h1", "--", PYTHON, "-c", SEND).returncode, 0, "16 flows of three packets")
    keys = [f"10.1.0.1:{20000 + i},10.1.1.1:9/udp" for i in range(16)]

    def paths(*of):
        return [r.get("path") for r in rows("lookup", f"{FOLDER}/paths.plr", *of)]
    ok(wait(lambda: paths(*keys) == [f"{numbers['s1']}>{numbers['s2']}"] * 16), "the path of each is in the memory", paths(*keys))
    eq(paths("10.1.0.1:19999,10.1.1.1:9/udp"), [None], "and none of a flow that was not there")
    for s in ("s1", "s2"):
        got = subprocess.run([PATHLINE, "switch", "counters", "-s", f"{FOLDER}/{s}.sock", "dta.reports", "-o", "json"], capture_output=True,
                             text=True, check=False)
        eq(sum(c["packets"] for c in json.loads(got.stdout)["counters"]), 48, f"{s} has sent one of each packet")
    down()


PUBLISHED = [
    ("one", "key-write --hash dta --slots 65536 --copies 1 --value-bytes 4", "--value-of-key -n 1500", 1000),
    ("narrow", "key-write --hash dta --slots 1024 --copies 2 --value-bytes 4", "--value-of-key -n 3000", 2000),
    ("lists", "append --hash dta --slots 4096 --lists 3 --value-bytes 4", "--stream append --lists 3 -n 900", 600),
    ("sums", "counters --hash dta --slots 16384 --rows 2", "--stream increment --value-of-key --keys 120 -n 600", 400),
    ("paths", "postcards --hash dta --copies 1 --slots 512", "--stream postcards --lengths -n 1800", 1000),
    ("sum", "sketch --slots 512 --rows 3 --cell-bytes 4", "--stream sketch --value-of-key --columns 512 --rows 3 --cell-bytes 4 -n 64", 50, 2),
    ("distinct", "sketch --slots 1024 --kind hyperloglog",
     "--stream sketch --value-of-key --columns 1024 --rows 1 --cell-bytes 1 -n 100", 80, 2),
]


def test_published_and_sketches():
    """Regions as the published code has them, and sketches that two reporters deliver."""
    up(chain(PUBLISHED, translate="--sketch-reporters 2"))
    stores, a = checked("a chain of published stores and sketches")
    ok(len(stores) == 7 and all(s["wrong"] == 0 and s["asked"] > 0 for s in stores.values()), "no answer is wrong", stores)
    ok(a.get("closed"), "accounts close", a)
    if undisturbed(a):
        ok(all(s["not_found"] == s["not_found_expected"] for s in stores.values()),
           "what is not found is exactly what was written over", stores)
        ok(0 < stores["narrow"]["not_found"] < 3000 and stores["paths"]["not_found"] > 0, "which some keys were", stores)
        ok(stores["sum"]["right"] == 512, "every column of a sketch is the sum of two reporters", stores)
        ok(stores["distinct"]["right"] == 800, "a HyperLogLog as far as it was delivered", stores)
    down()


SEED = "--seed 4711"
EPOCHS = [
    ("last", f"key-write {SEED} --halves 2 --slots 65536 --value-bytes 4", "--value-of-key -n 3000", 1000),
    ("lists", f"append {SEED} --slots 4096 --lists 3 --value-bytes 4", "--stream append --lists 3 -n 1500", 500),
    ("sums", f"counters {SEED} --halves 2 --slots 16384 --rows 2", "--stream increment --value-of-key --keys 300 -n 1500", 500),
    ("paths", f"postcards {SEED} --halves 2 --slots 8192", "--stream postcards --lengths -n 1500", 500),
]


def test_epochs():
    """Collectors' stores begin epochs while they are written: together they have everything, and each its share."""
    up(chain(EPOCHS, collect="--epoch 500ms --keep-epochs ."))
    stores, a = checked("a chain whose collector begins epochs")
    ok(a.get("closed") and all(s["wrong"] == 0 for s in stores.values()), "no answer is wrong, and accounts close", stores)
    kept = sorted(f for f in os.listdir(FOLDER) if f.startswith("sums-"))
    ok(len(kept) >= 1 and not any(f.startswith("lists-") for f in os.listdir(FOLDER)), f"{len(kept)} epochs are kept", kept)
    if undisturbed(a):
        ok(stores["sums"]["not_found"] == 0 and stores["lists"]["not_found"] == 0 and
           all(s["not_found"] <= s["not_found_expected"] + 10 for s in stores.values()), "nothing is missing", stores)
        # Each key is five times in 1500 increments of 300 keys; two rows.
        totals = [sum(int(r["value"]) for r in rows("dump", f"{FOLDER}/{f}") if "value" in r) for f in kept + ["sums.plr"]]
        ok(sum(totals) == 2 * 1500 and sum(t > 0 for t in totals) >= 2, "sums of all epochs are what was reported", totals)
    down()


LOSSY = [
    ("last", "key-write --slots 65536 --value-bytes 4", "--value-of-key -n 1500", 1000),
    ("lists", "append --slots 8192 --lists 3 --value-bytes 8", "--stream append --lists 3 --value-bytes 8 -n 900", 600),
    ("sums", "counters --slots 65536 --rows 2", "--stream increment --value-of-key --keys 60 -n 300", 200),
]


def loss(service):
    """One frame in nine is lost, both ways: by reliable connections everything comes, by unreliable ones what the link lost is missing."""
    up(chain(LOSSY, service=service, loss=0.11))
    stores, a = checked(f"a chain by {service} whose link loses one frame in nine")
    lines = [json.loads(line) for line in run("truth", NAME).stdout.splitlines()]
    lost = sum(line["line"]["lost_random"] for line in lines)
    ok(lost > 200, f"{lost} frames were lost on the way", lines)
    ok(a.get("closed") and all(s["wrong"] == 0 for s in stores.values()), "no answer is wrong, and accounts close", (stores, a))
    ok(a["reports"] + a["kernel_drops"] == 2700 and a["accepted"] == a["reports"] and a["lost"] == 0, "every report is taken", a)
    ok(stores["sums"]["not_found"] == 0 or a["kernel_drops"] > 0, "no sum is short", stores)
    if service == "rc":
        ok(a["lost_on_the_wire"] == 0 and stores["lists"]["not_found"] == 0 and
           stores["last"]["not_found"] <= stores["last"]["not_found_expected"] * 2 + 30 or a["kernel_drops"] > 0, "nothing is missing", stores)
        ok(a["repeated"] > 0, f"{a['repeated']} packets were sent again for {a['operations']} operations", a)
    else:
        ok(0 < a["lost_on_the_wire"] <= lost and stores["last"]["right"] > 1200 and stores["lists"]["not_found"] > 0,
           "what was lost is missing, and told", (stores, a))
    down()


def test_loss_rc():
    loss("rc")


def test_loss_uc():
    loss("uc")


ENDLESS = [
    ("last", "key-write --slots 1048576 --value-bytes 4", "--value-of-key -n 10000000", 1000),
    ("lists", "append --slots 65536 --lists 2 --value-bytes 8", "--stream append --lists 2 --value-bytes 8 -n 10000000", 500),
]


def test_status():
    """Every part's account while it runs; a part that stands still; one that is killed."""
    up(chain(ENDLESS))
    ok(wait(lambda: shown()["collect"]["account"]["writes"] > 500 and shown()["translate"]["account"]["reports"] > 500),
       "accounts go on while it runs")
    seen = shown()
    ok(wait(lambda: seen.update(shown()) or all(p["state"] == "running" and p["account"] for p in seen.values())), "all run", seen)
    eq(set(seen), {"collect", "translate", "last", "lists"}, "every part")
    t = seen["translate"]["account"]
    ok(t["reports"] == t["accepted"] + t["duplicates"] + sum(t["unreadable"].values()) + sum(t["refused"].values()),
       "the translator's account adds up", t)
    ok(seen["last"]["account"]["sent"] + seen["lists"]["account"]["sent"] >= t["reports"] - 1500, "generators say what they sent", seen)
    with open(f"{FOLDER}/collect.log", encoding="utf-8") as f:
        ok("collecting" in f.read(), "its words are in its log")
    def tell(signo, name):
        """Numbers of processes are those of the lab's own namespace."""
        return run("exec", NAME, "reporter", "--", "sh", "-c", f"kill -{signo} {seen[name]['pid']}").returncode
    eq(tell("STOP", "collect"), 0, "the collector stands still")
    states = {}

    def only_it_is_silent():
        states.update({n: p["state"] for n, p in shown().items()})
        return states["collect"] == "silent" and states["translate"] == "running"
    ok(wait(only_it_is_silent), "who does not answer is silent", states)
    tell("CONT", "collect")
    ok(wait(lambda: shown()["collect"]["state"] == "running"), "and is not any more")
    tell("KILL", "collect")
    ok(wait(lambda: shown()["collect"]["state"] == "signal 9"), "killed, it is told")
    for name in ("last", "lists"):
        tell("TERM", name)
    got = run("check", NAME)
    ok(got.returncode == 1 and "collect      ended with signal 9" in got.stdout, "and nothing is right", got.stdout + got.stderr)
    down()


def test_nothing_to_check():
    up(f"name: {NAME}\nshape: line:1\n")
    got = run("check", NAME)
    ok(got.returncode == 1 and "nothing to check: no command under \"run\"" in got.stderr, "a lab without such commands", got.stderr)
    down()
    got = run("check", NAME)
    ok(got.returncode == 1 and "no lab called" in got.stderr, "one that is not up", got.stderr)
    got = run("up", "--tier", "simulated", lab.write("chain.yaml", chain(LOSSY)))
    got = run("check", NAME)
    ok(got.returncode == 69 and "simulated" in got.stderr, "one in which no commands run", got.stderr)
    down()


def test_not_ready():
    """A command that ends before it is ready, and one after which another must not start."""
    text = chain(LOSSY).replace("set -e;", "set -e; echo no room here; exit 7;")
    got = run("up", lab.write("chain.yaml", text))
    ok(got.returncode == 1 and "no room here" in got.stderr, "the lab is not up, and why", got.stderr)
    ok(not os.path.exists(FOLDER), "nothing is left")


def test_without_root():
    """In a user namespace. The program is where that user can read it."""
    program, more = lab.path("pathline"), {"cwd": "/", "env": {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}}
    subprocess.run(["cp", PATHLINE, program], check=True)
    os.chmod(lab.DIR, 0o755)
    path = lab.write("chain.yaml", chain(LOSSY))
    os.chmod(path, 0o644)
    more |= {"prefix": ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"], "program": program}
    got = run("up", path, "-o", "json", **more)
    ok(got.returncode == 0 and json.loads(got.stdout)["tier"] == "unprivileged", "up, without root", got.stderr)
    stores, a = checked("and all is right", **more)
    ok(len(stores) == 3 and all(s["wrong"] == 0 and s["right"] > 0 for s in stores.values()) and a["closed"], "no answer is wrong", stores)
    eq(run("down", NAME, **more).returncode, 0, "down")


if os.geteuid() != 0:
    tap.skip_all("needs root: network namespaces")
os.makedirs("/run/netns", exist_ok=True)
lab.undo(PATHLINE, "lab", "down", NAME)
lab.run(test_shipped, test_switches, test_published_and_sketches, test_epochs, test_loss_rc, test_loss_uc, test_status, test_nothing_to_check,
        test_not_ready, test_without_root)
sys.exit(tap.end())
