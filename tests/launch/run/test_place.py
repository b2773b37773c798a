"""The command that starts a job on this machine."""

from linkwise.launch.run.place import LocalPlace, TorchJob

JOB = TorchJob(
    script="start.py", arguments=("pairs", "plan.json"), ranks=4, settings={"NCCL_DEBUG": "INFO"}, python="py"
)


def command(inherited):
    return LocalPlace().command(JOB, run_id="r1", inherited=inherited)


def test_ranks_meet_on_a_port_that_the_kernel_picks():
    words = command({}).argv
    assert words[:3] == ("py", "-m", "torch.distributed.run")
    assert words[words.index("--rdzv-endpoint") + 1] == "localhost:0"
    assert words[words.index("--nproc-per-node") + 1] == "4"
    assert words[-3:] == ("start.py", "pairs", "plan.json")


def test_what_another_launcher_left_in_the_environment_is_not_inherited():
    left = {"MASTER_PORT": "29500", "MASTER_ADDR": "gone", "RANK": "3", "PATH": "/bin"}
    environment = command(left).environment(left)
    assert not {"MASTER_PORT", "MASTER_ADDR", "RANK"} & set(environment)
    assert environment["PATH"] == "/bin"
    assert environment["NCCL_DEBUG"] == "INFO"


def test_defaults_yield_to_the_environment():
    stated = {"GLOO_SOCKET_IFNAME": "eth0"}
    assert command(stated).environment(stated)["GLOO_SOCKET_IFNAME"] == "eth0"
    assert command({}).environment({})["GLOO_SOCKET_IFNAME"] == "lo"
