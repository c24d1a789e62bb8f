# SPDX-License-Identifier: BSD-2-Clause
"""A server for line protocol that misbehaves as it is told, and what the tests of exporters share: a daemon that writes to it,
and the accounts of an output."""

import gzip
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import lab, pathline  # noqa: E402
from lib.tap import ok  # noqa: E402
from lib.wait import changes, wait  # noqa: E402


class Server:
    """mode is one of the names in answer(); lines are the distinct lines stored, stored is their number with those
    that came again."""

    def __init__(self, tls=None):
        """tls: files of a certificate, its key, and the certificate that clients must have."""
        self.port = lab.free_port()
        self.context = None
        if tls:
            self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tls[2])
            self.context.load_cert_chain(tls[0], tls[1])
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.mode = "fine"
        self.lines = set()
        self.stored = 0
        self.requests = 0
        self.headers = {}
        self.target = ""
        self.poison = None
        self.token = None
        self.lock = threading.Lock()
        self.listener = None
        self.open()

    def open(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(64)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def close(self):
        # A thread in accept() keeps the socket listening; shutdown ends both.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self, listener):
        while True:
            try:
                c, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            if self.context:
                c = self.context.wrap_socket(c, server_side=True)
            f = c.makefile("rb")
            while self.request(c, f):
                pass
        except (OSError, ValueError, gzip.BadGzipFile, EOFError):
            pass
        finally:
            c.close()

    def request(self, c, f):
        first = f.readline().decode()
        if not first:
            return False
        headers = {}
        for line in iter(f.readline, b"\r\n"):
            key, value = line.decode().rstrip("\r\n").split(": ", 1)
            headers[key.lower()] = value
        body = f.read(int(headers["content-length"]))
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        with self.lock:
            self.requests += 1
            self.headers, self.target = headers, first.split()[1]
        return self.answer(c, body.decode().splitlines(), len(body), self.mode)

    def store(self, lines):
        with self.lock:
            self.lines.update(lines)
            self.stored += len(lines)

    @staticmethod
    def reply(c, status, text="", more=""):
        c.sendall(f"HTTP/1.1 {status} X\r\nContent-Length: {len(text)}\r\n{more}\r\n{text}".encode())

    def answer(self, c, lines, size, mode):
        if mode == "fine":
            if self.token and self.headers.get("authorization") != self.token:
                self.reply(c, 401, '{"error":"authorization failed"}')
                return True
            bad = [x for x in lines if self.poison and self.poison in x]
            if bad:
                self.store([x for x in lines if x not in bad])
                self.reply(c, 400, '{"error":"partial write: field type conflict: dropped=%d"}' % len(bad))
                return True
            self.store(lines)
            self.reply(c, 204)
            return True
        if mode == "hang":
            while self.mode == "hang":
                time.sleep(0.05)
        elif mode == "reset":
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif mode == "stored, then reset":
            self.store(lines)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif mode == "twice":
            self.store(lines)
            self.reply(c, 204)
            self.reply(c, 500, "and another answer")
            return True
        elif mode == "garbage":
            c.sendall(os.urandom(3000))
        elif mode == "half an answer":
            c.sendall(b"HTTP/1.1 204 No Con")
        elif mode == "byte by byte":
            for byte in b"HTTP/1.1 204 No Content\r\nX: " + b"x" * 100:
                c.sendall(bytes([byte]))
                time.sleep(0.05)
        elif mode == "endless":
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
            while self.mode == "endless":
                c.sendall(b"x" * 65536)
        elif mode == "retry later":
            self.reply(c, 429, "", "Retry-After: 2\r\n")
            return True
        elif mode == "too large":
            if size > 3000:
                self.reply(c, 413, "too large")
            else:
                self.store(lines)
                self.reply(c, 204)
            return True
        elif mode == "elsewhere":
            self.reply(c, 302, "", f"Location: http://127.0.0.1:{self.port}/elsewhere\r\n")
            return True
        elif mode == "portal":
            self.reply(c, 200, "<html>please log in")
            return True
        else:
            self.reply(c, int(mode), '{"error":"as told"}')
            return True
        return False


class Daemon(pathline.Daemon):
    def output(self, name="db"):
        """The account of an output: names without prefix; dropped is by cause, drops is its sum."""
        result = {"dropped": {}}
        for key, value in self.metrics().items():
            m = re.fullmatch(r'pathline_output_(\w+?)(?:_total)?\{output="%s"(?:,cause="(\w+)")?\}' % name, key)
            if m and m.group(2):
                result["dropped"][m.group(2)] = int(value)
            elif m:
                result[m.group(1)] = int(value)
        result["drops"] = sum(result["dropped"].values())
        return result

    def balanced(self, when, name="db"):
        o = {}

        def closed():
            nonlocal o
            o = self.output(name)
            return (o["offered"] + o["points"] + o["recovered"] ==
                    o["delivered"] + o["filtered"] + o["drops"] + o["waiting"] + o["spooled"])
        # A scrape is not one instant: between two batches it may be off.
        ok(wait(closed), f"{when}: offered + points + recovered = delivered + dropped + waiting + spooled", o)
        return o

    def drained(self, seconds=60, name="db"):
        def empty():
            o = self.output(name)
            return o["waiting"] == 0 and o["spooled"] == 0
        return wait(empty, seconds)

    def intervals(self, n, name="db"):
        """Waits until points were made so many times more."""
        return changes(lambda: self.output(name)["points"], n)

    def received(self, sent):
        """All that was sent was received, or had no room in the socket."""
        return wait(lambda: pathline.came(self.metrics()) == sent)


# Every report counts, so the socket has room for all that a test sends; queues of a healthy network are told of.
DETECT = "decode:\n  admit: first\ndetect:\n  queue_depth:\n    threshold: 100\n    begin_hold: 0s\n    end_hold: 10ms\n"


def config(port, url, more="", top=""):
    return (f"{DETECT}sources:\n  - uri: udp://127.0.0.1:{port}?rcvbuf=64MiB\n"
            f"outputs:\n  - name: db\n    type: influx\n    url: {url}\n    queue: 1048576\n{more}"
            f"web:\n  listen: 127.0.0.1:0\n{top}")
