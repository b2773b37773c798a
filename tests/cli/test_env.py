"""The verb env: settings that are needed, and what is wrong with those given."""

import json
import os

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode

SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=8
export HF_TOKEN=hf_secret WANDB_API_KEY=w_secret NCCL_API_KEY=n_secret
export NCCL_DEBUG=WARN NCCL_IB_DISABLE=1 NCCL_IB_HCA=mlx5_0
srun torchrun --nnodes 4 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint $HEAD:29500 train.py
"""
CLEAN = SCRIPT.replace("NCCL_IB_DISABLE=1 NCCL_IB_HCA=mlx5_0", "").replace(" NCCL_API_KEY=n_secret", "")


@pytest.fixture
def written(tmp_path):
    def write(text, name="train.sbatch"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def _no_settings(monkeypatch):
    for name in [each for each in os.environ if each.startswith(("NCCL", "CUDA", "TORCH", "MASTER", "OMP"))]:
        monkeypatch.delenv(name)


def result(capsys, *words):
    code = run(["env", *words, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_harmful_setting_leaves_with_1_and_says_where(written, capsys):
    path = written(SCRIPT)
    code, told = result(capsys, "--check", path, "--cluster", "dgx-h100:4", "--nccl", "2.27")
    assert code == ExitCode.AGAINST
    assert told["schema"] == "linkwise.env/1"
    assert (told["nccl"], told["nccl_assumed"], told["mode"]) == ("2.27", False, "check")
    first = told["findings"][0]
    assert (first["file"], first["line"], first["name"], first["value"]) == (path, 4, "NCCL_IB_DISABLE", "1")
    assert first["source"].startswith("NCCL user guide")


def test_clean_script_leaves_with_0(written, capsys):
    code, told = result(capsys, "--check", written(CLEAN), "--cluster", "dgx-h100:4")
    assert (code, told["findings"], told["nccl_assumed"]) == (ExitCode.DONE, [], True)


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_secrets_are_never_printed(written, tmp_path, capsys, form):
    run(["env", "--check", written(SCRIPT), "--format", form])
    told = capsys.readouterr()
    assert "_secret" not in (told.out + told.err).replace(str(tmp_path), "")


@pytest.mark.usefixtures("_no_settings")
def test_environment_of_the_process_is_judged_without_a_file(monkeypatch, capsys):
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "no-such-interface")
    monkeypatch.setenv("SOME_SECRET_TOKEN", "hush")
    code, told = result(capsys, "--check")
    assert code == ExitCode.AGAINST
    assert [(each["rule"], each["file"]) for each in told["findings"]] == [("interface", None)]
    assert "hush" not in json.dumps(told)


@pytest.mark.usefixtures("_no_settings")
def test_environment_without_settings_is_healthy(capsys):
    code, told = result(capsys, "--check")
    assert (code, told["findings"]) == (ExitCode.DONE, [])


def test_script_with_nothing_to_judge_cannot_be_told(written, capsys):
    assert run(["env", "--check", written("#!/bin/sh\necho hello\n")]) == ExitCode.INCONCLUSIVE
    assert "no setting and no launch" in capsys.readouterr().err


def test_folder_of_collect_gives_the_interfaces(written, tmp_path, capsys):
    folder = tmp_path / "facts"
    folder.mkdir()
    (folder / "ip-link.txt").write_text("$ ip link\n1: lo: <UP> mtu 65536\n2: ens1: <UP> mtu 9000\n")
    path = written("export NCCL_SOCKET_IFNAME=eth0\n", "job.sh")
    code, told = result(capsys, "--check", path, "--node", str(folder))
    assert code == ExitCode.AGAINST
    assert "ens1" in told["findings"][0]["todo"]


@pytest.mark.parametrize("content", [b"", b"not gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abc"])
def test_archive_that_is_none_is_refused(tmp_path, capsys, content):
    path = tmp_path / "facts.tar.gz"
    path.write_bytes(content)
    assert run(["env", "--check", "--node", str(path)]) == ExitCode.WRONG_INPUT
    assert f"--node {path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no CLUSTER; give a file or SYSTEM:NODES"),
        (["dgx-h100:4", "--cluster", "dgx-h100:4"], "--cluster has no effect without --check"),
        (["--check", "--dscp", "26"], "--dscp has no effect with --check"),
        (["--check", "--format", "conf"], "--format conf writes settings"),
        (["dgx-h100:4", "--dscp", "26"], "speaks infiniband, not roce"),
        (["dgx-h100:4", "--nccl", "new"], "is not a release of NCCL"),
        (["dgx-h100:4", "a", "b"], "'b' is one argument too many"),
        (["--check", "-", "-"], "standard input can be read once"),
        (["--check", "no-such-file"], "no such file"),
        (["--check", "--node", "pyproject.toml"], "shows neither interfaces nor RDMA devices"),
    ],
)
def test_wrong_use_is_one_message_and_2(words, message, capsys, request, monkeypatch):
    monkeypatch.chdir(request.config.rootpath)
    assert run(["env", *words]) == ExitCode.WRONG_INPUT
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err
    assert told.out == ""


def test_settings_are_written_as_exports_and_as_conf(capsys):
    words = ["env", "gh200-4:4", "--nccl", "2.27", "--format"]
    assert run([*words, "shell"]) == ExitCode.DONE
    shell = capsys.readouterr().out
    assert "export NCCL_NET='AWS Libfabric'\n" in shell
    assert run([*words, "conf"]) == ExitCode.DONE
    conf = capsys.readouterr().out
    assert "\nNCCL_NET=AWS Libfabric\n" in conf
    assert "\n# NCCL does not read this one; export FI_MR_CACHE_MONITOR=userfaultfd in the job\n" in conf
    assert max(len(line) for line in (shell + conf).splitlines()) <= 80


def test_what_is_written_passes_its_own_check(tmp_path, capsys):
    for form, name in (("shell", "env.sh"), ("conf", "nccl.conf")):
        assert run(["env", "gh200-4:4", "--nccl", "2.27", "--format", form]) == ExitCode.DONE
        path = tmp_path / name
        path.write_text(capsys.readouterr().out)
        code, told = result(capsys, "--check", str(path), "--cluster", "gh200-4:4", "--nccl", "2.27")
        assert (code, told["findings"]) == (ExitCode.DONE, [])


def test_tables_fit_80_columns(written, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    written(SCRIPT)
    run(["env", "--check", "train.sbatch"])
    run(["env", "gcp-a3-mega:4"])
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 80
