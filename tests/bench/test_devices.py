"""Devices and ranks, told without torch."""

import pytest

from linkwise.bench.devices import chosen_device, chosen_ranks, visible_gpus
from linkwise.errors import InputError


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({}, 4),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"CUDA_VISIBLE_DEVICES": "2"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "0, 1"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "0,-1,1"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5"}, 4),
    ],
)
def test_gpus_are_counted_by_device_files_and_what_cuda_may_see(tmp_path, environ, count):
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    assert visible_gpus(environ, devices=tmp_path) == count


def test_a_single_gpu_has_one_rank():
    assert chosen_ranks(None, device=chosen_device(None, gpus=1), gpus=1) == 1


def test_without_gpus_two_ranks_run_on_cpus():
    assert chosen_device(None, gpus=0) == "cpu"
    assert chosen_ranks(None, device="cpu", gpus=0) == 2


def test_gpus_that_are_not_there_are_refused():
    with pytest.raises(InputError, match="sees no GPU"):
        chosen_device("cuda", gpus=0)
    with pytest.raises(InputError, match="sees 1 GPU;"):
        chosen_ranks(2, device="cuda", gpus=1)
    with pytest.raises(InputError, match=r"1 to 1,024 ranks"):
        chosen_ranks(0, device="cpu", gpus=0)
