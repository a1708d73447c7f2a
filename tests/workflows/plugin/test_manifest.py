"""The manifest is valid, true, and the same wherever a host finds it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import entry_points, metadata
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from slotwise_listing.manifest_paths import manifest_paths
from slotwise_workflows import errors, resources
from slotwise_workflows.plugin import get_workflow_info
from slotwise_workflows.result import Confidence, Verdict
from slotwise_workflows.schemas import result_schema

REPOSITORY = Path(__file__).resolve().parents[3]
SCHEMAS = (
    resources.TEMPLATE_SCHEMA,
    resources.WORKFLOW_SCHEMA,
    resources.EVENT_SCHEMA,
    resources.RESULT_SCHEMA,
)


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return get_workflow_info()


@pytest.mark.parametrize("name", SCHEMAS)
def test_published_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(resources.load_json(name))


def test_manifest_is_valid(manifest: dict[str, Any]) -> None:
    validator = Draft202012Validator(resources.load_json(resources.TEMPLATE_SCHEMA))
    assert [(e.json_path, e.message) for e in validator.iter_errors(manifest)] == []


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        (lambda m: m["metadata"].update(version="1.0"), "$.metadata.version"),
        (lambda m: m["metadata"].update(icon="https://example.com/i.png"), "$.metadata.icon"),
        (lambda m: m["metadata"].update(icon="../i.png"), "$.metadata.icon"),
        (lambda m: m["metadata"]["title"].update(ja="長" * 31), "$.metadata.title.ja"),
        (
            lambda m: m["permissions"]["filesystem"].update(write=["/"]),
            "$.permissions.filesystem.write[0]",
        ),
        (lambda m: m["workflows"][0]["args"].append("a;b"), "$.workflows[0].args[9]"),
        (
            lambda m: m["workflows"][0]["inputs"].update(additionalProperties=True),
            "$.workflows[0].inputs.additionalProperties",
        ),
        (lambda m: m.update(extra=1), "$"),
    ],
)
def test_schema_refuses(change: Callable[[dict[str, Any]], None], pointer: str) -> None:
    changed = get_workflow_info()
    change(changed)
    validator = Draft202012Validator(resources.load_json(resources.TEMPLATE_SCHEMA))
    assert [error.json_path for error in validator.iter_errors(changed)] == [pointer]


def test_each_definition_is_valid_and_says_what_the_manifest_says(manifest: dict[str, Any]) -> None:
    template_schema = Resource.from_contents(resources.load_json(resources.TEMPLATE_SCHEMA))
    registry = Registry().with_resource("urn:workflow-template:v1", template_schema)
    validator = Draft202012Validator(
        resources.load_json(resources.WORKFLOW_SCHEMA), registry=registry
    )
    for workflow in manifest["workflows"]:
        definition = resources.load_yaml(workflow["definition"])
        assert [(e.json_path, e.message) for e in validator.iter_errors(definition)] == []
        for key in ("id", "title", "description", "inputs", "artifacts", "outputs"):
            assert definition[key] == workflow[key], key


def test_manifest_agrees_with_the_distribution(manifest: dict[str, Any]) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = manifest["metadata"]["version"]
    runtime = manifest["runtime"]
    assert version == project["version"] == metadata("slotwise")["Version"]
    assert runtime["wheel"] == f"wheels/slotwise-{version}-py3-none-any.whl"
    assert manifest["compatibility"]["python"] == project["requires-python"]
    assert manifest["metadata"]["license"] == project["license"]
    assert runtime["extras"].keys() <= project["optional-dependencies"].keys()
    assert runtime["command"] == ["slotwise"]
    assert set(runtime["command"]) <= project["scripts"].keys()


def test_entry_point_hands_out_the_same_manifest(manifest: dict[str, Any]) -> None:
    declared = manifest["runtime"]["entryPoint"]
    (found,) = entry_points(group=declared["group"], name=declared["name"])
    assert found.value == declared["object"]
    assert found.load()() == manifest == resources.load_yaml(resources.MANIFEST)


def test_every_path_exists_but_the_wheel_that_a_build_adds(manifest: dict[str, Any]) -> None:
    absent = [path for path in manifest_paths(manifest) if not (REPOSITORY / path).is_file()]
    assert absent == [manifest["runtime"]["wheel"]]


def test_exit_codes_are_those_of_the_errors(manifest: dict[str, Any]) -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.SlotwiseError)
    ]
    codes = {str(kind.exit_code) for kind in kinds}
    assert set(manifest["exitCodes"]) == codes | {"0", "4"}


def test_outputs_name_the_verdicts_and_confidences_of_the_result(manifest: dict[str, Any]) -> None:
    outputs = manifest["workflows"][0]["outputs"]["properties"]
    assert outputs["verdict"]["enum"] == list(get_args(Verdict))
    assert outputs["confidence"]["enum"] == list(get_args(Confidence))


def test_published_result_schema_is_that_of_the_models() -> None:
    published = resources.read_text(resources.RESULT_SCHEMA)
    assert published == result_schema(), "run: python -m slotwise_workflows.schemas"


def test_looking_around_is_cheap() -> None:
    program = (
        "import sys\n"
        "from slotwise_workflows.plugin import get_workflow_info\n"
        "assert get_workflow_info()['kind'] == 'WorkflowTemplate'\n"
        "heavy = {'numpy', 'numba', 'polars', 'pydantic', 'ray', 'jinja2', 'jsonschema'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
