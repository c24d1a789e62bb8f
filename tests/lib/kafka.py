# SPDX-License-Identifier: BSD-2-Clause
"""A Kafka server of one node, from the jars that tools/kafka fetches. Topics come into being, with two partitions, when they are
first named."""
import os
import subprocess

from . import lab
from .wait import wait

CONFIG = """process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={data}
auto.create.topics.enable=true
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=4194304
log.retention.ms=-1
"""


def java(jars, *more):
    """Small and quick to start; `more` begins with the class."""
    return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
            "-cp", os.path.join(jars, "*"), *more]


class Broker:
    """`more`: further lines of the server's properties, of which the last one of a name counts, or what makes them of the ports of
    the server and its controller. Several servers have names."""

    def __init__(self, jars, more="", name="broker"):
        self.jars, self.port, self.starts, self.name = jars, lab.free_port(), 0, name
        controller = lab.free_port()
        text = CONFIG.format(port=self.port, controller=controller, data=lab.path(name)) + (
            more(self.port, controller) if callable(more) else more)
        self.config = lab.write(f"{name}.properties", text)
        made = subprocess.run(java(jars, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c",
                                    self.config), capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise RuntimeError("the server's folder cannot be made\n" + made.stdout + made.stderr)
        self.start()

    def start(self):
        self.starts += 1
        log = f"{self.name}{self.starts}.log"
        self.process = lab.start(java(self.jars, "kafka.Kafka", self.config), log=lab.path(log))
        if not wait(lambda: "Kafka Server started" in lab.read(log)):
            raise RuntimeError("the server does not start\n" + lab.read(log)[-4000:])

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def uri(self, topic, keys=""):
        return f"kafka://{self.address}/{topic}{keys}"


class Second:
    """One more broker beside a server, of its own folder; the server stays the only controller."""

    def __init__(self, first, more=""):
        self.port = lab.free_port()
        with open(first.config, encoding="utf-8") as f:
            text = f.read()
        voters = next(line for line in text.splitlines() if line.startswith("controller.quorum.voters="))
        text += more + "\n".join(("process.roles=broker", "node.id=2", voters, f"listeners=PLAINTEXT://127.0.0.1:{self.port}",
                                  f"log.dirs={lab.path('broker-second')}")) + "\n"
        self.config, self.jars = lab.write("second.properties", text), first.jars
        made = subprocess.run(java(self.jars, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", self.config),
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise RuntimeError("the second broker's folder cannot be made\n" + made.stdout + made.stderr)
        self.process = lab.start(java(self.jars, "kafka.Kafka", self.config), log=lab.path("second.log"))
        if not wait(lambda: "Kafka Server started" in lab.read("second.log")):
            raise RuntimeError("the second broker does not start\n" + lab.read("second.log")[-4000:])

    def kill(self):
        self.process.kill()
        self.process.wait()
