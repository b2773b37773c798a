"""Plug-ins of NCCL that are broken or wrongly chosen, and reduction in switches."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, runs, script_of, stopped
from tests.job_logs.faults.sequel import collapse, connecting
from tests.job_logs.job import (
    INFINIBAND,
    Network,
)

_PLUGIN_SHARP_STACK = Network(name="IBext", plugin="libnccl-net.so")


_SYMBOL = "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so: undefined symbol: ncclDebugLog"


def plugin() -> Iterator[LogCase]:
    """A plug-in is broken or wrongly chosen."""
    for number, version in enumerate(("2.22.3", "2.26.5", "2.28.9"), 1):
        case_id = f"plugin-{number}"
        script = script_of(case_id, version, network=INFINIBAND)
        script.drop("no_tuner")
        for rank in script.ranks:
            script.say(
                rank,
                "tuning",
                "tuner_failed",
                library="libnccl-ofi-tuner.so",
                reason="libnccl-ofi-tuner.so: undefined symbol: ofi_log_function",
                at_s=2.7,
                decisive=True,
            )
        yield LogCase(
            id=case_id,
            cause="plugin",
            verdict="slow",
            script=script,
            facts=runs(script),
            side={
                "job.environment.txt": hosts.command(
                    "env | grep NCCL_", "NCCL_DEBUG=INFO\nNCCL_TUNER_PLUGIN=libnccl-ofi-tuner.so"
                )
            },
        )
    yield from _unusable_plugins()
    yield from _plugin_near()


def _unusable_plugins() -> Iterator[LogCase]:
    for number, version in enumerate(("2.18.3", "2.24.3"), 4):
        case_id = f"plugin-{number}"
        script = script_of(case_id, version, network=INFINIBAND)
        script.cut("network")
        script.drop("no_plugin", "plugin_load", "internal_plugin")
        for rank in script.ranks:
            script.say(
                rank,
                "plugins",
                "plugin_failed",
                library="libnccl-net.so",
                reason=_SYMBOL,
                at_s=0.6,
                decisive=True,
            )
            script.say(rank, "network", "network_not_found", network="IBext_v8", at_s=1.0, decisive=True)
        collapse(script, script.ranks[0], "network", code=5, places=("net.cc:626", "init.cc:320"))
        side = {
            "job.environment.txt": hosts.command("env | grep NCCL_", "NCCL_DEBUG=INFO\nNCCL_NET=IBext_v8")
        }
        yield LogCase(
            id=case_id, cause="plugin", also=("env_misuse",), script=script, side=side, facts=stopped(script)
        )
    script = script_of("plugin-6", "2.30.7")
    script.cut("network")
    script.drop("no_plugin")
    for rank in script.ranks:
        script.say(
            rank,
            "plugins",
            "plugin_failed",
            library="libnccl-net.so",
            reason=_SYMBOL,
            at_s=0.6,
            decisive=True,
        )
        script.say(rank, "network", "no_network", at_s=1.0, decisive=True)
    collapse(script, script.ranks[0], "network", code=5, places=("plugin/net.cc:349", "init.cc:380"))
    yield LogCase(
        id="plugin-6",
        cause="plugin",
        also=("env_misuse",),
        script=script,
        facts=stopped(script),
        side={
            "job.environment.txt": hosts.command("env | grep NCCL_", "NCCL_DEBUG=INFO\nNCCL_NET=IBext_v11")
        },
    )
    _PLUGIN_SHARP_STACK = Network(name="IBext", plugin="libnccl-net.so")


def _plugin_near() -> Iterator[LogCase]:
    for number, version in enumerate(("2.18.3", "2.21.5"), 1):
        case_id = f"plugin-near-{number}"
        yield healthy_case(case_id, script_of(case_id, version, network=_PLUGIN_SHARP_STACK), "plugin")
    yield healthy_case("plugin-near-3", script_of("plugin-near-3", "2.28.9"), "plugin")


def sharp() -> Iterator[LogCase]:
    """Reduction in the switches fails or is refused."""
    stack = Network(name="IBext", plugin="libnccl-net.so")
    texts = (
        ("2.18.3", "NET/IB : SHARP coll init error: Cannot create SHARP job(-11)", "sharp_plugin.c:320"),
        ("2.21.5", "SHARP group create: Streaming Tree lock failed (-18)", "sharp_plugin.c:302"),
        (
            "2.24.3",
            "NET/IB : SHARP coll init error: Failed to connect to Aggregation Manager (sharp_am)(-53)",
            "sharp_plugin.c:343",
        ),
    )
    for number, (version, text, place) in enumerate(texts, 1):
        case_id = f"sharp-{number}"
        script = script_of(case_id, version, network=stack, variables=(("NCCL_COLLNET_ENABLE", "1"),))
        phase = connecting(script)
        at_s = 3.45 if phase == "collective" else 2.2
        for rank in script.ranks[:: script.job.gpus_per_node]:
            script.raw_warn(rank, phase, text, place, at_s=at_s, decisive=True)
            script.unwind(rank, phase, ("transport/coll_net.cc:671", "transport.cc:291"), 2, at_s=at_s)
        script.say(script.ranks[0], phase, "no_collnet", at_s=at_s + 0.1, decisive=True)
        yield LogCase(id=case_id, cause="sharp", verdict="slow", script=script, facts=runs(script))
    script = script_of("sharp-near-1", "2.23.4")
    for rank in script.ranks:
        script.say(rank, "graph", "collnet_threshold", nodes=2, threshold=4, at_s=1.9)
    yield LogCase(
        id="sharp-near-1",
        cause="harmless",
        also=("sharp",),
        verdict="harmless",
        script=script,
        facts=runs(script),
        near_miss_of="sharp",
    )
    script = script_of("sharp-near-2", "2.18.3", network=stack, variables=(("NCCL_COLLNET_ENABLE", "1"),))
    for rank in script.ranks:
        script.say(rank, "channels", "collnet", channel=0, network="SHARP", index=0, at_s=2.2)
    yield healthy_case("sharp-near-2", script, "sharp")
