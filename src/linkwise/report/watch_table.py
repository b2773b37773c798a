"""What a watch saw as text: a line for each alert, one that is refreshed, and a summary at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkwise.report.tables import print_line, wrapped
from linkwise.report.watch_result import WatchVerdict
from linkwise.report.wording import counted, duration, percent, three_digits

if TYPE_CHECKING:
    from rich.console import Console

    from linkwise.monitor.watching import Watch
    from linkwise.report.watch_result import WatchAlertResult, WatchEndpointResult, WatchResult

__all__ = ["alert_text", "print_watch", "status_text"]

_LABEL = 16
_HEADS = {
    WatchVerdict.HEALTHY: ("healthy", "bold green"),
    WatchVerdict.AGAINST: ("not healthy", "bold red"),
    WatchVerdict.CANNOT_TELL: ("cannot tell", "bold yellow"),
    WatchVerdict.NOTHING: ("nothing could be measured", "bold yellow"),
}


def alert_text(result: WatchAlertResult, *, width: int) -> str:
    """Return an alert as lines of text.

    Parameters
    ----------
    result
        What is told.
    width
        Columns of the terminal.
    """
    step = "" if result.step is None else f" step {result.step}"
    word = "over" if result.is_over else result.severity
    head = f"{result.at[11:19]}{step}  {word}: {result.kind}: {result.summary}"
    return wrapped(head, width=width, indent=" " * 10, first="")


def status_text(watch: Watch) -> str:
    """Return how a job is doing in one line.

    Parameters
    ----------
    watch
        The job.
    """
    steps = watch.steps
    parts = [f"step {steps.last_step}" if steps.last_step is not None else "no step yet"]
    if (median := steps.times.median) is not None:
        parts.append(f"{three_digits(median)} s")
    if (rate := steps.tokens_rates.median) is not None:
        parts.append(f"{three_digits(rate)} tokens/s")
    if (loss := steps.losses.last) is not None:
        parts.append(f"loss {loss:.4g}")
    if (goodput := steps.goodput_fraction) is not None:
        parts.append(f"goodput {percent(goodput)} %")
    for each in watch.endpoints:
        felt = each.felt
        if felt is not None and 0.99 in felt.ttft_s:
            parts.append(f"TTFT p99 {three_digits(felt.ttft_s[0.99])} s")
        elif each.fault:
            parts.append(f"{each.url} silent")
    active = watch.book.active
    parts.append(counted(len(active), "alert") if active else "no alert")
    return "  ".join(parts)


def print_watch(result: WatchResult, console: Console) -> None:
    """Print what a watch saw.

    Parameters
    ----------
    result
        As it is published.
    console
        Where to.
    """
    head, style = _HEADS[result.verdict]
    text = f"{head}: {result.reason}" if result.reason else head
    print_line(console, wrapped(text, width=console.width, indent="  ", first=""), style=style)
    for label, words in _lines(result):
        first = f"  {label:<{_LABEL}}"
        print_line(console, wrapped(words, width=console.width, indent=" " * (_LABEL + 2), first=first))


def _lines(result: WatchResult) -> Iterator[tuple[str, str]]:
    if result.steps.count:
        yield from _training(result)
    for each in result.endpoints:
        yield from _endpoint(each)
    for port in result.ports:
        grown = ", ".join(f"{name} +{count}" for name, count in port.errors.items())
        yield "port", f"{port.port} {port.state}" + (f": {grown}" if grown else ", no error since the start")
    for objective in result.objectives:
        seen = "not measured" if objective.value is None else f"{objective.value:.4g}"
        mark = {True: "met", False: "MISSED", None: "cannot tell"}[objective.is_met]
        bar = f"{objective.comparison.replace('_', ' ')} {objective.bar:.4g}"
        yield "objective", f"{objective.name}: {objective.metric} {seen}, {bar}: {mark}"
    over = sum(each.is_over for each in result.alerts)
    told = len(result.alerts) - over
    yield "alerts", f"{counted(told, 'alert')} told, {over} of them over" if told else "none"
    for text in result.unread:
        yield "not read", text


def _training(result: WatchResult) -> Iterator[tuple[str, str]]:
    steps, training, times = result.steps, result.training, result.step_time
    left = ", ".join(f"{count} {kind}" for kind, count in sorted(steps.left_out.items()))
    yield "steps", f"{steps.count:,} up to {steps.last}" + (f"; not timed: {left}" if left else "")
    if times is not None:
        last = counted(times.count, "step")
        text = f"median {three_digits(times.median_s)} s, p95 {three_digits(times.p95_s)} s, last {last}"
        yield "step time", text
    yield "drift", _drift(result)
    values = (
        (training.tokens_per_s, "{} tokens/s"),
        (training.loss, "loss {}"),
        (training.grad_norm, "gradient norm {}"),
    )
    shown = ", ".join(text.format(three_digits(value)) for value, text in values if value is not None)
    if shown:
        yield "training", shown
    if training.communication_fraction is not None:
        yield "communication", f"{percent(training.communication_fraction)} % of the step, by its timers"
    if training.goodput_fraction is not None:
        start = training.time_to_start_s or 0.0
        text = (
            f"{percent(training.goodput_fraction)} % of the time in steps that count; "
            f"{duration(start)} to the first step, {counted(training.restarts, 'restart')}, "
            f"{counted(training.lost_steps, 'lost step')}"
        )
        yield "goodput", text
    yield "stall", f"told after {duration(result.stall_limit_s)} without a step"
    if (used := result.interconnect) is not None:
        ways = [each for each in (used.intra_node, used.inter_node) if each]
        found = f"; {', '.join(used.findings)}" if used.findings else ""
        text = ", ".join(ways) if ways else "not shown by these logs (NCCL_DEBUG=INFO shows it)"
        yield "interconnect", f"{text}{found}"


def _drift(result: WatchResult) -> str:
    drift = result.drift
    rate = (
        f"false alarms of this test: {drift.false_alarms} in {drift.healthy_steps:,} healthy steps recorded"
    )
    if not drift.is_judged:
        return f"not judged: {drift.steps_judged} of {drift.steps_needed} step times"
    told = [each for each in drift.found if each.kind != "recovered"]
    if not told:
        return f"none in {counted(drift.steps_judged, 'step time')}; {rate}"
    last = told[-1]
    what = f"{last.kind} {last.before:.4g} to {last.after:.4g} since about step {last.since_step}"
    return f"{counted(len(told), 'change')}, last: {what}; {rate}"


def _endpoint(each: WatchEndpointResult) -> Iterator[tuple[str, str]]:
    if each.fault:
        yield "server", each.fault
        return
    if each.gpus is not None:
        yield "GPUs", f"{each.url}: {counted(each.gpus, 'GPU')} of a DCGM exporter"
        return
    if not each.server:
        yield "server", f"{each.url}: neither vLLM, SGLang nor a DCGM exporter; only whether it answers"
        return
    parts = []
    for name, found in (("TTFT", each.ttft_s), ("TPOT", each.tpot_s)):
        if found:
            quantiles = ", ".join(
                f"p{100 * float(key):g} {three_digits(value)} s" for key, value in found.items()
            )
            parts.append(f"{name} {quantiles}")
    counts = ((each.queue, "wait"), (each.errors, "failed"), (each.aborted, "ended early"))
    parts += [f"{value:.0f} {word}" for value, word in counts if value is not None]
    yield each.server, f"{each.url}: {'; '.join(parts) or 'no request yet'}"
