"""The files for containers against schemas that need no network, and against what they promise in their comments.

Schemas of Kubernetes come with kubernetes-validate, the compose specification with check-jsonschema. The frame of a DaskJob is
written down here; where dask-kubernetes is installed, the whole manifest is checked against its own definition, too.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

PROJECT = Path(__file__).parents[2]
CLUSTER = PROJECT / "cluster"
KUBERNETES = "1.33"
POLICY, JOB = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text())
COMPOSE = yaml.safe_load((CLUSTER / "compose.yaml").read_text())
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


def test_the_policy_is_valid() -> None:
    kubernetes_validate.validate(POLICY, KUBERNETES, strict=True)


def test_the_frame_of_the_job_is_valid() -> None:
    jsonschema.validate(JOB, DASK_JOB)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_valid(name: str) -> None:
    """As the operator makes it from the specification."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": PODS[name]}
    kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_the_service_is_valid() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": PARTS["scheduler"]["service"]}
    kubernetes_validate.validate(service, KUBERNETES, strict=True)


def test_the_schemas_notice_a_wrong_word() -> None:
    wrong = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {**PODS["worker"], "volumeMounts": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def strict(schema: Any) -> Any:
    """A schema of the API server that refuses fields it does not know, as kubectl does."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(part) for key, part in schema.items()}
    if isinstance(made.get("properties"), dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def definition() -> Any:
    """The operator's definition of a DaskJob, read without importing the operator."""
    try:
        found = [file for file in files("dask-kubernetes") or [] if file.match("crds/daskjob.yaml")]
    except PackageNotFoundError:
        pytest.skip("needs dask-kubernetes, which brings 45 other packages")
    return yaml.load(found[0].read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def test_the_job_is_valid_for_the_operator() -> None:
    (version,) = definition()["spec"]["versions"]
    assert version["name"] == JOB["apiVersion"].split("/")[1]
    schema = strict(version["schema"]["openAPIV3Schema"])
    schema["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {}}
    jsonschema.validate(JOB, schema)


def test_policy_and_service_select_the_pods_of_the_job() -> None:
    own = {"dask.org/cluster-name": JOB["metadata"]["name"]}  # the label that the operator gives to each pod
    assert POLICY["spec"]["podSelector"]["matchLabels"] == own
    assert POLICY["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert POLICY["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": own}}]}]
    assert POLICY["spec"]["egress"][0] == {"to": [{"podSelector": {"matchLabels": own}}]}
    assert {port["port"] for port in POLICY["spec"]["egress"][1]["ports"]} == {53}
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


@pytest.mark.parametrize(("checkpoint", "asked"), [(False, "solve /data/points --out"), (True, "resume")])
def test_the_driver_of_the_job_solves_or_resumes(room: Any, checkpoint: bool, asked: str) -> None:
    room.command("dfeas", 'echo "$*" >> calls')
    room.command("python", "exit 0")
    (driver,) = PODS["driver"]["containers"]
    text = driver["args"][0].replace("/runs/first", str(room.path / "run"))
    if checkpoint:
        (room.path / "run" / "checkpoint").mkdir(parents=True)
    done = room.run(*driver["command"], text, DASK_SCHEDULER_ADDRESS="tcp://there:8786")
    assert done.returncode == 0, done.stderr
    assert room.said("calls") == [f"{asked} {room.path / 'run'} --scheduler tcp://there:8786"]


def words(*commands: Any) -> Iterator[list[str]]:
    """Commands that start with dask or dfeas."""
    for command in commands:
        if command and command[0] in ("dask", "dfeas"):
            yield [str(word) for word in command]


def test_dask_knows_every_option() -> None:
    """Of the commands in the manifests and in the compose file."""
    pods = (container.get("args") for pod in PODS.values() for container in pod["containers"])
    services = (service.get("command") for service in COMPOSE["services"].values())
    found = list(words(*pods, *services))
    assert [command[1] for command in found] == ["scheduler", "worker", "scheduler", "worker"]
    for _, kind, *options in found:
        known = {word for parameter in DASK[kind].params for word in parameter.opts}
        assert [word for word in options if word.startswith("--") and word not in known] == []


def test_compose_is_valid() -> None:
    command = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "--output-format", "json"]
    done = subprocess.run(
        [Path(sys.executable).parent / command[0], *command[1:], CLUSTER / "compose.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["status"] == "ok"


def test_compose_publishes_on_loopback_only() -> None:
    published = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert sorted(published) == ["127.0.0.1:8786:8786", "127.0.0.1:8787:8787"]
    for service in COMPOSE["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert not service["user"].startswith(("0", "root"))
        assert "network_mode" not in service
    build = COMPOSE["services"]["driver"]["build"]
    assert (CLUSTER / build["context"] / build["dockerfile"]).is_file()


def test_the_driver_of_compose_joins_its_scheduler(room: Any) -> None:
    room.command("dfeas", 'echo "$*" >> calls')
    entry = [word.replace("$$", "$") for word in COMPOSE["services"]["driver"]["entrypoint"]]
    assert room.run(*entry, "solve", "/data/a b", "--out", "/runs/x").returncode == 0
    assert room.said("calls") == ["solve /data/a b --out /runs/x --scheduler tcp://scheduler:8786"]


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile."""
    text = re.sub(r"\\\n", " ", (CLUSTER / "Dockerfile").read_text())
    lines = (line.strip() for line in text.splitlines())
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines if line and not line.startswith("#")]


def test_the_image_has_what_it_copies_and_is_not_root() -> None:
    found = instructions()
    assert {name for name, _ in found} <= {"FROM", "COPY", "RUN", "USER", "WORKDIR", "CMD"}
    assert found[0][0] == "FROM"
    assert re.fullmatch(r"python:3\.\d+-slim", found[0][1])
    copied = [shlex.split(rest) for name, rest in found if name == "COPY"]
    sources = [source for *these, _ in copied for source in these]
    wheel = "dist/dfeas-*.whl"  # built before, as the first lines say
    assert [source for source in sources if source != wheel and not (PROJECT / source).exists()] == []
    assert wheel in sources
    assert ["dfeas/engine/dask.yaml", "/etc/dask/dfeas.yaml"] in copied
    users = [rest for name, rest in found if name == "USER"]
    assert users == ["1000:1000"]
    for name, rest in found:
        if name == "RUN":
            subprocess.run(["bash", "-n", "-c", rest], check=True)
        if name == "CMD":
            assert json.loads(rest)[0] == "dfeas"
