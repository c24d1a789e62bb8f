# SPDX-License-Identifier: BSD-2-Clause
"""Collectors of IPFIX: nfdump, pmacct, and one of the tests for what these do not show."""
import collections
import datetime
import json
import os
import signal
import socket
import struct
import subprocess
import threading

from . import lab
from .tap import ok
from .wait import LIMIT, wait


# ---- collectors of others ----

class Nfdump:
    """nfcapd on a port of UDP; what it kept, once it has ended."""

    def __init__(self, at, namespace=None):
        self.at, self.folder = at, lab.path(f"nfdump-{at}")
        os.mkdir(self.folder)
        command = ["nfcapd", "-w", self.folder, "-p", str(at), "-t", "86400"]
        self.p = lab.start(namespace.command(*command) if namespace else command, log=lab.path(f"nfcapd-{at}"))
        ok(wait(lambda: port_is_open(at, self.p)), "nfcapd is up", lab.read(f"nfcapd-{at}"))

    def flows(self):
        ok(wait(lambda: waiting_at(self.at, self.p) == 0), "nfcapd has read all that came")
        # nfcapd looks whether a signal came, and then waits for a datagram: one that comes between wakes nobody.
        ok(wait(lambda: self.p.send_signal(signal.SIGTERM) or self.p.poll() is not None), "nfcapd ends")
        said = subprocess.run(["nfdump", "-R", self.folder, "-o", "json"], capture_output=True, text=True, check=True).stdout
        return [] if "No matching flows" in said else json.loads(said)


def port_is_open(at, process):
    """the collector's network has a socket of UDP at this port"""
    with open(f"/proc/{process.pid}/net/udp", encoding="ascii") as four, open(f"/proc/{process.pid}/net/udp6", encoding="ascii") as six:
        return f":{at:04X} " in four.read() + six.read()


def waiting_at(at, process):
    """Bytes that wait in the sockets of UDP at a port, in the network of a process."""
    lines = []
    for name in "udp", "udp6":
        with open(f"/proc/{process.pid}/net/{name}", encoding="ascii") as f:
            lines += [line.split() for line in f if f":{at:04X} " in line]
    return sum(int(words[4].split(":")[1], 16) for words in lines)


class Pmacct:
    """nfacctd, likewise: a line of JSON for each flow."""

    def __init__(self, at):
        self.at, self.out = at, lab.path(f"pmacct-{at}.json")
        config = lab.write(f"nfacctd-{at}.conf", f"nfacctd_ip: 127.0.0.1\nnfacctd_port: {at}\nplugins: print[p]\nprint_output_file[p]: {self.out}\nprint_output_file_append[p]: true\n"
                           "print_output[p]: json\nprint_refresh_time[p]: 2\ntimestamps_since_epoch: true\n"
                           "aggregate[p]: src_host,dst_host,src_port,dst_port,proto,tcpflags,timestamp_start,timestamp_end\n")
        log = f"nfacctd-{at}"
        self.p = lab.start(["nfacctd", "-f", config], log=lab.path(log))
        ok(wait(lambda: port_is_open(at, self.p) and "p/print ): JSON" in lab.read(log)), "nfacctd is up", lab.read(log))

    def flows(self):
        if not os.path.exists(self.out):
            return []
        with open(self.out, encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().splitlines() if line.endswith("}")]


# ---- a collector that shows everything ----

class Reader:
    """Messages of one transport session, by their templates. What is wrong in them stands in `faults`."""

    def __init__(self):
        self.templates, self.records, self.accounts, self.faults, self.numbers, self.domains = {}, [], [], [], [], set()
        self.count = 0

    def take(self, message):
        version, length, at_s, number, domain = struct.unpack_from(">HHIII", message)
        if (version, length) != (10, len(message)):
            self.faults.append(f"version {version}, length {length} of {len(message)}")
        if number != self.count:
            self.faults.append(f"number {number}, wanted {self.count}")
        self.numbers.append(number)
        self.domains.add(domain)
        self.export_s = at_s
        at = 16
        while at < len(message):
            kind, size = struct.unpack_from(">HH", message, at)
            self.take_set(kind, message[at + 4:at + size])
            at += size

    def take_set(self, kind, data):
        if kind in (2, 3):
            self.take_templates(data, 6 if kind == 3 else 4)
            return
        fields = self.templates.get(kind)
        if fields is None:
            self.faults.append(f"no template {kind}")
            return
        at, size = 0, sum(n for _, n in fields)
        while at + size <= len(data):
            record = {}
            for name, n in fields:
                record[name] = int.from_bytes(data[at:at + n], "big")
                at += n
            (self.accounts if 166 in record else self.records).append(record)
            self.count += 1

    def take_templates(self, data, head):
        at = 0
        while at + 4 <= len(data):
            kind, n = struct.unpack_from(">HH", data, at)
            at += head
            fields = []
            for _ in range(n):
                element, size = struct.unpack_from(">HH", data, at)
                at += 4
                if element & 0x8000:
                    fields.append(((struct.unpack_from(">I", data, at)[0], element & 0x7fff), size))
                    at += 4
                else:
                    fields.append((element, size))
            self.templates[kind] = fields


class Tcp:
    """A collector on a port of TCP; a Reader for each connection."""

    def __init__(self, at=None):
        self.sessions, self.open = [], []
        self.server = socket.create_server(("127.0.0.1", at or 0))
        self.at = self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                s, _ = self.server.accept()
            except OSError:
                return
            self.sessions.append(Reader())
            self.open.append(s)
            threading.Thread(target=self.read, args=(s, self.sessions[-1]), daemon=True).start()

    def read(self, s, reader):
        data = b""
        while True:
            try:
                got = s.recv(65536)
            except OSError:
                return
            if not got:
                return
            data += got
            while len(data) >= 4 and len(data) >= (size := struct.unpack_from(">H", data, 2)[0]):
                reader.take(data[:size])
                data = data[size:]

    def end(self):
        """Closes its side, and reads what comes until the other one does."""
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for s in self.open:
            s.shutdown(socket.SHUT_WR)

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for s in self.open:
            s.shutdown(socket.SHUT_RDWR)
            s.close()

    def records(self):
        return [r for reader in self.sessions for r in reader.records]

    def faults(self):
        return [f for reader in self.sessions for f in reader.faults]


class Udp:
    """A collector on a port of UDP: one Reader, and the messages as they came."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.at, self.reader, self.messages = self.socket.getsockname()[1], Reader(), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while True:
            message = self.socket.recv(65536)
            self.messages.append(message)
            self.reader.take(message)


def write_capture(path, messages, port):
    """As a capture has them: datagrams to this port."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
        for data in messages:
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
            f.write(struct.pack("<IIII", 1, 0, 28 + len(data), 28 + len(data)) + ip + struct.pack(">HHHH", 9, port, 8 + len(data), 0) + data)


def ms(text):
    """Of nfdump's times, which are local ones: the test's network has UTC."""
    return round(datetime.datetime.fromisoformat(text + "+00:00").timestamp() * 1000)


def own_values(collector):
    """(element, value) under an enterprise number, as often as they came."""
    return collections.Counter((k[1], v) for r in collector.reader.records for k, v in r.items() if isinstance(k, tuple))


class Tshark:
    """What tshark reads in the messages that came to a collector: faults that it finds, and values under enterprise numbers."""

    def __init__(self, path, collector):
        write_capture(path, collector.messages, 4739)
        self.command = ["tshark", "-n", "-r", path, "-d", "udp.port==4739,cflow"]
        said = subprocess.run([*self.command, "-V"], capture_output=True, text=True, check=True).stdout
        self.bad = [line.strip() for line in said.splitlines() if "alformed" in line or "xpert" in line or "No template found" in line or
                    ("nknown" in line and "Code: " not in line and "Enterprise Private" not in line and "pen: (Unknown)" not in line
                     and "PEN: (Unknown)" not in line)]
        self.own = collections.Counter()
        for line in said.splitlines():
            if "Enterprise Private entry" in line:
                kind, value = line.split("Type ")[1].split(": Value (hex bytes): ")
                self.own[int(kind), int(value.replace(" ", ""), 16)] += 1

    def texts(self, field):
        """Values of a field, as often as they came."""
        told = subprocess.run([*self.command, "-T", "fields", "-e", field], capture_output=True, text=True, check=True).stdout
        return collections.Counter(v for v in told.replace("\n", ",").split(",") if v)

    def numbers(self, field):
        return collections.Counter({int(v): n for v, n in self.texts(field).items()})
