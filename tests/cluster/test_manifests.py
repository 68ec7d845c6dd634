"""The files for containers against schemas that need no network, and against what they promise in their comments.

Schemas of Kubernetes come with kubernetes-validate. The frame of a DaskJob is written down here.
"""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker
from packaging.requirements import Requirement

from tests.cluster.conftest import STATUS
from tests.data.s3 import serving

PROJECT = Path(__file__).parents[2]
CLUSTER = PROJECT / "cluster"
KUBERNETES = "1.33"
POLICY, JOB = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text())
PARTS = JOB["spec"]["cluster"]["spec"]
DASK = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
PODS = {"driver": JOB["spec"]["job"]["spec"], "scheduler": PARTS["scheduler"]["spec"], "worker": PARTS["worker"]["spec"]}


def frame(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


ANY = {"type": "object"}
DASK_JOB = frame(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "kubernetes.dask.org/v1"},
    kind={"const": "DaskJob"},
    metadata=frame(["name"], name={"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"}),
    spec=frame(
        ["job", "cluster"],
        job=frame(["spec"], spec=ANY),
        cluster=frame(
            ["spec"],
            spec=frame(
                ["scheduler", "worker"],
                scheduler=frame(["spec", "service"], spec=ANY, service=ANY),
                worker=frame(["spec", "replicas"], spec=ANY, replicas={"type": "integer", "minimum": 1}),
            ),
        ),
    ),
)


def test_the_frame_of_the_job_is_valid() -> None:
    jsonschema.validate(JOB, DASK_JOB)


PARTS_OF_IT = {
    "policy": POLICY,
    "service": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": PARTS["scheduler"]["service"]},
    **{name: {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod} for name, pod in PODS.items()},
}
"""As the operator makes them from the specification."""


@pytest.mark.parametrize("name", PARTS_OF_IT)
def test_each_part_is_valid(name: str) -> None:
    kubernetes_validate.validate(PARTS_OF_IT[name], KUBERNETES, strict=True)


def test_the_schemas_notice_a_wrong_word() -> None:
    wrong = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {**PODS["worker"], "volumeMounts": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_policy_and_service_select_the_pods_of_the_job() -> None:
    own = {"dask.org/cluster-name": JOB["metadata"]["name"]}  # the label that the operator gives to each pod
    assert POLICY["spec"]["podSelector"]["matchLabels"] == own
    assert POLICY["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert POLICY["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": own}}]}]
    assert POLICY["spec"]["egress"][0] == {"to": [{"podSelector": {"matchLabels": own}}]}
    assert {port["port"] for port in POLICY["spec"]["egress"][1]["ports"]} == {53}
    assert POLICY["spec"]["egress"][2:] == [{"ports": [{"protocol": "TCP", "port": 443}]}]  # the object store, wherever it is
    service = PARTS["scheduler"]["service"]
    assert service["type"] == "ClusterIP"
    assert service["selector"] == {**own, "dask.org/component": "scheduler"}
    (container,) = PODS["scheduler"]["containers"]
    assert {port["targetPort"] for port in service["ports"]} == {port["name"] for port in container["ports"]}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_has_no_more_rights_than_it_needs(name: str) -> None:
    pod = PODS[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 1000
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_driver_and_workers_may_use_the_store(room: Any) -> None:
    """By a secret, or by what the provider gives their service account; the scheduler reads nothing."""
    for name, expected in (("driver", ["dfeas-store"]), ("worker", ["dfeas-store"]), ("scheduler", [])):
        (container,) = PODS[name]["containers"]
        assert [each["secretRef"]["name"] for each in container.get("envFrom", [])] == expected


@pytest.mark.parametrize(("checkpoint", "asked"), [(False, "solve s3://bucket/points --out"), (True, "resume")])
def test_the_driver_of_the_job_solves_or_resumes(room: Any, checkpoint: bool, asked: str) -> None:
    """The script of the image with the words and settings of the manifest; the cluster and dfeas are stand-ins here."""
    room.command("dfeas", f'{STATUS}\necho "$*" >> calls')
    room.command("python", f'[ "$1" = - ] && exit\nexec {sys.executable} "$@"')
    (driver,) = PODS["driver"]["containers"]
    assert driver["command"] == ["/opt/dfeas/container"]
    if checkpoint:
        (room.path / "run" / "checkpoint").mkdir(parents=True)
    settings = {each["name"]: each["value"] for each in driver["env"]}
    done = room.run(CLUSTER / "container", *driver["args"], DASK_SCHEDULER_ADDRESS="tcp://there:8786", **settings)
    assert done.returncode == 0, done.stderr
    assert room.said("calls") == [f"{asked} s3://bucket/runs/first --scheduler tcp://there:8786"]


@pytest.mark.timeout(300)
def test_the_driver_of_the_job_reaches_a_verdict_in_a_bucket(room: Any, until: Callable[..., None]) -> None:
    """Scheduler, worker and driver, by the words of the manifest, share nothing but a bucket; typed again it says so."""
    (driver,), (worker,) = PODS["driver"]["containers"], PODS["worker"]["containers"]
    data, run = driver["args"]
    with serving() as (_, there):
        room.environment.update(there)
        assert room.run("dfeas", "generate", "planted", data, "--features", 9, "--points", 3000).returncode == 0
        file = room.path / "scheduler.json"
        words = ("--host", "127.0.0.1", "--port", 0, "--dashboard-address", "127.0.0.1:0", "--scheduler-file", file)
        with room.start("dask", "scheduler", *words) as scheduler:
            until(lambda: file.exists() and file.read_text().endswith("}"))
            address = json.loads(file.read_text())["address"]
            settings = {"DASK_SCHEDULER_ADDRESS": address, "DASK_WORKER_NAME": "one"}
            words = [word.replace("$(DASK_WORKER_NAME)", "one") for word in worker["args"]]
            with room.start(*words, "--host", "127.0.0.1", **settings) as process:
                assert room.verdict(CLUSTER / "container", data, run, "--json", **settings) == "feasible"
                again = room.run(CLUSTER / "container", data, run, **settings)
                assert (again.returncode, again.stdout.startswith(f"{run}: feasible, pass ")) == (0, True), again.stderr
                process.terminate()
                process.communicate(timeout=60)
            scheduler.terminate()
            scheduler.communicate(timeout=60)


def test_the_settings_of_the_driver_are_those_of_its_script() -> None:
    (driver,) = PODS["driver"]["containers"]
    script = (CLUSTER / "driver.bash").read_text()
    assert [each["name"] for each in driver["env"] if f"${{{each['name']}:-" not in script] == []


def words(*commands: Any) -> Iterator[list[str]]:
    """Commands that start with dask or dfeas."""
    for command in commands:
        if command and command[0] in ("dask", "dfeas"):
            yield [str(word) for word in command]


def test_dask_knows_every_option() -> None:
    pods = (container.get("args") for pod in PODS.values() for container in pod["containers"])
    found = list(words(*pods))
    assert [command[1] for command in found] == ["scheduler", "worker"]
    for _, kind, *options in found:
        known = {word for parameter in DASK[kind].params for word in parameter.opts}
        assert [word for word in options if word.startswith("--") and word not in known] == []


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile."""
    text = re.sub(r"\\\n", " ", (CLUSTER / "Dockerfile").read_text())
    lines = (line.strip() for line in text.splitlines())
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines if line and not line.startswith("#")]


def test_the_image_has_what_it_copies_and_is_not_root() -> None:
    found = instructions()
    assert {name for name, _ in found} <= {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "CMD"}
    assert found[0][0] == "FROM"
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", found[0][1])
    copied = [shlex.split(rest) for name, rest in found if name == "COPY"]
    sources = [source for *these, _ in copied for source in these]
    wheel = "dist/dfeas-*.whl"  # built before, as the first lines say
    assert [source for source in sources if source != wheel and not (PROJECT / source).exists()] == []
    assert wheel in sources
    sent = {line.removeprefix("!") for line in (PROJECT / ".dockerignore").read_text().split() if line.startswith("!")}
    assert {source.replace("dfeas-*", "*") for source in sources} == sent
    assert ["dfeas/engine/dask.yaml", "/etc/dask/dfeas.yaml"] in copied
    assert ["cluster/container", "cluster/driver.bash", "/opt/dfeas/"] in copied
    assert ("ENV", "DASK_CONFIG=/etc/dask") in found
    users = [rest for name, rest in found if name == "USER"]
    assert users == ["1000:1000"]
    for name, rest in found:
        if name == "RUN":
            subprocess.run(["bash", "-n", "-c", rest], check=True)
        if name == "CMD":
            assert json.loads(rest)[0] == "dfeas"


def test_every_package_of_the_image_has_a_version_that_will_do() -> None:
    """Those that the wheel asks for with its extras, and which the constraints pin."""
    (install,) = (rest for name, rest in instructions() if name == "RUN" and "pip install" in rest)
    (extras,) = re.findall(r"\[([\w,-]+)\]", install)
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    asked = [
        *project["dependencies"],
        *(each for extra in extras.split(",") for each in project["optional-dependencies"][extra]),
    ]
    lines = [line for line in (CLUSTER / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = dict(line.split("==") for line in lines)
    assert {"object-stores"} <= set(extras.split(","))
    for requirement in map(Requirement, asked):
        assert pinned[requirement.name] in requirement.specifier, requirement
    assert pinned["dask"] == pinned["distributed"]
