"""What servers call the things that users feel: names of their metrics, by release.

References
----------
vLLM, docs/usage/metrics.md of 0.9.1 and vllm/v1/metrics/loggers.py of 2026 (``time_per_output_token_seconds``
gave way to ``inter_token_latency_seconds`` and ``request_time_per_output_token_seconds``,
``gpu_cache_usage_perc`` to ``kv_cache_usage_perc``). SGLang, docs/references/production_metrics.md and
python/sglang/srt/metrics/collector.py of 2025 and 2026 (``time_per_output_token_seconds`` gave way to
``inter_token_latency_seconds``). NVIDIA, dcgm-exporter, etc/default-counters.csv of 4.6.0 and of 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linkwise.readers.prometheus_text import Exposition

__all__ = ["SERVERS", "GpuNames", "ServerNames", "server_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Samples of a counter that have one of some labels.

    Parameters
    ----------
    name
        Of the counter.
    label
        Which label says it; empty to take all samples.
    values
        Beginnings of its values that count; empty for all.
    """

    name: str
    label: str = ""
    values: tuple[str, ...] = ()

    def of(self, shown: Exposition) -> float | None:
        """Return the sum of such samples; ``None`` where the counter is not shown.

        Parameters
        ----------
        shown
            What the server shows.
        """
        found = list(shown.values(self.name))
        if not found:
            return None
        return sum(
            value
            for labels, value in found
            if not self.values or labels.get(self.label, "").startswith(self.values)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNames:
    """How one server names what users feel; of several names the first that it shows counts.

    Parameters
    ----------
    prefix
        Of its metrics.
    ttft, tpot
        Histograms of the time to the first token, and per token after it [s].
    queue, running
        Gauges of requests.
    requests
        Counters of requests that ended.
    errors, aborted, timeouts
        Those of them that failed, that ended before their answer (as clients went, perhaps for time), and
        that the server itself gave up on for time.
    """

    prefix: str
    ttft: tuple[str, ...]
    tpot: tuple[str, ...]
    queue: tuple[str, ...]
    running: tuple[str, ...]
    requests: tuple[Share, ...]
    errors: tuple[Share, ...]
    aborted: tuple[Share, ...]
    timeouts: tuple[Share, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNames:
    """How the DCGM exporter names what goes wrong with a GPU.

    Parameters
    ----------
    last_xid
        A gauge: the last Xid, zero where there was none.
    xid_counts
        Counters or windows of Xids, with the label ``xid``.
    link_errors
        Counters of errors of NVLink and PCIe.
    gpu
        Labels that name a GPU, the first that there is.
    """

    last_xid: str = "DCGM_FI_DEV_XID_ERRORS"
    xid_counts: tuple[str, ...] = ("DCGM_EXP_XID_ERRORS_TOTAL", "DCGM_EXP_XID_ERRORS_COUNT")
    link_errors: tuple[str, ...] = (
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    )
    gpu: tuple[str, ...] = ("UUID", "uuid", "gpu")


SERVERS: Mapping[str, ServerNames] = {
    "vllm": ServerNames(
        prefix="vllm:",
        ttft=("vllm:time_to_first_token_seconds",),
        tpot=(
            "vllm:request_time_per_output_token_seconds",
            "vllm:inter_token_latency_seconds",
            "vllm:time_per_output_token_seconds",
        ),
        queue=("vllm:num_requests_waiting",),
        running=("vllm:num_requests_running",),
        requests=(Share(name="vllm:request_success_total"),),
        errors=(
            Share(name="vllm:request_success_total", label="finished_reason", values=("error",)),
            Share(name="http_requests_total", label="status", values=("5",)),
        ),
        aborted=(Share(name="vllm:request_success_total", label="finished_reason", values=("abort",)),),
        timeouts=(Share(name="http_requests_total", label="status", values=("408", "504")),),
    ),
    "sglang": ServerNames(
        prefix="sglang:",
        ttft=("sglang:time_to_first_token_seconds",),
        tpot=("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
        queue=("sglang:num_queue_reqs",),
        running=("sglang:num_running_reqs",),
        requests=(Share(name="sglang:num_requests_total"),),
        errors=(Share(name="sglang:http_responses_total", label="status_code", values=("5",)),),
        aborted=(Share(name="sglang:num_aborted_requests_total"),),
        timeouts=(Share(name="sglang:http_responses_total", label="status_code", values=("408", "504")),),
    ),
}
"""Servers by name. vLLM's counters of HTTP answers group statuses (``5xx``) unless told otherwise, so that
timeouts show there only among errors and aborted requests."""


def server_of(shown: Exposition) -> str:
    """Return which server shows these metrics: a name of `SERVERS`, ``dcgm``, or empty for another program.

    Parameters
    ----------
    shown
        What it shows.
    """
    for name, names in SERVERS.items():
        if any(each.startswith(names.prefix) for each in shown.samples):
            return name
    return "dcgm" if any(each.startswith("DCGM_") for each in shown.samples) else ""
