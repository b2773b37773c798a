"""What differs between a good run and another, in the order of what matters."""

from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.diagnose.doctor import diagnose
from linkwise.readers.job_log.reading import parse_job_log
from tests.job_logs import cases

_CASES = {each.id: each for each in cases() if each.id.endswith(("-1", "-4"))}


def _read(log):
    return parse_job_log([("job.log", getattr(log, "text", log).encode())])


def _compared(good, now):
    return diagnose(_read(now), baseline=_read(good)).comparison


def _named(good, now):
    return [(each.what, each.good, each.now) for each in _compared(good, now).differences]


def test_a_run_does_not_differ_from_itself(job):
    log = job().healthy()
    assert _named(log, log) == []


def test_what_decides_the_rate_comes_first(job):
    good = job(version=(2, 20, 5)).healthy(interface="bond0")
    now = job(network="Socket").healthy(settings=[("NCCL_IB_DISABLE", "1")])
    found = _named(good, now)
    assert found[0] == ("between nodes", "NET/IB", "NET/Socket")
    names = [what for what, _, _ in found]
    assert names.index("NCCL_IB_DISABLE") < names.index("NCCL") < names.index("bootstrap over")
    assert ("NCCL_IB_DISABLE", "not set", "1") in found
    assert ("NCCL", "2.20.5", "2.21.5") in found


def test_a_missing_nic_is_named_with_its_host(job):
    good = job(hosts=3).healthy()
    now = job(hosts=3)
    now.healthy()
    now.lines = [
        line.replace(" [1]mlx5_1:1/IB", "") if line.startswith("n02:") else line for line in now.lines
    ]
    assert ("NICs of n02", "mlx5_0 mlx5_1", "mlx5_0") in _named(good, now)


def test_each_difference_shows_a_line_of_this_run_or_of_the_good_one(job):
    good = job().healthy(settings=[("NCCL_CROSS_NIC", "0")])
    now = job(gdr=False).healthy()
    found = {each.what: each for each in _compared(good, now).differences}
    assert "set by environment to 0" in found["NCCL_CROSS_NIC"].evidence.text
    assert "via NET/IB/0" in found["GPUDirect RDMA"].evidence.text


def test_steps_that_take_longer_are_measured(job):
    line = " iteration 10/ 100 | elapsed time per iteration (ms): {} | loss 2.1"
    good = job().healthy().raw(line.format("1000.0"))
    assert ("time per step", "1 s", "1.5 s") in _named(good, job().healthy().raw(line.format("1500.0")))
    assert _named(good, job().healthy().raw(line.format("1040.0"))) == []


def test_a_cause_of_both_runs_is_said_not_to_tell_them_apart(job):
    log = job().healthy().fault(0, "Net : Socket creation failed : Too many open files")
    assert _compared(log, log).also_found == ("fd_limit",)
    assert _compared(job().healthy(), log).also_found == ()


@given(st.sampled_from(sorted(_CASES)), st.sampled_from(sorted(_CASES)))
@settings(max_examples=10, deadline=None)
def test_differences_are_the_same_from_both_sides(first, second):
    def named(good, now):
        return {
            each.what
            for each in _compared(_CASES[good].files["job.log"], _CASES[now].files["job.log"]).differences
        }

    there, back = named(first, second), named(second, first)
    assert {each for each in there if not each.startswith("NICs")} == {
        each for each in back if not each.startswith("NICs")
    }
    assert named(first, first) == set()
