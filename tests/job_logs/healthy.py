"""What a job prints when nothing is wrong."""

from tests.job_logs.job import Facts, Job, Network, Rank, release_at
from tests.job_logs.script import Script

_TEXT_VARIABLES = {
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_SOCKET_IFNAME",
    "NCCL_COMM_ID",
    "NCCL_HOSTID",
    "NCCL_SOCKET_FAMILY",
}
"""Variables that are echoed without a final dot."""

_PLACES = {
    "NCCL_IB_HCA": "network",
    "NCCL_SOCKET_IFNAME": "bootstrap",
    "NCCL_IB_DISABLE": "network",
    "NCCL_IB_GID_INDEX": "connect",
    "NCCL_P2P_DISABLE": "graph",
    "NCCL_P2P_LEVEL": "graph",
    "NCCL_NET_GDR_LEVEL": "graph",
    "NCCL_ALGO": "tuning",
    "NCCL_PROTO": "tuning",
    "NCCL_TOPO_FILE": "graph",
    "NCCL_GRAPH_FILE": "graph",
    "NCCL_CROSS_NIC": "graph",
    "NCCL_NET_PLUGIN": "plugins",
}
"""The part of a start that first reads a variable; the others are read at its beginning."""


def write(job: Job) -> Script:
    """Return the lines of every rank of a job that starts, trains and ends."""
    script = Script(job)
    for rank in script.ranks:
        _start(script, rank)
        _network(script, rank)
        _communicator(script, rank)
        _finish(script, rank)
    _framework(script)
    for rank in script.ranks:
        script.say(rank, "end", "destroy", thread="main")
    return script


def facts_of(job: Job) -> Facts:
    """Return what can be read in the log of such a job when it runs."""
    several = job.nodes > 1 and not job.rack
    return Facts(
        inside=job.transport_inside,
        between=job.transport_between,
        nics_per_node=len(job.network.devices) if several else None,
        gdr=job.network.gdr if several and job.network.name != "Socket" else None,
        versions=tuple(sorted({str(release_at(job, host)) for host in job.hosts})),
        ranks=job.size,
        nodes=job.nodes,
    )


def echo_variables(script: Script, rank: Rank, phase: str, reader: str | None = None) -> None:
    """Print the variables that this part of a start reads; `reader` names it where it is a part of a phase."""
    for variable, value in script.job.variables:
        if _PLACES.get(variable, "start") == (reader or phase):
            _echo(script, rank, phase, variable, value)


def _echo(script: Script, rank: Rank, phase: str, variable: str, value: str) -> None:
    if variable == "NCCL_IB_HCA":
        script.say(rank, phase, "hca_filter", value=value)
    elif variable == "NCCL_P2P_DISABLE":
        script.say(rank, phase, "p2p_level", level="LOC") or script.say(
            rank, phase, "p2p_disable", value=value
        )
    elif variable == "NCCL_P2P_LEVEL":
        script.say(rank, phase, "p2p_level_text", level=value)
    elif variable == "NCCL_NET_GDR_LEVEL":
        script.say(rank, phase, "gdr_level_text", level=value)
    elif variable == "NCCL_TOPO_FILE":
        script.say(rank, phase, "topology_file", path=value)
    elif variable == "NCCL_GRAPH_FILE":
        script.say(rank, phase, "graph_file", path=value)
    elif variable == "NCCL_NET_PLUGIN":
        script.say(rank, phase, "plugin_name", library=value)
    elif variable in _TEXT_VARIABLES:
        script.say(rank, phase, "environment_text", variable=variable, value=value)
        if variable == "NCCL_SOCKET_IFNAME":
            script.say(rank, phase, "interface_filter", value=value)
    else:
        script.say(rank, phase, "environment", variable=variable, value=value)


def _start(script: Script, rank: Rank) -> None:
    script.say(rank, "start", "driver", thread="main")
    echo_variables(script, rank, "start")
    echo_variables(script, rank, "bootstrap")
    script.say(rank, "bootstrap", "bootstrap", thread="main")
    if rank.rank == 0 or script.release_of(rank).is_from("2.23.4"):
        script.say(rank, "bootstrap", "version", thread="main")
    echo_variables(script, rank, "plugins")
    network = script.job.network
    if network.plugin:
        _external_plugin(script, rank, network)
    else:
        for name in ("plugin_load", "no_plugin", "internal_plugin"):
            script.say(rank, "plugins", name)


def _external_plugin(script: Script, rank: Rank, network: Network) -> None:
    script.say(rank, "plugins", "probe_symbol")
    script.say(rank, "plugins", "loaded_plugin", network=network.name)
    script.say(rank, "plugins", "plugin_ready", library=network.plugin)
    texts = {
        "AWS Libfabric": (
            "NET/OFI Initializing aws-ofi-nccl 1.13.2-aws",
            "NET/OFI Using Libfabric version 1.22",
            "NET/OFI Setting provider_filter to efa",
            "NET/OFI Using transport protocol RDMA (platform set)",
            f"NET/OFI Selected provider is efa, fabric is efa (found {len(network.devices)} nics)",
        ),
        "FasTrak": ("NET/FasTrak plugin initializing, version 1.0.13",),
        "IBext": (
            "P2P plugin IBext",
            "NET/IB : Using" + devices_text(network, "/SHARP") + " [RO]; OOB eth0:" + rank.address + "<0>",
        ),
    }
    for text in texts.get(network.name, ()):
        script.raw_warn(rank, "plugins", text, "", level="INFO")


def devices_text(network: Network, suffix: str = "") -> str:
    """Return the list of HCAs as the line `NET/IB : Using` has it."""
    return "".join(f" [{index}]{name}:1/{network.link}{suffix}" for index, name in enumerate(network.devices))


def _network(script: Script, rank: Rank) -> None:
    network = script.job.network
    echo_variables(script, rank, "network")
    if network.name == "IB":
        script.say(rank, "network", "mlx5dv")
        script.say(rank, "network", "ib_devices", devices=devices_text(network))
        _ports(script, rank, network)
    elif network.name == "Socket":
        socket_choice(script, rank)
    script.say(rank, "network", "plugin_initialized")
    script.say(rank, "network", "plugin_assigned")
    script.say(rank, "network", "non_device")
    script.say(rank, "network", "network")
    if network.gdr and script.job.intra == "NVLink":
        script.say(rank, "network", "dmabuf")


def socket_choice(script: Script, rank: Rank) -> None:
    """Print how NCCL comes to sockets: no verbs device, then interfaces."""
    if ("NCCL_IB_DISABLE", "1") not in script.job.variables:
        script.say(rank, "network", "no_ib")
    script.say(rank, "network", "plugin_not_initialized", network="IB")
    names = script.job.network.devices if script.job.network.name == "Socket" else (script.job.interface,)
    script.say(
        rank,
        "network",
        "socket_devices",
        devices="".join(f" [{i}]{name}:{rank.address}<0>" for i, name in enumerate(names)),
    )


def _ports(script: Script, rank: Rank, network: Network) -> None:
    for index, device in enumerate(network.devices):
        pci = f"/sys/devices/pci0000:{0x15 + index:02x}/0000:{0x18 + index:02x}:00.0"
        speed = network.speed_mbit_per_s
        script.say(
            rank,
            "network",
            "ib_port",
            index=index,
            device=device,
            link=network.link,
            speed=speed,
            context=0x55D0_1000 + index,
            pci=pci,
            ar=1,
        )


def _communicator(script: Script, rank: Rank) -> None:
    job = script.job
    script.say(rank, "init", "init_start")
    script.say(
        rank, "init", "bootstrap_timings", total=0.021, create=0.00004, send=0.0002, recv=0.0151, ring=0.0009
    )
    if job.rack:
        script.say(
            rank, "init", "fabric", uuid="4c0e21d7aa10b3f2.91d2f0a8c1e47b60", clique=0x7FFE, state=3, health=0
        )
        script.say(rank, "init", "clique", on=1, clique=0x7FFE, size=job.size, index=rank.rank)
    _gdr(script, rank)
    echo_variables(script, rank, "graph")
    script.say(
        rank,
        "graph",
        "affinity",
        mask="0-47,96-143" if script.release_of(rank).is_from("2.27.5") else "ffff,ffffffff",
    )
    if job.multicast or job.intra == "NVLink":
        script.say(
            rank,
            "graph",
            "multicast",
            state="" if job.multicast else "not ",
            channels=16 if job.multicast else 0,
        )
    script.say(rank, "graph", "size")
    _graph(script, rank)
    if not script.release_of(rank).is_from("2.22.3"):
        connect(script, rank, "channels")
    echo_variables(script, rank, "tuning")
    script.say(rank, "tuning", "thresholds")
    nvls = 8 if job.multicast and job.intra == "NVLink" else 0
    script.say(
        rank,
        "tuning",
        "channels",
        channels=channels_of(job),
        nvls=nvls,
        p2p=channels_of(job),
        per_peer=channels_of(job),
    )
    script.say(rank, "tuning", "fifo")
    script.say(rank, "tuning", "no_tuner")
    script.say(rank, "tuning", "no_profiler")


def _gdr(script: Script, rank: Rank) -> None:
    network = script.job.network
    if not network.is_verbs:
        return
    for index, device in enumerate(network.devices):
        script.say(
            rank,
            "graph",
            "gdr_hca",
            state="Enabled" if network.gdr else "Disabled",
            index=index,
            device=device,
        )
        if not network.gdr:
            script.say(rank, "graph", "gdr_missing", index=index, device=device)
        else:
            script.say(rank, "graph", "gdr_path_on", index=index, distance=4, limit=5, read=1)


def _graph(script: Script, rank: Rank) -> None:
    job = script.job
    fast = job.intra == "NVLink"
    script.say(rank, "graph", "system", width=48.0 if fast else 12.0, total=370.8 if fast else 24.0)
    kind = {"NVLink": "NVL", "PCIe": "PHB", "SHM": "SYS"}[job.intra]
    script.say(
        rank,
        "graph",
        "pattern",
        pattern=4,
        channels=channels_of(job),
        intra=40.0 if fast else 12.0,
        inter=40.0 if fast else 12.0,
        kind=kind,
        net="PIX" if fast else "PHB",
    )
    if rank.rank == 0:
        order = "".join(f"{index:4d}" for index in range(job.size))
        for channel in range(channels_of(job)):
            script.say(rank, "graph", "ring_order", channel=channel, channels=channels_of(job), order=order)
    child = rank.rank + 1 if rank.rank + 1 < job.size else -1
    trees = "".join(
        f" [{channel}] {child}/-1/-1->{rank.rank}->{rank.rank - 1}" for channel in range(channels_of(job))
    )
    script.say(rank, "graph", "trees", trees=trees)
    script.say(rank, "graph", "chunk", bytes=131072 if job.nodes > 1 else 524288)
    for name in ("proxy_core", "proxy_uds_core", "proxy_progress_core"):
        script.say(rank, "graph", name, thread="proxy", core=8 + rank.device)
    script.say(rank, "graph", "p2p_type", on=int(job.intra != "SHM"))


def channels_of(job: Job) -> int:
    """Return how many channels the job has; real ones have more, two show every kind of line."""
    return 2 if job.nodes > 1 else 4


def connect(script: Script, rank: Rank, phase: str) -> None:
    """Print the connections of a ring, to the next rank and from the one before."""
    echo_variables(script, rank, phase, "connect")
    for channel in range(channels_of(script.job)):
        following = script.ranks[(rank.rank + 1) % len(script.ranks)]
        before = script.ranks[rank.rank - 1]
        if len(script.ranks) > 1:
            _connection(script, rank, phase, (before, rank), channel=channel, way="receive")
            _connection(script, rank, phase, (rank, following), channel=channel, way="send")
    gdr = int(script.job.network.gdr)
    script.say(rank, phase, "rings", gdr=gdr)
    script.say(rank, phase, "all_trees")
    if script.job.multicast and script.job.nodes > 1 and script.job.intra == "NVLink":
        script.say(rank, phase, "nvls_tree")


def _connection(
    script: Script, rank: Rank, phase: str, pair: tuple[Rank, Rank], *, channel: int, way: str
) -> None:
    job = script.job
    a, b = pair
    network = job.network
    fields = {
        "channel": channel,
        "a": a.rank,
        "b": b.rank,
        "a_bus": a.bus,
        "b_bus": b.bus,
        "a_dev": a.device,
        "b_dev": b.device,
    }
    crosses = a.node != b.node
    if crosses and not job.rack:
        index = channel % len(network.devices)
        script.say(rank, phase, "net", way=way, index=index, gdr="/GDRDMA" if network.gdr else "", **fields)
    elif way == "send" and job.intra == "SHM" and not crosses:
        script.say(rank, phase, "shm", **fields)
    elif way == "send":
        kind = "MNNVL" if crosses else "CUMEM"
        script.say(rank, phase, "p2p", kind=kind, read="/read" if job.intra == "NVLink" else "", **fields)


def _finish(script: Script, rank: Rank) -> None:
    script.say(rank, "complete", "init_complete")
    script.say(rank, "complete", "init_timings")
    if script.release_of(rank).is_from("2.22.3"):
        connect(script, rank, "collective")
    if rank.rank == 0:
        script.say(
            rank, "complete" if not script.release_of(rank).is_from("2.22.3") else "collective", "launch_mode"
        )


def _framework(script: Script) -> None:
    job = script.job
    first = script.ranks[0]
    if job.framework == "pytorch":
        for step in range(1, job.steps + 1):
            seconds = 0.612 + script.random.uniform(-0.01, 0.01)
            loss = 11.2 - 0.31 * step
            script.print(
                first,
                "training",
                f"step {step * 10:5d} | loss {loss:7.4f} | grad_norm {1.9 - step / 20:5.2f} | step_time {seconds:.3f} s | mem 61.2 GiB",
                at_s=5.0 + step * 6.1,
            )
    elif job.framework == "nccl-tests":
        for row in performance_table(job, peak_gb_per_s=_expected_peak(job)).splitlines():
            script.print(first, "training", row, at_s=5.0)


def _expected_peak(job: Job) -> float:
    network = job.network
    if job.nodes == 1:
        return 370.0 if job.intra == "NVLink" else 20.0
    share = 0.35 if network.is_verbs and not network.gdr else 0.93
    return share * len(network.devices) * network.speed_mbit_per_s / 8000.0


def performance_table(job: Job, *, peak_gb_per_s: float, wrong: int = 0) -> str:
    """Return a table as nccl-tests prints it for all_reduce; busbw rises to a plateau of `peak_gb_per_s`.

    The time of a size S is `latency + S / algbw`, with 40 us of latency, so that small sizes are slow.
    """
    from tests.job_logs.job import ranks_of

    head = [
        "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
    ]
    head += [
        f"#  Rank {r.rank:2d} Group  0 Pid {r.pid:6d} on {r.host:>10} device {r.device:2d} [0x{r.bus >> 12:02x}] NVIDIA H100 80GB HBM3"
        for r in ranks_of(job)
    ]
    head += [
        "#",
        "#                                                              out-of-place                       in-place",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]
    factor = 2 * (job.size - 1) / job.size
    rows, busbws = [], []
    for exponent in range(20, 31, 2):
        size = 2**exponent
        seconds = 40e-6 + size * factor / (peak_gb_per_s * 1e9)
        algbw = size / seconds / 1e9
        busbws.append(algbw * factor)
        half = f"{seconds * 1e6:8.1f}  {algbw:6.2f}  {algbw * factor:6.2f}  {wrong:5d}"
        rows.append(f"{size:12d}  {size // 4:12d}     float     sum      -1  {half}  {half}")
    average = sum(busbws) / len(busbws)
    tail = [
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}",
        f"# Avg bus bandwidth    : {average:.4f}",
        "#",
    ]
    return "\n".join(head + rows + tail)
