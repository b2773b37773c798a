"""Shell scripts as settings and launches; what the shell does with quotes is POSIX, 2.2."""

from linkwise.readers.environment import Reach
from linkwise.readers.launch_script import read_launch_script
from linkwise.readers.shell import expanded, read_commands


def settings(text):
    return {each.name: (each.value, each.reach) for each in read_launch_script(text).assignments}


def launch(text, launcher="torchrun"):
    return next(each for each in read_launch_script(text).launches if each.launcher == launcher)


def test_words_keep_their_line_over_continuations():
    commands = list(read_commands("a \\\n  'b c' \"d\"\n# note\ne"))
    assert [(each.line, [word.text for word in each.words]) for each in commands] == [
        (1, ["a", "b c", "d"]),
        (3, []),
        (4, ["e"]),
    ]
    assert commands[0].words[1].line == 2


def test_comment_and_here_document_are_no_commands():
    text = "cat > hosts <<EOF\nexport NCCL_DEBUG=INFO\nEOF\n# export NCCL_ALGO=Ring\nexport NCCL_PROTO=LL  # why\n"
    assert settings(text) == {"NCCL_PROTO": ("LL", Reach.EXPORTED)}


def test_reach_tells_exported_from_plain_and_of_one_command():
    text = (
        "NCCL_ALGO=Ring\nexport NCCL_ALGO\nNCCL_NET=IB\nNCCL_PROTO=LL python x.py\nset -a\nNCCL_DEBUG=WARN\n"
    )
    assert {name: reach for name, (_, reach) in settings(text).items()} == {
        "NCCL_ALGO": Reach.EXPORTED,
        "NCCL_NET": Reach.SHELL,
        "NCCL_PROTO": Reach.COMMAND,
        "NCCL_DEBUG": Reach.EXPORTED,
    }


def test_unset_takes_a_setting_back():
    assert settings("export NCCL_IB_DISABLE=1\nunset NCCL_IB_DISABLE\n") == {}


def test_variables_and_defaults_are_put_in():
    assert expanded("${N:-4} $N ${M:-2} ${HOST}", {"N": "8"}) == "8 8 2 ${HOST}"


def test_array_of_arguments_becomes_options():
    text = "GPUS=8\nARGS=(\n  --nproc_per_node $GPUS # all\n  --nnodes=4\n)\ntorchrun ${ARGS[@]} train.py --lr 1\n"
    options = {each.name: each.value for each in launch(text).options}
    assert options == {"nproc-per-node": "8", "nnodes": "4"}


def test_shell_on_each_node_reads_what_stands_in_single_quotes():
    inner = "torchrun --node_rank={}SLURM_NODEID x.py"
    late = launch(f"srun -l bash -c '{inner.format('$')}'")
    escaped = launch(f'srun bash -c "{inner.format(chr(92) + "$")}"')
    early = launch(f'srun bash -c "{inner.format("$")}"')
    assert [each.is_late for each in (late, escaped, early)] == [True, True, False]
    mixed = launch("srun sh -c 'torchrun --master-addr '$head' --node-rank $SLURM_NODEID x.py'")
    assert (mixed.is_late, mixed.value("node-rank")) == (True, "$SLURM_NODEID")
    assert {each.value("node-rank") for each in (late, escaped, early)} == {"$SLURM_NODEID"}
    assert late.parents == ("srun",)


def test_mpirun_forwards_names_and_values():
    script = read_launch_script(
        "mpirun -np 16 -N 8 -x NCCL_DEBUG=WARN -x NCCL_IB_HCA --mca btl tcp,self ./a\n"
    )
    assert script.forwarded == {"NCCL_DEBUG", "NCCL_IB_HCA"}
    assert script.launches[0].value("npernode") == "8"
    assert [(each.name, each.value) for each in script.assignments] == [("NCCL_DEBUG", "WARN")]


def test_python_module_is_torchrun():
    found = launch("python3 -m torch.distributed.run --nproc-per-node=8 --standalone train.py")
    assert (found.value("nproc-per-node"), found.value("standalone")) == ("8", "")


def test_sbatch_directives_are_options():
    script = read_launch_script(
        "#!/bin/bash\n#SBATCH -N 4 --ntasks-per-node=8\n#SBATCH --gpus-per-node 8 # all\n"
    )
    assert {each.name: each.value for each in script.directives} == {
        "nodes": "4",
        "ntasks-per-node": "8",
        "gpus-per-node": "8",
    }


def test_secrets_are_dropped_where_they_are_read():
    script = read_launch_script("export HF_TOKEN=hf_abc NCCL_API_KEY=k WANDB_API_KEY=w NCCL_IB_PKEY=3\n")
    assert [(each.name, each.value) for each in script.assignments] == [
        ("NCCL_API_KEY", None),
        ("NCCL_IB_PKEY", "3"),
    ]
