import datetime as dt
import re
from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.launch.run.proof import Expected, prove
from linkwise.rollout.document.document import RolloutDocument
from linkwise.rollout.document.objective import TrainingWorkload
from linkwise.rollout.document.reading import parse_rollout, read_rollout
from linkwise.rollout.metrics import METRICS
from linkwise.rollout.plan import PROOFS, Against, Severity, Target, TargetKind, Workload, WorkloadKind

_ROOT = Path(__file__).parents[2]
_TEMPLATE = (_ROOT / "src/linkwise/rollout/document/template.yaml").read_text(encoding="utf-8")


def _changed(before, after):
    text = re.sub(before, lambda _: after, _TEMPLATE, count=1, flags=re.MULTILINE)
    assert text != _TEMPLATE, before
    return text


def _faults(text):
    with pytest.raises(DocumentError) as caught:
        parse_rollout(text, path="r.yaml")
    return str(caught.value).splitlines()


def test_template_is_read():
    rollout = parse_rollout(_TEMPLATE)
    assert [step.name for step in rollout.steps] == ["one-node", "all"]
    assert rollout.steps[1].target == Target(kind=TargetKind.FRACTION, amount=1.0)
    assert rollout.sampling.budget_gpu_s == 40 * 3600
    first, second = rollout.objectives[0].comparisons
    assert (first.against, first.bar, first.is_least) == (Against.CONTROL, 0.97, True)
    assert second.against is Against.PREDICTION


def test_example_says_every_kind_of_thing():
    rollout = read_rollout(_ROOT / "examples/rollout.yaml")
    assert {objective.severity for objective in rollout.objectives} == set(Severity)
    assert {bar.against for each in rollout.objectives for bar in each.comparisons} == set(Against)
    assert rollout.objective("slow-nodes").workload == Workload(
        kind=WorkloadKind.PAIRS, sizes_bytes=(2**28,), rounds=5
    )
    assert rollout.objective("cost").reason.review_by == dt.date(2027, 1, 31)
    assert Path(rollout.candidate.job) == _ROOT / "examples/llama-8b-run.yaml"


def test_digest_hangs_on_what_is_said_and_not_on_how():
    digest = parse_rollout(_TEMPLATE).digest
    reordered = _changed(r"control: \{\}\n", "") + "\ncontrol: {}\n"
    assert parse_rollout(_changed("40 GPU h", "2400 GPU min")).digest == digest
    assert parse_rollout(_changed("    severity: must .*\n", "")).digest == digest
    assert parse_rollout(reordered).digest == digest
    assert parse_rollout(_changed("at_least: 97 %", "at_least: 0.97")).digest != ""
    assert parse_rollout(_changed("at_least: 97 %", "at_least: 96 %")).digest != digest


def _with_job(tmp_path, folder, body, name="job.yaml"):
    where = tmp_path / folder
    where.mkdir()
    (where / name).write_text(f"linkwise: job/1\n{body}", encoding="utf-8")
    text = _changed(r"^control: \{\}", f"control: {{job: {name}}}")
    (where / "r.yaml").write_text(text, encoding="utf-8")
    return read_rollout(where / "r.yaml")


def test_digest_of_a_configuration_hangs_on_contents_of_its_files(tmp_path):
    body = "model: llama-3.1-8b\nsequence_length: 8192\nglobal_batch: 128\n"
    one = _with_job(tmp_path, "a", body)
    moved = _with_job(tmp_path, "b", body, name="renamed.yaml")
    other = _with_job(tmp_path, "c", body.replace("128", "256"))
    assert one.control.digest == moved.control.digest != other.control.digest
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("at_least: 97 %", "at_least: 97", "compare.0.at_least: 97 is 97 times as much; write '97 %'"),
        ("to: control, at_least: 97 %", "to: floor, at_least: 300", "'300' has no unit"),
        ("to: control, at_least: 97 %", "to: floor, at_least: 3 s", "is not a unit of a rate"),
        ("at_least: 97 %", "at_least: 0 %", "not above zero, so that it decides nothing"),
        ("at_least: 97 %", "at_least: 97 %, at_most: 1", "has at_least and at_most; give one"),
        (", at_least: 97 %", "", "has neither at_least nor at_most"),
        ("collective.busbw", "colective.busbw", "did you mean collective.busbw"),
        ("collective.busbw", "train.loss", "nothing measures train.loss in collectives"),
        ("to: control", "to: contrl", "'contrl' is not accepted"),
        ("severity: must", "severty: must", "did you mean 'severity'?"),
        ("    review_by: 2027-06-01\n", "", "review_by: the key is required and missing"),
        ("2027-06-01", "2027", "2027 is no day; write year, month and day"),
        ("2027-06-01", "2027-13-01", "is no day"),
        ("repeats: 9", "repeats: 3", "greater than or equal to 5"),
        ("most_repeats: 30", "most_repeats: 8", "most_repeats: 8 is less than repeats (9)"),
        ("40 GPU h", "40 h", "'40 h' is no time of GPUs; write it as '40 GPU min'"),
        (r"\{nodes: 1\}", "{nodes: 1, gpus: 8}", "says gpus, nodes; give exactly one"),
        (r"\{nodes: 1\}", "{}", "says nothing; give exactly one"),
        ("fraction: 100 %", "fraction: 120 %", "120 % is more than there is"),
        (r"objectives: \[all-reduce\]", "objectives: [all-reduse]", "did you mean 'all-reduce'?"),
        (r"objectives: \[all-reduce\]", "objectives: [all-reduce, all-reduce]", "stands here twice"),
        ("name: all$", "name: one-node", "is the name of another one too"),
        (", failures: 3", "", "limits.failures: is missing"),
        ("place: slurm", "place: slrum", "did you mean slurm?"),
        ("place: slurm", "place: slurm:x", "only a lab has a name"),
        ("dgx-h100:32", "dgx-h1000:32", "scope.cluster"),
        ("candidate:", "candidate:\n  command: scontrol reconfigure", "is text for a shell"),
        ("candidate:", "candidate:\n  command: [/bin/bash, -ec, x]", "bash -c runs text that nobody reviews"),
        ("candidate:", "candidate:\n  command: [env, A=1, sh, -c, x]", "sh -c runs text"),
        ("candidate:", "candidate:\n  job: nowhere.yaml", "no such file"),
        (
            "candidate:",
            "candidate:\n  layout: {tensr: 2}",
            "layout.tensr: unknown key; did you mean 'tensor'?",
        ),
        ("GDR_LEVEL: PXB", "GDR_LEVEL: 1.50", "may be spelled in several ways"),
        ('# nccl: ">=2.28,<2.32"', "nccl: 2.30", "put versions in quotes"),
        ('# nccl: ">=2.28,<2.32"', "nccl: newest", "is no range of versions"),
        ("collect: .*", "collect: [dicisions]", "did you mean decisions?"),
        ("kind: collectives, operations.*", "kind: job}", "nothing measures collective.busbw in job"),
        ("operations: .all_reduce.", "operations: [allreduce]", "did you mean all_reduce"),
        ("fail: roll-back", "fail: rollback", "should be 'suspend' or 'roll-back'"),
        ("# valid_run:.*", "valid_run: {left_out: {gpudirect: x}}", "did you mean gpudirect_rdma?"),
        ("to: control\n", "to: yesterday\n", "'yesterday' is no way back; write control, or the 64 digits"),
        ("name: one-node", "name: one/node", "steps.0.name: 'one/node' is no name; use up to 63 letters"),
        ("name: all-reduce", "name: all reduce", "objectives.0.name: 'all reduce' is no name"),
        ("within: 1 h", "within: 1 fortnight", "write a time as '30 s'"),
    ],
)
def test_fault_names_its_key_and_what_to_do(before, after, says):
    faults = _faults(_changed(before, after))
    assert any(says in fault for fault in faults), faults
    assert all(re.match(r"r\.yaml:\d+: ", fault) for fault in faults)


def test_faults_are_all_told():
    text = _TEMPLATE.replace("97 %", "97").replace("place: slurm", "place: moon").replace("40 GPU h", "soon")
    assert len(_faults(text)) == 3


def test_objective_that_no_step_judges_is_a_fault():
    again = (
        _TEMPLATE.split("objectives:\n")[1].split("# A run counts")[0].replace("all-reduce\n", "other\n", 1)
    )
    text = _TEMPLATE.replace("# A run counts", f"{again.rstrip()}\n\n# A run counts", 1)
    assert any("no step judges 'other'" in fault for fault in _faults(text))


def test_objective_on_a_job_needs_a_job():
    text = _changed("metric: collective.busbw\n.*", "metric: train.step_time\n    workload: {kind: job}")
    faults = _faults(text.replace("97 %", "1.03"))
    assert sum("names no job, and the objective 'all-reduce' runs one" in fault for fault in faults) == 2


def test_checks_that_can_be_left_out_are_those_that_runs_are_proved_by():
    def names(device):
        expected = Expected(
            nodes=2,
            ranks_per_node=2,
            hosts=(),
            device=device,
            interfaces=("eth0",),
            settings={},
            protocol="infiniband",
            has_nvlink=True,
        )
        return {check.what for check in prove(expected, [], transport=None)}

    assert set(PROOFS.values()) == names("cuda") | names("cpu")


def test_cuts_are_those_of_bench():
    from linkwise.bench.training import CUTS

    field = TrainingWorkload.model_fields["cut"].annotation
    assert field.__args__ == CUTS


def test_no_key_is_a_boolean_of_older_yaml():
    def keys(model):
        for name, field in model.model_fields.items():
            yield name
            for inner in re.findall(r"linkwise\.[\w.]+Document", str(field.annotation)):
                module, _, cls = inner.rpartition(".")
                yield from keys(getattr(__import__(module, fromlist=[cls]), cls))

    assert not {"on", "off", "yes", "no", "y", "n"} & set(keys(RolloutDocument))


def test_every_metric_is_measured_by_something():
    assert all(
        metric.measured_by >= metric.predicted_for and metric.measured_by for metric in METRICS.values()
    )
