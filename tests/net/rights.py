#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a command that serves may still do once it runs: read from /proc for each of its threads, started as root, as root with
another user, and without any right; and that it does its work all the same. What the sandbox refuses, from inside, is
src/base/sandbox_test.c. usage: rights.py PATHLINE"""

import ctypes
import json
import os
import pwd
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import DIR, free_udp_port  # noqa: E402
from lib.pathline import PATHLINE, reports_of  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402

ROOT = os.geteuid() == 0
# Whether this build has filters of system calls.
FILTERS = "none" not in re.search(r"libseccomp +(.*)", pathline.run("version").stdout).group(1)
# A kernel without Landlock keeps files by their owners alone.
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1) > 0
SANITIZER = re.search(r"sanitizer +(?!none)\w", pathline.run("version").stdout) is not None
THREAD_SANITIZER = re.search(r"sanitizer +thread", pathline.run("version").stdout) is not None
CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF = 1 << 12, 1 << 13, 1 << 39


def status(pid):
    """Of every task: the lines of its status as a dictionary."""
    tasks = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            tasks.append(dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line))
    return tasks


def become(user):
    who = pwd.getpwnam(user)
    os.setgroups([])
    os.setresgid(who.pw_gid, who.pw_gid, who.pw_gid)
    os.setresuid(who.pw_uid, who.pw_uid, who.pw_uid)


def start(name, keys, as_user=None, ready=True, **process):
    """The daemon with its port and the folder of its file."""
    place = lab.path(name)
    os.mkdir(place)
    os.chmod(place, 0o755)
    out = os.path.join(place, "out")
    os.mkdir(out)
    owner = as_user or keys.get("user")
    if owner and ROOT:
        os.chown(out, pwd.getpwnam(owner).pw_uid, pwd.getpwnam(owner).pw_gid)
    port = free_udp_port()
    config = lab.write(name + ".yaml", "".join(f"{key}: {value}\n" for key, value in keys.items()) +
                       f"sources:\n  - uri: udp://127.0.0.1:{port}\nweb:\n  listen: 127.0.0.1:0\n"
                       f"outputs:\n  - path: {out}/records.jsonl\n")
    switch = (lambda: become(as_user)) if as_user and ROOT else None
    return pathline.Daemon(config, name, ready, preexec_fn=switch, **process), port, out


def run(name, keys, as_user=None):
    """Starts the daemon, sends it reports, reads its rights, stops it. Returns its tasks and its words."""
    d, port, out = start(name, keys, as_user)
    sent = pathline.gen(port, "--count", "500")
    wait(lambda: pathline.total(d.metrics(), "pathline_packets_total") == sent)
    tasks = status(d.p.pid)
    try:
        debuggable = os.open(f"/proc/{d.p.pid}/mem", os.O_RDONLY) >= 0
    except OSError:
        debuggable = False
    owner_of_proc = os.stat(f"/proc/{d.p.pid}/environ").st_uid
    # The file by another name is opened anew, by the user that the daemon has become.
    os.rename(f"{out}/records.jsonl", f"{out}/before.jsonl")
    d.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: os.path.exists(f"{out}/records.jsonl")), f"{name}: SIGHUP opens the file anew")
    eq(d.stop(), 0, f"{name}: ends well")
    ok("received 500 = decoded 500" in d.log(), f"{name}: all reports are in the account", d.log())
    written = sum(reports_of(f"{out}/{file}.jsonl")["path"] for file in ("before", "records"))
    eq(written, 500, f"{name}: and in the file")
    return tasks, d.log(), debuggable, owner_of_proc, os.stat(f"{out}/before.jsonl").st_uid


def nothing(name, tasks, bounding=True):
    ok(len(tasks) >= 4, f"{name}: {len(tasks)} threads are looked at")
    keys = ["CapEff", "CapPrm", "CapInh", "CapAmb"] + (["CapBnd"] if bounding else [])
    for key in keys:
        eq({t[key] for t in tasks}, {"0" * 16}, f"{name}: {key} of every thread is empty")
    held(name, tasks)


def held(name, tasks):
    eq({t["NoNewPrivs"] for t in tasks}, {"1"}, f"{name}: no thread can get new ones")
    if FILTERS:
        eq({t["Seccomp"] for t in tasks}, {"2"}, f"{name}: every thread's system calls are filtered")


def test_rights():
    nobody = pwd.getpwnam("nobody")
    if ROOT:
        os.chmod(DIR, 0o755)
        tasks, log, debuggable, owner, _ = run("root", {})
        nothing("root", tasks)
        ok("runs as root without capabilities" in log, "root: says that it stays root", log)

        tasks, log, debuggable, owner, file_owner = run("changed", {"user": "nobody"})
        nothing("changed", tasks)
        eq({t["Uid"] for t in tasks}, {"\t".join([str(nobody.pw_uid)] * 4)}, "changed: every thread is nobody")
        eq({t["Gid"] for t in tasks}, {"\t".join([str(nobody.pw_gid)] * 4)}, "changed: and of its group")
        eq({t["Groups"].strip() for t in tasks} - {str(nobody.pw_gid)}, set(), "changed: and of no other")
        eq(owner, 0, "changed: not dumpable: its memory is root's to look at")
        eq(file_owner, nobody.pw_uid, "changed: files are nobody's")
        ok("runs as root" not in log, "changed: does not say it were root", log)

        tasks, log, debuggable, owner, _ = run("cores", {"user": "nobody", "core_dumps": "true"})
        nothing("cores", tasks)

        tasks, log, debuggable, owner, file_owner = run("unprivileged", {}, as_user="nobody")
        nothing("unprivileged", tasks, bounding=False)
        eq(file_owner, nobody.pw_uid, "unprivileged: files are its own")

        d, _, _ = start("may not", {"user": "root"}, as_user="nobody", ready=False)
        eq(d.p.wait(timeout=60), 77, "an ordinary user may not become another")
        ok(re.search(r"cannot become user 0.*start as root", d.log()) is not None, "and is told", d.log())
    else:
        tasks, log, debuggable, owner, file_owner = run("unprivileged", {})
        nothing("unprivileged", tasks, bounding=False)
        skip("change of user", "takes root")


def test_unknown_user():
    r = pathline.run("config", "check", "/dev/stdin", input="user: no-such-user\n")
    eq(r.returncode, 78, "a user that is not there is a fault of the configuration")
    ok('there is no user "no-such-user"' in r.stderr, "and is named", r.stderr)


# ---- the other commands ----

def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def serve(name, *args):
    """A command, once it says that it serves."""
    p = lab.start([PATHLINE, *map(str, args)], log=lab.path(name + ".log"))
    p.words = lambda: lab.read(name + ".log")
    return p


def region(name):
    path = lab.path(name)
    made = pathline.run("region", "create", "--primitive", "key-write", "--slots", "1024", "--value-bytes", "4", path)
    eq(made.returncode, 0, f"{name} is made")
    if ROOT:
        os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    return path


def look(name, p, until, user=None, helper=False, end=(0,)):
    """It serves, holds nothing and is held; so is its helper, which keeps three rights."""
    ok(wait(lambda: until in p.words() or p.poll() is not None) and p.poll() is None, f"{name}: serves", p.words())
    tasks = status(p.pid)
    for key in ["CapEff", "CapPrm", "CapInh", "CapAmb"] + (["CapBnd"] if ROOT else []):
        eq({t[key] for t in tasks}, {"0" * 16}, f"{name}: {key} of every thread is empty")
    held(name, tasks)
    if user:
        eq({t["Uid"].split()[0] for t in tasks}, {str(pwd.getpwnam(user).pw_uid)}, f"{name}: is {user}")
    eq(len(children(p.pid)), int(helper), f"{name}: {'a' if helper else 'no'} helper beside it")
    for child in children(p.pid):
        tasks = status(child)
        # The thread sanitizer has a thread of its own there, older than all of this.
        own = [t for t in tasks if t["Pid"] == str(child)] if THREAD_SANITIZER else tasks
        eq({int(t["CapEff"], 16) for t in own}, {CAP_NET_ADMIN | CAP_NET_RAW | CAP_BPF}, f"{name}: the helper keeps three rights")
        held(f"{name}: the helper", tasks)
    p.send_signal(signal.SIGTERM)
    ok(p.wait(timeout=60) in end, f"{name}: ends well", f"{p.returncode}\n{p.words()}")


def test_commands():
    if ROOT:
        os.chmod(DIR, 0o755)
    user = ["--user", "nobody"] if ROOT else []
    who = "nobody" if ROOT else None
    look("collect", serve("collect", "collect", *user, "--listen", "127.0.0.1:0", "--cm-port", "0", "udp://127.0.0.1",
                          region("collect.plr")), "collecting on", who)
    look("translate", serve("translate", "translate", *user, f"udp://127.0.0.1:{free_udp_port()}", region("translate.plr")),
         "translating from", who, end=(3,))
    look("listen", serve("listen", "listen", *user, f"udp://127.0.0.1:{free_udp_port()}"), "listening on", who, end=(3,))
    if ROOT:
        look("collect of an interface", serve("collect-packet", "collect", *user, "--listen", "127.0.0.1:0", "--cm-port", "0",
                                              "packet:lo", region("packet.plr")), "collecting on", who, helper=True)
        look("listen at an interface", serve("listen-packet", "listen", "packet:lo"), "listening on", helper=True, end=(3,))


LAB = """nodes:
  - {{name: reporter}}
  - {{name: translator, kind: router}}
  - {{name: memory}}
links:
  - {{ends: [reporter, translator]}}
  - {{ends: [translator, memory]}}
run:
  - {{name: c, node: memory, ready: collecting, command: "pathline region create --primitive key-write --slots 1024 --value-bytes 4 x.plr; exec pathline
     collect --listen 10.1.1.1:7471 --allow 10.1.1.0/32 packet:translator x.plr"}}
  - {{name: t, node: translator, ready: translating from, command: "exec pathline translate udp://:40040 'roce://10.1.1.1:7471/x?dev=packet:memory'"}}
  - {{name: g, node: reporter, command: "exec pathline gen dta --rate 200 udp://10.255.0.1:40040"}}
"""


def test_chain():
    """A chain as a lab: what starts its parts keeps its rights, and every part that holds sockets gives up its own."""
    if not ROOT:
        skip("a chain in network namespaces", "takes root")
        return
    name = f"rights{os.getpid()}"
    lab.undo(PATHLINE, "lab", "down", name)
    # As in labs.py: a leak is looked for by a process that cannot see its parent.
    leaks = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    up = subprocess.run([PATHLINE, "lab", "up", lab.write(f"{name}.yaml", LAB.format())], env={**os.environ, **leaks},
                        capture_output=True, text=True, check=False)
    eq((up.returncode, up.stderr), (0, ""), "chain: up")
    keeper = json.loads(subprocess.run([PATHLINE, "lab", "show", name, "-o", "json"], capture_output=True, text=True, check=True).stdout)["pid"]

    def commands():
        """The parts by the word that each was started with: collect, translate, gen."""
        found = {}
        for child in children(keeper):
            with open(f"/proc/{child}/cmdline", "rb") as f:
                words = f.read().decode().split("\0")
            found[words[1] if len(words) > 2 else words[0]] = child
        return found

    def given_up():
        """Those that hold nothing any more; their calls are filtered last."""
        return {name for name, child in commands().items()
                if {(int(t["CapEff"], 16), t["Seccomp"]) for t in status(child)} == {(0, "2" if FILTERS else "0")}}
    ok(wait(lambda: {"collect", "translate", "gen"} <= given_up()), "chain: collector, translator and generator hold no capability",
       f"{commands()} {given_up()}")
    for part, child in commands().items():
        tasks = status(child)
        for key in ("CapPrm", "CapInh", "CapAmb", "CapBnd"):
            eq({t[key] for t in tasks}, {"0" * 16}, f"chain, {part}: {key} of every thread is empty")
        held(f"chain, {part}", tasks)
        for helper in children(child):
            eq({int(t["CapEff"], 16) for t in status(helper) if t["Pid"] == str(helper)}, {CAP_NET_ADMIN | CAP_NET_RAW | CAP_BPF},
               f"chain, {part}: the helper keeps three rights")
    ok(int(status(keeper)[0]["CapEff"], 16) != 0, "chain: what starts them, in namespaces that it made, keeps its own")
    down = subprocess.run([PATHLINE, "lab", "down", name], capture_output=True, text=True, check=False)
    eq(down.returncode, 0, "chain: down")


def test_taps():
    """Those that take packets, and what shows them."""
    look("tap", serve("tap", "tap", "--to", "file:" + lab.path("tap.pkt64"), f"udp://127.0.0.1:{free_udp_port()}"), "tapping", end=(0, 3))
    look("query", serve("query", "query", "SELECT count(*) FROM packets", f"udp://127.0.0.1:{free_udp_port()}"), "asking", end=(0, 3))
    if ROOT:
        look("tap of an interface", serve("tap-packet", "tap", "--to", "file:" + lab.path("lo.pkt64"), "packet:lo"), "tapping",
             helper=True, end=(0, 3))
    is_confined(serve("demo", "demo", "--headless", "--duration", "60s"), "demo")
    is_confined(serve("demo-packets", "demo", "packets", "--duration", "60s", "--to", "file:" + lab.path("demo.pkt96")),
                "demo packets")


def is_confined(p, name):
    """It has given up its rights, works on, and ends when it is told to."""
    def gave_up():
        """it has given up its rights, or has ended"""
        return p.poll() is not None or all(t["NoNewPrivs"] == "1" and (t["Seccomp"] == "2" or not FILTERS)
                                           and int(t["CapEff"], 16) == 0 for t in status(p.pid))
    ok(wait(gave_up) and p.poll() is None, f"{name}: gives up its rights", p.words())
    p.send_signal(signal.SIGTERM)
    ok(p.wait(timeout=60) in (0, 1, -signal.SIGTERM), f"{name}: ends", f"{p.returncode}\n{p.words()}")
    ok("refused the system call" not in p.words(), f"{name}: and asks for nothing that it may not", p.words())


def test_generators():
    """Each kind, to each kind of destination."""
    gone = f"udp://127.0.0.1:{free_udp_port()}"
    kinds = [("int", gone), ("dta", gone)]
    kinds += [("int", "packet:lo"), ("packets", "packet:lo")] if ROOT else []
    for kind, uri in kinds:
        p = serve(f"gen-{kind}-{uri[:3]}", "gen", kind, *(["--rate", "100"] if kind != "packets" else []), uri)
        is_confined(p, f"gen {kind} to {uri.split(':')[0]}")
    r = pathline.run("gen", "int", "--count", "100", "-w", lab.path("gen.pcap"))
    eq((r.returncode, "refused" in r.stderr), (0, False), "gen writes a file")


def test_clients():
    """Those that ask a daemon, or send."""
    d, port, _ = start("asked", {})
    gone = free_udp_port()
    clients = [("tail", ["tail", "--url", d.web]),
               ("top", ["top", "--batch", "--times", "1000", "--interval", "1s", "--url", d.web]),
               ("query of a daemon", ["query", "SELECT event, count(*) AS n FROM events TUMBLE(ts, 1s) GROUP BY event", d.web]),
               ("query into a file", ["query", "SELECT event FROM events", d.web, "--into", "file:" + lab.path("into.jsonl")]),
               ("report", ["report", "increment", "-k", "a", "--loop", "--rate", "10", f"udp://127.0.0.1:{gone}"])]
    for name, args in clients:
        p = serve(name, *args)

        def is_held(p=p):
            """it has given up its rights, or has ended"""
            return p.poll() is not None or all(t["NoNewPrivs"] == "1" and (t["Seccomp"] == "2" or not FILTERS)
                                               and int(t["CapEff"], 16) == 0 for t in status(p.pid))
        ok(wait(is_held) and p.poll() is None, f"{name}: gives up its rights", p.words())
        pathline.gen(port, "--count", "100")
        p.send_signal(signal.SIGTERM)
        ok(p.wait(timeout=60) in (0, 1, 3, -signal.SIGTERM), f"{name}: ends", f"{p.returncode}\n{p.words()}")
        ok("refused the system call" not in p.words(), f"{name}: and asks for nothing that it may not", p.words())
    eq(d.stop(), 0, "the daemon ends well")


def test_files():
    """A folder that the configuration did not name when the daemon started is out of its reach, also as root."""
    d, port, out = start("files", {})
    other = lab.path("elsewhere")
    os.mkdir(other)
    with open(d.config) as f:
        text = f.read()
    lab.write("files.yaml", text.replace(f"{out}/records.jsonl", f"{other}/records.jsonl"))
    d.p.send_signal(signal.SIGHUP)
    if LANDLOCK:
        ok(d.wait_for(r"gave up the privilege for it at the start") is not None, "a reload is told so", d.log())
        eq(os.listdir(other), [], "nothing is written there")
    lab.write("files.yaml", text.replace(f"{out}/records.jsonl", f"{out}/others.jsonl"))
    d.p.send_signal(signal.SIGHUP)
    ok(wait(lambda: os.path.exists(f"{out}/others.jsonl")), "another file in a folder that was named is made")
    eq(d.stop(), 0, "it ends well")


def test_secrets():
    """Root's secrets are out of reach, also as root: the file of the configuration leads to one at a reload."""
    if not (ROOT and LANDLOCK):
        skip("secrets of root", "takes root and Landlock")
        return
    if SANITIZER:
        tap.comment("a sanitizer's run-time may read all files")
        return
    d, _, _ = start("secrets", {})
    for at, (target, refused) in enumerate((("/etc/passwd", False), ("/etc/shadow", True))):
        os.remove(d.config)
        os.symlink(target, d.config)
        d.p.send_signal(signal.SIGHUP)
        wait(lambda: len(re.findall("ERR|error|not loaded|kept", d.log())) > at)
        ok(("Permission denied" in d.log()) == refused, f"{target} may {'not ' if refused else ''}be read", d.log())
    eq(d.stop(), 0, "the daemon ends well")


def test_switch():
    """For debugging."""
    for word, filters in (("off", "0"), ("no-landlock", "2"), ("no-seccomp", "0")):
        d, _, _ = start("switch-" + word, {}, env=os.environ | {"PATHLINE_SANDBOX": word})
        if FILTERS:
            eq({t["Seccomp"] for t in status(d.p.pid)}, {filters}, f"PATHLINE_SANDBOX={word}")
        ok(f"switched off by PATHLINE_SANDBOX" in d.log(), f"{word}: the daemon says what does not hold it", d.log())
        eq(d.stop(), 0, f"{word}: ends well")
    r = pathline.run("listen", f"udp://127.0.0.1:{free_udp_port()}", env=os.environ | {"PATHLINE_SANDBOX": "maybe"})
    ok(r.returncode != 0 and "PATHLINE_SANDBOX=maybe: must be on, off" in r.stderr, "another word is refused", r.stderr)


lab.run(test_rights, test_unknown_user, test_commands, test_chain, test_taps, test_generators, test_clients, test_files, test_secrets, test_switch)
sys.exit(tap.end())
