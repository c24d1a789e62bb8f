#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A lab that is up becomes what a changed file says: what differs is changed, what does not goes on, packets are not lost on the
way, and a file that it cannot follow changes nothing. usage: lab_apply.py PATHLINE"""
import json
import os
import signal
import subprocess
import sys

# As in labs.py: a leak is looked for by a process that cannot see its parent.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, tap  # noqa: E402
from lib.pathline import PATHLINE, jsonl  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

NAME = f"a{os.getpid()}"
FOLDER = f"/run/pathline/lab/{NAME}"
# Two equal paths between the routers ra and rd.
BASE = f"""name: {NAME}
shape: line:2
int: {{version: 2.1}}
nodes:
  - {{name: ra, kind: router}}
  - {{name: rb, kind: router}}
  - {{name: rc, kind: router}}
  - {{name: rd, kind: router}}
  - {{name: h3, run: "exec sleep 3000"}}
  - {{name: h4}}
links:
  - {{ends: [ra, s1], rate: 50M}}
  - {{ends: [ra, rb]}}
  - {{ends: [ra, rc]}}
  - {{ends: [rb, rd]}}
  - {{ends: [rc, rd]}}
  - {{ends: [h3, ra], delay: 1ms}}
  - {{ends: [h4, rd], bare: true, rate: 1G}}
run:
  - {{node: h3, name: first, command: "echo begun one; exec sleep 3001", ready: begun}}
  - {{node: h4, name: second, command: "echo begun; exec sleep 3002", ready: begun}}
  - {{node: h4, command: "exec sleep 3003"}}
"""


def run(*words, **more):
    return subprocess.run([PATHLINE, "lab", *words], capture_output=True, text=True, timeout=120, check=False, **more)


def file_of(text):
    return lab.write("net.yaml", text)


def changed(base, *pairs):
    for old, new in pairs:
        assert base.count(old) == 1, old
        base = base.replace(old, new)
    return base


def apply(text, *words, **more):
    return run("apply", file_of(text), *words, **more)


def changes(text, **more):
    """What was changed, sorted: apply says it."""
    got = apply(text, "-o", "json", **more)
    if got.returncode != 0:
        return got.stderr
    return sorted((c["kind"], c["did"], c["name"]) for c in json.loads(got.stdout)["changes"])


def shown(**more):
    return json.loads(run("show", NAME, "-o", "json", **more).stdout)


def pids(**more):
    return {c["name"]: c["pid"] for c in shown(**more)["commands"]}


def is_set(a, b):
    """What the link is like from a to b, as the lab's process has it."""
    return next(d["set"] for d in jsonl(run("truth", NAME).stdout) if (d["from"], d["to"]) == (a, b))


def state():
    """All that apply could change."""
    files = {}
    for name in ("topology", "s1.yaml", "s2.yaml"):
        with open(f"{FOLDER}/{name}", encoding="utf-8") as f:
            files[name] = f.read()
    return files, pids(), {(d["from"], d["to"]): d["set"] for d in jsonl(run("truth", NAME).stdout)}, sleepers(), \
        run("exec", NAME, "ra", "--", "ip", "route").stdout


def sleepers():
    """Commands that run, by their arguments: they are in no namespace of processes that hides them from here."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().decode(errors="replace").split("\0")
            if words[:1] == ["sleep"] and os.readlink(f"/proc/{pid}/cwd").startswith(FOLDER):
                found.append(words[1])
        except OSError:
            continue
    return sorted(found)


def runs(wanted, what):
    """A shell becomes its command when it has the time for it."""
    ok(wait(lambda: sleepers() == wanted), what, sleepers())


def reloads(switch):
    got = subprocess.run([PATHLINE, "switch", "account", "-s", f"{FOLDER}/{switch}.sock", "-o", "json"], capture_output=True, text=True, check=False)
    account = json.loads(got.stdout)["account"]
    return account["reloads"], account["reloads_refused"]


def follows(base):
    """Everything that may differ, while packets flow."""
    before = pids()
    sender = subprocess.Popen([PATHLINE, "lab", "traffic", NAME, "udp", "h1", "h2", "--rate", "2M", "--duration", "6s", "-o", "json"],
                              stdout=subprocess.PIPE, text=True)
    lab.running.append(sender)
    ok(wait(lambda: next(d["queue"]["in_packets"] for d in jsonl(run("truth", NAME).stdout) if (d["from"], d["to"]) == ("h1", "s1"))),
       "h1 sends to h2")
    text = changed(base, ("version: 2.1", "version: 1.0"), ("rate: 50M", "rate: 40M, queue: 128KiB"), ("delay: 1ms", "delay: 3ms"),
                   ("begun one", "begun two"), ("sleep 3003", "sleep 3004"), ("ends: [ra, rb]", "ends: [ra, rb], cost: 7"),
                   ("rate: 1G", "rate: 2G"))
    eq(changes(text), sorted([("switch", "changed", "s1"), ("switch", "changed", "s2"), ("link", "set", "ra-s1"), ("link", "set", "h3-ra"),
                              ("link", "set", "h4-rd"), ("routes", "set", "ra"), ("routes", "set", "rb"),
                              ("routes", "set", "rc"), ("routes", "set", "rd"),
                              ("command", "restarted", "first"), ("command", "ended", "exec sleep 3003"),
                              ("command", "started", "exec sleep 3004")]), "what differs is changed, and nothing else")
    ok(sender.poll() is None, "while h1 sends")
    account = json.loads(sender.communicate(timeout=120)[0])
    lab.running.remove(sender)
    eq((account["receiver"]["came"], account["receiver"]["came"] > 0), (account["senders"][0]["sent"], True), "no packet was lost on the way")
    eq((reloads("s1"), reloads("s2")), ((1, 0), (1, 0)), "each switch has read its file once")
    with open(f"{FOLDER}/s1.yaml", encoding="utf-8") as f:
        file = f.read()
    ok("int_source version=1.0" in file and "rate: 40000000, queues: [ { limit: 131072B } ]" in file, "s1 has another INT, and the link's rate")
    eq([is_set("ra", "s1")[k] for k in ("rate_bps", "queue_bytes")], [40000000, 131072], "towards it the link has it")
    eq(is_set("h3", "ra")["delay_ns"], 3000000, "a link is longer")
    routes = run("exec", NAME, "ra", "--", "ip", "route").stdout.splitlines()
    ok(any("dev rc" in r for r in routes) and not any("nexthop" in r for r in routes), "ra sends by rc only", routes)
    ok("2Gbit" in run("exec", NAME, "h4", "--", "tc", "qdisc", "show", "dev", "rd").stdout, "the bare link has its rate")
    after = pids()
    ok(after["first"] != before["first"], "the command that differs was started again")
    eq(after["second"], before["second"], "the one behind it was not")
    runs(["3000", "3001", "3002", "3004"], "commands without a name came and went")
    with open(f"{FOLDER}/first.log", encoding="utf-8") as new, open(f"{FOLDER}/first.log.1", encoding="utf-8") as old:
        eq((new.read(), old.read()), ("begun two\n", "begun one\n"), "its log is its own, the one before is kept")
    eq(shown()["ended"], [], "and none has ended by itself")
    said = next(x for x in shown()["links"] if x["name"] == "ra-s1")
    eq((said["rate_bps"], said["queue_bytes"]), (40000000, 131072), "show tells what runs")
    eq(changes(text), [], "again it differs in nothing")
    ok("nothing was changed" in apply(text).stdout, "and that is said")
    return text


def refuses(text):
    """What it cannot follow, and files that are wrong: all is as before."""
    before = state()
    at = {line: i + 1 for i, line in enumerate(text.splitlines())}
    last = at["  - {ends: [h4, rd], bare: true, rate: 2G}"]
    for what, pairs, says in (
            ("a node that comes", [("  - {name: h4}\n", "  - {name: h4}\n  - {name: h5}\n"), ("rate: 2G}\n", "rate: 2G}\n  - {ends: [h5, rd]}\n")],
             f"net.yaml:{at['  - {name: h4}'] + 1}:5: node 'h5' comes"),
            ("a node that goes", [("  - {name: rc, kind: router}\n", ""), ("  - {ends: [ra, rc]}\n", ""), ("  - {ends: [rc, rd]}\n", "")], "node 'rc' goes"),
            ("another kind", [("name: rc, kind: router", "name: rc, kind: switch")], "node 'rc' is of another kind"),
            ("another order of nodes", [("{name: rb,", "{name: rx,"), ("{name: rc,", "{name: rb,"), ("{name: rx,", "{name: rc,")], "has another place"),
            ("a link that comes", [("rate: 2G}\n", "rate: 2G}\n  - {ends: [ra, rd]}\n")], f"net.yaml:{last + 1}:5: link 'ra-rd' comes"),
            ("a link that goes", [("  - {ends: [ra, rc]}\n", "")], "link 'ra-rc' goes"),
            ("another order of links", [("[rb, rd]", "[rx, rd]"), ("[rc, rd]", "[rb, rd]"), ("[rx, rd]", "[rc, rd]")], "link 'rc-rd' has another place"),
            ("a link that is bare", [("  - {ends: [ra, rc]}\n", "  - {ends: [ra, rc], bare: true}\n")], "link 'ra-rc' is bare"),
            ("no telemetry", [("int: {version: 1.0}\n", "telemetry: none\n")], "key 'telemetry' is another"),
            ("marking", [("int: {version: 1.0}\n", "marking: {method: step}\n")], "key 'marking.method' is no longer none"),
            ("a file with a fault", [("queue: 128KiB", "queue: 128Kib")], f"net.yaml:{at['  - {ends: [ra, s1], rate: 40M, queue: 128KiB}']}:"),
            ("a bare link with a delay", [("bare: true,", "bare: true, delay: 1ms,")], "but no delay")):
        got = apply(changed(text, *pairs, ("3ms", "4ms"), ("begun two", "begun three"), ("40M", "41M")))
        ok(got.returncode in (69, 78) and says in got.stderr, f"{what} is refused", got.stderr)
    eq(state(), before, "and nothing was changed, also what it could have followed")
    got = run("apply", file_of(f"name: {NAME}x\nshape: line:1\n"))
    ok(got.returncode == 1 and "is not up: pathline lab up " in got.stderr, "of a lab that is not up", got.stderr)
    got = run("apply", "-", input=text)
    ok(got.returncode == 0 and "nothing was changed" in got.stdout, "standard input is a file, too", got.stderr)


def goes_back(text):
    """s1 cannot be given its file, after s2 has read its own: s2 goes back to what it had."""
    path = f"{FOLDER}/s1.yaml"
    before, (done, refused) = state(), reloads("s2")
    os.rename(path, path + ".kept")
    os.mkdir(path)
    got = apply(changed(text, ("version: 1.0", "version: 0.5"), ("3ms", "4ms")))
    ok(got.returncode == 1 and "switch 's1' cannot be given another file: " in got.stderr, "a switch that cannot be given its file", got.stderr)
    os.rmdir(path)
    os.rename(path + ".kept", path)
    eq(reloads("s2"), (done + 2, refused), "s2 has read the new file, and then its old one")
    eq(state(), before, "all is as before")
    eq(changes(text), [], "and what runs is still what the first file says")


def fails(text):
    """A command that does not start, and a switch that has ended."""
    broken = changed(text, ("begun two", "over; exit 3"), ("exec sleep 3002", "exec sleep 4002"), ("exec sleep 3004", "exec sleep 4004"))
    got = apply(broken)
    ok(got.returncode == 1 and "first: " in got.stderr and "commands from that one on do not run" in got.stderr, "a command that ends before it is ready", got.stderr)
    eq({c["name"]: c["state"] for c in shown()["commands"]}, {"first": "exit code 3", "second": "not started"}, "those behind it are not started")
    eq(sleepers(), ["3000"], "none of them")
    eq(changes(text), sorted([("command", "restarted", "first"), ("command", "restarted", "second"), ("command", "started", "exec sleep 3004")]),
       "with a good file all are")
    runs(["3000", "3001", "3002", "3004"], "and they run")
    before = state()
    pid = next(p for p in filter(str.isdigit, os.listdir("/proc")) if is_switch(p, "s2"))
    os.kill(int(pid), signal.SIGKILL)
    ok(wait(lambda: any("s2" in e for e in shown()["ended"])), "s2 was killed")
    got = apply(changed(text, ("version: 1.0", "version: 0.5"), ("3ms", "4ms")))
    ok(got.returncode == 1 and "switch 's2' has ended" in got.stderr, "a switch that would have to change, and is gone", got.stderr)
    eq(state(), before, "s1 has its file, the link its delay")
    eq(changes(changed(text, ("3ms", "4ms"))), [("link", "set", "h3-ra")], "what needs no switch is done all the same")


def is_switch(pid, name):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().decode(errors="replace").split("\0")[1:4] == ["switch", "-c", f"{name}.yaml"] and \
                os.readlink(f"/proc/{pid}/cwd").startswith(FOLDER)
    except OSError:
        return False


def test_apply():
    eq(run("up", file_of(BASE)).returncode, 0, "up")
    lab.undo(PATHLINE, "lab", "down", NAME)
    eq(changes(BASE), [], "the same file changes nothing")
    eq(run("impair", NAME, "h1-s1", "loss=1", "delay=5ms").returncode, 0, "a link is impaired by hand")
    eq(changes(BASE), [("link", "set", "h1-s1")], "the file says it is not")
    eq((is_set("h1", "s1")["delay_ns"], is_set("s1", "h1")["loss"]), (0, 0), "and so it is")
    text = follows(BASE)
    refuses(text)
    goes_back(text)
    fails(text)
    eq(run("down", NAME).returncode, 0, "down")


def test_orphans():
    """What a shell leaves in the background ends with its command, and its files with the lab."""
    base = f"name: {NAME}\nshape: line:1\ntelemetry: none\n"
    left = "sleep 3007 & mkdir -p within/another; touch within/another/file within/$(printf %0200d 1); sleep 3008 &"
    eq(run("up", file_of(base + f"run:\n  - {{node: h1, command: '{left}'}}\n")).returncode, 0, "up, with a shell that ends")
    lab.undo(PATHLINE, "lab", "down", NAME)
    ok(wait(lambda: len(shown()["ended"]) == 1), "it has ended")
    runs(["3007", "3008"], "and has left two commands")
    eq(changes(base), [("command", "ended", left)], "the command goes")
    eq(sleepers(), [], "and with it what it has left")
    eq(run("down", NAME).returncode, 0, "down")
    ok(not os.path.exists(FOLDER), "the lab's folder is gone")


def test_story():
    base = f"name: {NAME}\nshape: line:1\ntelemetry: none\n"
    told = base + "story:\n  - {at: 0s, impair: h1-s1 delay=2ms}\n  - {at: 0s, traffic: udp h1 h2, rate: 80k}\n"
    other = base + "story:\n  - {at: 0s, impair: s1-h2 delay=3ms}\n  - {at: 0s, restore: s1-h2}\n"
    eq(run("up", file_of(base)).returncode, 0, "up, without a story")
    lab.undo(PATHLINE, "lab", "down", NAME)
    eq(changes(told), [("story", "begun", "")], "it gets one")
    ok(wait(lambda: len(shown()["story"]) == 2), "which is told")
    eq(is_set("h1", "s1")["delay_ns"], 2000000, "a link is impaired by it")
    sent = lambda: next(d["queue"]["in_packets"] for d in jsonl(run("truth", NAME).stdout) if (d["from"], d["to"]) == ("h1", "s1"))  # noqa: E731
    ok(wait(lambda: sent() > 5), "and h1 sends")
    eq(changes(told.replace("line:1\n", "line:1\nevery_link: {delay: 1ms}\n")), [("link", "set", "h1-s1"), ("link", "set", "s1-h2")],
       "the same story goes on when links are others")
    eq(len(shown()["story"]), 2, "and does not begin again")
    n = sent()
    ok(wait(lambda: sent() > n), "h1 sends on")
    eq(changes(other), [("link", "set", "h1-s1"), ("link", "set", "s1-h2"), ("story", "begun", "")], "another one takes its place")
    ok(wait(lambda: len(shown()["story"]) == 2), "and is told from its beginning")
    ok(all("s1-h2" in line for line in shown()["story"]), "by itself", shown()["story"])
    ok(wait(lambda: senders() == 0), "h1 sends no more")
    eq(changes(base), [("story", "ended", "")], "the first file again: no story")
    eq(shown()["story"], [], "and nothing is told of it")
    eq(run("down", NAME).returncode, 0, "down")


def senders():
    """Sockets of UDP in h1."""
    return len(run("exec", NAME, "h1", "--", "cat", "/proc/net/udp").stdout.splitlines()) - 1


def test_marking():
    base = f"name: {NAME}\nshape: line:2\nmarking: {{method: step, period: 1s, clock_error: 1ms, delay: 1ms, deviation: 1ms}}\n"
    eq(run("up", file_of(base)).returncode, 0, "up, with marking")
    lab.undo(PATHLINE, "lab", "down", NAME)
    eq(changes(base.replace("period: 1s", "period: 2s").replace("step", "pulse")), [("switch", "changed", "s1"), ("switch", "changed", "s2")],
       "marked in another way")
    eq((reloads("s1"), reloads("s2")), ((1, 0), (1, 0)), "as both switches do")
    eq(run("down", NAME).returncode, 0, "down")


def test_unprivileged():
    env = {**os.environ, "XDG_RUNTIME_DIR": lab.DIR}
    base = f"name: {NAME}\nshape: line:1\nrun:\n  - {{node: h1, name: one, command: \"echo on; exec sleep 3005\", ready: \"on\"}}\n"
    up = run("up", "--tier", "unprivileged", file_of(base), env=env)
    if up.returncode == 77:
        tap.skip("no user namespaces")
        return
    eq(up.returncode, 0, "up, in a user namespace")
    lab.undo(PATHLINE, "lab", "down", NAME)
    eq(changes(changed(base, ("shape: line:1\n", "shape: line:1\nevery_link: {rate: 10M}\n"), ("sleep 3005", "sleep 3006")), env=env),
       [("command", "restarted", "one"), ("link", "set", "h1-s1"), ("link", "set", "s1-h2"), ("switch", "changed", "s1")], "the same")
    eq(run("down", NAME, env=env).returncode, 0, "down")


def test_simulated():
    base = f"name: {NAME}\nshape: diamond\nint: {{version: 2.1}}\n"
    eq(run("up", "--tier", "simulated", file_of(base)).returncode, 0, "up, simulated")
    lab.undo(PATHLINE, "lab", "down", NAME)
    eq(changes(base), [], "the same file changes nothing")
    eq(run("impair", NAME, "h1-s1", "delay=5ms").returncode, 0, "a link is impaired by hand")
    eq(changes(base), [("link", "set", "h1-s1")], "and is as the file says")
    text = base + "every_link: {rate: 10M, delay: 2ms}\n"
    got = changes(text)
    eq([c for c in got if c[0] != "link"], [], "all links are others")
    eq((len(got), is_set("s1", "s2")["delay_ns"], is_set("h1", "s1")["rate_bps"]), (6, 2000000, 10000000), "delay and rate")
    eq(changes(text), [], "again it differs in nothing")
    got = apply(changed(text, ("2.1", "1.0"), ("2ms", "3ms")))
    ok(got.returncode == 78 and "section 'int' of a simulated lab is another" in got.stderr, "its switches stay", got.stderr)
    eq(is_set("s1", "s2")["delay_ns"], 2000000, "and nothing is changed")
    # A file that something is mounted on is not replaced.
    subprocess.run(["mount", "--bind", f"{FOLDER}/topology", f"{FOLDER}/topology"], check=True)
    got = apply(changed(text, ("2ms", "3ms")))
    subprocess.run(["umount", f"{FOLDER}/topology"], check=True)
    ok(got.returncode != 0, "a change that cannot be noted", got.stderr)
    eq(is_set("s1", "s2")["delay_ns"], 2000000, "is taken back")
    eq(changes(text), [], "and the network is what the first file says")
    eq(run("down", NAME).returncode, 0, "down")


def main():
    if os.geteuid() != 0:
        tap.skip_all("needs root")
    lab.run(test_apply, test_orphans, test_story, test_marking, test_unprivileged, test_simulated)
    return tap.end()


sys.exit(main())
