"""The verb render: the folder it writes, what it leaves alone, and what it says."""

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkwise.cli.main import run
from linkwise.errors import ExitCode
from linkwise.launch.render import TARGETS

JOB = (
    "--model",
    "llama-3.1-8b",
    "--sequence-length",
    "8192",
    "--global-batch",
    "128",
    "--cluster",
    "dgx-h100:2",
)
FIXED = """\
linkwise: job/1
model: llama-3.1-8b
sequence_length: 8192
global_batch: 128
framework: {framework}
layout: {{tensor: 2, zero_stage: {zero}, micro_batch: 2}}
"""


@pytest.fixture
def job(tmp_path):
    def write(framework="megatron", zero=1):
        path = tmp_path / f"{framework}.yaml"
        path.write_text(FIXED.format(framework=framework, zero=zero))
        return str(path)

    return write


def rendered(capsys, *words):
    code = run(["render", *words, "--format", "json"])
    told = capsys.readouterr()
    return code, json.loads(told.out), told.err


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_writes_what_it_says(target, job, tmp_path, capsys):
    folder = tmp_path / "run"
    code, told, err = rendered(capsys, target, job(), "dgx-h100:2", "-o", str(folder))
    assert code == ExitCode.DONE
    assert told["schema"] == "linkwise.render/1"
    assert (told["target"], told["nodes"], told["gpus_per_node"]) == (target, 2, 8)
    assert sorted(told["files"]) == sorted(each.name for each in folder.iterdir())
    assert {"README.md", "linkwise-render.json"} < set(told["files"])
    layout = told["layout"]
    assert (layout["tensor"], layout["data"], layout["micro_batch"], layout["zero_stage"]) == (2, 8, 2, 1)
    assert {each["name"] for each in told["settings"]} >= {
        "NCCL_DEBUG_FILE",
        "CUDA_DEVICE_MAX_CONNECTIONS",
    } or (target in ("deepspeed", "ddp", "torchtitan"))
    page = (folder / "README.md").read_text()
    for each in told["not_expressed"]:
        assert f"- {each['name']}" in err
        assert f"- {each['name']}" in page
    assert json.loads((folder / "linkwise-render.json").read_text()) == told


def test_layout_is_searched_where_the_job_leaves_it_open(tmp_path, capsys):
    code, told, _ = rendered(capsys, "slurm", *JOB, "-o", str(tmp_path / "run"))
    assert code == ExitCode.DONE
    run(["plan", *JOB, "--top", "1", "--format", "json"])
    (best,) = json.loads(capsys.readouterr().out)["layouts"]
    assert {name: best[name] for name in told["layout"]} == told["layout"]
    assert told["step_time_s"] == best["step_time_s"]


def test_same_input_gives_the_same_bytes(job, tmp_path, capsys):
    for name in ("a", "b"):
        assert run(["render", "kubernetes", job(), "dgx-h100:2", "-o", str(tmp_path / name)]) == ExitCode.DONE
    one, other = (
        {each.name: each.read_bytes() for each in (tmp_path / name).iterdir()} for name in ("a", "b")
    )
    assert one == other


def test_start_script_can_be_run(job, tmp_path, capsys):
    run(["render", "megatron", job(), "dgx-h100:2", "-o", str(tmp_path / "run")])
    assert (tmp_path / "run" / "start.sh").stat().st_mode & stat.S_IXUSR
    assert not (tmp_path / "run" / "README.md").stat().st_mode & stat.S_IXUSR


def test_rendering_again_replaces_its_own_files_and_takes_those_of_another_target_away(job, tmp_path, capsys):
    folder = tmp_path / "run"
    run(["render", "torchtitan", job(), "dgx-h100:2", "-o", str(folder)])
    (folder / "logs").mkdir()
    (folder / "notes.txt").write_text("mine")
    capsys.readouterr()
    code, told, err = rendered(capsys, "megatron", job(), "dgx-h100:2", "-o", str(folder))
    assert code == ExitCode.DONE
    assert "removed" in err
    assert "torchtitan.toml" in err
    assert {each.name for each in folder.iterdir()} == {*told["files"], "logs", "notes.txt"}


@pytest.mark.parametrize("name", ["start.sh", "README.md", "megatron.args"])
def test_edited_file_is_replaced_only_by_force(name, job, tmp_path, capsys):
    folder = tmp_path / "run"
    words = ["render", "megatron", job(), "dgx-h100:2", "-o", str(folder)]
    assert run(words) == ExitCode.DONE
    before = (folder / name).read_text()
    (folder / name).write_text("edited")
    capsys.readouterr()
    assert run(words) == ExitCode.WRONG_INPUT
    told = capsys.readouterr()
    assert f"-o {folder} has {name}, not rendered by linkwise or edited since" in told.err
    assert (folder / name).read_text() == "edited"
    assert run([*words, "--force"]) == ExitCode.DONE
    assert (folder / name).read_text() == before


def test_edited_file_of_another_target_stays(job, tmp_path, capsys):
    folder = tmp_path / "run"
    run(["render", "torchtitan", job(), "dgx-h100:2", "-o", str(folder)])
    (folder / "torchtitan.toml").write_text("edited")
    assert run(["render", "megatron", job(), "dgx-h100:2", "-o", str(folder)]) == ExitCode.DONE
    assert (folder / "torchtitan.toml").read_text() == "edited"


def test_a_stranger_s_result_takes_nothing_away(job, tmp_path, capsys):
    folder, outside = tmp_path / "run", tmp_path / "precious"
    outside.write_text("precious")
    run(["render", "megatron", job(), "dgx-h100:2", "-o", str(folder)])
    result = json.loads((folder / "linkwise-render.json").read_text())
    import hashlib

    digest = hashlib.sha256(b"precious").hexdigest()
    result["digests"] |= {"../precious": digest, str(outside): digest, "..": digest, "": digest}
    (folder / "linkwise-render.json").write_text(json.dumps(result))
    assert run(["render", "megatron", job(), "dgx-h100:2", "-o", str(folder)]) == ExitCode.DONE
    assert outside.read_text() == "precious"


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(st.binary(max_size=200), st.just(b'{"schema": "linkwise.render/1"}'), st.just(b"[]"))
)
def test_any_result_that_is_none_is_refused(content, job, tmp_path, capsys):
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    (folder / "linkwise-render.json").write_bytes(content)
    assert run(["render", "megatron", job(), "dgx-h100:2", "-o", str(folder)]) == ExitCode.WRONG_INPUT
    assert "has linkwise-render.json, not rendered" in capsys.readouterr().err
    assert [each.name for each in folder.iterdir()] == ["linkwise-render.json"]


def test_a_link_is_not_written_through(job, tmp_path, capsys):
    folder, outside = tmp_path / "run", tmp_path / "outside"
    folder.mkdir()
    outside.write_text("outside")
    (folder / "start.sh").symlink_to(outside)
    words = ["render", "megatron", job(), "dgx-h100:2", "-o", str(folder)]
    assert run(words) == ExitCode.WRONG_INPUT
    assert run([*words, "--force"]) == ExitCode.DONE
    assert outside.read_text() == "outside"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["torchrn"], "torchrun"),
        (["slurm", "--image", "a:1"], "--image has no effect on target slurm"),
        (["slurm", "--nic-resource", "a/b"], "--nic-resource has no effect on target slurm"),
        (["kubernetes", "--image", "a b"], "--image 'a b' is no name"),
        (["slurm", "--time-limit", "0"], "0<x<=8760"),
        (["slurm", "--time-limit", "nan"], "nan"),
        (["slurm", "--script", "-x"], "--script '-x' is no name of a program"),
        (["slurm", "--script", "a\nb"], "is no name of a program"),
        (["slurm", "--dscp", "26"], "--dscp has no effect"),
        (["slurm", "--nccl", "new"], "is not a release of NCCL"),
        (["slurm", "--format", "csv"], "csv"),
        (["slurm", "--node", "no-such-folder"], "no-such-folder"),
    ],
)
def test_wrong_use_is_one_message_and_2(words, message, tmp_path, capsys):
    assert run(["render", *words, *JOB, "-o", str(tmp_path / "run")]) == ExitCode.WRONG_INPUT
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err
    assert (told.out, (tmp_path / "run").exists()) == ("", False)


def test_folder_that_cannot_be_written_is_named_before_the_work(job, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for folder, message in (("file", "is a file"), ("a/b", "there is no folder")):
        code = run(["render", "slurm", job(), "dgx-h100:2", "-o", str(tmp_path / folder)])
        assert code == ExitCode.WRONG_INPUT
        assert message in capsys.readouterr().err


def test_job_that_fits_nowhere_leaves_with_5_and_writes_nothing(tmp_path, capsys):
    words = ["--model", "gpt-3-175b", "--sequence-length", "2048", "--global-batch", "16"]
    code = run(
        [
            "render",
            "slurm",
            *words,
            "--cluster",
            "dgx-h100:1",
            "-o",
            str(tmp_path / "run"),
            "--format",
            "json",
        ]
    )
    told = capsys.readouterr()
    assert code == ExitCode.INFEASIBLE
    assert "no layout fits; the closest lacks" in told.err
    assert (told.out, (tmp_path / "run").exists()) == ("", False)


def test_time_limit_is_in_every_script(job, tmp_path, capsys):
    texts = {}
    for target in ("slurm", "torchrun", "kubernetes"):
        words = ["render", target, job(), "dgx-h100:2", "-o", str(tmp_path / target), "--time-limit", "36.5"]
        assert run(words) == ExitCode.DONE
        texts |= {each.name: each.read_text() for each in (tmp_path / target).iterdir()}
    assert "#SBATCH --time=1-12:30:00\n" in texts["job.sbatch"]
    assert "--kill-after=60 131400 \\\n" in texts["start.sh"]
    for name in ("jobset.yaml", "trainjob.yaml", "pytorchjob.yaml"):
        assert "activeDeadlineSeconds: 131400\n" in texts[name]
    assert "--exit-duration-in-mins=2180\n" in texts["megatron.args"]


def test_length_of_the_training_sets_steps_and_limit(tmp_path, capsys):
    words = [*JOB, "-o", str(tmp_path / "run"), "--tokens", "1e8"]
    code, told, _ = rendered(capsys, "megatron", *words)
    assert (code, told["steps"]) == (ExitCode.DONE, 96)
    assert told["time_limit_s"] == pytest.approx(1.2 * 1e8 / 8192 / 128 * told["step_time_s"] + 900, abs=60)


def test_nics_are_those_of_the_node_where_it_is_known(tmp_path, capsys):
    facts = tmp_path / "facts.txt"
    lines = [
        f"hca_id: mlx5_{number}\n\tlink_layer:\t{kind}" for number, kind in enumerate(["InfiniBand"] * 8)
    ]
    facts.write_text("\n".join([*lines, "hca_id: mlx5_8\n\tlink_layer:\tEthernet"]) + "\n")
    code, told, _ = rendered(capsys, "slurm", *JOB, "-o", str(tmp_path / "run"), "--node", str(facts))
    names = {each["name"]: each["value"] for each in told["settings"]}
    assert code == ExitCode.DONE
    assert names["NCCL_IB_HCA"] == "=" + ",".join(f"mlx5_{number}" for number in range(8))
    assert f"export NCCL_IB_HCA={names['NCCL_IB_HCA']}\n" in (tmp_path / "run" / "job.sbatch").read_text()


def test_output_fits_80_columns(job, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    for target in TARGETS:
        run(["render", target, job(), "dgx-h100:2", "-o", target])
    told = capsys.readouterr()
    assert max(len(line) for line in (told.out + told.err).splitlines()) <= 80


@pytest.mark.full
@pytest.mark.requires("torch")
def test_ddp_trains_on_two_nodes_of_two_processes(tmp_path, capsys):
    model = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2, "n_embd": 32}
    model |= {"n_head": 4, "vocab_size": 64, "n_positions": 64, "n_ctx": 64}
    (tmp_path / "config.json").write_text(json.dumps(model))
    (tmp_path / "job.yaml").write_text(
        "linkwise: job/1\nmodel: config.json\nsequence_length: 32\nglobal_batch: 16\nframework: ddp\ntokens: 1536\n"
        "layout: {micro_batch: 2, recompute: full}\n"
    )
    (tmp_path / "cluster.yaml").write_text(
        "linkwise: cluster/1\nname: two\nnodes: 2\nnode: dgx-h100\ngpus_per_domain: 2\n"
    )
    paths = [str(tmp_path / name) for name in ("job.yaml", "cluster.yaml")]
    folder = tmp_path / "run"
    assert run(["render", "ddp", *paths, "-o", str(folder), "--time-limit", "0.1"]) == ExitCode.DONE
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with socket.create_server(("", 0)) as held:
        port = str(held.getsockname()[1])
    nodes = [
        subprocess.Popen(
            [folder / "start.sh", str(number), os.uname().nodename],
            env={**os.environ, "PATH": programs, "OMP_NUM_THREADS": "1", "MASTER_PORT": port},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in (1, 0)
    ]
    said = [node.communicate(timeout=120)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    assert "4 ranks, gloo" in said[1]
    assert "step 3 loss" in said[1]
    assert len(list((folder / "logs").rglob("stdout.log"))) == 4
