"""NCCL's lines of faults: verbs, sockets, shared memory, CUDA, NVLS, plug-ins, and the echo of other faults.

References
----------
NVIDIA, NCCL source at its release tags 2.3.5 to 2.30.7, https://github.com/NVIDIA/nccl (src/misc/ibvwrap.cc,
src/misc/socket.cc, src/misc/shmutils.cc, src/transport/, src/proxy.cc, src/init.cc); AWS, aws-ofi-nccl
source,
https://github.com/aws/aws-ofi-nccl.
"""

from __future__ import annotations

from linkwise.readers.job_log.message import Message, message

__all__ = ["ERROR_MESSAGES"]

ERROR_MESSAGES: tuple[Message, ...] = (
    message(
        "completion",
        "Got completion",
        r"Got completion (?:from peer (?P<peer>\S+) )?with (?:error |status=)(?:[A-Za-z_]+\()?(?P<status>\d+)\)?"
        r"(?:.*?vendor[ _]err[ =](?P<vendor>\d+))?(?: \((?P<side>Send|Recv)\))?"
        r"(?:.*?localGid (?P<local>\S+?),? ?remoteGids ?(?P<remote>[0-9a-f:.]+))?(?:.*?\bhca (?P<hca>\S+))?",
    ),
    message(
        "verbs",
        "Call to ",
        r"Call to (?:wrap_)?(?P<call>(?:ibv|mlx5dv)_\w+)(?:\(\))?(?: failed)? ?(?:with error|with|failed)? ?"
        r"(?:(?P<errno>\d+) )?(?P<text>[A-Z][^,]*)?"
        r"(?:, on dev (?P<device>[^,]+))?(?:, curr state (?P<from>\w+), next state (?P<to>\w+))?"
        r"(?:, local GID index (?P<gid_index>-?\d+))?"
        r"(?:, local GID (?P<local>[0-9a-fA-F:.]+))?(?:,? remote GIDs? (?P<remote>[0-9a-fA-F:.]+))?",
    ),
    message("verbs", "ibv_create_", r"(?P<call>ibv_create_(?:qp|cq)) failed(?: with error)?(?P<text>.*)$"),
    message("verbs", "ibv_post_", r"(?P<call>ibv_post_(?:send|recv))\(\) failed with error (?P<text>[^,]*)"),
    message("verbs", "ibv_poll_cq() returned", r"(?P<call>ibv_poll_cq)\(\) returned (?P<text>-?\d+)"),
    message(
        "verbs", "NET/IB : Unable to query", r"(?P<call>)(?P<text>Unable to query (?:device|port)\S*.*)$"
    ),
    message("verbs", "ibv_reg_mr", r"(?P<call>ibv_reg_mr\w*) failed(?: with error)? ?(?P<text>.*)$"),
    message(
        "async_event",
        "async",
        r"NET/IB ?: (?:(?P<device>[\w.-]+):(?P<port>\d+) )?(?:Got )?(?P<kind>(?:non-fatal |fatal )?async(?: fatal"
        r"| error)? event)(?: on \w+[^:]*)? ?: ?(?P<event>.+?)\s*$",
    ),
    message("gid_table_changed", "GID table change", r"(?P<device>[\w.-]+):(?P<port>\d+)?"),
    message("rails_mismatch", "mismatched physical devices", r"local and remote"),
    message(
        "link_layers_differ",
        "with different link_layer",
        r"link_layer=(?P<local>\d) rem_link_layer=(?P<remote>\d)",
    ),
    message(
        "link_layers_differ",
        "is incompatible with the local",
        r"Remote (?P<remote>\w+) device is incompatible",
    ),
    message("rails_mismatch", "Detected mixed local Net device counts", r"across ranks"),
    message(
        "connect_failed",
        "onnect",
        r"(?:(?:[Cc]onnect to|socketPollConnect to) (?P<peer>[^<\s]*<?\d*>?)|[Cc]onnect) ?(?:failed|returned|timeout)"
        r"(?: with error| ?:| (?P<errno>\d+)\()? ?(?P<text>[A-Za-z][^)(]*)?",
    ),
    message(
        "connect_retried",
        "onnect returned",
        r"connect returned (?P<text>[A-Z][^,]*), retrying",
    ),
    message("closed", "Connection closed by remote peer", r"remote peer ?(?P<peer>\S*)"),
    message(
        "reset",
        "Call to ",
        r"Call to (?P<call>recv|send|read|write)(?: from (?P<peer>\S+))? failed ?: (?P<text>.+?)\s*$",
    ),
    message(
        "interface_none",
        "nterface found",
        r"(?:(?P<user>Bootstrap|NET/Socket|NET/IB|Net) ?: ?)?[Nn]o (?:\w+ ){0,3}interface found",
    ),
    message("interface_none", "verify NCCL_OOB_NET_IFNAME", r"no device found (?:matching|after excluding)"),
    message("connect_given_up", "onnect: exceeded", r"exceeded (?P<what>retries|timeouts)"),
    message(
        "bootstrap_mismatch",
        "Bootstrap Root",
        r"Bootstrap Root ?: (?P<text>.*(?:mismatch|already checked in).*)$",
    ),
    message("bootstrap_mismatch", "Message truncated", r"(?P<text>Message truncated : received .*)$"),
    message("version_mismatch", "version mismatch with remote peer", r"peer (?P<peer>\S+)"),
    message("rails_mismatch", "has a different number of devices", r"number of devices"),
    message("link_layers_differ", "incompatible devices", r"Attempted to connect incompatible devices"),
    message("mismatch", "posted incorrect receive info", r"receive info: size (?P<size>\d+)"),
    message("memory_full", "Failed to malloc", r"Failed to malloc (?P<bytes>\d+) bytes"),
    message("memory_full", "returned null", r"malloc\(size=(?P<bytes>\d+)\) returned null"),
    message("nvml_failed", " failed: ", r"(?P<call>nvml\w+)\(?[^)]*\)? failed: (?P<text>.+?)\s*$"),
    message("comm_id_invalid", "Invalid NCCL_COMM_ID", r"Invalid (?P<name>NCCL_COMM_ID)"),
    message("network_none", "Failed to initialize any NET plugin", r"any NET plugin"),
    message(
        "cuda_driver_old",
        "CUDA Driver version found is",
        r"found is (?P<found>\d+)\. Minimum requirement is (?P<least>\d+)",
    ),
    message(
        "address_family",
        "is neither AF_INET",
        r"connecting to address (?P<address>.*?) ?with family (?P<family>\d+) is neither",
    ),
    message(
        "bind_failed", "Call to bind", r"Call to bind(?: to \S+)? failed ?(?:with error|:) ?(?P<text>.+?)\s*$"
    ),
    message("listen_failed", "Call to listen", r"failed ?(?:with error|:) ?(?P<text>.+?)\s*$"),
    message("socket_failed", "ocket creation failed", r"creation failed ?: (?P<text>.+?)\s*$"),
    message("socket_failed", "Call to socket", r"failed ?(?:with error|:) ?(?P<text>.+?)\s*$"),
    message("files_open", "Too many open files", r"(?P<text>Too many open files)"),
    message("wrong_handshake", "wrong ", r"wrong (?P<part>type|magic|size)\b"),
    message(
        "proxy_echo", "Failed to execute operation", r"operation (?P<operation>\w+) from rank (?P<rank>\d+)"
    ),
    message("proxy_echo", "Socket recv failed while polling", r"opId"),
    message("proxy_echo", "Proxy Call to rank", r"rank (?P<rank>\d+) failed"),
    message("proxy_echo", "Error encountered progressing operation", r"operation=(?P<operation>\w+)"),
    message(
        "cuda_failure",
        "Cuda failure",
        r"Cuda failure (?:(?P<number>\d+) )?'(?P<text>[^']+)",
    ),
    message("cuda_failure", "HIP failure", r"HIP failure (?:(?P<number>\d+) )?'(?P<text>[^']+)"),
    message("cuda_failure", "CUDA failure", r"CUDA failure (?P<where>\S+) '(?P<text>[^']*)'"),
    message(
        "cuda_driver_failure",
        "Cuda driver error",
        r"error (?P<number>\d+) '?(?P<text>[^']*)'?",
    ),
    message("cuda_memory", "Failed to CUDA", r"Failed to CUDA (?P<what>.*?) (?P<bytes>\d+) bytes"),
    message(
        "nvls_bind",
        "NVLink SHARP (NVLS) Multicast memory",
        r"Failed to bind.*?(?:CUDA error (?P<number>\d+) '?(?P<text>[^'.]*)'?)?(?P<goes_on>\.? ?Proceeding.*)?$",
    ),
    message("p2p_nvlink_off", "P2P is disabled between NVLINK", r"GPUs (?P<a>\d+) and (?P<b>\d+)"),
    message("duplicate_gpu", "Multiple Ranks are using the same GPU", r"same GPU"),
    message(
        "duplicate_gpu",
        "Duplicate GPU detected",
        r"rank (?P<rank_a>\d+) and rank (?P<rank_b>\d+) both on CUDA device (?P<bus>\w+)",
    ),
    message(
        "no_algorithm",
        "o algorithm/protocol ",
        r"algorithm/protocol (?:nor symKernelId )?available(?: for function (?P<function>\w+))?",
    ),
    message(
        "mismatch",
        "ismatch",
        r"(?:collective mismatch error|Mismatched collective detected)(?:.*local size (?P<local>\d+)"
        r" remote size? ?(?P<remote>\d+))?",
    ),
    message("mismatch", "message truncated", r"NET/Socket.*message truncated ?:? ?(?P<detail>.*)$"),
    message("xml_attribute", "Attribute ", r"Attribute (?P<attribute>\S+) of node (?P<node>\S+) not found"),
    message(
        "xml_import", "XML ", r"XML (?P<detail>(?:Import|Parse|Mismatch|Topology has|Graph has|parser is).*)$"
    ),
    message("xml_import", "TOPO/NET", r"TOPO/NET ?: (?P<detail>.*)$"),
    message(
        "xml_import",
        "Could not find",
        r"(?P<detail>Could not find (?:any local path|gpu rank|net id|NIC for rank|(?:NET|\w+) with id).*)$",
    ),
    message(
        "xml_unopened",
        "Could not open XML",
        r"Could not open XML (?P<kind>topology|graph) file (?P<file>\S+)",
    ),
    message(
        "shm_failed",
        "shared memory segment",
        r"Error while (?P<action>creating|attaching to) shared memory segment (?P<segment>.+?)"
        r" \(size (?P<size>\d+)\)(?:, error: (?P<text>.+?))?\s*$",
    ),
    message(
        "shm_failed",
        "failed to extend",
        r"failed to (?P<action>extend) (?P<segment>\S+) to (?P<size>\d+) bytes(?:, error: (?P<text>.+?))?\s*$",
    ),
    message(
        "shm_failed",
        "shared memory file",
        r"failed to (?P<action>create) shared memory file (?P<segment>\S+?),? error:? (?P<text>.+?)\s*$",
    ),
    message(
        "shm_failed",
        "Could not map",
        r"Could not (?P<action>map) (?P<segment>\S+) size (?P<size>\d+), error: (?P<text>.+?)\s*$",
    ),
    message(
        "shm_call", "posix_fallocate failed", r"(?P<call>posix_fallocate) failed ?(?:: )?(?P<text>.*?)\s*$"
    ),
    message("shm_call", "shm_open failed", r"(?P<call>shm_open) failed ?(?:: )?(?P<text>.*?)\s*$"),
    message(
        "ipc_failed",
        "CUDA IPC handle",
        r"(?:open|get) CUDA IPC handle ?: ?(?P<number>\d+)? ?(?P<text>.*?)\s*$",
    ),
    message(
        "ipc_failed", "IpcGetMemHandle failed", r"(?:cuda|hip)IpcGetMemHandle failed ?: (?P<text>.+?)\s*$"
    ),
    message(
        "peer_failed",
        "failed to peer with device",
        r"device (?P<device>\S+): ?(?P<number>\d+) (?P<text>.+?)\s*$",
    ),
    message(
        "cumem_import",
        "cuMemImportFromShareableHandle",
        r"cuMemImportFromShareableHandle(?P<text>.*)$",
    ),
    message(
        "shared_memory_size",
        "ncclMaxSharedMem",
        r"ncclMaxSharedMem (?P<wanted>\d+) exceeds device/fn maxSharedMem (?P<there>\d+)",
    ),
    message("ofi_no_provider", "any optimal provider", r"NET/OFI"),
    message("ofi_no_provider", "Only EFA provider is supported", r"NET/OFI"),
    message("ofi_no_provider", "eligible providers were found", r"NET/OFI No eligible providers"),
    message(
        "ofi_request",
        "completed with error",
        r"NET/OFI Request.*completed with error\. RC: (?P<code>-?\d+)\. Error: (?P<text>[^.]+)",
    ),
    message("ofi_address", "Unable to insert remote address", r"address vector"),
    message("ofi_failed", "NET/OFI", r"\bWARN\b.*?NET/OFI (?P<text>.+)$"),
    message(
        "fastrak_failed", "FasTrak", r"(?P<text>.*(?:failed|[Ee]rror|[Uu]nable|refused|timed out|lost).*)$"
    ),
    message(
        "tcpx_failed",
        "TCPX",
        r"(?P<text>.*(?:failed|[Ee]rror|[Uu]nable|refused|timed out|lost|not found).*)$",
    ),
    message(
        "sharp_failed",
        "SHARP",
        r"(?<!NVLink )SHARP(?P<text>.*(?:failed|[Ee]rror|not valid|refused|disconnect).*)$",
    ),
    message("sharp_failed", "sharp", r"(?P<text>.*(?:failed|[Ee]rror|not valid|refused|disconnect).*)$"),
    message("collnet_refused", "Cannot initialize CollNet", r"using (?P<instead>.+?) instead"),
    message(
        "mnnvl_refused",
        "is available but not",
        r"MNNVL \(cliqueSize (?P<size>\d+)\) is available but not (?P<state>\w+)",
    ),
    message("network_unknown", "not found", r"Error ?: network (?P<name>.+?) not found"),
    message("ras_dead", "RAS declaring peer", r"peer (?P<peer>\S+) as DEAD"),
    message("call_failed", "group.c", r"\bgroup\.(?:cc|cu):\d+ -> (?P<code>[1-6])\b"),
    message("hint", "HINT:", r"HINT: (?P<text>.*)$"),
)
"""NCCL's lines that tell of a fault, or of the echo of one."""
