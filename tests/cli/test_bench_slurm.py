"""Words of `linkwise bench` for Slurm that make no sense."""

import pytest

from linkwise.cli.main import run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--on", "slurm", "--ranks", "4"), "say how many nodes and ranks take part"),
        (("--on", "slurm", "--ranks", "3", "--nodes", "2"), "give a multiple of --nodes 2"),
        (("--nodes", "2"), "--nodes has no effect without --on slurm"),
        (("--sbatch", "--partition=x"), "--sbatch has no effect without --on slurm"),
        (("--on", "slurm", "--ranks", "4", "--nodes", "2", "--sbatch", "x"), "write an option of sbatch"),
    ],
)
def test_wrong_use_is_told(words, said, capsys):
    assert run(["bench", "collectives", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_machine_without_slurm_is_told_where_to_go(monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert run(["bench", "collectives", "--on", "slurm", "--ranks", "4", "--nodes", "2"]) == 2
    assert "srun is not here" in capsys.readouterr().err
