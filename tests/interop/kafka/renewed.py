#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A producer whose certificate is renewed on disk while it sends to a Kafka server that asks for one: the new one is taken up,
and every record is delivered. The witness is the server, which at the end trusts the new authority alone.

    usage: renewed.py INTEROP_KAFKA FOLDER PATHLINE [TEST]…     (the program made from kafka.c; the server's jars, tools/kafka)
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
from lib import lab, tap  # noqa: E402
from lib.tap import eq, ok  # noqa: E402
from lib.wait import wait  # noqa: E402

from members import FAST, PROGRAM, server_or_skip  # noqa: E402

TLS = lab.free_port()
PROPERTIES = """listeners=PLAINTEXT://127.0.0.1:{port},TLS://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT
listener.name.tls.ssl.client.auth=required
listener.name.tls.ssl.keystore.type=PEM
listener.name.tls.ssl.keystore.location={server}
listener.name.tls.ssl.truststore.type=PEM
listener.name.tls.ssl.truststore.location={trusted}
"""


def openssl(*args):
    subprocess.run(["openssl", *args], capture_output=True, check=True)


def authority(name):
    """A certificate that signs others."""
    key, crt = lab.path(name + ".key"), lab.path(name + ".crt")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", crt, "-days", "2", "-subj", "/CN=" + name, "-addext",
            "subjectAltName=IP:127.0.0.1")
    return name


def signed(name, by):
    """One that an authority signed; its text and its key's."""
    key, csr, crt = (lab.path(f"{name}.{end}") for end in ("key", "csr", "crt"))
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", csr, "-subj", "/CN=" + name)
    openssl("x509", "-req", "-in", csr, "-CA", lab.path(by + ".crt"), "-CAkey", lab.path(by + ".key"), "-CAcreateserial", "-days", "2",
            "-out", crt)
    return lab.read(name + ".crt"), lab.read(name + ".key")


def replace(name, text):
    """As programs that renew certificates do it."""
    lab.write(name + ".new", text)
    os.replace(lab.path(name + ".new"), lab.path(name))


def said(log):
    """Renewals, failures and records that were dropped, as the producer told of them last."""
    return tuple(map(int, (re.findall(r"renewals (\d+) failed (\d+) dropped (\d+)", lab.read(log)) or [(0, 0, 0)])[-1]))


def test_renewed(server, trust):
    first, second = signed("first", "old"), signed("second", "new")
    lab.write("tap.crt", first[0])
    lab.write("tap.key", first[1])
    keys = "&".join((FAST, "security.protocol=ssl", "ssl.ca.location=" + lab.path("server.crt"),
                     "ssl.certificate.location=" + lab.path("tap.crt"), "ssl.key.location=" + lab.path("tap.key")))
    server.create("renewed", 2)
    producer = lab.start([PROGRAM, "produce", f"kafka://127.0.0.1:{TLS}/renewed?{keys}", "0", "60000"], stdin=subprocess.PIPE,
                         log=lab.path("producer.log"))
    ok(wait(lambda: "ready" in lab.read("producer.log")), "it sends", lab.read("producer.log"))
    replace("tap.crt", second[0])
    ok(wait(lambda: said("producer.log")[1] > 0), "a certificate without its key is not taken up", lab.read("producer.log"))
    replace("tap.key", second[1])
    ok(wait(lambda: said("producer.log")[0] == 1), "with it, it is", lab.read("producer.log"))
    eq(said("producer.log")[2], 0, "and nothing was dropped for it")
    trust("new")
    server.kill()
    server.start()
    before = end_of(server)
    ok(wait(lambda: end_of(server) > before), "a server that no longer trusts the old authority gets records", lab.read("producer.log"))
    producer.stdin.write(b"\n")
    producer.stdin.close()
    eq(producer.wait(timeout=120), 0, "it ends")
    stats = json.loads(lab.read("producer.log").splitlines()[-1])
    drops = {k: v for k, v in stats.items() if k.startswith("drop_") and v}
    eq(stats["put"], stats["delivered"] + sum(drops.values()), f"all that is missing was dropped by cause: {drops}")
    eq(stored(server), stats["delivered"], "what was delivered is there, none of it twice")


def end_of(server):
    """Messages in the topic."""
    run = subprocess.run(["kcat", "-Q", "-b", server.address, "-t", "renewed:0:-1", "-t", "renewed:1:-1"], capture_output=True,
                         text=True, check=False, timeout=60)
    return sum(map(int, re.findall(r"offset (\d+)", run.stdout)))


def stored(server):
    """Records in the topic, to which nothing is added any more."""
    run = subprocess.run(["kcat", "-q", "-C", "-b", server.address, "-t", "renewed", "-o", "beginning", "-e", "-f", "%S\n"],
                         capture_output=True, text=True, check=False, timeout=60)
    return sum(map(int, run.stdout.split())) // 64


def main():
    for name in "server", "old", "new":
        authority(name)
    lab.write("server.pem", lab.read("server.key") + lab.read("server.crt"))

    def trust(*names):
        lab.write("trusted.pem", "".join(lab.read(name + ".crt") for name in names))

    trust("old", "new")
    server = server_or_skip(lambda port, controller: PROPERTIES.format(port=port, controller=controller, tls=TLS, server=lab.path("server.pem"),
                                                                       trusted=lab.path("trusted.pem")))
    lab.run(test_renewed, given=(server, trust))
    return tap.end()


sys.exit(main())
