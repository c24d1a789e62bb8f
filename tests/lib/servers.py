# SPDX-License-Identifier: BSD-2-Clause
"""Servers from Debian on ports of their own: Alertmanager and others that are asked over HTTP."""
import json
import os
import signal
import tempfile
import urllib.parse
import urllib.request

from . import lab
from .lab import DIR, free_port, write
from .tap import ok
from .wait import LIMIT, wait


def get(url, headers=None):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=LIMIT) as r:
        return r.read()


class Server:
    """A server on a port of its own, with a folder of its own; may be killed and started again."""

    def __init__(self, name, args, ready):
        self.name, self.port, self.ready = name, free_port(), ready
        self.dir = tempfile.mkdtemp(dir=DIR)
        self.args = [a.format(port=self.port, dir=self.dir) for a in args]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = os.path.join(DIR, f"{name}.{self.port}.log")
        self.start()

    def start(self):
        self.p = lab.start(self.args, log=self.log_path)
        ok(wait(lambda: get(self.url + self.ready) is not None), f"{self.name} is up", self.log())

    def stop(self, how=signal.SIGTERM):
        self.p.send_signal(how)
        self.p.wait(timeout=60)

    def log(self):
        with open(self.log_path, errors="replace", encoding="utf-8") as f:
            return f.read()

    def query(self, expr):
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expr, "nocache": "1"})
        return json.loads(get(url))["data"]["result"]


class Alertmanager(Server):
    def __init__(self):
        config = write("am.yml", "route:\n  receiver: none\nreceivers:\n  - name: none\n")
        super().__init__("Alertmanager", ["prometheus-alertmanager", f"--config.file={config}", "--storage.path={dir}",
                                          "--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="], "/-/ready")

    def alerts(self, name, active="true"):
        found = json.loads(get(f"{self.url}/api/v2/alerts?active={active}"))
        return [a for a in found if a["labels"]["alertname"] == name]
