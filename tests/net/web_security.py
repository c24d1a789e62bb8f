#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TLS, authentication and clients that want to hold the server up: curl and a real Prometheus as witnesses, openssl
for certificates, raw sockets for the rest. usage: web_security.py PATHLINE [TEST…]"""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import crypt

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline, tap  # noqa: E402
from lib.lab import DIR, free_port, free_udp_port, write  # noqa: E402
from lib.pathline import run  # noqa: E402
from lib.promise import promise  # noqa: E402
from lib.tap import eq, ok, skip  # noqa: E402
from lib.wait import LIMIT, wait  # noqa: E402


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=DIR)


def make_ca(name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key",
            "-out", f"{name}.pem", "-subj", f"/CN={name}", "-days", "3", "-addext", "basicConstraints=critical,CA:TRUE")


def make_cert(name, ca, san, usage):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key",
            "-out", f"{name}.csr", "-subj", f"/CN={name}")
    write(f"{name}.ext", f"subjectAltName={san}\nextendedKeyUsage={usage}\n")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial",
            "-out", f"{name}.pem", "-days", "3", "-extfile", f"{name}.ext")


class Daemon(pathline.Daemon):
    def __init__(self, name, extra="", listen="127.0.0.1:0", source=None):
        super().__init__(write(name + ".yaml", f"sources:\n  - uri: udp://127.0.0.1:{source or free_udp_port()}\n"
                               f"web:\n  listen: {listen}\n{extra}"), name)
        self.scheme, address = self.web.split("://")
        self.port = int(address.rsplit(":", 1)[1])

    def reload(self, count):
        self.p.send_signal(signal.SIGHUP)
        return self.wait_for("subject=reload", count=count)


def curl(url, *args):
    """Status and body; status 0 and curl's exit code when there was no answer."""
    r = subprocess.run(["curl", "-s", "--max-time", str(LIMIT), "-w", "\n%{http_code}", *args, url], capture_output=True,
                       text=True, cwd=DIR)
    body, _, code = r.stdout.rpartition("\n")
    return (int(code), body) if r.returncode == 0 else (0, r.returncode)


def get(d, path, *args):
    return curl(f"https://127.0.0.1:{d.port}{path}", "--cacert", "ca.pem", *args)


def metric(body, name):
    return int(float(re.search(rf"^{name} (\S+)$", body, re.M).group(1)))


def test_tls():
    make_ca("ca")
    make_ca("otherca")
    make_cert("server", "ca", "DNS:localhost,IP:127.0.0.1", "serverAuth")
    make_cert("server2", "otherca", "DNS:localhost,IP:127.0.0.1", "serverAuth")
    make_cert("client", "ca", "DNS:prom.example", "clientAuth")
    make_cert("foreign", "otherca", "DNS:prom.example", "clientAuth")
    make_cert("server_as_client", "ca", "DNS:prom.example", "serverAuth")
    make_cert("nobody", "ca", "DNS:nobody.example", "clientAuth")
    tls = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"
    web = write("web.yml", tls)
    d = Daemon("tls", f"  config_file: {web}\n")
    eq(d.scheme, "https", "it says https")
    eq(get(d, "/healthz"), (200, "ok\n"), "served by TLS")
    eq(curl(f"https://localhost:{d.port}/healthz", "--cacert", "ca.pem"), (200, "ok\n"), "by name")
    eq(get(d, "/healthz", "--cacert", "otherca.pem"), (0, 60), "who trusts another CA does not talk")
    eq(curl(f"http://127.0.0.1:{d.port}/healthz")[0], 0, "nothing in the clear")
    eq(get(d, "/healthz", "--tls-max", "1.1")[0], 0, "no TLS 1.1")
    eq(get(d, "/healthz", "--tlsv1.3"), (200, "ok\n"), "TLS 1.3")
    r = subprocess.run(["curl", "-s", "--cacert", "ca.pem", "-w", "%{num_connects} ", "-o", "/dev/null", "-o", "/dev/null",
                        f"https://127.0.0.1:{d.port}/healthz", f"https://127.0.0.1:{d.port}/healthz"],
                       capture_output=True, text=True, cwd=DIR)
    eq(r.stdout.split(), ["1", "0"], "one connection for two requests")

    # A stream goes on while the certificate is exchanged; new connections see the new one.
    stream = lab.start(["curl", "-sN", "--cacert", "ca.pem", f"https://127.0.0.1:{d.port}/api/v1/tail"],
                       stdout=subprocess.PIPE, cwd=DIR)
    wait(lambda: len(json.loads(get(d, "/api/v1/status")[1])["streams"]) == 1)
    write("web.yml", tls.replace("server.", "server2."))
    ok(d.reload(1), "reload")
    eq(get(d, "/healthz")[0], 0, "another certificate after SIGHUP")
    eq(get(d, "/healthz", "--cacert", "otherca.pem"), (200, "ok\n"), "it is the new one")
    ok(stream.poll() is None, "the stream goes on")
    write("web.yml", tls + "  cipher_suits: [x]\n")
    ok(d.reload(2), "reload of a bad file")
    ok("web.yml:4:3: unknown key" in d.log() and "cipher_suites" in d.log(), "file, line, nearest key", d.log())
    eq(get(d, "/healthz", "--cacert", "otherca.pem"), (200, "ok\n"), "the old one stays in use")
    stream.kill()
    stream.wait()

    # Client certificates.
    ask = tls + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n"
    write("web.yml", ask + "  client_allowed_sans: [prom.example]\n")
    ok(d.reload(3), "reload: client certificates")
    for name, want in ((None, 403), ("client", 200), ("foreign", 403), ("server_as_client", 403), ("nobody", 403)):
        args = ["--cert", f"{name}.pem", "--key", f"{name}.key"] if name else []
        eq(get(d, "/healthz", *args)[0], want, f"client certificate {name}: {want}")
    r = run("status", "--url", f"https://127.0.0.1:{d.port}", "--ca", "ca.pem", "--cert", "client.pem", "--key", "client.key",
            cwd=DIR)
    eq(r.returncode, 0, "pathline status with one")
    r = run("status", "--url", f"https://127.0.0.1:{d.port}", "--ca", "ca.pem", cwd=DIR)
    ok(r.returncode == 77 and "certificate" in r.stderr, "and without: 77", r.stderr)
    body = get(d, "/metrics", "--cert", "client.pem", "--key", "client.key")[1]
    eq(metric(body, "pathline_http_client_certificates_refused_total"), 5, "the refused are counted")
    write("web.yml", ask.replace("RequireAndVerify", "VerifyClientCertIfGiven").replace("GivenClientCert", "Given"))
    ok(d.reload(4), "reload: if given")
    eq([get(d, "/healthz")[0], get(d, "/healthz", "--cert", "client.pem", "--key", "client.key")[0],
        get(d, "/healthz", "--cert", "foreign.pem", "--key", "foreign.key")[0]], [200, 200, 403], "if given")
    write("web.yml", "")
    ok(d.reload(5), "reload: nothing")
    eq(curl(f"http://127.0.0.1:{d.port}/healthz"), (200, "ok\n"), "in the clear again")
    eq(d.stop(), 0, "stops with 0")
    token = write("open token", "0123456789abcdefghij\n")
    os.chmod(token, 0o666)
    for text, code in (("bearer_token_files: ['open token']\n", 78), ("tls_server_config: {}\n", 0), ("tls_server_config:\n  cert_file: nope\n  key_file: x\n", 78),
                       (tls.replace("server.key", "client.key"), 78), ("basic_auth_users:\n  a: b\n", 78)):
        write("web.yml", text)
        r = run("config", "check", d.config)
        eq(r.returncode, code, f"config check: {code} for {text.splitlines()[-1].strip()}")


def test_kept():
    """A file without the listener: it stays until a restart, and stays as it is secured."""
    make_ca("ca")
    make_cert("server", "ca", "DNS:localhost,IP:127.0.0.1", "serverAuth")
    web = write("kept.yml", "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n")
    d = Daemon("kept", f"  config_file: {web}\n")
    with open(d.config, encoding="utf-8") as f:
        first = f.read()
    for number, text in enumerate((first.replace("listen: 127.0.0.1:0", "listen: off"), first.split("web:")[0], first), 1):
        with open(d.config, "w", encoding="utf-8") as f:
            f.write(text)
        d.p.send_signal(signal.SIGHUP)
        ok(d.wait_for("is in use", count=number), "reload")
        eq(get(d, "/healthz"), (200, "ok\n"), "served by TLS as before")
        eq(curl(f"http://127.0.0.1:{d.port}/healthz")[0], 0, "and not in the clear")
    ok("web.listen is not changed while running" in d.log(), "and that is said", d.log())
    eq(d.stop(), 0, "stops with 0")


def test_auth():
    good = crypt.crypt("s3cret", crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=1024))
    token = write("token", "0123456789abcdefghij\n")
    tls = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"
    write("web.yml", tls + f"basic_auth_users:\n  prom: {good}\nbearer_token_files: [token]\n"
          "http_server_config:\n  headers:\n    X-Frame-Options: SAMEORIGIN\n")
    d = Daemon("auth", f"  config_file: {DIR}/web.yml\n")
    for path in ("/", "/metrics", "/healthz", "/readyz", "/api/v1/status", "/api/v1/queues", "/api/v1/tail", "/nope"):
        eq(get(d, path)[0], 401, f"{path} without credentials")
    eq([get(d, "/healthz", "-u", u)[0] for u in ("prom:s3cret", "prom:S3cret", "Prom:s3cret", "prom:", ":s3cret")],
       [200, 401, 401, 401, 401], "passwords")
    eq([get(d, "/healthz", "-H", f"Authorization: {a}")[0] for a in
        ("Bearer 0123456789abcdefghij", "Bearer 0123456789abcdefghi", "Basic !!!", "Digest x")],
       [200, 401, 401, 401], "tokens and nonsense")
    r = subprocess.run(["curl", "-sD-", "--cacert", "ca.pem", f"https://127.0.0.1:{d.port}/api/v1/queues"],
                       capture_output=True, text=True, cwd=DIR)
    ok("WWW-Authenticate: Basic" in r.stdout and '"code":"credentials_needed"' in r.stdout and
       "X-Frame-Options: SAMEORIGIN" in r.stdout and "DENY" not in r.stdout, "challenge, problem, headers", r.stdout)
    write("pw", "s3cret\n")
    write("badpw", "no\n")
    url = f"https://127.0.0.1:{d.port}"
    for args, code in ((["--user", "prom", "--password-file", "pw"], 0), (["--token-file", token], 0),
                       (["--user", "prom", "--password-file", "badpw"], 77), ([], 77)):
        r = run("status", "--url", url, "--ca", "ca.pem", *args, cwd=DIR)
        eq(r.returncode, code, f"pathline status {' '.join(args[:1])}: {code}")
        ok("s3cret" not in r.stdout + r.stderr, "the password is not shown")

    # Wrong passwords, many at once, from another address: they wait, nobody else does.
    results = []

    def guesser():
        mine = []
        while len(mine) < 8 or 429 not in mine[:200]:
            mine.append(get(d, "/healthz", "--interface", "127.0.0.9", "-u", f"prom:{len(mine)}x")[0])
        results.extend(mine)
    threads = [threading.Thread(target=guesser, daemon=True) for _ in range(8)]
    for t in threads:
        t.start()
    eq([get(d, "/healthz", "-u", "prom:s3cret")[0] for _ in range(10)], [200] * 10, "good ones meanwhile")
    for t in threads:
        t.join()
    eq(set(results), {401, 429}, "guesses are refused, then not even looked at")
    body = get(d, "/metrics", "-u", "prom:s3cret")[1]
    ok(metric(body, "pathline_http_auth_limited_total") > 0 and metric(body, "pathline_http_auth_failures_total") > 10,
       "both are counted")

    if shutil.which("prometheus") is None:
        skip("Prometheus", "missing: prometheus")
    else:
        scrape(d)
    eq(d.stop(), 0, "stops with 0")
    for listen, extra, pattern in (
            ("0.0.0.0:0", "", "without authentication"),
            ("0.0.0.0:0", f"  config_file: {write('plain.yml', f'basic_auth_users:{chr(10)}  a: {good}{chr(10)}')}\n",
             "sent in clear text"),
            ("0.0.0.0:0", f"  config_file: {DIR}/web.yml\n", None), ("127.0.0.1:0", "", None)):
        d = Daemon("warn", extra, listen)
        warned = re.findall(r"level=warning subject=http", d.log())
        ok(bool(warned) == bool(pattern) and (pattern or "") in d.log(), f"{listen}: {pattern or 'no warning'}",
           d.log())
        eq(d.stop(), 0, "stops with 0")


def scrape(d):
    """Prometheus with TLS and a password, as the exporters beside it have them."""
    web = free_port()
    conf = write("prometheus.yml", "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n"
                 "  - job_name: good\n    scheme: https\n    tls_config: {ca_file: " + DIR + "/ca.pem}\n"
                 "    basic_auth: {username: prom, password: s3cret}\n    static_configs:\n"
                 f"      - targets: ['127.0.0.1:{d.port}']\n"
                 "  - job_name: bad\n    scheme: https\n    tls_config: {ca_file: " + DIR + "/ca.pem}\n"
                 f"    static_configs:\n      - targets: ['127.0.0.1:{d.port}']\n")
    p = lab.start(["prometheus", f"--config.file={conf}", f"--storage.tsdb.path={DIR}/tsdb",
                   f"--web.listen-address=127.0.0.1:{web}"], log=lab.path("prometheus.log"))

    def up():
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/api/v1/query?query=up", timeout=5) as r:
            return {x["metric"]["job"]: x["value"][1] for x in json.load(r)["data"]["result"]}
    ok(wait(lambda: up() == {"good": "1", "bad": "0"}), "Prometheus: up with the password, down without")
    p.terminate()
    p.wait(timeout=120)


# ---- clients that want to hold it up ----

def connect(port, source="127.0.0.2"):
    s = socket.socket()
    s.bind((source, 0))
    s.settimeout(LIMIT)
    s.connect(("127.0.0.1", port))
    return s


def answered(port, path="/healthz", source="127.0.0.1"):
    """Whether a new connection gets its answer, whole."""
    with connect(port, source) as s:
        s.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())
        data = b""
        while chunk := s.recv(4096):
            data += chunk
    return b" 200 OK" in data and data.endswith((b"\r\n\r\nok\n", b"\r\n\r\nready\n"))


def served(d, name, probes=40, paths=("/healthz", "/readyz")):
    """Other clients' health checks are answered while somebody is there."""
    good = 0
    for i in range(probes):
        good += answered(d.port, paths[i % len(paths)], f"127.0.3.{i % 4 + 1}")
        time.sleep(0.01)
    eq(good, probes, f"{name}: health checks of others are answered")


def test_attack():
    d = Daemon("attack")
    served(d, "nobody else")

    # Heads that come a byte at a time.
    slow = [connect(d.port) for _ in range(16)]
    for s in slow:
        s.sendall(b"GET /")
    served(d, "16 slow heads")
    open_heads = set(slow)

    def all_ended():
        """the server has ended each of them, although bytes come"""
        for s in list(open_heads):
            try:
                s.sendall(b"x")
            except OSError:
                open_heads.discard(s)
        return not open_heads
    ok(wait(all_ended, pause=0.5), "slow heads end, although a byte comes now and then", len(open_heads))
    for s in slow:
        s.close()

    # More than one address may have.
    def taken():
        return pathline.total(d.metrics(), "pathline_http_connections_total")
    count = taken()
    many = [connect(d.port) for _ in range(40)]
    wait(lambda: taken() >= count + 40)
    alive = 0
    for s in many:
        try:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            alive += b"200" in s.recv(100)
        except OSError:
            pass
        s.close()
    ok(alive <= 16, "at most 16 of one address", alive)
    served(d, "after 40 connections")

    # Ten thousand, one after the other.
    for i in range(10000):
        connect(d.port, "127.0.0.3").close()
        if i == 5000:
            served(d, "5000 connections on")
    served(d, "10000 connections on")

    # Pipelining: every request is answered, in order.
    with connect(d.port) as s:
        paths = [b"/healthz", b"/api/v1/nope", b"/readyz"] * 30
        s.sendall(b"".join(b"GET " + p + b" HTTP/1.1\r\nHost: localhost\r\n\r\n" for p in paths))
        data = b""
        while data.count(b"HTTP/1.1 ") < len(paths) or not data.endswith(b"ready\n"):
            chunk = s.recv(65536)
            if not chunk:
                break
            data += chunk
    eq(re.findall(rb"HTTP/1.1 (\d+)", data), [b"200", b"404", b"200"] * 30, "90 requests at once, answered in order")

    # Heads that are too large, targets too long, bodies, folded lines, two lengths, no Host.
    def answer(data):
        with connect(d.port) as s:
            try:
                s.sendall(data)
                m = re.match(rb"HTTP/1.1 (\d+)", s.recv(4096))
            except OSError:
                return 0
            return int(m.group(1)) if m else 0
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    for name, data, want in (
            ("a head of 9 KiB", head + b"X: " + b"a" * 9000 + b"\r\n\r\n", (431,)),
            ("a head of 1 MiB", head + b"".join(b"X%d: %s\r\n" % (i, b"a" * 1000) for i in range(1000)) + b"\r\n",
             (431, 0)),
            ("a target of 3 KiB", b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (400, 414)),
            # The rest of the body may meet a closed connection: then the answer is lost to a reset.
            ("a body", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", (413, 0)),
            ("POST", b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", (405,)),
            ("another Host", b"GET /api/v1/status HTTP/1.1\r\nHost: evil.example\r\n\r\n", (403,)),
            ("no Host", b"GET /healthz HTTP/1.1\r\n\r\n", (400,)),
            # What another program in front might read otherwise.
            ("two Hosts", head + b"Host: localhost\r\n\r\n", (400,)),
            ("two lengths", head + b"Content-Length: 0\r\nContent-Length: 30\r\n\r\nGET /metrics HTTP/1.1\r\n", (400, 413)),
            ("a folded line", head + b"X: a\r\n b\r\n\r\n", (400,)),
            ("a folded Host", b"GET /healthz HTTP/1.1\r\nHost:\r\n localhost\r\n\r\n", (400,)),
            ("bare LF", head.replace(b"\r\n", b"\n") + b"\n", (400,)),
            ("a bare LF", head + b"X: a\nY: b\n\r\n", (400, 200)),
            ("a NUL in the target", head.replace(b"/healthz", b"/healthz\0x") + b"\r\n", (400,)),
            ("a blank before the colon", head.replace(b"Host:", b"Host :") + b"\r\n", (400,)),
            ("no blank behind a colon", head + b"X:a\r\nY:\r\n\r\n", (200,)),
            ("HTTP/1.0", b"GET /healthz HTTP/1.0\r\n\r\n", (200,)),
            ("nonsense", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n\r\n", (400, 0))):
        got = answer(data)
        ok(got in want, f"{name}: {want[0]}", got)

    # Answers that nobody takes, and a stream that is not read.
    takers = [stall(d.port, "127.0.0.4", "/metrics", "/api/v1/tail") for _ in range(8)]
    served(d, "8 that take no answer")
    for s in takers:
        s.close()
    eq(d.stop(), 0, "stops with 0")


# ---- many that scrape ----

# So many connections that each ask for the page again when they have it, from several addresses. SIGTERM: none asks again, and
# how many pages, and other answers, there were, when all have the last one.
SCRAPERS = """
import selectors, signal, socket, sys
port, first, n, extra = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
request = f"GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n{extra}Connection: close\\r\\n\\r\\n".encode()
pages = other = 0
poll, room = selectors.DefaultSelector(), bytearray(1 << 20)

def begin(i):
    s = socket.socket()
    s.bind((f"127.0.4.{first + i // 10}", 0))
    s.connect(("127.0.0.1", port))
    s.sendall(request)
    s.setblocking(False)
    poll.register(s, selectors.EVENT_READ, [i, b""])

for i in range(n):
    begin(i)
print("all ask", flush=True)
while poll.get_map():
    for key, _ in poll.select():
        s, (i, head) = key.fileobj, key.data
        try:
            got = s.recv_into(room)
        except OSError:
            got = 0
        if got and not head:
            key.data[1] = bytes(room[:15])
        if not got:
            pages += head.startswith(b"HTTP/1.1 200 OK")
            other += not head.startswith(b"HTTP/1.1 200 OK")
            poll.unregister(s)
            s.close()
            if not over:
                begin(i)
print(pages, other, flush=True)
"""


def scrapers(d):
    """A hundred, half of which take compressed pages."""
    made = [lab.start([sys.executable, "-c", SCRAPERS, str(d.port), str(first), "50", extra], stdout=subprocess.PIPE,
                      text=True) for first, extra in ((1, ""), (11, "Accept-Encoding: gzip\r\n"))]
    eq([p.stdout.readline() for p in made], ["all ask\n"] * 2, "a hundred scrapers are there")
    return made


def end_scrapers(made):
    for i, p in enumerate(made):
        p.terminate()
        pages, other = map(int, p.communicate(timeout=4 * LIMIT)[0].split())
        ok(pages >= 50 and other == 0, f"scrapers {i}: all get their pages", f"{pages} pages, {other} others")


def stall(port, source, *paths):
    """A client that asks and does not read."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.bind((source, 0))
    s.connect(("127.0.0.1", port))
    s.sendall(b"".join(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode() for path in paths))
    return s


def stalled(d, n, path="/metrics"):
    """So many of several addresses; a {} in the path is each one's number."""
    return [stall(d.port, f"127.0.5.{i % 4 + 1}", path.format(i)) for i in range(n)]


def large(name):
    """A daemon with the page of a large network."""
    udp = free_udp_port()
    d = Daemon(name, source=udp)
    pathline.gen(udp, "--topology", "fat-tree:8", "--flows", 3000, "--fields", "node,ports,latency,queue", "-n", 12000,
                 "--rate", "4k")
    ok(wait(lambda: len(d.get("/metrics")[1]) > 4 << 20), "a page of several MiB")
    return d


def pages_while_held(d):
    """Each of 32 that do not read has a page of its own in mind: those who read are served."""
    readers = stalled(d, 32, "/metrics?x={}")
    for _ in range(4):
        status, body = d.get("/metrics")
        eq((status, len(body) > 4 << 20), (200, True), "a page while 32 hold one each")
    ok(pathline.total(d.metrics(), "pathline_http_ended_total") > 0, "those who did not read were ended, and are counted")
    for s in readers:
        s.close()


def test_many():
    """A hundred that scrape in a loop and eight that do not read, at a page of a large network."""
    d = large("many")
    served(d, "nobody else")
    scraping = scrapers(d)
    served(d, "100 scrapers")
    readers = stalled(d, 8)
    served(d, "100 scrapers and 8 that do not read")
    end_scrapers(scraping)
    for s in readers:
        s.close()
    pages_while_held(d)

    # Heads that do not come, on every connection there is, from eight addresses.
    heads = []
    for i in range(128):
        heads.append(connect(d.port, f"127.0.6.{i % 8 + 1}"))
        heads[-1].sendall(b"GET /hea")
    served(d, "128 slow heads")
    for s in heads:
        s.close()
    burst = []
    for i in range(1000):
        s = socket.socket()
        s.bind((f"127.0.7.{i % 200 + 1}", 0))
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", d.port))
        burst.append(s)
    served(d, "1000 connections at once")
    for s in burst:
        s.close()
    eq(d.stop(), 0, "stops with 0")


def tails(port, source, n):
    """So many streams; the status of each."""
    streams, status = [], []
    for _ in range(n):
        streams.append(connect(port, source))
        streams[-1].sendall(b"GET /api/v1/tail HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status.append(int(streams[-1].recv(15).split()[1]))
    return streams, status


def test_streams():
    """Who has all the streams has to give some to others, and keeps the rest."""
    d = Daemon("streams", "  max_streams: 8\n")

    def shares():
        places = [s["address"] for s in json.loads(d.get("/api/v1/status")[1])["streams"]]
        return sorted(places.count(p) for p in set(places))
    a = tails(d.port, "127.0.0.11", 8)
    eq(a[1], [200] * 8, "one address has all 8 while nobody else wants any")
    b = tails(d.port, "127.0.0.12", 6)
    eq(b[1], [200] * 4 + [503] * 2, "another is given half, and no more")
    eq(shares(), [4, 4], "half and half")
    c = tails(d.port, "127.0.0.13", 1)
    eq((c[1], shares()), ([200], [1, 3, 4]), "and a third its part")

    def ended(s):
        """The last chunk has come."""
        s.settimeout(0.2)
        try:
            return s.recv(65536).endswith(b"0\r\n\r\n")
        except TimeoutError:
            return False
    over = set()

    def four_are_over():
        """four of the first eight streams have ended: for those of the second address"""
        over.update(s for s in a[0] if s not in over and ended(s))
        return len(over) >= 4
    ok(wait(four_are_over), "those that had to go end as streams end", len(over))
    eq(d.stop(), 0, "stops with 0")


# ---- promises ----

def promise_answers():
    """A health check takes less than a tenth of a second, whoever is there."""
    d = large("answers")

    def slowest():
        readers, scraping, times = stalled(d, 8), scrapers(d), []
        for _ in range(100):
            start = time.monotonic()
            good = answered(d.port, source="127.0.3.1")
            times.append(time.monotonic() - start if good else LIMIT)
            time.sleep(0.01)
        end_scrapers(scraping)
        for s in readers:
            s.close()
        return max(times) < 0.1, f"{max(times) * 1e3:.0f} ms at most"
    promise("health checks beside 100 scrapers and 8 that do not read", slowest)
    eq(d.stop(), 0, "stops with 0")


def promise_memory():
    """What is held for clients is bounded by the configuration; allocators keep pages."""
    d = large("memory")

    def rss():
        with open(f"/proc/{d.p.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def grown():
        before = rss()
        for i in range(10000):
            connect(d.port, f"127.0.8.{i % 200 + 1}").close()
        pages_while_held(d)
        after = rss()
        return after - before < 128 << 10, f"{before} KiB, then {after} KiB"
    promise("memory stays while connections and readers come and go", grown)
    eq(d.stop(), 0, "stops with 0")


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    lab.run(test_tls, test_kept, test_auth, test_attack, test_many, test_streams, promise_answers, promise_memory)
    return tap.end()


sys.exit(main())
