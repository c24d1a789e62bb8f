#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pathline run writes to a server that fails in every way there is: nothing is lost, or it is counted; nothing is
stored twice but where an answer got lost. usage: export_faults.py PATHLINE"""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faulty import Daemon, Server, config  # noqa: E402
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import DIR, free_udp_port, write  # noqa: E402
from lib.pathline import gen  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import wait  # noqa: E402

# What a server stored and answered after the timeout comes again, rightly: so it is longer than a busy machine delays an
# answer.
BATCH = ("    database: pl\n    paths: true\n    interval: 1s\n    timeout: 4s\n    batch:\n      age: 50ms\n"
         "      size: 16KiB\n      entries: 200\n    memory: 64KiB\n")


def spool(name, more=""):
    return BATCH + f"    spool:\n      path: {DIR}/{name}\n{more}"


def lines_of(server, measurement):
    with server.lock:
        return sum(1 for x in server.lines if x.startswith(measurement))


def complete(d, server, reports, when):
    """Everything offered is at the server, each line as often as it was written."""
    o = d.balanced(when)
    eq(lines_of(server, "pathline_hop"), 3 * (reports - o["dropped"]["rejected"]), f"{when}: every hop is there")

    counts = []

    # Levels end by time, too: what has just been told is on its way for the age of a batch.
    def all_there():
        told = int(sum(v for k, v in d.metrics().items() if k.startswith("pathline_events_total")))
        counts[:] = [lines_of(server, "pathline_event"), told]
        return counts[0] == counts[1]
    ok(wait(all_there), f"{when}: every event is there", counts)
    return o


# ---- one fault after another ----

FAULTS = ["refused", "hang", "reset", "stored, then reset", "twice", "garbage", "half an answer", "byte by byte",
          "endless", "retry later", "too large", "portal", "500", "502", "503", "504"]


def test_faults():
    server, port = Server(), free_udp_port()
    d = Daemon(write("faults.yaml", config(port, f"http://127.0.0.1:{server.port}", spool("faults"))), "faults")
    reports, seed, again = 0, 1, 0
    for fault in FAULTS:
        before = d.output()
        server.mode = fault
        if fault == "refused":
            server.close()
        reports += gen(port, "--rate", "2000", "--count", "2000", "--seed", str(seed))
        seed += 1
        if fault not in ("twice", "too large"):
            ok(wait(lambda: d.output()["errors"] > before["errors"] and d.output()["up"] == 0),
               f"{fault}: it shows")
        d.balanced(f"during: {fault}")
        if fault not in ("twice", "too large"):
            status, text = d.get("/readyz?verbose")
            ok(status == 503 and '"trouble":"' in text, f"{fault}: not ready, and why", text)
        if fault == "refused":
            server.open()
        server.mode = "fine"
        ok(d.drained(), f"{fault}: recovers by itself", d.output())
        o = complete(d, server, reports, fault)
        eq(o["drops"], 0, f"{fault}: nothing dropped")
        with server.lock:
            twice = server.stored - len(server.lines)
        again, new = twice, twice - again
        if fault not in ("stored, then reset",):
            eq(new, 0, f"{fault}: nothing came twice")
        ok(wait(lambda: d.get("/readyz")[0] == 200), f"{fault}: ready again")
    ok(server.target == "/write?precision=ns&db=pl", "the precision is always said", server.target)
    eq(d.stop(), 0, "stops with 0")


def test_elsewhere():
    """A redirect is for an operator, as a 404 is: everything is kept, and a reload makes it try at once."""
    server, port = Server(), free_udp_port()
    d = Daemon(write("hold.yaml", config(port, f"http://127.0.0.1:{server.port}", spool("hold"))), "hold")
    reports = 0
    for mode in ("elsewhere", "404", "403"):
        server.mode = mode
        reports += gen(port, "--rate", "4000", "--count", "1000", "--seed", mode[0].replace("e", "5"))
        ok(wait(lambda: d.output()["up"] == 0), f"{mode}: it shows")
        requests = server.requests
        ok(d.intervals(3) and server.requests <= requests + 1, f"{mode}: tried slowly", server.requests - requests)
        ok(all("elsewhere" not in x for x in [server.target]), f"{mode}: not followed")
        server.mode = "fine"
        d.p.send_signal(signal.SIGHUP)
        ok(d.drained(), f"{mode}: mended, and told", d.output())
        eq(complete(d, server, reports, mode)["drops"], 0, f"{mode}: nothing dropped")
    d.stop()


def test_token():
    server, port = Server(), free_udp_port()
    token = write("token", "wrong-SECRET\n")
    server.token = "Token right-SECRET"
    path = write("token.yaml", config(
        port, f"http://127.0.0.1:{server.port}",
        spool("token-spool").replace("    database: pl\n", f"    api: v2\n    org: o\n    bucket: b\n    token_file: {token}\n")))
    d = Daemon(path, "token")
    n = gen(port, "--rate", "4000", "--count", "1000")
    ok(wait(lambda: d.output()["up"] == 0), "a wrong token: it shows")
    ok(server.target == "/api/v2/write?precision=ns&org=o&bucket=b", "v2: organization and bucket", server.target)
    write("token", "right-SECRET\n")
    d.p.send_signal(signal.SIGHUP)
    ok(d.drained(), "the token is read anew", d.output())
    eq(complete(d, server, n, "token")["drops"], 0, "token: nothing dropped")
    ok("SECRET" not in d.log() and "SECRET" not in d.get("/metrics")[1] and "SECRET" not in d.get("/readyz?verbose")[1],
       "the token is in no log and on no page")
    r = pathline.run("config", "dump", path)
    ok("SECRET" not in r.stdout and token in r.stdout, "nor in config dump")
    d.stop()


def test_poison():
    """One node's points are not acceptable: they are set aside with the server's words, the others come."""
    server, port = Server(), free_udp_port()
    server.poison = "event=queue_depth"
    d = Daemon(write("poison.yaml", config(port, f"http://127.0.0.1:{server.port}", spool("poison"))), "poison")
    n = gen(port, "--rate", "4000", "--count", "8000", "--loss", "0.01", "--seed", "3")
    ok(d.drained(), "a poisoned point does not hold up the others", d.output())
    # Levels end by time, too, and are told then.
    wait(lambda: 0 < d.metrics()['pathline_events_total{event="queue_depth"}'] == d.output()["dropped"]["rejected"])
    d.drained()
    o = d.balanced("poison")
    m = d.metrics()
    bad = int(m['pathline_events_total{event="queue_depth"}'])
    ok(bad > 0, "there are poisoned points")
    eq(o["dropped"]["rejected"], bad, "exactly the poisoned ones are refused")
    eq(o["drops"], bad, "nothing else is dropped")
    eq(o["dead_letters"], bad, "each has a dead letter")
    with open(f"{DIR}/poison/dead-letter.jsonl") as f:
        letters = [json.loads(x) for x in f]
    ok(len(letters) == bad and all("event=queue_depth" in x["entry"] and "field type conflict" in x["answer"] and
                                   x["status"] == 400 for x in letters), "with the server's words")
    eq(lines_of(server, "pathline_hop"), 3 * n, "every hop is there")
    ok("field type conflict" in d.log(), "and a line in the log")
    d.stop()


# ---- TLS and passwords ----

def test_tls():
    if shutil.which("openssl") is None:
        skip("TLS", "missing: openssl, to make certificates with")
        return
    for name, more in (("good", ["-addext", "subjectAltName=IP:127.0.0.1"]), ("other", [])):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
                        "-keyout", f"{DIR}/{name}.key", "-out", f"{DIR}/{name}.crt", *more], check=True,
                       capture_output=True)
    password = write("password", "s3cret-WORD\n")
    server = Server(tls=(f"{DIR}/good.crt", f"{DIR}/good.key", f"{DIR}/other.crt"))
    server.token = "Basic " + base64.b64encode(b"me:s3cret-WORD").decode()
    login = f"    user: me\n    password_file: {password}\n"
    client = f"      cert: {DIR}/other.crt\n      key: {DIR}/other.key\n"
    for name, tls, works in (
            ("a certificate of nobody known", f"    tls:\n{client}", False),
            ("another authority", f"    tls:\n      ca: {DIR}/other.crt\n{client}", False),
            ("no certificate of our own", f"    tls:\n      ca: {DIR}/good.crt\n", False),
            ("the right authority", f"    tls:\n      ca: {DIR}/good.crt\n{client}", True),
            ("insecure", f"    tls:\n      insecure: true\n{client}", True)):
        port, before = free_udp_port(), server.stored
        d = Daemon(write("tls.yaml", config(port, f"https://127.0.0.1:{server.port}", BATCH + login + tls)), "tls")
        n = gen(port, "--rate", "4000", "--count", "200")
        if works:
            ok(wait(lambda: d.output()["delivered"] >= n), f"TLS, {name}: delivered", d.output())
        else:
            ok(wait(lambda: d.output()["up"] == 0), f"TLS, {name}: it shows", d.output())
            eq(server.stored, before, f"TLS, {name}: nothing is sent")
            ok('"trouble":"' in d.get("/readyz?verbose")[1], f"TLS, {name}: in words", d.get("/readyz?verbose")[1])
        d.balanced(f"TLS, {name}")
        ok("WORD" not in d.log(), f"TLS, {name}: the password is in no log")
        d.stop()


# ---- outages longer than memory ----

def test_restart():
    """The server away, much more than memory holds, kill -9 in the middle, then all of it comes."""
    server, port = Server(), free_udp_port()
    # Who stops and waits for the server does so for longer than this test waits for it.
    path = write("restart.yaml", config(port, f"http://127.0.0.1:{server.port}", spool("restart"), "drain: 10m\n"))
    server.close()
    d = Daemon(path, "restart")
    gen(port, "--rate", "20000", "--count", "40000")
    wait(lambda: d.output()["spooled"] > 30000)
    o = d.balanced("the server away")
    ok(o["spooled"] > 30000, "what memory cannot hold is spooled", o)
    eq(o["drops"], 0, "nothing dropped")
    second = Daemon(write("second.yaml", config(free_udp_port(), f"http://127.0.0.1:{server.port}",
                                                spool("restart"))), "second", ready=False)
    ok(second.p.wait(timeout=60) != 0 and "another process" in second.log(), "a second daemon on the spool is told",
       second.log())
    d.stop(signal.SIGKILL)
    server.open()
    d = Daemon(path, "restart")
    recovered = d.output()["recovered"]
    ok(recovered >= o["spooled"], "after kill -9 everything spooled is found", f"{recovered} of {o['spooled']}")
    ok(d.drained(), "and delivered", d.output())
    d.balanced("after kill -9")
    entries = lines_of(server, "pathline_hop") // 3 + lines_of(server, "pathline_event")
    series = sum(lines_of(server, "pathline_" + x) for x in ("queue", "port", "link", "path"))
    ok(entries + series >= recovered, "to the entry", f"{entries} + {series} of {recovered}")
    # And a stop while the server is away keeps all of it, memory too.
    server.close()
    n = gen(port, "--rate", "20000", "--count", "10000", "--seed", "2")
    eq(d.stop(), 0, "stops with 0 while the server is away, without waiting for it")
    ok(" + spooled " in d.log().splitlines()[-1] and " + undelivered 0 " in d.log().splitlines()[-1],
       "and says where things are", d.log().splitlines()[-1])
    server.open()
    before = lines_of(server, "pathline_hop")
    d = Daemon(path, "restart")
    ok(d.drained(), "the next run delivers it")
    eq(lines_of(server, "pathline_hop") - before, 3 * n, "all of it")
    eq(d.balanced("after a stop")["dropped"]["queue_full"], 0, "nothing dropped")
    d.stop()


def test_killed():
    """Far less than memory holds, the server away or hanging, kill -9: what was accepted a moment ago is on disk."""
    for fault in ("refused", "hang"):
        server, port = Server(), free_udp_port()
        text = spool("killed " + fault).replace("64KiB", "16MiB").replace("timeout: 4s", "timeout: 10m")
        path = write(f"killed-{fault}.yaml", config(port, f"http://127.0.0.1:{server.port}", text))
        if fault == "refused":
            server.close()
        else:
            server.mode = fault
        d = Daemon(path, "killed-" + fault)
        n = gen(port, "--rate", "2000", "--count", "2000")

        def all_on_disk():
            """every report was received, and nothing waits in memory only"""
            o = d.output()
            return o["spooled"] >= n and o["waiting"] == 0
        ok(wait(all_on_disk), f"{fault}: all is on disk by itself", d.output())
        d.stop(signal.SIGKILL)
        if fault == "refused":
            server.open()
        server.mode = "fine"
        d = Daemon(path, "killed-" + fault)
        ok(wait(lambda: lines_of(server, "pathline_hop") >= 3 * n), f"{fault}: after kill -9 all of it is delivered",
           lines_of(server, "pathline_hop"))
        d.balanced(f"{fault}: after kill -9")
        d.stop()
        server.close()


def test_disk_full():
    folder = os.path.join(DIR, "small")
    if not lab.mount(folder, "1m"):
        skip("disk full while spooling", "may not mount a file system")
        return
    server, port = Server(), free_udp_port()
    server.close()
    d = Daemon(write("full.yaml", config(port, f"http://127.0.0.1:{server.port}", spool("small/spool"))), "full")
    n = gen(port, "--rate", "20000", "--count", "20000")
    ok(wait(lambda: d.output()["dropped"]["no_space"] > 0), "a full disk is a counted loss")
    ok(wait(lambda: d.get("/readyz")[0] == 503), "and readiness says so")
    ok(wait(lambda: "cannot write the spool: No space left on device" in d.log()), "and the log, while the server is away", d.log())
    o = d.balanced("disk full")
    subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
    lost = d.balanced("the disk has grown")["drops"]  # Points of each second were lost until then.
    n += gen(port, "--rate", "20000", "--count", "20000", "--seed", "2")
    wait(lambda: d.output()["spooled"] > o["spooled"] + 15000)
    after = d.balanced("room again")
    ok(after["spooled"] > o["spooled"] + 15000, "with room again it spools again, without a restart", after)
    ok(after["drops"] - lost <= 200, "and loses no more than a batch", after)
    server.open()
    ok(d.drained(), "and delivers", d.output())
    d.balanced("delivered")

    def stored():
        return lines_of(server, "pathline_hop") // 3 + sum(
            lines_of(server, "pathline_" + x) for x in ("event", "queue", "port", "link", "path"))
    # Points of the next interval may come in between.
    ok(wait(lambda: stored() == d.output()["delivered"]), "as many as it says", stored())
    d.stop()


def main():
    lab.run(test_faults, test_elsewhere, test_token, test_poison, test_tls, test_restart, test_killed, test_disk_full)
    return tap.end()


sys.exit(main())
