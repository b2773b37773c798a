"""Which kind a file of settings is, and what is read of a manifest."""

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.settings_file import SettingsKind, read_settings

JOB = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: nccl}
data: {NCCL_DEBUG: INFO}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llama}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: &pod
        spec:
          containers:
            - name: pytorch
              command: [bash, -c]
              args:
                - |
                  export NCCL_ALGO=Ring
                  torchrun --nnodes=4 --nproc_per_node=8 x.py
              env:
                - {name: NCCL_IB_DISABLE, value: "1"}
                - {name: HF_TOKEN, value: hf_secret}
              resources: {limits: {nvidia.com/gpu: 8}}
    Worker: {replicas: 3, template: *pod}
"""


@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        ("PATH=/bin\nHOME=/root\nNCCL_DEBUG=INFO\n", "x", SettingsKind.ENVIRONMENT),
        ("NCCL_DEBUG=INFO\n", "x", SettingsKind.NCCL_CONF),
        ("# site\n\nNCCL_DEBUG=INFO\n", "/etc/nccl.conf", SettingsKind.NCCL_CONF),
        ("NCCL_DEBUG=INFO\nPYTHONPATH=/x\n", ".deepspeed_env", SettingsKind.ENVIRONMENT),
        ("export NCCL_DEBUG=INFO\n", "x", SettingsKind.SCRIPT),
        ("#!/bin/sh\necho hi\n", "x", SettingsKind.SCRIPT),
        ("torchrun --nproc-per-node 8 x.py\n", "x", SettingsKind.SCRIPT),
        ("PATH=/bin\nBASH_FUNC=() {\n  :\n}\nHOME=/root\n", "x", SettingsKind.ENVIRONMENT),
        (JOB, "job.yaml", SettingsKind.MANIFEST),
    ],
)
def test_kind_is_told_by_the_content(text, path, kind):
    assert read_settings(text, path=path).kind is kind


@pytest.mark.parametrize("text", ["", "hello world\n", "- a\n- b\n"])
def test_file_of_another_kind_is_refused_by_name(text):
    with pytest.raises(DocumentError, match=r"^notes\.txt: is .*give what 'env' prints"):
        read_settings(text, path="notes.txt")


def test_manifest_gives_settings_launches_and_gpus_with_lines():
    found = read_settings(JOB, path="job.yaml")
    master = "PyTorchJob/llama Master pytorch"
    here = [each for each in found.assignments if each.scope in (master, "ConfigMap/nccl")]
    assert {(each.name, each.value, each.line) for each in here} == {
        ("NCCL_DEBUG", "INFO", 4),
        ("NCCL_IB_DISABLE", "1", 23),
        ("NCCL_ALGO", "Ring", 20),
    }
    assert found.launches[0].line == 21
    assert [(each.pods, each.gpus) for each in found.containers] == [(4, 8), (4, 8)]


def test_fault_of_a_later_document_has_its_line_in_the_file():
    with pytest.raises(DocumentError, match=r"^job\.yaml:6: not valid YAML"):
        read_settings("apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\nspec: [\n", path="job.yaml")


def test_line_of_nccl_conf_is_taken_as_nccl_takes_it():
    # NCCL, src/misc/param.cc: nothing is stripped
    found = read_settings("NCCL_DEBUG = INFO # all\n#x\nNCCL_NET=IB\n", path="nccl.conf")
    assert [(each.name, each.value) for each in found.assignments] == [
        ("NCCL_DEBUG ", " INFO # all"),
        ("NCCL_NET", "IB"),
    ]
