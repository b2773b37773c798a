"""Rendered scripts run by a real shell, with programs in the place of torchrun and Slurm that say what they got."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from io import StringIO

import pytest
from ruamel.yaml import YAML

from linkwise.cluster import load_cluster
from linkwise.launch.render import TARGETS, render
from linkwise.layout import Layout
from linkwise.model import load_model
from tests.launch.render.starts import DENSE, start_of

HOSTILE = 'it\'s $(touch pwned) `touch pwned` "x"\n; touch pwned # é'
SCRIPT = 'my train\'s $(touch pwned) "file" `id`.py'
SAY = '#!/bin/bash\nprintf "%s\\0" "$@" > "$SAID"\n'
SRUN = '#!/bin/bash\nwhile [[ $1 != bash ]]; do shift; done\nSLURM_NODEID=3 exec "$@"\n'
SCONTROL = '#!/bin/bash\nprintf "n0\\nn1\\n"\n'


def hostile_start(**changes):
    there = replace(load_cluster("dgx-h100:8"), name=HOSTILE)
    model = replace(load_model("llama-3.1-70b"), name=HOSTILE)
    return start_of(DENSE, model=model, cluster=there, script=SCRIPT, **changes)


@pytest.fixture
def shell(tmp_path):
    """Return what runs a script and gives the words that torchrun got."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in {"torchrun": SAY, "srun": SRUN, "scontrol": SCONTROL}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    said = tmp_path / "said"

    def run(words, cwd, **variables):
        path = f"{programs}:{os.environ['PATH']}"
        done = subprocess.run(
            words,
            cwd=cwd,
            env={"PATH": path, "SAID": str(said), **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        got = said.read_text().split("\0")[:-1] if said.exists() else None
        return done, got

    return run


def written(tmp_path, files):
    folder = tmp_path / "a folder's $HOME"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_torchrun_gets_exactly_the_words_that_were_meant(shell, tmp_path):
    start = hostile_start()
    folder = written(tmp_path, render("torchrun", start).files)
    done, got = shell(["bash", str(folder / "start.sh"), "5", "n0", "--more", "a b"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    arguments = (folder / "megatron.args").read_text().splitlines()
    place = got.index(SCRIPT)
    assert got[place + 1 :] == [*arguments, "--more", "a b"]
    assert got[:5] == [
        "--nnodes=8",
        "--nproc-per-node=8",
        "--node-rank=5",
        "--master-addr=n0",
        "--master-port=29500",
    ]
    assert f"--log-dir={folder}/logs/node-5" in got
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "usage: "),
        (["1"], "usage: "),
        (["8", "n0"], "NODE_RANK 8 is none of 0 to 7"),
        (["-1", "n0"], "NODE_RANK -1 is none of 0 to 7"),
        (["a[$(touch pwned)]", "n0"], "is none of 0 to 7"),
        (["0", "localhost"], "is this node itself on every node"),
        (["0", "127.0.0.1"], "is this node itself on every node"),
        (["0", "::1"], "is this node itself on every node"),
    ],
)
def test_start_refuses_what_would_hang(shell, tmp_path, words, message):
    folder = written(tmp_path, render("torchrun", start_of(DENSE)).files)
    done, got = shell(["bash", str(folder / "start.sh"), *words], tmp_path)
    assert (done.returncode, got) == (2, None)
    assert message in done.stderr
    assert not list(tmp_path.rglob("pwned"))


def test_slurm_script_runs_torchrun_with_the_number_of_the_node(shell, tmp_path):
    folder = written(tmp_path, render("slurm", hostile_start()).files)
    slurm = {"SLURM_SUBMIT_DIR": str(folder), "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[0-7]"}
    done, got = shell(
        ["bash", str(folder / "job.sbatch"), "--more", "a b"], tmp_path, SLURM_CPUS_ON_NODE="96", **slurm
    )
    assert (done.returncode, done.stderr) == (0, "")
    arguments = (folder / "megatron.args").read_text().splitlines()
    assert got[got.index(SCRIPT) + 1 :] == [*arguments, "--more", "a b"]
    assert {"--node-rank=3", "--master-addr=n0", f"--log-dir={folder}/logs-7/node-3"} <= set(got)
    assert not list(tmp_path.rglob("pwned"))


def test_slurm_script_stops_where_it_cannot_work(shell, tmp_path):
    folder = written(tmp_path, render("slurm", start_of(DENSE)).files)
    done, got = shell(["bash", str(folder / "job.sbatch")], tmp_path)
    assert done.returncode != 0
    assert "submit this script with sbatch" in done.stderr
    elsewhere = {"SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n0"}
    done, got = shell(["bash", str(folder / "job.sbatch")], tmp_path, **elsewhere)
    assert (done.returncode, got) == (2, None)
    assert "megatron.args is missing" in done.stderr


@pytest.mark.parametrize("name", ["jobset.yaml", "trainjob.yaml", "pytorchjob.yaml"])
def test_command_of_a_pod_runs_torchrun(shell, tmp_path, name):
    text = render("kubernetes", hostile_start()).files[name]
    documents = list(YAML(typ="safe", pure=True).load_all(text))
    (commands,) = {tuple(each) for each in found(documents, "command")}
    (data,) = found(documents, "data")
    folder = written(tmp_path, data)
    moved = [word.replace("/etc/linkwise", "$CONFIG") for word in commands]
    variables = {"PET_NODE_RANK": "2", "PET_MASTER_ADDR": "head", "PET_MASTER_PORT": "29400", "RANK": "2"}
    done, got = shell(
        moved, tmp_path, CONFIG=str(folder), JOB_COMPLETION_INDEX="2", HOSTNAME="pod", **variables
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--node-rank=2" in got
    assert got[got.index(SCRIPT) + 1 :] == data["megatron.args"].splitlines()


def found(value, key):
    """Return the values of a key, wherever they stand."""
    if isinstance(value, list):
        return [each for inner in value for each in found(inner, key)]
    if not isinstance(value, dict):
        return []
    here = [value[key]] if key in value else []
    return here + [each for inner in value.values() for each in found(inner, key)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.requires("shellcheck")
def test_shellcheck_finds_nothing(target, tmp_path):
    files = render(target, start_of(Layout(tensor=4))).files
    folder = written(tmp_path, files)
    for name in files:
        if name.endswith((".sh", ".sbatch")):
            done = subprocess.run(
                ["shellcheck", "--severity=style", name],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stdout == ""


@pytest.mark.parametrize("name", [HOSTILE, "no", "1e3", "", "é", "x" * 300, "a: b", "%", "-"])
def test_names_of_strangers_stay_names(name):
    there = replace(load_cluster("dgx-h100:8"), name=name)
    model = replace(load_model("llama-3.1-70b"), name=name)
    for target in TARGETS:
        start = start_of(DENSE, model=model, cluster=there)
        assert re.fullmatch(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?", start.name)
        for file, text in render(target, start).files.items():
            if file.endswith((".sh", ".sbatch")):
                code = [line for line in text.splitlines() if not line.startswith("#")]
                assert "touch pwned" not in "\n".join(code)
            if file.endswith(".yaml"):
                for document in YAML(typ="safe", pure=True).load_all(StringIO(text)):
                    assert document["metadata"]["name"] == start.name


def test_json_of_deepspeed_is_json():
    assert json.loads(render("deepspeed", hostile_start()).files["ds_config.json"])["train_batch_size"] == 16


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_program_folder_with_blanks_is_one_word(shell, tmp_path):
    start = start_of(Layout(zero_stage=3), framework="torchtitan", model="llama-3.1-8b")
    folder = written(tmp_path, render("torchtitan", start).files)
    done, got = shell(["bash", str(folder / "start.sh"), "0", "n0"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert got[-3:] == ["-m", "torchtitan.train", f"--job.config_file={folder}/torchtitan.toml"]
