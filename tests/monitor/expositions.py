"""What servers show to Prometheus, in the names of two releases each; values are made up."""

_BOUNDS = {"ttft": (0.05, 0.1, 0.25, 0.5, 1.0, 2.5), "tpot": (0.01, 0.025, 0.05, 0.1, 0.25)}


def _histogram(name, bounds, counts, labels):
    total = 0
    lines = [f"# HELP {name} Made up.", f"# TYPE {name} histogram"]
    for bound, count in zip((*bounds, "+Inf"), counts, strict=True):
        total += count
        lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {float(total)}')
    return [*lines, f"{name}_sum{{{labels}}} {total * 0.1}", f"{name}_count{{{labels}}} {float(total)}"]


def vllm(*, release, ttft, tpot, waiting=0, running=1, stopped=0, failed=0, aborted=0, answers=None):
    """Return what vLLM shows: ``0.9`` with the older name of the time per token, ``0.12`` with the newer ones."""
    labels = 'model_name="m",engine="0"' if release == "0.12" else 'model_name="m"'
    names = {
        "0.9": ["vllm:time_per_output_token_seconds"],
        "0.12": ["vllm:inter_token_latency_seconds", "vllm:request_time_per_output_token_seconds"],
    }
    lines = _histogram("vllm:time_to_first_token_seconds", _BOUNDS["ttft"], ttft, labels)
    for name in names[release]:
        lines += _histogram(name, _BOUNDS["tpot"], tpot, labels)
    lines += ["# TYPE vllm:num_requests_waiting gauge", f"vllm:num_requests_waiting{{{labels}}} {waiting}"]
    lines += ["# TYPE vllm:num_requests_running gauge", f"vllm:num_requests_running{{{labels}}} {running}"]
    lines += ["# TYPE vllm:request_success counter"]
    for reason, count in (("stop", stopped), ("error", failed), ("abort", aborted)):
        lines.append(f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(count)}')
    lines += ["# TYPE http_requests counter"]
    for status, count in (answers or {}).items():
        lines.append(
            f'http_requests_total{{handler="/v1/completions",method="POST",status="{status}"}} {float(count)}'
        )
    return "\n".join(lines) + "\n"


def sglang(*, release, ttft, tpot, queued=0, requests=0, aborted=0, answers=None):
    """Return what SGLang shows: of 2024 with the older name of the time per token, of 2026 with the newer."""
    labels = 'model_name="m"'
    name = {"2024": "sglang:time_per_output_token_seconds", "2026": "sglang:inter_token_latency_seconds"}[
        release
    ]
    lines = _histogram("sglang:time_to_first_token_seconds", _BOUNDS["ttft"], ttft, labels)
    lines += _histogram(name, _BOUNDS["tpot"], tpot, labels)
    lines += ["# TYPE sglang:num_queue_reqs gauge", f"sglang:num_queue_reqs{{{labels}}} {queued}"]
    lines += [
        "# TYPE sglang:num_requests counter",
        f"sglang:num_requests_total{{{labels}}} {float(requests)}",
    ]
    if release == "2026":
        lines += [
            "# TYPE sglang:num_aborted_requests counter",
            f"sglang:num_aborted_requests_total{{{labels}}} {float(aborted)}",
        ]
        lines += ["# TYPE sglang:http_responses counter"]
        for status, count in (answers or {}).items():
            lines.append(
                f'sglang:http_responses_total{{endpoint="/generate",method="POST",status_code="{status}"}} {float(count)}'
            )
    return "\n".join(lines) + "\n"


def dcgm(*, release, xid=0, counted=None, replays=0):
    """Return what a DCGM exporter shows: ``3.3`` has the last Xid alone, ``4.6`` counts them where asked to."""
    gpu = 'gpu="0",UUID="GPU-1",device="nvidia0",modelName="NVIDIA H100",Hostname="n01"'
    lines = ["# TYPE DCGM_FI_DEV_XID_ERRORS gauge", f"DCGM_FI_DEV_XID_ERRORS{{{gpu}}} {xid}"]
    lines += [
        "# TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER counter",
        f"DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{{gpu}}} {replays}",
    ]
    if release == "4.6":
        lines += ["# TYPE DCGM_EXP_XID_ERRORS_TOTAL counter"]
        for number, count in (counted or {}).items():
            lines.append(f'DCGM_EXP_XID_ERRORS_TOTAL{{{gpu},xid="{number}"}} {count}')
    return "\n".join(lines) + "\n"
