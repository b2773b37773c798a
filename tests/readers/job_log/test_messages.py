"""Every text that a release of NCCL prints finds its message, and texts that look alike do not."""

import pytest

from linkwise.readers.job_log.messages import HOST_MESSAGES, NCCL_MESSAGES, matches

_WARNINGS = [
    ("socketPollConnect: exceeded retries (20000)", "connect_given_up"),
    ("socketStartConnect: exceeded timeouts (1000)", "connect_given_up"),
    ("Connect to 10.0.0.1<5> failed : Connection timed out", "connect_failed"),
    ("socketPollConnect: connect to 10.0.0.1<5> returned No route to host, exceeded error retry count after 35 attempts", "connect_failed"),
    ("ncclOsSocketPollConnect to 10.0.0.1<5> failed with error Connection refused", "connect_failed"),
    ("ncclSocketInit: Socket creation failed : Too many open files", "socket_failed"),
    ("Net : Call to recv from 10.0.0.1<5> failed : Connection reset by peer", "reset"),
    ("ncclOsSocketProgressOpt: Call to recv from 10.0.0.1<5> failed : Broken pipe", "reset"),
    ("Net : Connection closed by remote peer", "closed"),
    ("socketFinalizeAccept: wrong magic 1 != 2", "wrong_handshake"),
    ("NET/Socket : no interface found", "interface_none"),
    ("NET/IB : No IP interface found.", "interface_none"),
    ("NET/Socket : No usable listening interface found", "interface_none"),
    ("Net : No interface found in the same subnet as remote address 10.0.0.1<5>", "interface_none"),
    ("Bootstrap Root : rank 3 of 8 ranks has already checked in", "bootstrap_mismatch"),
    ("Message truncated : received 1024 bytes instead of 256", "bootstrap_mismatch"),
    ("NET/Socket : peer 10.0.0.1<5> message truncated : receiving 65536 bytes instead of 32768", "mismatch"),
    ("NET/IB : collective mismatch error local size 4 remote 8 addr 7f rkey 1 seq 1/2", "mismatch"),
    ("NET/IB : req 0/1 tag 7 peer 10.0.0.1<5> collective mismatch error, local size 4 remote size 8", "mismatch"),
    ("NET/IB : req 0/1 tag 7 peer 10.0.0.1<5> posted incorrect receive info: size 8 addr 7f rkeys[0]=1", "mismatch"),
    ("NET/IB : mlx5_0:1 Got async event : port error", "async_event"),
    ("NET/IB : Got async event : port error", "async_event"),
    ("NET/IB : mlx5_0:1 async fatal event: port error", "async_event"),
    ("NET/IB : mlx5_0:1 async fatal event on QP (0x7f): QP fatal", "async_event"),
    ("NET/IB : mlx5_0:1 Got async error event: port error", "async_event"),
    ("NET/IB : mlx5_0:1 GID table changed", "gid_table_changed"),
    ("Call to ibv_modify_qp failed", "verbs"),
    ("Call to ibv_modify_qp failed with error Connection timed out errno 110", "verbs"),
    ("Call to ibv_poll_cq() returned -1", "verbs"),
    ("ibv_post_send() failed with error Cannot allocate memory, Bad WR 0x1, First WR 0x1", "verbs"),
    ("NET/IB : Can't merge net devices with different link_layer. i=0 remMeta.ndevs=1 link_layer=1 rem_link_layer=2", "link_layers_differ"),
    ("NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and [1]mlx5_1:1/RoCE.", "link_layers_differ"),
    ("NET/IB : Local mergedDev mlx5_0 has a different number of devices=2 as remote mlx5_0 1", "rails_mismatch"),
    ("Error while creating shared memory segment nccl-shm-recv-1-2 (size 9637888)", "shm_failed"),
    ("Error: failed to create shared memory file /dev/shm/nccl-x, error Permission denied (13)", "shm_failed"),
    ("Error: Could not map /dev/shm/nccl-x size 9637888, error: Cannot allocate memory (12)", "shm_failed"),
    ("Cuda failure 1 'invalid argument'", "cuda_failure"),
    ("HIP failure 'out of memory'", "cuda_failure"),
    ("Failed to CUDA host alloc 65536 bytes", "cuda_memory"),
    ("Failed to malloc 65536 bytes", "memory_full"),
    ("nvmlInit_v2() failed: Driver/library version mismatch", "nvml_failed"),
    ("MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration (nvidia-imex-ctl -N).", "mnnvl_refused"),
    ("No algorithm/protocol available for function AllGather with datatype ncclInt8. NCCL_ALGO was set to Tree.", "no_algorithm"),
    ("Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.", "duplicate_gpu"),
    ("Error: network IBext_v8 not found.", "network_unknown"),
    ("Failed to initialize any NET plugin", "network_none"),
    ("XML Mismatch : pci / gpu", "xml_import"),
    ("XML Topology has wrong version 2, 1 needed", "xml_import"),
    ("Could not open XML graph file /x.xml : No such file or directory", "xml_unopened"),
    ("Could not find any local path from gpu 0 to net.", "xml_import"),
    ("NCCL version mismatch with remote peer 10.0.0.1<5> (local: 2.28, remote 2.27)", "version_mismatch"),
    ("Invalid NCCL_COMM_ID, please use format: <ipv4>:<port>", "comm_id_invalid"),
    ("Call to recv failed : Connection reset by peer", "reset"),
    ("Call to connect timeout : Connection refused", "connect_failed"),
    ("Error: corrupted comm object detected", "comm_corrupt"),
    ("cudaIpcGetMemHandle failed : invalid argument", "ipc_failed"),
    ("hipIpcGetMemHandle failed : invalid argument", "ipc_failed"),
    ("no device found matching =eth9, verify NCCL_OOB_NET_IFNAME", "interface_none"),
    ("transport.cu:153 -> 2 [Proxy thread error]", "proxy_echo"),
    ("[Service thread] Could not receive type from localRank 3, res=3, closed=0", "proxy_echo"),
    ("ncclProxyCallBlockingUDS call to tpRank 3(5b) failed : 2", "proxy_echo"),
    ("commReclaim: cleanup comm 0x1 rank 3 failed in destroy/abort, error 6", "proxy_echo"),
    ("ncclAsyncJobComplete: job 0x1 failed, job error 2", "proxy_echo"),
    ("communicator encountered a fatal error (detected in ncclIbTest)", "proxy_echo"),
    ("UDS: Receiving data over socket /tmp/nccl-socket-1 failed", "proxy_echo"),
    ("UDS: Binding to socket /tmp/nccl-socket-1-ab failed : Address already in use (98)", "uds_failed"),
    ("User asked for a maximum of 0 channels, setting it to 1", "setting_limited"),
    ("minCTAs 64 is larger than #channels upper limit 32, cap it to 32", "setting_limited"),
    ("NCCL_CGA_CLUSTER_SIZE value 99 is too big. Limiting value to 8.", "setting_limited"),
    ("Profiler init failed with error (3). Continue without profiler.", "feature_left"),
    ("rank 0 failed to NVLS register sendbuff 0x7 sendbuffSize 8 recvbuff 0x7 recvbuffSize 8", "registration_failed"),
    ("Call to ibv_query_port_speed failed with error Protocol not supported errno 93", "port_speed_unread"),
    ("Failed to open libnvidia-ml.so.1", "driver_library_missing"),
    ("Failed to open libnvidia-ml.so.1: cannot open shared object file", "driver_library_missing"),
    ("Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='') : no such file", "driver_library_missing"),
    ("Could not find a path for pattern 1, falling back to simple order", "path_missing"),
    ("Error : could not find CPU close to GPU 3", "xml_import"),
    ("NET/IB : Attempted to merge incompatible devices: [0]mlx5_0:1/IB and [1]mlx5_1:1/RoCE. Try selecting NICs of only one link type using NCCL_IB_HCA", "link_layers_differ"),
    ("NET/IB: ncclIbHandle: Device 1 marked as failed. (send comm=0x1)", "resilient_device_failed"),
    ("NCCL library is not backwards compatible. This application was compiled with NCCL version 2.29.7, but is running with NCCL library version 2.30.7.", "version_compiled"),
    ('Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!', "iommu_setting_missing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name"), _WARNINGS)
def test_warning_finds_its_message(text, name):
    assert name in {each.name for each, _ in matches(text, NCCL_MESSAGES)}


@pytest.mark.parametrize(("text", "name"), [
    ("Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2 : CUDA error 1 'x'", "sharp_failed"),
    ("Bootstrap : Using eth0:10.0.0.1<0>", "interface_none"),
    ("comm 0x1 rank 0 nranks 8 cudaDev 0 busId 1b000 - Destroy COMPLETE", "init"),
    ("NET/IB : GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 8 > 5)", "gdr_hca"),
    ("Message truncated : received 1024 bytes instead of 256", "mismatch"),
    ("[Proxy Service 3] Failed to set CUDA device 3", "proxy_echo"),
    ("UDS: Binding to socket /tmp/nccl-socket-1-ab failed : Address already in use (98)", "proxy_echo"),
    ("group.cc:72 -> 7 [Async thread]", "call_failed"),
    ("transport/net.cc:72 -> 2", "call_failed"),
    ("could not find the dictionary", "xml_import"),
])  # fmt: skip
def test_what_looks_alike_is_another(text, name):
    assert name not in {each.name for each, _ in matches(text, NCCL_MESSAGES)}


def test_every_message_has_a_text_to_be_found_by():
    assert min(len(each.literal) for each in (*NCCL_MESSAGES, *HOST_MESSAGES)) >= 4


def test_every_message_that_a_rule_asks_for_is_in_the_table():
    import re
    from pathlib import Path

    import linkwise.diagnose

    named = set()
    for path in Path(linkwise.diagnose.__file__).parent.rglob("*.py"):
        for call in re.findall(r"\.(?:seen|warned)\(([^()]*)\)", path.read_text(encoding="utf-8")):
            named |= set(re.findall(r'"(\w+)"', call))
    known = {each.name for each in (*NCCL_MESSAGES, *HOST_MESSAGES)} | {"warning"}
    assert named <= known
