"""Every rule has an input that fires it and a near miss that must not."""

import pytest

from linkwise.cluster import cluster_from_shorthand
from linkwise.nccl.variables import parse_release
from linkwise.readers.settings_file import read_settings
from linkwise.settings.checking import RULES, check
from linkwise.settings.combination_rules import PAIRS
from linkwise.settings.finding import Severity, Subject
from linkwise.settings.node import NodeFacts
from linkwise.settings.risks import RISKS

NODE = NodeFacts(
    interfaces={"lo": 65536, "eth0": 1500, "docker0": 1500},
    devices={"mlx5_0": "InfiniBand", "mlx5_1": "InfiniBand", "mlx5_10": "InfiniBand", "mlx5_2": "Ethernet"},
)
PODS = """\
apiVersion: batch/v1
kind: Job
spec:
  parallelism: 4
  template:
    spec:
      containers:
        - command: [torchrun, --nnodes={}, x.py]
"""
BATCH = "#!/bin/bash\n#SBATCH --nodes=4 --ntasks-per-node={}\n"


def findings(text, *, path="job.sh", release="2.27", cluster=None, node=None):
    subject = Subject(
        files=(read_settings(text, path=path),),
        release=parse_release(release),
        cluster=None if cluster is None else cluster_from_shorthand(cluster),
        node=node,
    )
    return check(subject)


def rules(text, **given):
    return {each.rule for each in findings(text, **given)}


def export(*settings):
    return "#!/bin/sh\n" + "".join(f"export {each}\n" for each in settings)


CASES = [
    ("unknown-name", export("NCCL_IB_HCAS=mlx5_0"), export("NCCL_IB_HCA==mlx5_0"), {}),
    ("unknown-name", export("NCLL_DEBUG=WARN"), export("MY_NCCL_DEBUG=WARN"), {}),
    ("unknown-name", export("TORCH_NCCL_BLOKING_WAIT=0"), export("TORCH_NCCL_HIGH_PRIORITY=1"), {}),
    ("not-in-release", export("NCCL_IB_CUDA_SUPPORT=1"), export("NCCL_NET_GDR_LEVEL=PHB"), {}),
    ("not-in-release", export("NCCL_NVLS_ENABLE=1"), export("NCCL_ALGO=^Tree"), {"release": "2.16"}),
    ("renamed", export("NCCL_BLOCKING_WAIT=1"), export("TORCH_NCCL_BLOCKING_WAIT=1"), {}),
    ("value-not-allowed", export("NCCL_IB_DISABLE=true"), export("NCCL_IB_DISABLE=1"), {}),
    ("value-not-allowed", export("NCCL_SOCKET_FAMILY=ipv4"), export("NCCL_SOCKET_FAMILY=AF_INET"), {}),
    ("value-not-allowed", export("NCCL_IB_TIMEOUT=40"), export("NCCL_IB_TIMEOUT=$T"), {}),
    ("kept-from-debugging", export("NCCL_BUFFSIZE=2097152"), export("NCCL_IB_QPS_PER_CONNECTION=4"), {}),
    ("kept-from-debugging", export("NCCL_L1_SHARED_MEMORY_CARVEOUT=1"), export("NCCL_PAT_ENABLE=0"), {}),
    ("default", export("NCCL_IB_TIMEOUT=20"), export("NCCL_IB_TIMEOUT=22"), {}),
    ("default", export("NCCL_IB_TIMEOUT=18"), export("NCCL_IB_TIMEOUT=20"), {"release": "2.20"}),
    (
        "fewer-devices",
        export("NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3"),
        export("NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7"),
        {"cluster": "dgx-h100:4"},
    ),
    (
        "fewer-devices",
        export("NCCL_IB_HCA=mlx5_4,mlx5_5"),
        export("NCCL_IB_HCA=mlx5_0,mlx5_1"),
        {"cluster": "dgx-h100:4"},
    ),
    ("fewer-devices", export("NCCL_IB_HCA==mlx5_4:1"), export("NCCL_IB_HCA=mlx5"), {"cluster": "dgx-h100:4"}),
    (
        "fewer-devices",
        export("NCCL_IB_HCA==mlx5_4:1"),
        export("NCCL_IB_HCA=^mlx5_9"),
        {"cluster": "dgx-h100:4"},
    ),
    (
        "contradiction",
        export("NCCL_IB_DISABLE=1", "NCCL_IB_HCA==mlx5_0"),
        export("NCCL_IB_DISABLE=0", "NCCL_IB_HCA==mlx5_0"),
        {},
    ),
    (
        "contradiction",
        export("NCCL_DEBUG_SUBSYS=NET"),
        export("NCCL_DEBUG_SUBSYS=NET", "NCCL_DEBUG=INFO"),
        {},
    ),
    ("set-twice", export("NCCL_ALGO=Ring", "NCCL_ALGO=Tree"), export("NCCL_ALGO=Ring", "NCCL_ALGO=Ring"), {}),
    (
        "limits-crossed",
        export("NCCL_MIN_NCHANNELS=32", "NCCL_MAX_NCHANNELS=16"),
        export("NCCL_MIN_NCHANNELS=16", "NCCL_MAX_NCHANNELS=32"),
        {},
    ),
    (
        "too-many-sockets",
        export("NCCL_SOCKET_NTHREADS=16", "NCCL_NSOCKS_PERTHREAD=8"),
        export("NCCL_SOCKET_NTHREADS=8", "NCCL_NSOCKS_PERTHREAD=8"),
        {},
    ),
    (
        "debug-file",
        export("NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/tmp/nccl.log"),
        export("NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/tmp/nccl.%h.%p"),
        {},
    ),
    (
        "risky-value",
        export("NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/tmp/nccl.%h"),
        export("NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/tmp/nccl.%h.%p"),
        {},
    ),
    ("conf-line", "NCCL_DEBUG = WARN\n", "# comment = none\nNCCL_DEBUG=WARN\n", {"path": "nccl.conf"}),
    ("conf-line", "NCCL_NET=IB # fast\n", "NCCL_DEBUG_FILE=/tmp/a#b.%h.%p\n", {"path": "nccl.conf"}),
    ("conf-line", 'NCCL_NET="IB"\n', "NCCL_NET=IB\n", {"path": "nccl.conf"}),
    (
        "node-rank-global",
        BATCH.format(8)
        + "srun bash -c 'torchrun --nnodes 4 --node_rank $SLURM_PROCID --nproc_per_node 1 x.py'\n",
        BATCH.format(8)
        + "srun bash -c 'torchrun --nnodes 4 --node_rank $SLURM_NODEID --nproc_per_node 1 x.py'\n",
        {},
    ),
    (
        "node-rank-global",
        "torchrun --nnodes=2 --node_rank=$RANK --nproc_per_node=8 x.py\n",
        "torchrun --nnodes=$WORLD_SIZE --node_rank=$RANK --nproc_per_node=8 x.py\n",
        {},
    ),
    (
        "node-rank-same",
        BATCH.format(1) + "srun torchrun --nnodes 4 --node_rank $SLURM_NODEID x.py\n",
        BATCH.format(1) + "srun bash -c 'torchrun --nnodes 4 --node_rank $SLURM_NODEID x.py'\n",
        {},
    ),
    (
        "node-rank-unused",
        "torchrun --nnodes 2 --rdzv-backend c10d --node-rank 1 x.py\n",
        "torchrun --nnodes 2 --rdzv-backend c10d x.py\n",
        {},
    ),
    (
        "rank-of-batch-script",
        BATCH.format(8) + "export RANK=$SLURM_PROCID\nsrun python x.py\n",
        BATCH.format(8) + "srun bash -c 'export RANK=$SLURM_PROCID; python x.py'\n",
        {},
    ),
    (
        "localhost",
        "torchrun --nnodes 2 --master_addr localhost x.py\n",
        "torchrun --nnodes 1 --master_addr localhost x.py\n",
        {},
    ),
    (
        "localhost",
        BATCH.format(1) + "export MASTER_ADDR=$(scontrol show hostnames | head -n1 || echo localhost)\n",
        BATCH.format(1) + "export MASTER_ADDR=$(scontrol show hostnames | head -n1)\n",
        {},
    ),
    ("localhost", "torchrun --standalone --nnodes 2 x.py\n", "torchrun --standalone --nnodes 1 x.py\n", {}),
    (
        "processes-per-node",
        "torchrun --nproc_per_node 16 x.py\n",
        "torchrun --nproc_per_node 8 x.py\n",
        {"cluster": "dgx-h100:4"},
    ),
    (
        "processes-per-node",
        "#SBATCH --gres=gpu:h100:4\ntorchrun --nproc_per_node 8 x.py\n",
        "#SBATCH --gres=gpu:h100:8\ntorchrun --nproc_per_node 8 x.py\n",
        {},
    ),
    (
        "processes-per-node",
        "export CUDA_VISIBLE_DEVICES=0,1\ntorchrun --nproc_per_node 4 x.py\n",
        "export CUDA_VISIBLE_DEVICES=0,1,2,3\ntorchrun --nproc_per_node 4 x.py\n",
        {},
    ),
    (
        "tasks-per-node",
        BATCH.format(16) + "srun python x.py\n",
        BATCH.format(8) + "srun python x.py\n",
        {"cluster": "dgx-h100:4"},
    ),
    (
        "tasks-per-node",
        "mpirun --hostfile h -N 16 ./x\n",
        BATCH.format(16) + "srun --nodes=1 --ntasks=1 hostname\n",
        {"cluster": "dgx-h100:4"},
    ),
    (
        "started-twice",
        BATCH.format(8) + "srun torchrun --nnodes 4 --nproc_per_node 8 x.py\n",
        BATCH.format(1) + "srun torchrun --nnodes 4 --nproc_per_node 8 x.py\n",
        {},
    ),
    (
        "node-count",
        BATCH.format(1) + "srun torchrun --nnodes 8 --nproc_per_node 8 x.py\n",
        BATCH.format(1) + "srun torchrun --nnodes 4 --nproc_per_node 8 x.py\n",
        {},
    ),
    (
        "node-count",
        BATCH.format(1) + "srun torchrun --nnodes 8 x.py\n",
        BATCH.format(1) + "srun torchrun --nnodes 2:8 --rdzv-backend c10d x.py\n",
        {},
    ),
    (
        "node-count",
        PODS.format(2),
        PODS.format(4),
        {},
    ),
    ("node-count", "torchrun --nnodes 8 x.py\n", "torchrun --nnodes 4 x.py\n", {"cluster": "dgx-h100:4"}),
    (
        "unreached",
        "#!/bin/sh\nNCCL_ALGO=Ring\npython x.py\n",
        "#!/bin/sh\nNCCL_ALGO=Ring\nexport NCCL_ALGO\npython x.py\n",
        {},
    ),
    (
        "unreached",
        "torchrun x.py\nexport NCCL_NET=IB\n",
        "export NCCL_NET=IB\ntorchrun x.py\n",
        {},
    ),
    (
        "unreached",
        export("NCCL_NET=IB") + "mpirun --hostfile hosts -np 16 ./x\n",
        export("NCCL_NET=IB") + "mpirun --hostfile hosts -np 16 -x NCCL_NET ./x\n",
        {},
    ),
    (
        "unreached",
        export("NCCL_NET=IB") + "srun --export=NONE ./x\n",
        export("NCCL_NET=IB") + "srun --export=ALL ./x\n",
        {},
    ),
    (
        "unreached",
        export("CUDA_DEVICE_MAX_CONNECTIONS=1") + "deepspeed --hostfile hosts x.py\n",
        export("NCCL_NET=IB") + "deepspeed --hostfile hosts x.py\n",
        {},
    ),
    (
        "deprecated-launcher",
        "python -m torch.distributed.launch --nproc_per_node 8 x.py\n",
        "python -m torch.distributed.run --nproc_per_node 8 x.py\n",
        {},
    ),
    ("interface", export("NCCL_SOCKET_IFNAME=ib0"), export("NCCL_SOCKET_IFNAME=eth"), {"node": NODE}),
    (
        "interface",
        export("NCCL_SOCKET_IFNAME=^eth,docker"),
        export("NCCL_SOCKET_IFNAME=^lo,docker"),
        {"node": NODE},
    ),
    ("interface", export("NCCL_SOCKET_IFNAME=lo"), export("NCCL_SOCKET_IFNAME=ib0"), {}),
    (
        "replaced-exclusions",
        export("NCCL_SOCKET_IFNAME=^veth"),
        export("NCCL_SOCKET_IFNAME=^lo,docker,veth"),
        {},
    ),
    ("interface", export("GLOO_SOCKET_IFNAME=eth"), export("GLOO_SOCKET_IFNAME=eth0"), {"node": NODE}),
    ("device", export("NCCL_IB_HCA=bnxt"), export("NCCL_IB_HCA==mlx5_0"), {"node": NODE}),
    ("device", export("NCCL_IB_HCA=mlx5"), export("NCCL_IB_HCA==mlx5_0,mlx5_1"), {"node": NODE}),
    ("device-prefix", export("NCCL_IB_HCA=mlx5_1"), export("NCCL_IB_HCA==mlx5_1"), {"node": NODE}),
    ("device-prefix", export("NCCL_IB_HCA=mlx5_0,mlx5_1"), export("NCCL_IB_HCA=mlx5"), {}),
    (
        "not-on-fabric",
        export("NCCL_IB_TC=106"),
        export("FI_PROVIDER=efa"),
        {"cluster": "aws-p5:4"},
    ),
    ("roce-traffic-class", export("NCCL_NET=IB"), export("NCCL_IB_TC=106"), {"cluster": "oci-h100:4"}),
    (
        "roce-gid",
        export("NCCL_IB_GID_INDEX=3"),
        export("NCCL_IB_GID_INDEX=-1"),
        {"cluster": "oci-h100:4"},
    ),
    (
        "roce-gid",
        export("NCCL_IB_TC=106"),
        export("NCCL_IB_TC=106", "NCCL_IB_GID_INDEX=3"),
        {"cluster": "oci-h100:4", "release": "2.20"},
    ),
]


@pytest.mark.parametrize(("rule", "fires", "misses", "given"), CASES)
def test_rule_fires_and_its_near_miss_does_not(rule, fires, misses, given):
    assert rule in rules(fires, **given)
    assert rule not in rules(misses, **given)


def test_checklist_of_roce_is_for_roce_alone():
    names = {
        each.name
        for each in findings(export("NCCL_NET=IB"), cluster="oci-h100:4")
        if each.severity == "check"
    }
    assert names == {"PFC", "ECN", "GID type", "MTU"}
    assert "roce-checklist" not in rules(export("NCCL_NET=IB"), cluster="dgx-h100:4")


@pytest.mark.parametrize(("layer", "listed"), [("Ethernet", True), ("InfiniBand", False)])
def test_devices_of_a_node_tell_roce_where_no_cluster_does(layer, listed):
    node = NodeFacts(interfaces={}, devices={"mlx5_0": layer})
    assert ("roce-checklist" in rules(export("NCCL_NET=IB"), node=node)) is listed


def test_interfaces_of_a_small_mtu_are_named():
    node = NodeFacts(interfaces={"lo": 65536, "eth0": 1500}, devices={"mlx5_0": "Ethernet"})
    found = [each for each in findings(export("NCCL_NET=IB"), node=node) if each.name == "MTU"]
    assert "eth0" in found[0].what


def test_shared_memory_of_a_container_is_asked_for_where_gpus_share_it():
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
        "    - {name: c, resources: {limits: {nvidia.com/gpu: 8}}%s}\n%s"
    )
    mounted = (
        ", volumeMounts: [{name: s, mountPath: /dev/shm}]",
        "  volumes: [{name: s, emptyDir: {medium: Memory}}]\n",
    )
    assert "shared-memory" in rules(pod % ("", ""), path="pod.yaml")
    assert "shared-memory" not in rules(pod % mounted, path="pod.yaml")
    assert "shared-memory" not in rules(pod % ("", "  hostIPC: true\n"), path="pod.yaml")
    assert "shared-memory" in rules(pod % ("", "  hostIPC: false\n"), path="pod.yaml")


RISKY = {
    "NCCL_IB_DISABLE": ("1", "0"),
    "NCCL_NET": ("Socket", "IB"),
    "NCCL_P2P_DISABLE": ("1", "0"),
    "NCCL_P2P_LEVEL": ("LOC", "NVL"),
    "NCCL_SHM_DISABLE": ("1", "0"),
    "NCCL_NET_GDR_LEVEL": ("SYS", "PXB"),
    "NCCL_GDR_FLUSH_DISABLE": ("1", "0"),
    "NCCL_NVLS_ENABLE": ("0", "1"),
    "NCCL_CUMEM_ENABLE": ("0", "1"),
    "NCCL_MNNVL_ENABLE": ("0", "1"),
    "NCCL_PROTO": ("LL", "Simple"),
    "NCCL_ALGO": ("Ring", "^Tree"),
    "NCCL_MAX_NCHANNELS": ("2", "16"),
    "NCCL_MAX_P2P_NCHANNELS": ("1", "16"),
    "NCCL_IGNORE_DISABLED_P2P": ("2", "1"),
    "NCCL_CHUNK_SIZE": ("1048576", "524288"),
    "NCCL_IB_TIMEOUT": ("8", "22"),
    "NCCL_IB_RETRY_CNT": ("3", "7"),
    "NCCL_IB_RETURN_ASYNC_EVENTS": ("0", "1"),
    "NCCL_IB_ROCE_VERSION_NUM": ("1", "2"),
    "NCCL_PXN_DISABLE": ("1", "0"),
    "NCCL_NVB_DISABLE": ("1", "0"),
    "NCCL_LAUNCH_RACE_FATAL": ("0", "1"),
    "NCCL_GRAPH_FILE": ("/g.xml", ""),
    "NCCL_HOSTID": ("a", ""),
    "NCCL_DEBUG": ("INFO", "WARN"),
    "NCCL_CHECK_POINTERS": ("1", "0"),
    "NCCL_CHECK_MODE": ("DEBUG_LOCAL", "DEFAULT"),
    "CUDA_LAUNCH_BLOCKING": ("1", "0"),
    "TORCH_DISTRIBUTED_DEBUG": ("DETAIL", "INFO"),
    "TORCH_NCCL_BLOCKING_WAIT": ("1", "0"),
    "TORCH_NCCL_DESYNC_DEBUG": ("1", "0"),
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": ("0", "3"),
    "RDMAV_FORK_SAFE": ("1", ""),
}


def test_every_risky_value_is_tested():
    assert {risk.name for risk in RISKS} == set(RISKY)


@pytest.mark.parametrize("name", RISKY)
def test_risky_value_is_found_and_its_neighbour_is_not(name):
    risky, fine = RISKY[name]
    assert "risky-value" in rules(export(f"{name}={risky}"), release="2.30")
    assert "risky-value" not in rules(export(f"{name}={fine}"), release="2.30")


@pytest.mark.parametrize(
    ("setting", "cluster", "harms"),
    [
        ("NCCL_IB_DISABLE=1", "dgx-h100:4", True),
        ("NCCL_IB_DISABLE=1", "aws-p5:4", False),  # a plugin carries EFA, which the switch does not touch
        ("NCCL_P2P_DISABLE=1", "dgx-h100:4", True),
        ("NCCL_P2P_DISABLE=1", "mgx-pcie-l40s-8:4", False),  # no NVLink to lose
        ("NCCL_IB_ROCE_VERSION_NUM=1", "oci-h100:4", True),
        ("NCCL_IB_ROCE_VERSION_NUM=1", "dgx-h100:4", False),
    ],
)
def test_risk_holds_on_the_fabrics_it_is_of(setting, cluster, harms):
    assert ("risky-value" in rules(export(setting), cluster=cluster)) is harms


@pytest.mark.parametrize(
    ("value", "release", "harms"),
    # NCCL user guide, NCCL_ALGO, since 2.24
    [
        ("Tree", "2.27", True),
        ("Tree", "2.20", False),
        ("Ring,Tree", "2.27", False),
        ("allreduce:Tree", "2.27", False),
        ("^NVLS", "2.27", False),
        ("nvls;allreduce:ring", "2.27", True),
    ],
)
def test_algorithms_without_ring_harm_from_2_24_on(value, release, harms):
    found = findings(export(f"NCCL_ALGO='{value}'"), release=release)
    assert any(each.severity is Severity.HARMFUL for each in found) is harms


def test_every_pair_names_a_source_and_what_to_do():
    assert all(pair.what and pair.todo for pair in PAIRS)
    assert len(RULES) == len(set(RULES))


def test_findings_are_told_worst_first_and_then_by_line():
    found = findings(
        export("NCCL_DEBUG=INFO", "NCCL_IB_TIMEOUT=20", "NCCL_IB_DISABLE=1", "NCCL_SHM_DISABLE=1")
    )
    order = list(Severity)
    places = [(order.index(each.severity), each.line) for each in found]
    assert places == sorted(places)
    assert found[0].name == "NCCL_IB_DISABLE"


def test_clean_script_has_no_finding():
    text = (
        "#!/bin/bash\n#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=8\n"
        "export NCCL_DEBUG=WARN\nhead=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n"
        "srun torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 --rdzv-backend c10d "
        "--rdzv-endpoint $head:29500 train.py\n"
    )
    assert findings(text, cluster="dgx-h100:4") == ()
