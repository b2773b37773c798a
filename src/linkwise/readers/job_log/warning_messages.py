"""NCCL's warnings that name no fault of their own: echoes of one, limits it sets to a setting, notices.

A warning of NCCL that no message of any table is, is kept as ``warning``: it is said to be there and unknown.

References
----------
NVIDIA, NCCL source at its release tags 2.3.5 to 2.30.7, https://github.com/NVIDIA/nccl (src/proxy.cc,
src/group.cc, src/init.cc, src/misc/ipcsocket.cc, src/misc/cudawrap.cc, src/misc/nvmlwrap.cc,
src/graph/, src/ras/); AMD, RCCL source, https://github.com/ROCm/rccl (src/init.cc); Google, fast socket plug-in,
https://github.com/google/nccl-fastsocket.
"""

from __future__ import annotations

from linkwise.readers.job_log.message import Message, message

__all__ = ["WARNING_MESSAGES"]

_ECHOES: tuple[Message, ...] = (
    message("proxy_echo", "[Proxy thread error]", r"-> ?(?P<code>\d)"),
    message("proxy_echo", "[Service thread]", r"(?:Could not receive type|Accept failed|Initialize peers)"),
    message("proxy_echo", "[Proxy Service", r"Poll failed|Get listenSock fd fails|proxyDestroy failed"),
    message("proxy_echo", "ncclProxyC", r"ncclProxyC(?:all|lient)\w* call to (?:top parent |tp)?[rR]ank"),
    message("proxy_echo", "ncclAsyncJobComplete", r"job (?P<job>\S+) failed, job error (?P<code>\d+)"),
    message("proxy_echo", "ncclCommSetAsyncError", r"error comm (?P<comm>\S+) sets state (?P<code>\d+)"),
    message("proxy_echo", "commReclaim:", r"comm (?P<comm>\S+) .*error (?P<code>\d+)"),
    message("proxy_echo", "communicator encountered a fatal error", r"detected in"),
    message("proxy_echo", "is in abort state", r"Comm \S+ is in abort state"),
    message("proxy_echo", "response for opId", r"for (?:already completed )?opId"),
    message("proxy_echo", "[Rem Allocator]", r"Allocation failed"),
    message("proxy_echo", "UDS: ", r"UDS: (?:Receiving|Sending) data over socket"),
    message("proxy_echo", "Call to ", r"Call to (?:open|close|ftruncate|shm_unlink|accept|poll) failed ?:"),
)

_LIMITS: tuple[Message, ...] = (
    message("setting_limited", "User asked for a ", r"asked for a (?:minimum|maximum) of \d+ channels"),
    message("setting_limited", "NCCL_CGA_CLUSTER_SIZE value", r"too big\. Limiting"),
    message("setting_limited", "CTAs", r"\b(?:min|max)CTAs \d+ is larger than .*(?:cap it to|set both to)"),
    message("setting_limited", "splitShare", r"is not a valid value 0/1, set it to 0"),
    message("setting_limited", "NCCL_WORK_FIFO_", r"is being ignored because"),
    message("setting_limited", "greater than the maximum allowed", r"setting (?:NCCL_\w+ )?to"),
    message("setting_limited", "Ignoring SHM locality", r"must be 1"),
    message("setting_limited", "NCCL_NET_MERGE_POLICY: unknown value", r"defaulting"),
    message("feature_left", "HSA_FORCE_FINE_GRAIN_PCIE=1", r"Missing \S+ from environment"),
    message("feature_left", "not dumping topology", r"Unable to open \S+, not dumping"),
    message("feature_left", "Skipping nvlink detection", r"No NVML device handle"),
    message("feature_left", "Continue without profiler", r"Profiler init failed"),
    message("feature_left", "disabling CollNet", r"CollNet currently only supports"),
    message("feature_left", "ignoring NCCL_ALGO=COLLNET", r"CollNet is not supported"),
    message("feature_left", "Set CPU affinity : unable", r"unable to find"),
    message("registration_failed", " register ", r"failed to (?:NVLS |NET |IPC )?register (?:send|user)buff"),
    message("feature_left", "unknown event type", r"unknown event type"),
    message("numa_balancing", "NUMA auto balancing", r"NUMA auto balancing enabled"),
    message("port_speed_unread", "ibv_query_port_speed", r"ibv_query_port_speed failed"),
    message("socket_steering", "Cannot get incoming CPU", r"incoming CPU"),
    message("socket_steering", "Maximum retry reached for ", r"for (?:accept|connect) \d"),
)

_FAULTS: tuple[Message, ...] = (
    message("uds_failed", "UDS: Binding to socket", r"socket (?P<path>\S+) failed ?: (?P<text>.+?)\s*$"),
    message(
        "driver_library_missing",
        "Failed to find CUDA library",
        r"Failed to find CUDA library (?P<library>\S+)",
    ),
    message(
        "driver_library_missing",
        "Failed to open libnvidia-ml",
        r"open (?P<library>libnvidia-ml\S*?):?(?:\s|$)",
    ),
    message(
        "driver_library_missing", "Failed to load CUDA missing symbol", r"missing symbol (?P<library>\w+)"
    ),
    message(
        "version_compiled",
        "compiled with NCCL version",
        r"compiled with NCCL version (?P<compiled>\S+?), but is running with NCCL library version (?P<loaded>\S+?)\.?(?:\s|$)",
    ),
    message("comm_corrupt", "corrupted comm object", r"corrupted comm object detected"),
    message("iommu_setting_missing", "from kernel command line", r'Missing "(?P<setting>[^"]+)" from kernel'),
    message("path_missing", "falling back to simple order", r"path for pattern (?P<pattern>\d+)"),
    message(
        "xml_import",
        "could not find",
        r"(?P<detail>(?:Add NVLink error|Add C2c error|Error|GetXmlFromCpu) : could not find .*)$",
    ),
    message("xml_import", "Add PCI Link error", r"(?P<detail>Add PCI Link error.*)$"),
    message("xml_import", "No path computed to go from", r"(?P<detail>No path computed.*)$"),
    message("completion_head", "Got CQE with error", r"NET/IB ?: Got CQE with error"),
    message("completion_head", "The error is fatal", r"NET/IB ?: .*The error is fatal"),
    message("link_layers_differ", "to merge", r"(?:incompatible devices|with different link_layer)"),
    message(
        "resilient_device_failed",
        "marked as failed",
        r"NET/IB ?: (?:\w+: )?Device (?P<device>\d+) marked as failed",
    ),
)

_REFUSALS: tuple[Message, ...] = tuple(
    message("usage_refused", literal, rf"(?P<text>{pattern}.*?)\s*$")
    for literal, pattern in (
        ("Invalid rank requested", r"Invalid rank requested ?: (?P<rank>-?\d+)/(?P<world>\d+)"),
        ("Invalid device count requested", r"Invalid device count requested"),
        ("invalid device count", r"invalid device count"),
        ("Invalid device ", r"Invalid device -?\d+ \(totalnDev"),
        ("improper usage of ncclCommInitRank", r"improper usage of ncclCommInitRank"),
        ("Invalid config ", r"Invalid config \S+(?: \S+)? attribute value"),
        ("not initialized via NCCL_", r"ncclConfig_t argument not initialized"),
        ("is not a valid pointer", r"\w+ : \S+ \S+ is not a valid pointer"),
        ("with NCCL device", r"\w+ : \S+ allocated on device -?\d+ mismatchs? with NCCL device"),
        ("argument is NULL", r"\w+ : \S+ argument is NULL"),
        ("invalid root", r"\w+ : invalid root -?\d+"),
        ("invalid type", r"\w+ : invalid type -?\d+"),
        ("reduction operation", r"\w+ : (?:invalid )?reduction operation -?\d+"),
        ("already been destroyed", r"comm \S+ has already been destroyed"),
        ("before the previous operation", r"Attempt to use communicator before the previous operation"),
        ("Blocking and nonblocking", r"Blocking and nonblocking communicators"),
        ("not in a group call", r"ncclGroupEnd: not in a group call"),
        ("to self without a matching", r"Trying to (?:send|recv) to self without a matching"),
        ("graph captured", r"Either none or all communicators"),
        ("captured by the same graph", r"Streams given to a communicator"),
    )
)
"""Calls of the program that NCCL takes for wrong, as its argcheck.cc, init.cc and group.cc say."""

WARNING_MESSAGES: tuple[Message, ...] = _ECHOES + _LIMITS + _FAULTS + _REFUSALS
"""Warnings beside the faults of `error_messages`; none of them comes as mere information."""
