"""Laws of the check of settings: findings or an error of ours, soon, whatever the file; secrets never told."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.nccl.allowed import misfit
from linkwise.nccl.variables import NEWEST, variables
from linkwise.readers.settings_file import read_settings
from linkwise.settings.checking import MOST_FINDINGS, check
from linkwise.settings.finding import Subject
from linkwise.settings.node import parse_node_facts

LAWS = settings(max_examples=25, deadline=None)
SECRET = "s3cr3t-value"
SCRIPT = f"""#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=8 --gpus-per-node=8
export HF_TOKEN={SECRET} NCCL_DEBUG=INFO NCCL_AUTH_TOKEN={SECRET}
ARGS=(--nproc_per_node 8 --nnodes $N --node_rank $SLURM_PROCID)
cat > hosts <<EOF
node0 slots=8
EOF
srun bash -c 'torchrun ${{ARGS[@]}} --master_addr localhost x.py "a b"'
mpirun -np 16 -x NCCL_ALGO=Ring --hostfile hosts python -m torch.distributed.run x.py
"""
MANIFEST = f"""apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  containers:
    - name: c
      command: [bash, -c, "export NCCL_ALGO=Ring; torchrun --nproc_per_node=8 x.py"]
      env:
        - {{name: NCCL_IB_DISABLE, value: "1"}}
        - {{name: API_KEY, value: {SECRET}}}
      resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""
CONF = "NCCL_DEBUG = WARN\n# a\nNCCL_NET=IB # b\nNCCL_SOCKET_IFNAME==eth0\n"
FILES = {"job.sh": SCRIPT, "pod.yaml": MANIFEST, "nccl.conf": CONF}
PIECES = st.sampled_from(
    [
        "'",
        '"',
        "$(",
        "${",
        "`",
        "\\",
        "\n",
        "<<",
        "=(",
        "&",
        "|",
        ";",
        "- ",
        ": ",
        "{",
        "[",
        "*a",
        "NCCL_",
        "%",
    ]
)


def judge(text, path):
    try:
        found = check(Subject(files=(read_settings(text, path=path),), release=NEWEST))
    except InputError as error:
        return str(error)
    assert len(found) <= MOST_FINDINGS
    return "\n".join(f"{each.name}={each.value} {each.what} {each.todo}" for each in found)


@pytest.mark.parametrize("path", FILES)
@LAWS
@given(seed=st.integers(0, 10**6), piece=PIECES | st.text(max_size=12), cut=st.integers(0, 80))
def test_damaged_file_gives_findings_or_an_error_of_ours(path, seed, piece, cut):
    text = FILES[path]
    at = random.Random(seed).randrange(len(text))
    judge(text[:at] + piece + text[at + cut :], path)


@LAWS
@given(text=st.text(max_size=300), path=st.sampled_from(["x", "nccl.conf", "a.yaml"]))
def test_any_text_gives_findings_or_an_error_of_ours(text, path):
    judge(text, path)
    judge("#!/bin/sh\n" + text, path)
    parse_node_facts(text)


@pytest.mark.parametrize("path", FILES)
def test_secret_is_never_told(path):
    assert SECRET not in judge(FILES[path], path)


@LAWS
@given(name=st.sampled_from(sorted(variables())), value=st.text(max_size=60))
def test_any_value_of_any_variable_is_judged(name, value):
    misfit(variables()[name].allowed, value, NEWEST)
    judge(f"{name}={value}", "nccl.conf")


@pytest.mark.parametrize(
    "text",
    [
        "A=$A$A\n" * 100_000,
        '"' * 999_000,
        "$(" * 450_000,
        "${a:-" * 190_000,
        "A=(" * 300_000,
        "A=xxxxxxxxxx\n" + "A=$A$A\n" * 90_000 + "torchrun $A\n" * 5000,
        'bash -c "' * 100_000,
        "torchrun " * 100_000,
        "export NCCL_ALGO=Ring NCCL_PROTO=LL\n" * 25_000,
    ],
    ids=[
        "doubling",
        "quotes",
        "expansions",
        "defaults",
        "arrays",
        "lists",
        "nesting",
        "launches",
        "findings",
    ],
)
def test_hostile_script_is_read_soon(text):
    start = time.process_time()
    judge("#!/bin/sh\n" + text, "job.sh")
    assert time.process_time() - start < 5
