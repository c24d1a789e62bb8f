# SPDX-License-Identifier: BSD-2-Clause
"""Servers from Debian on ports of their own: Alertmanager, InfluxDB, ClickHouse and others that are asked over HTTP."""
import json
import os
import signal
import tempfile
import urllib.error
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


class Influx(Server):
    """InfluxDB 1."""

    def __init__(self):
        config = write("influx.conf", f"""reporting-disabled = true
bind-address = "127.0.0.1:{free_port()}"
[meta]
  dir = "{DIR}/influx/meta"
[data]
  dir = "{DIR}/influx/data"
  wal-dir = "{DIR}/influx/wal"
[http]
  bind-address = "127.0.0.1:PORT"
  log-enabled = false
[monitor]
  store-enabled = false
""")
        super().__init__("InfluxDB", ["sh", "-c", f"sed -i s/PORT/{{port}}/ {config}; exec influxd -config {config}"], "/ping")

    def ask(self, question, database):
        """Series, each with its columns and values; times in nanoseconds."""
        data = urllib.parse.urlencode({"q": question, "epoch": "ns", "db": database}).encode()
        with urllib.request.urlopen(self.url + "/query", data=data, timeout=LIMIT) as r:
            return json.load(r)["results"][0].get("series", [])

    def rows(self, question, database):
        return [dict(zip(s["columns"], v)) for s in self.ask(question, database) for v in s["values"]]


CLICKHOUSE = """<yandex>
 <logger><level>warning</level><console>1</console></logger>
 <http_port>{port}</http_port><listen_host>127.0.0.1</listen_host>
 <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
 <default_profile>default</default_profile><default_database>default</default_database>
 <mark_cache_size>67108864</mark_cache_size>
 <kafka><auto_offset_reset>smallest</auto_offset_reset></kafka>
</yandex>
"""
CLICKHOUSE_USERS = """<yandex>
 <profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
 <users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
 </default></users>
 <quotas><default></default></quotas>
</yandex>
"""


class ClickHouse:
    def __init__(self):
        port = self.port = free_port()
        folder = lab.path("server")
        os.mkdir(folder)
        write("server/users.xml", CLICKHOUSE_USERS)
        config = write("server/config.xml", CLICKHOUSE.format(port=port, folder=folder))
        self.url = f"http://127.0.0.1:{port}/"
        self.config, self.folder = config, folder
        self.begin()

    def begin(self):
        self.process = lab.start(["clickhouse-server", f"--config-file={self.config}"], log=lab.path("server.log"), cwd=self.folder)
        if not wait(lambda: self.ask("SELECT 1") == "1\n"):
            raise RuntimeError(lab.read("server.log"))

    def end(self):
        self.process.kill()
        self.process.wait()

    def ask(self, statement, body=None, **settings):
        """With a body, the statement goes into the address."""
        url = self.url + "?" + urllib.parse.urlencode({**settings, **({"query": statement} if body is not None else {})})
        try:
            with urllib.request.urlopen(url, data=statement.encode() if body is None else body, timeout=LIMIT) as r:
                return r.read().decode()
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{statement[:200]}: {e.read().decode()[:500]}") from e
