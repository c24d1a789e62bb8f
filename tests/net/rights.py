#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the daemon may still do once it runs: read from /proc for each of its threads, started as root, as root with
another user, and without any right; and that it does its work all the same. usage: rights.py PATHLINE"""

import os
import pwd
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import DIR, free_udp_port  # noqa: E402
from lib.pathline import reports_of  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402

ROOT = os.geteuid() == 0


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


def start(name, keys, as_user=None, ready=True):
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
    return pathline.Daemon(config, name, ready, preexec_fn=switch), port, out


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
    eq({t["NoNewPrivs"] for t in tasks}, {"1"}, f"{name}: no thread can get new ones")


def test_rights():
    nobody = pwd.getpwnam("nobody")
    if ROOT:
        os.chmod(DIR, 0o755)
        tasks, log, debuggable, owner, _ = run("root", {})
        nothing("root", tasks)
        ok("runs as root, without its capabilities" in log, "root: says that it stays root", log)

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
        ok(re.search(r"cannot become user 0.*takes root", d.log()) is not None, "and is told", d.log())
    else:
        tasks, log, debuggable, owner, file_owner = run("unprivileged", {})
        nothing("unprivileged", tasks, bounding=False)
        skip("change of user", "takes root")


def test_unknown_user():
    r = pathline.run("config", "check", "/dev/stdin", input="user: no-such-user\n")
    eq(r.returncode, 78, "a user that is not there is a fault of the configuration")
    ok('there is no user "no-such-user"' in r.stderr, "and is named", r.stderr)


lab.run(test_rights, test_unknown_user)
sys.exit(tap.end())
