# SPDX-License-Identifier: BSD-2-Clause
"""The program under test, which is the first argument of every test that has this: commands, the generator, the daemon and
its pages."""
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

from . import lab
from .tap import eq
from .wait import LIMIT, wait

PATHLINE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""


def run(*args, **kwargs):
    """A command to its end, with what it printed."""
    return subprocess.run([PATHLINE, *map(str, args)],
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 2 * LIMIT} | kwargs)


def region(*args):
    """What `pathline region` answers, as rows; one with its error."""
    answer = run("region", *args, "-o", "json")
    try:
        return json.loads(answer.stdout)
    except ValueError:
        return [{"error": answer.stdout + answer.stderr}]


def jsonl(text):
    return [json.loads(line) for line in text.splitlines()]


def answer(text):
    """Rows of `pathline query -o jsonl` with the question's columns alone, and the window, without what every row says behind them."""
    found = jsonl(text)
    for row in found:
        for name in ("incomplete", "final", "exp", "late", "first_ts"):
            if row and next(reversed(row)) == name:
                del row[name]
    return found


def reports_of(path):
    """Lines of a file of records and of those rotated away, by kind. Every one is a whole object."""
    kinds = {"path": 0, "event": 0}
    for name in os.listdir(os.path.dirname(path)):
        if name.startswith(os.path.basename(path)):
            with open(os.path.join(os.path.dirname(path), name), encoding="utf-8") as f:
                for line in f:
                    kinds[json.loads(line)["kind"]] += 1
    return kinds


# ---- the generator ----

def start_gen(port, *options):
    """Reports to a port of this host, in the background."""
    return lab.start([PATHLINE, "gen", "int", *map(str, options), f"udp://127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
                     stderr=subprocess.PIPE, text=True)


def finish_gen(process):
    """What it said, once it has ended."""
    words = process.communicate(timeout=5 * LIMIT)[1]
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(process.args)}: ended with {process.returncode}\n{words}")
    return words


def sent_by(process):
    """How many it has sent, once it has ended."""
    return int(re.search(r"(\d+) packets", finish_gen(process)).group(1))


def gen(port, *options):
    return sent_by(start_gen(port, *options))


# ---- the daemon ----

def samples(page):
    """The series of a metrics page with their values."""
    values = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            series, value = line.split(" # ")[0].rsplit(" ", 1)
            values[series] = float(value)
    return values


def total(values, name):
    """Over all series of a name."""
    return int(sum(value for series, value in values.items() if series.split("{")[0] == name))


def came(values):
    """Packets that reached its sockets: received, or dropped there."""
    return total(values, "pathline_packets_total") + total(values, "pathline_socket_drops_total")


def accounts_close(values, what):
    """Of one reading, when nothing moves."""
    eq(total(values, "pathline_packets_decoded_total") + total(values, "pathline_report_errors_total"),
       total(values, "pathline_packets_total"), f"{what}: packets = sum of verdicts")
    eq(total(values, "pathline_output_offered_total"),
       sum(total(values, f"pathline_output_{x}_total") for x in ("delivered", "filtered", "dropped")) +
       total(values, "pathline_output_waiting"), f"{what}: offered = delivered + filtered + dropped + waiting")


class Daemon:
    """pathline run; what it says is in NAME.log of the test's folder. web is where its pages are. One that is not ready is
    raised as an error with its words, unless it is not waited for."""

    def __init__(self, config, name="daemon", ready=True, prefix=(), **process):
        self.config, self.name, self.prefix, self.process = config, name, prefix, process
        self.log_path = lab.path(name + ".log")
        self.start(ready)

    def start(self, ready=True):
        """Also once more: then log() has what the new one says."""
        self.at = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        self.p = lab.start([*self.prefix, PATHLINE, "run", "-c", self.config, "--log.format", "logfmt"], log=self.log_path,
                           **self.process)
        self.web = self.wait_for(r"metrics on (https?://[^/]+)/") if ready else None
        if ready and self.web is None:
            raise RuntimeError(f"daemon {self.name} is not ready, its exit code is {self.p.poll()}\n{self.log()}")

    def log(self):
        with open(self.log_path, encoding="utf-8") as f:
            f.seek(self.at)
            return f.read()

    def wait_for(self, pattern, seconds=LIMIT, count=1):
        """The last of so many places in its log, or of their groups; None when they do not come, or it has ended."""
        def found():
            return len(re.findall(pattern, self.log())) >= count

        def said_or_ended():
            """its log has the pattern, or it has ended"""
            return found() or self.p.poll() is not None
        wait(said_or_ended, seconds)
        return re.findall(pattern, self.log())[-1] if found() else None

    def fetch(self, path, headers=None):
        """Status, body, headers."""
        request = urllib.request.Request(self.web + path, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as r:
                return r.status, r.read(), dict(r.headers)
        except urllib.error.HTTPError as e:
            return e.code, e.read(), dict(e.headers)

    def get(self, path, headers=None):
        status, body, _ = self.fetch(path, headers)
        return status, body.decode()

    def metrics(self):
        return samples(self.get("/metrics")[1])

    def kill(self):
        self.p.kill()
        self.p.wait()

    def stop(self, how=signal.SIGTERM):
        self.p.send_signal(how)
        return self.p.wait(timeout=2 * LIMIT)
