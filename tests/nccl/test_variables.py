"""The table of variables: releases, defaults and names (NCCL user guide and source, as each row names)."""

import pytest

from linkwise.errors import InputError
from linkwise.nccl.allowed import integer_read, misfit
from linkwise.nccl.variables import (
    NEWEST,
    companion,
    nearest_variables,
    parse_release,
    release_text,
    variables,
)

RELEASE = parse_release("2.27")


def test_default_of_the_time_out_is_that_of_the_release():
    # NCCL user guide: 14 before 2.14, 18 before 2.23, 20 since
    timeout = variables()["NCCL_IB_TIMEOUT"]
    assert [timeout.default(parse_release(each)) for each in ("2.10", "2.18", "2.27")] == ["14", "18", "20"]


def test_gid_index_is_automatic_from_2_21_on():
    gid = variables()["NCCL_IB_GID_INDEX"]
    assert (gid.default(parse_release("2.20")), gid.default(parse_release("2.21.5"))) == ("0", "-1")


@pytest.mark.parametrize(
    ("name", "release", "known"),
    [
        ("NCCL_NVLS_ENABLE", "2.16", False),  # since 2.17
        ("NCCL_NVLS_ENABLE", "2.17.1", True),
        ("NCCL_IB_CUDA_SUPPORT", "2.3.7", True),  # removed in 2.4
        ("NCCL_IB_CUDA_SUPPORT", "2.27", False),
        ("NCCL_DEBUG", "2.4", True),
        ("NCCL_MNNVL_ENABLE", "2.20", False),  # since 2.21
    ],
)
def test_variable_is_known_in_its_releases_alone(name, release, known):
    assert variables()[name].is_known(parse_release(release)) is known


def test_every_row_has_a_source_and_a_default_that_is_allowed():
    for variable in variables().values():
        assert variable.source, variable.name
        for _, value in variable.defaults:
            if value not in ("unset", "undefined"):
                assert misfit(variable.allowed, value, NEWEST) is None, (variable.name, value)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("NCCL_IB_HCAS", "NCCL_IB_HCA"),
        ("NCCL_SOCKET_IFNMAE", "NCCL_SOCKET_IFNAME"),
        ("NCCL_MIN_CHANNELS", "NCCL_MIN_NCHANNELS"),
        ("TORCH_NCCL_BLOCKING_WAITS", "TORCH_NCCL_BLOCKING_WAIT"),
    ],
)
def test_nearest_name_is_the_one_that_was_meant(given, nearest):
    assert nearest_variables(given, RELEASE)[0] == nearest


def test_companion_is_found_by_name_and_by_prefix():
    assert companion("NCCL_FASTRAK_IFNAME").owner == "GPUDirect-TCPXO"
    assert companion("NCCL_ASYNC_ERROR_HANDLING").renamed == "TORCH_NCCL_ASYNC_ERROR_HANDLING"
    assert companion("NCCL_NO_SUCH_NAME") is None


@pytest.mark.parametrize("text", ["2", "two", "2.27.3.4.5", "", "2.27\n2.28"])
def test_release_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="write it as"):
        parse_release(text)


def test_release_is_written_as_it_was_given():
    assert [release_text(parse_release(each)) for each in ("2.27", "v2.27.3", "2.27.3-1+cuda12.4")] == [
        "2.27",
        "2.27.3",
        "2.27.3",
    ]


@pytest.mark.parametrize(
    ("text", "number", "whole"),
    # strtoll with base 0: C standard, 7.22.1.4
    [
        ("1", 1, True),
        ("0x10", 16, True),
        ("010", 8, True),
        ("true", 0, False),
        ("4MB", 4, False),
        ("-1", -1, True),
    ],
)
def test_number_is_read_as_strtoll_reads_it(text, number, whole):
    assert integer_read(text) == (number, whole)


@pytest.mark.parametrize(
    ("allowed", "value", "release", "wrong"),
    [
        ("int 1..31", "22", "2.27", False),
        ("int 1..31", "32", "2.27", True),
        ("one 0|1", "true", "2.27", True),
        ("one 0|1", "0", "2.27", False),
        ("word AF_INET|AF_INET6", "ipv4", "2.27", True),
        ("word VERSION|WARN|INFO", "info", "2.27", False),
        ("list INIT|NET", "^NET", "2.27", False),
        ("list INIT|NET", "INIT,NETT", "2.27", True),
        ("filter", "=mlx5_0:1,mlx5_1:1", "2.27", False),
        ("filter", "^=docker0", "2.27", False),
        ("filter", "mlx5_0, mlx5_1", "2.27", True),
        ("filter", "=eth0,=eth1", "2.27", True),
        ("path", "PHB", "2.27", False),
        ("path", "FAR", "2.27", True),
        ("cidr", "10.0.0.0/8", "2.27", False),
        ("cidr", "10.0.0/40", "2.27", True),
        ("algorithms", "Ring,Tree", "2.20", False),
        ("algorithms", "allreduce:tree;broadcast:ring", "2.20", True),
        ("algorithms", "allreduce:tree;broadcast:ring", "2.24", False),
        ("algorithms", "Rings", "2.24", True),
        ("protocols", "^LL128", "2.20", False),
    ],
)
def test_value_is_held_to_what_is_allowed(allowed, value, release, wrong):
    assert (misfit(allowed, value, parse_release(release)) is not None) is wrong
