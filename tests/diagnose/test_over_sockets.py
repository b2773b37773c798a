"""What a fallback to TCP costs against the cluster: the rate is the log's, or said to be assumed."""

import pytest

from linkwise.cluster import load_cluster
from linkwise.diagnose.doctor import diagnose
from linkwise.job import read_job
from linkwise.readers.job_log.reading import parse_job_log


def _network(log, *, cluster="dgx-h100:2", **further):
    found = diagnose(
        parse_job_log([("job.log", log.text.encode())]), cluster=load_cluster(cluster), **further
    )
    return next((each for each in found.shortfalls if each.what == "network"), None)


def test_the_rate_is_assumed_where_no_line_says_it(job):
    each = _network(job(network="Socket").healthy())
    assert each.note == "over one interface of 100 Gbit/s, which is assumed: no line says the rate"
    # Two nodes: all that is summed crosses the interface once each way, busbw = 2(n-1)/n x rate over the
    # share of nodes, so that it is below twice the 12.5 GB/s of the port, and far below the fabric.
    assert 0.3 * 12.5e9 < each.busbw_used_bytes_per_s < 2 * 12.5e9
    assert each.busbw_used_bytes_per_s < 0.05 * each.busbw_there_bytes_per_s
    assert each.step_used_s is None


def test_the_rate_is_that_of_the_graph_where_it_is_shown(job):
    log = job(network="Socket").healthy()
    slow = _network(log.say(0, "+ NET[1.2] - NET/0 (0/0/1.200000)"))
    assert slow.note == "over one interface of 9.6 Gbit/s, as NCCL's graph shows"
    assumed = _network(job(network="Socket").healthy())
    assert slow.busbw_used_bytes_per_s < assumed.busbw_used_bytes_per_s


def test_nothing_is_lacking_over_rdma_or_on_a_cluster_of_ethernet(job):
    assert _network(job().healthy()) is None
    assert _network(job(network="Socket").healthy(), cluster="azure-nc-a100-v4:2") is None


@pytest.mark.slow
def test_the_step_is_slower_too_with_a_job(job, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(
        "linkwise: job/1\nkind: training\nmodel: llama-3.1-8b\nsequence_length: 4096\nglobal_batch: 64\n"
        "precision: bf16\ntokens: 1e9\nframework: megatron\nlayout: search\n"
    )
    each = _network(job(network="Socket").healthy(), job=read_job(str(path)))
    assert each.step_used_s > 1.1 * each.step_there_s
