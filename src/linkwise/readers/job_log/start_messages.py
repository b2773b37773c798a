"""NCCL's lines of a start: versions, interfaces, devices, the network chosen, communicators, NVLS, the graph.

The texts are those of NCCL 2.3 to 2.32 and RCCL; where they changed, a pattern takes all forms.

References
----------
NVIDIA, NCCL source at its release tags 2.3.5 to 2.30.7, https://github.com/NVIDIA/nccl (src/init.cc,
src/bootstrap.cc, src/transport/net_ib.cc, src/transport/net_socket.cc, src/graph/, src/plugin/).
"""

from __future__ import annotations

from linkwise.readers.job_log.message import Message, message

__all__ = ["START_MESSAGES"]

START_MESSAGES: tuple[Message, ...] = (
    message(
        "version",
        "CCL version ",
        r"\b(?P<library>NCCL|RCCL) version (?:: )?(?P<version>\d+\.\d+(?:\.\d+)?)"
        r"(?:[^\s+]*\+(?P<runtime>cuda|hip)(?P<cuda>\d+\.\d+))?",
    ),
    message(
        "version_mismatch",
        "Mismatched NCCL version",
        r"rank (?P<rank_a>\d+) version (?P<version_a>\S+) rank (?P<rank_b>\d+) version (?P<version_b>\S+)",
    ),
    message("driver_version", "cudaDriverVersion", r"cudaDriverVersion (?P<number>\d+)"),
    message(
        "bootstrap",
        "Bootstrap",
        r"Bootstrap ?: Using (?:\[\d+\])?(?P<interface>[^:\s]+):(?P<address>[^<\s]+)<",
    ),
    message(
        "bootstrap",
        "NET : Using interface",
        r"Using interface (?P<interface>[^:\s]+)(?::(?P<address>[^<\s]+))?",
    ),
    message(
        "setting",
        " set by environment to ",
        r"(?P<name>[NR]CCL_\w+) set by environment to (?P<value>.*?)\.?\s*$",
    ),
    message("setting", " set to ", r"(?P<name>NCCL_(?:IB_HCA|SOCKET_IFNAME|\w+)) set to (?P<value>.*?)\s*$"),
    message("plugin_loaded", "Loaded net plugin", r"Loaded net plugin (?P<name>[^(]+?)\s*(?:\(|$)"),
    message("plugin_missing", "/Plugin", r"(?P<kind>\w+)/Plugin ?:.*(?:No plugin found|Could not find)"),
    message("plugin_missing", "Plugin load", r"Plugin load \((?P<library>[^)]*)\) returned"),
    message(
        "plugin_symbol",
        "undefined symbol",
        r"(?P<kind>\w+)/Plugin ?:.*undefined symbol:? ?(?P<symbol>\w+)",
    ),
    message("plugin_probe", "Failed to find nccl", r"Failed to find (?P<symbol>nccl\w+) symbol"),
    message(
        "ib_devices",
        "NET/IB : Using",
        r"NET/IB : Using (?P<devices>(?:\[\d+\].*?)?)\s*(?:\[RO\])?\s*(?:/SHARP\s*)?;?\s*OOB (?P<oob>[^:\s]+)",
    ),
    message("ib_none", "NET/IB : No device found", r"No device found"),
    message("ib_verbs_missing", "Failed to open libibverbs", r"libibverbs\.so"),
    message("ib_open_failed", "ibv_open_device failed", r"failed"),
    message("ib_unopened", "Unable to open device", r"Unable to open device (?P<device>\S+)"),
    message("mlx5dv_missing", "Failed to open mlx5dv symbols", r"mlx5dv"),
    message("socket_devices", "NET/Socket : Using", r"NET/Socket : Using (?P<devices>\[?\S.*?)\s*$"),
    message("network", "Using network ", r"Using network (?P<name>.+?)\s*$"),
    message("network", "Using internal Network ", r"Using internal Network (?P<name>\w+)"),
    message("network", "Assigned NET plugin", r"Assigned NET plugin (?P<name>.+?) to comm"),
    message("network_failed", "Failed to initialize NET plugin", r"NET plugin (?P<name>.+?)\s*$"),
    message("ofi_provider", "Selected", r"NET/OFI Selected [Pp]rovider is (?P<provider>[\w;-]+)"),
    message("ofi_nics", "nics)", r"NET/OFI Selected.*\(found (?P<count>\d+) nics\)"),
    message("ofi_version", "NET/OFI", r"NET/OFI (?:Using|Initializing) aws-ofi-nccl (?P<version>\S+)"),
    message(
        "ofi_topology_file",
        "Setting NCCL_TOPO_FILE",
        r"Running on (?P<platform>\S+) platform, Setting NCCL_TOPO_FILE environment variable to"
        r" (?P<file>\S+)",
    ),
    message("fastrak_devices", "NET/FasTrak : Using", r"NET/FasTrak : Using (?P<devices>.+?)\s*$"),
    message(
        "gdr_hca",
        "GPU Direct RDMA (",
        # As the plug-in of HPC-X says it, which leaves the last quotation mark out.
        r"GPU Direct RDMA \(\w+\) (?P<state>enabled) for HCA (?P<index>\d+) '(?P<hca>[\w.-]+)",
    ),
    message(
        "gdr_hca",
        "GPU Direct RDMA",
        r"GPU Direct RDMA (?P<state>Enabled|Disabled) for HCA (?P<index>\d+) '?(?P<hca>[^'\s]*)'?(?P<reason>.*)$",
    ),
    message(
        "gdr_hca",
        "(no module or not supported by GPU)",
        r"GPU Direct RDMA (?P<state>Disabled) for GPU \S+ / HCA (?P<index>\d+) '(?P<hca>[^']*)'",
    ),
    message(
        "gdr_path",
        "GPU Direct RDMA",
        r"GPU Direct RDMA (?P<state>Enabled|Disabled) for GPU (?P<gpu>\S+) / HCA (?P<hca>\S+)"
        r" \(distance (?P<distance>\d+) (?P<relation><=|>=|<|>) (?P<limit>\d+)",
    ),
    message("dmabuf", "DMA-BUF is available", r"on GPU device (?P<device>\d+)"),
    message(
        "init",
        " nranks ",
        r"(?:(?P<call>nccl\w+) )?comm (?P<comm>\S+) rank (?P<rank>\d+) nranks (?P<nranks>\d+)"
        r"(?P<rest>.*?) - (?:Init )?(?P<stage>START|COMPLETE)",
    ),
    message(
        "left",
        " COMPLETE",
        r"comm (?P<comm>\S+) rank (?P<rank>\d+) .*- (?P<stage>Destroy|Abort|Finalize) COMPLETE",
    ),
    message(
        "size",
        " nNodes ",
        r"comm (?P<comm>\S+) rank (?P<rank>\d+) nRanks (?P<nranks>\d+) nNodes (?P<nodes>\d+)"
        r" localRanks (?P<local_ranks>\d+) localRank (?P<local_rank>\d+)(?: MNNVL (?P<mnnvl>\d+))?",
    ),
    message(
        "init_time",
        "Init timings",
        r"rank (?P<rank>\d+) nranks (?P<nranks>\d+) total (?P<total_s>[\d.]+)",
    ),
    message("ring_order", "Channel 00/", r"Channel 00/(?P<channels>\d+) ?:(?P<ranks>(?:\s+\d+)+)\s*$"),
    message("nvls", "NVLS multicast support", r"is (?P<absent>not )?available on dev (?P<device>\d+)"),
    message(
        "channel_counts",
        " coll channels",
        r"(?P<coll>\d+) coll channels(?:, (?P<collnet>\d+) collnet channels)?"
        r"(?:, (?P<nvls>\d+) nvls channels)?",
    ),
    message(
        "rings_connected",
        "Connected all rings",
        r"Connected all rings(?:, use ring PXN (?P<pxn>\d) GDR (?P<gdr>\d))?",
    ),
    message(
        "mnnvl_fabric",
        "MNNVL busId",
        r"fabric UUID (?P<uuid>\S+) cliqueId (?P<clique>\S+) state (?P<state>\d+) healthMask (?P<health>\S+)",
    ),
    message(
        "ib_speed",
        "speed=",
        r"NET/IB ?: \[(?P<index>\d+)\] ?(?P<device>[^:\s]+):[^/]*/(?P<link>\w+) .*speed=(?P<mbit_s>\d+)",
    ),
    message("graph_nic", "+ NET[", r"\+ NET\[(?P<gbyte_s>[\d.]+)\] - NET/(?P<index>\d+)"),
    message("graph_link", "+ PCI[", r"\+ PCI\[(?P<gbyte_s>[\d.]+)\] - (?P<end>\S+)"),
    message("graph_system", "=== System", r"max(?:Bw|Width) (?P<gbyte_s>[\d.]+)"),
    message(
        "graph_pattern",
        "Pattern ",
        r"Pattern (?P<pattern>\d+), crossNic \d+, nChannels (?P<channels>\d+), (?:bw|speed)"
        r" (?P<intra>[\d.]+)/(?P<inter>[\d.]+), type (?P<type>[^,]+)",
    ),
    message(
        "queue_pair",
        " qpn ",
        r"NET/IB ?: (?:NCCL )?Dev (?P<device>\d+).* Port (?P<port>\d+) qpn \d+ mtu (?P<mtu>\d+)"
        r"(?:.*?\b(?P<kind>LID|GID) (?P<gid>-?\d+))?",
    ),
    message(
        "algorithm",
        " Bytes -> Algo",
        r"(?P<operation>\w+): (?P<bytes>\d+) Bytes -> Algo (?P<algorithm>\w+) proto (?P<protocol>\w+)",
    ),
    message("p2p_level_off", "P2P is disabled between connected GPUs", r"GPUs (?P<a>\d+) and (?P<b>\d+)"),
    message("cumem_host_off", "cuMem host allocations do not appear", r"falling back"),
    message("topology_gap", "Could not find real path", r"path of (?P<path>\S+)"),
    message("topology_gap", "could not read", r"could not read (?P<path>\S+?),? ignoring"),
    message("ras_port", "RAS failed to establish a client", r"listening socket at (?P<address>\S+)"),
    message("kernel", "Kernel version", r"Kernel version: (?P<version>\S+)"),
)
"""NCCL's lines that do not tell of a fault."""
