"""Measured training runs: rows of a CSV as values.

A run says what was trained, on what, how it was cut and how long a step took. What a source does not print
stays None; `run_table.choose` fills it by one rule for all sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from linkwise import catalog
from linkwise.calibrate.run_file import cell_faults, read_rows, source_of
from linkwise.catalog import Gpu
from linkwise.errors import DocumentError, Fault, InputError, LinkwiseError
from linkwise.job.framework import Framework, framework_of
from linkwise.model import Model, model_flop_per_token
from linkwise.model.table_row import model_from_columns

RECOMPUTE_CODES: Mapping[str, int] = {"none": 0, "selective": 1, "full": 2}
PRECISIONS = ("bf16", "fp16", "fp8", "nvfp4", "tf32", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLayout:
    """Degrees of a measured run; None where the source does not print one."""

    tensor: int
    pipeline: int
    virtual_pipeline: int | None
    context: int
    expert: int
    data: int
    zero_stage: int | None
    micro_batch: int | None
    recompute: int | None
    sequence_parallel: bool | None
    hybrid_shard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What joins the NVLink domains of a run.

    Attributes
    ----------
    node_bytes_per_s
        All NICs of one operating system, one direction [bytes/s]; None for a run inside one domain.
    share_bytes_per_s
        One GPU's share of it [bytes/s].
    latency_s
        One traversal [s].
    kind
        ``rdma`` or ``tcp``.
    transport
        What latencies of collectives are known by: ``infiniband``, ``efa_v2`` or ``sockets``.
    achieved_fraction
        Share of the line rate that collectives reach on such a link alone [1].
    assumed
        Whether the rate is the reference design's because the source does not print one.
    """

    node_bytes_per_s: float | None
    share_bytes_per_s: float
    latency_s: float
    kind: str
    transport: str
    achieved_fraction: float
    assumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One measured run."""

    id: str
    source: str
    year: int
    framework_name: str
    framework: Framework
    model_name: str
    model: Model
    gpu: Gpu
    gpu_name: str
    gpus: int
    domain_gpus: int
    network: Network
    layout: MeasuredLayout
    sequence_length: int
    global_batch: int
    precision: str
    step_time_s: float
    data_parallel: str
    offload: str
    use: str
    peak_memory_bytes: float | None
    peak_memory_kind: str
    row: Mapping[str, str]

    @property
    def interconnect_class(self) -> str:
        """Return the class accuracy is reported by: one node, or the rate per node."""
        if self.gpus <= self.domain_gpus:
            return "one node"
        if self.network.assumed or self.network.node_bytes_per_s is None:
            return "not stated"
        gbit = self.network.node_bytes_per_s / 1.25e8
        if gbit >= 800:
            return "at least 800 Gbit/s per node"
        return "100 to 800 Gbit/s per node" if gbit >= 100 else "under 100 Gbit/s per node"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A row that cannot be scored, and why (a short phrase that repeats)."""

    row: Mapping[str, str]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Runs of a file, and the rows that were left out."""

    runs: tuple[MeasuredRun, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def rows(self) -> int:
        """Return the number of rows that were to be scored."""
        return len(self.runs) + len(self.left_out)

    @property
    def skipped(self) -> Mapping[str, int]:
        """Return how many rows were left out for each reason."""
        return Counter(one.reason for one in self.left_out)


class SkippedRow(LinkwiseError):
    """A row that cannot be scored, with the reason (a short phrase that repeats)."""


def read_measurements(path: Path, *, use: tuple[str, ...] = ()) -> Measurements:
    """Return the runs of a CSV file in the columns of `linkwise.calibrate.run_file`.

    Parameters
    ----------
    path
        The file.
    use
        Words in column ``use`` to keep; empty keeps all. Only rows whose ``task`` is ``pretrain`` count.

    Raises
    ------
    InputError
        When the file is no CSV, or columns are missing.
    DocumentError
        Listing every cell that does not hold what its column must.
    """
    runs: list[MeasuredRun] = []
    left_out: list[LeftOut] = []
    faults: list[Fault] = []
    models: dict[str, Model] = {}
    for line, row in read_rows(path):
        if (row.get("task") or "pretrain") != "pretrain" or (use and row.get("use", "") not in use):
            continue
        bad = tuple(cell_faults(path, line, row))
        faults.extend(bad)
        if bad:
            continue
        try:
            runs.append(read_run(row, base=path.parent, models=models))
        except SkippedRow as reason:
            left_out.append(LeftOut(row=row, reason=str(reason)))
        except _BadCell as cell:
            faults.append(Fault(path=str(path), line=line, key=cell.column, message=str(cell)))
    if faults:
        raise DocumentError(faults)
    return Measurements(runs=tuple(runs), left_out=tuple(left_out))


class _BadCell(LinkwiseError):
    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


def _number(row: Mapping[str, str], column: str) -> float | None:
    text = row.get(column, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise _BadCell(column, f"{text!r} is not a number") from None
    if not 0 <= value < 1e18:
        raise _BadCell(column, f"{text!r} is out of range")
    return value


def _count(row: Mapping[str, str], column: str, default: int | None = None) -> int | None:
    value = _number(row, column)
    if value is None:
        return default
    if value != int(value):
        raise _BadCell(column, f"{row[column]!r} is not a whole number")
    return int(value)


def _needed(row: Mapping[str, str], column: str) -> int:
    value = _count(row, column)
    if not value:
        raise SkippedRow(f"{column} is empty")
    return value


def read_run(row: Mapping[str, str], *, base: Path, models: dict[str, Model] | None = None) -> MeasuredRun:
    """Return the run of one row.

    Parameters
    ----------
    row
        Its cells; columns that are absent count as blank.
    base
        The directory from which a path in ``config`` is meant.
    models
        Models of config.json files read so far, by path; new ones are added.

    Raises
    ------
    SkippedRow
        When the row lacks what an estimate needs, with the reason.
    """
    year = _count(row, "source_year", 2025) or 2025
    framework = framework_of(framework=row["framework"], family=row.get("framework_family", ""), year=year)
    gpu, gpu_name = _gpu(row)
    precision = row["precision"].lower()
    if precision not in PRECISIONS:
        raise SkippedRow(f"precision {row['precision'] or '(empty)'}")
    if precision in ("fp8", "nvfp4", "tf32", "fp32") and precision not in gpu.flop_per_s:
        raise SkippedRow(f"{gpu.name} has no {precision}")
    model = _model(row, base, {} if models is None else models)
    gpus = _needed(row, "n_gpus")
    layout = _layout(row, gpus)
    sequence_length, global_batch = _needed(row, "seq"), _needed(row, "global_batch")
    domain = _domain_gpus(row, gpus)
    peak, kind = _peak_memory(row)
    return MeasuredRun(
        id=row["id"],
        source=source_of(row["id"]),
        year=year,
        framework_name=row["framework"],
        framework=framework,
        model_name=row.get("model_name") or model.name,
        model=model,
        gpu=gpu,
        gpu_name=gpu_name,
        gpus=gpus,
        domain_gpus=domain,
        network=_network(row, gpu, gpus, domain),
        layout=layout,
        sequence_length=sequence_length,
        global_batch=global_batch,
        precision=precision,
        step_time_s=_step_time_s(
            row,
            model=model,
            gpus=gpus,
            sequence=sequence_length,
            batch=global_batch,
            gpu=gpu,
            precision=precision,
        ),
        data_parallel=row.get("data_parallel", ""),
        offload=row.get("offload", ""),
        use=row.get("use", ""),
        peak_memory_bytes=peak,
        peak_memory_kind=kind,
        row=row,
    )


def _gpu(row: Mapping[str, str]) -> tuple[Gpu, str]:
    try:
        gpu = catalog.gpu(catalog.gpu_alias(row["gpu"]).name)
    except LinkwiseError:
        raise SkippedRow(f"GPU {row['gpu'] or '(empty)'} is not in the catalogue") from None
    if not (gpu.flop_per_s.get("bf16") or gpu.flop_per_s.get("fp16")):
        raise SkippedRow(f"the 16-bit rate of {gpu.name} is not known")
    return gpu, gpu.name


def _model(row: Mapping[str, str], base: Path, models: dict[str, Model]) -> Model:
    config = row.get("config", "")
    if config:
        if config not in models:
            models[config] = _model_of_config(base / config)
        return models[config]
    if not row.get("layers") or not row.get("hidden"):
        raise SkippedRow("the shape of the model is not stated")
    shape: dict[str, object] = dict(row)
    entry = _entry(row.get("model_name", ""))
    if entry is not None:
        known = {key: value for key, value in entry.shape.items() if value is not None}
        if any(row.get(key) and str(known.get(key)) != row[key] for key in ("hidden", "heads")):
            known.pop("head_dim", None)
        shape = {**known, **{key: value for key, value in row.items() if value}}
    try:
        return model_from_columns(shape)
    except InputError as error:
        raise SkippedRow(f"the shape of the model cannot be used ({error})") from None


def _model_of_config(path: Path) -> Model:
    from linkwise.model import read_config_json

    try:
        return read_config_json(path)
    except InputError as error:
        raise _BadCell("config", str(error)) from None


def _entry(name: str) -> catalog.ModelEntry | None:
    try:
        return catalog.model(name)
    except LinkwiseError:
        return None


def _layout(row: Mapping[str, str], gpus: int) -> MeasuredLayout:
    tensor, pipeline = _count(row, "tp", 1) or 1, _count(row, "pp", 1) or 1
    context = _count(row, "cp", 1) or 1
    data = _count(row, "dp") or max(gpus // (tensor * pipeline * context), 1)
    if tensor * pipeline * context * data != gpus:
        raise SkippedRow("degrees do not multiply to the GPUs")
    recompute = row.get("recompute", "")
    if recompute and recompute not in RECOMPUTE_CODES:
        raise SkippedRow(f"recompute {recompute}")
    flag = row.get("seq_parallel", "")
    return MeasuredLayout(
        tensor=tensor,
        pipeline=pipeline,
        virtual_pipeline=_count(row, "vpp"),
        context=context,
        expert=_count(row, "ep", 1) or 1,
        data=data,
        zero_stage=_count(row, "zero_stage"),
        micro_batch=_count(row, "micro_batch"),
        recompute=RECOMPUTE_CODES[recompute] if recompute else None,
        sequence_parallel=None if not flag else flag not in ("0", "false"),
        hybrid_shard=row.get("data_parallel", "") == "hsdp",
    )


def _domain_gpus(row: Mapping[str, str], gpus: int) -> int:
    node = _count(row, "gpus_per_node", 8) or 8
    if node <= 16:
        return min(node, gpus)
    fits = [size for size in range(1, node + 1) if gpus % size == 0]
    return min(gpus, max(fits))


_RDMA_WORDS = ("infiniband", "roce", "rdma", "efa", "omni-path", "slingshot", "cx-7", "ib ", "hdr", "ndr")
_TCP_WORDS = ("tcp", "socket", "ethernet")


def _network(row: Mapping[str, str], gpu: Gpu, gpus: int, domain: int) -> Network:
    node = _count(row, "gpus_per_node", 8) or 8
    per_system = 4 if node > 16 else node
    gbit = _number(row, "inter_gbps_per_node")
    link = row.get("inter_link", "").lower()
    assumed = gbit is None
    if gbit is None:
        gbit = _reference_gbit_per_s(gpu, per_system)
    rdma = any(word in link for word in _RDMA_WORDS)
    tcp = any(word in link for word in _TCP_WORDS) or (not rdma and gbit < 100)
    latency_ms = _number(row, "inter_latency_ms")
    latency = latency_ms * 1e-3 if latency_ms is not None else (25e-6 if tcp else 5e-6)
    rate = gbit * 1.25e8
    return Network(
        node_bytes_per_s=None if gpus <= domain else rate,
        share_bytes_per_s=rate / min(per_system, gpus),
        latency_s=latency,
        kind="tcp" if tcp else "rdma",
        transport="sockets" if tcp else "efa_v2" if "efa" in link else "infiniband",
        achieved_fraction=catalog.link("efa-v2" if "efa" in link else "infiniband-ndr-400").achieved_fraction,
        assumed=assumed,
    )


def _reference_gbit_per_s(gpu: Gpu, per_system: int) -> float:
    """Return the NICs of the reference system with this GPU [Gbit/s per operating system]."""
    for name in catalog.names("system"):
        system = catalog.system(name)
        if system.gpu == gpu.name and system.gpus_per_node == per_system and system.nic_bytes_per_s:
            return system.nics * system.nic_bytes_per_s / 1.25e8
    recent = gpu.architecture in ("Hopper", "Blackwell", "Blackwell Ultra")
    return (400.0 if recent else 200.0) * per_system


def _peak_memory(row: Mapping[str, str]) -> tuple[float | None, str]:
    peak = _number(row, "peak_mem_gb")
    if peak is None:
        return None, ""
    unit = 1.073741824e9 if row.get("peak_mem_unit") == "GiB" else 1e9
    return peak * unit, row.get("peak_mem_kind") or "unknown"


def _step_time_s(
    row: Mapping[str, str], *, model: Model, gpus: int, sequence: int, batch: int, gpu: Gpu, precision: str
) -> float:
    step = _number(row, "step_time_s")
    if step:
        return step
    rate = _number(row, "tokens_per_s_per_gpu")
    if rate:
        return batch * sequence / (rate * gpus)
    tflops, mfu = _number(row, "tflops_per_gpu"), _number(row, "mfu_percent")
    flop = published_step_flop(row.get("flops_convention", ""), model, sequence, batch)
    if tflops:
        return flop / (tflops * 1e12 * gpus)
    if mfu:
        peak = gpu.flop_per_s.get(precision) or gpu.flop_per_s.get("bf16") or gpu.flop_per_s["fp16"]
        return flop / (mfu / 100.0 * peak * gpus)
    raise SkippedRow("no step time, rate or utilization")


def published_step_flop(convention: str, model: Model, sequence: int, batch: int) -> float:
    """Return the FLOP of a step as a source that prints only a utilization counts them [FLOP].

    Notes
    -----
    ``96BsLh^2``: Narayanan et al., 2021, equation 3 (recomputed forward counted). Other hardware counts: 4/3
    of the model count. Model counts: 6 per matrix parameter and the full attention square, or half of it
    where the convention says causal or half.
    """
    text = convention.lower()
    tokens = float(batch) * sequence
    if "96" in text and ("l*h^2" in text or "lh^2" in text):
        layers, hidden = model.layers, model.hidden
        correction = 1.0 + sequence / (6.0 * hidden) + model.vocab / (16.0 * layers * hidden)
        return 96.0 * tokens * layers * hidden**2 * correction
    causal = ("causal" in text and "non-causal" not in text) or "half square" in text
    flop = tokens * model_flop_per_token(model, sequence, causal=causal)
    return flop * 4.0 / 3.0 if text.startswith("hfu") else flop


def group_by_source(runs: Iterable[MeasuredRun]) -> dict[str, list[int]]:
    """Return the positions of the runs of each source."""
    groups: dict[str, list[int]] = {}
    for position, run in enumerate(runs):
        groups.setdefault(run.source, []).append(position)
    return groups
