#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the daemon may still do once it runs: read from /proc for each of its threads, started as root, as root with
another user, and without any right; and that it does its work all the same. usage: rights.py PATHLINE"""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATHLINE = sys.argv[1]
DIR = tempfile.mkdtemp(prefix="pathline-rights-")
COUNT = 0
FAILED = 0
ROOT = os.geteuid() == 0


def ok(good, name, detail=""):
    global COUNT, FAILED
    COUNT += 1
    FAILED += not good
    print(f"{'ok' if good else 'not ok'} {COUNT} - {name}", flush=True)
    if not good and detail != "":
        for line in str(detail).splitlines()[:30]:
            print(f"# {line}", flush=True)


def eq(got, want, name):
    ok(got == want, name, f"got    {got!r}\nwanted {want!r}")


def skip(name, why):
    global COUNT
    COUNT += 1
    print(f"ok {COUNT} - {name} # SKIP {why}", flush=True)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def status(pid):
    """Of every task: the lines of its status as a dictionary."""
    tasks = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            tasks.append(dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line))
    return tasks


def run(name, keys, as_user=None, expect=None):
    """Starts the daemon, sends it reports, reads its rights, stops it. Returns its tasks and its words."""
    place = os.path.join(DIR, name)
    os.mkdir(place)
    os.chmod(place, 0o755)
    out = os.path.join(place, "out")
    os.mkdir(out)
    owner = as_user or keys.get("user")
    if owner and ROOT:
        os.chown(out, pwd.getpwnam(owner).pw_uid, pwd.getpwnam(owner).pw_gid)
    port = free_port()
    config = os.path.join(place, "config.yaml")
    with open(config, "w") as f:
        for key, value in keys.items():
            f.write(f"{key}: {value}\n")
        f.write(f"sources:\n  - uri: udp://127.0.0.1:{port}\nweb:\n  listen: 127.0.0.1:0\n"
                f"outputs:\n  - path: {out}/records.jsonl\n")
    become = None
    if as_user and ROOT:
        who = pwd.getpwnam(as_user)

        def become():
            os.setgroups([])
            os.setresgid(who.pw_gid, who.pw_gid, who.pw_gid)
            os.setresuid(who.pw_uid, who.pw_uid, who.pw_uid)
    log_path = os.path.join(place, "log")
    with open(log_path, "w") as log_file:
        p = subprocess.Popen([PATHLINE, "run", "-c", config, "--log.format", "logfmt"],
                             stderr=log_file, preexec_fn=become)

    def log():
        with open(log_path) as f:
            return f.read()

    end = time.time() + 20
    while "metrics on" not in log() and p.poll() is None and time.time() < end:
        time.sleep(0.02)
    if expect is not None:
        return p.wait(timeout=20), log()
    sent = subprocess.run([PATHLINE, "gen", "int", "--count", "500", f"udp://127.0.0.1:{port}"],
                          stderr=subprocess.PIPE, text=True, timeout=60)
    time.sleep(0.3)
    tasks = status(p.pid)
    try:
        debuggable = os.open(f"/proc/{p.pid}/mem", os.O_RDONLY) >= 0
    except OSError:
        debuggable = False
    owner_of_proc = os.stat(f"/proc/{p.pid}/environ").st_uid
    # The file by another name is opened anew, by the user that the daemon has become.
    os.rename(f"{out}/records.jsonl", f"{out}/before.jsonl")
    p.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    p.send_signal(signal.SIGTERM)
    code = p.wait(timeout=30)
    eq(code, 0, f"{name}: ends well")
    ok("received 500 = decoded 500" in log(), f"{name}: all reports are in the account", log() + sent.stderr)
    written = 0
    for file in ("before.jsonl", "records.jsonl"):
        path = f"{out}/{file}"
        if os.path.exists(path):
            with open(path) as f:
                written += sum(json.loads(line)["kind"] == "path" for line in f)
    eq(written, 500, f"{name}: and in the file")
    ok(os.path.exists(f"{out}/records.jsonl"), f"{name}: SIGHUP opens the file anew")
    return tasks, log(), debuggable, owner_of_proc, os.stat(f"{out}/before.jsonl").st_uid


def nothing(name, tasks, bounding=True):
    ok(len(tasks) >= 4, f"{name}: {len(tasks)} threads are looked at")
    keys = ["CapEff", "CapPrm", "CapInh", "CapAmb"] + (["CapBnd"] if bounding else [])
    for key in keys:
        eq({t[key] for t in tasks}, {"0" * 16}, f"{name}: {key} of every thread is empty")
    eq({t["NoNewPrivs"] for t in tasks}, {"1"}, f"{name}: no thread can get new ones")


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

    code, words = run("may not", {"user": "root"}, as_user="nobody", expect=77)
    eq(code, 77, "an ordinary user may not become another")
    ok(re.search(r"cannot become user 0.*takes root", words) is not None, "and is told", words)
else:
    tasks, log, debuggable, owner, file_owner = run("unprivileged", {})
    nothing("unprivileged", tasks, bounding=False)
    skip("change of user", "takes root")

code = subprocess.run([PATHLINE, "config", "check", "/dev/stdin"], input="user: no-such-user\n", text=True,
                      capture_output=True)
eq(code.returncode, 78, "a user that is not there is a fault of the configuration")
ok('there is no user "no-such-user"' in code.stderr, "and is named", code.stderr)

shutil.rmtree(DIR)
print(f"1..{COUNT}")
sys.exit(1 if FAILED else 0)
