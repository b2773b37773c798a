"""Logs of NCCL jobs, built from the formats of NCCL's messages, and the doctor on them."""

import pytest

from linkwise.diagnose.doctor import diagnose
from linkwise.readers.job_log.reading import parse_job_log


class Job:
    """Lines of a healthy job of `hosts` hosts with `per_host` ranks each, to which faults are added."""

    def __init__(self, *, hosts=2, per_host=2, version=(2, 21, 5), network="IB", link="IB", nics=2, gdr=True):
        self.hosts = [f"n{number:02d}" for number in range(hosts)]
        self.per_host, self.version, self.network, self.link = per_host, version, network, link
        self.nics, self.gdr = nics, gdr
        self.lines = []
        self.ranks = hosts * per_host

    def say(self, rank, message, *, level="INFO", source=""):
        host, local = self.hosts[rank // self.per_host], rank % self.per_host
        pid = 1000 + rank
        where = f" {source}:1" if source else ""
        if level == "WARN":
            self.lines.append("")
        self.lines.append(f"{host}:{pid}:{pid + 50} [{local}]{where} NCCL {level} {message}")
        return self

    def fault(self, rank, message, *, source="misc/socket.cc"):
        return self.say(rank, message, level="WARN", source=source)

    def raw(self, *lines):
        self.lines += lines
        return self

    def start(self, *, interface="eth0", addresses=None, settings=()):
        version = ".".join(map(str, self.version))
        for rank in range(self.ranks):
            host = rank // self.per_host
            address = addresses[host] if addresses else f"10.0.0.{host + 1}"
            self.say(rank, f"Bootstrap : Using {interface}:{address}<0>")
            for name, value in settings:
                self.say(rank, f"{name} set by environment to {value}.")
        self.lines.append(f"NCCL version {version}+cuda12.4")
        return self

    def choose(self):
        for rank in range(self.ranks):
            if self.network == "IB":
                devices = " ".join(f"[{n}]mlx5_{n}:1/{self.link}" for n in range(self.nics))
                self.say(
                    rank, f"NET/IB : Using {devices} [RO]; OOB eth0:10.0.0.{rank // self.per_host + 1}<0>"
                )
            elif self.network == "Socket":
                self.say(rank, "NET/IB : No device found.")
                self.say(rank, f"NET/Socket : Using [0]eth0:10.0.0.{rank // self.per_host + 1}<0>")
            self.say(rank, f"Using network {self.network}")
        return self

    def init(self, stage="START"):
        for rank in range(self.ranks):
            comm = f"comm 0x{rank + 16:x} rank {rank} nranks {self.ranks} cudaDev {rank % self.per_host}"
            self.say(
                rank,
                f"ncclCommInitRank {comm} nvmlDev {rank % self.per_host} busId 1b000 commId 0x7 - Init {stage}",
            )
            if stage == "START":
                local = f"localRanks {self.per_host} localRank {rank % self.per_host}"
                sizes = f"nRanks {self.ranks} nNodes {len(self.hosts)} {local} MNNVL 0"
                self.say(rank, f"comm 0x{rank + 16:x} rank {rank} {sizes}")
        return self

    def connect(self, *, inside="P2P/CUMEM/read"):
        suffix = "/GDRDMA" if self.gdr and self.network == "IB" else ""
        for rank in range(self.ranks):
            peer, before = (rank + 1) % self.ranks, (rank - 1) % self.ranks
            a, b, c = rank % self.per_host, peer % self.per_host, before % self.per_host
            for channel in range(2):
                name = f"Channel {channel:02d}/0 :"
                if peer // self.per_host == rank // self.per_host:
                    self.say(rank, f"{name} {rank}[{a}] -> {peer}[{b}] via {inside}")
                else:
                    self.say(
                        rank, f"{name} {rank}[{a}] -> {peer}[{b}] [send] via NET/{self.network}/0{suffix}"
                    )
                if before // self.per_host != rank // self.per_host:
                    self.say(
                        rank,
                        f"{name} {before}[{c}] -> {rank}[{a}] [receive] via NET/{self.network}/0{suffix}",
                    )
        return self

    def healthy(self, **started):
        return self.start(**started).choose().init().connect().init("COMPLETE")

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


@pytest.fixture
def job():
    return Job


@pytest.fixture
def doctor():
    def run(log, **further):
        texts = {"job.log": getattr(log, "text", log), **further}
        return diagnose(parse_job_log((name, text.encode()) for name, text in texts.items()))

    return run


@pytest.fixture
def causes(doctor):
    """Return the causes that are slow or broken, with severity and confidence, worst first."""

    def run(log, **further):
        found = doctor(log, **further).findings
        return [
            (each.cause, each.severity.value, each.confidence.value)
            for each in found
            if each.severity != "harmless"
        ]

    return run
