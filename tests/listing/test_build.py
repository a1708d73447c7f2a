"""`bundle build`: what it refuses, and (marker `bundle`) a bundle that installs and runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from slotwise_listing.build import Bundle, build_bundle
from slotwise_listing.manifest_paths import manifest_paths
from slotwise_listing.verify import verify_bundle
from slotwise_workflows.errors import InputError, UsageError
from slotwise_workflows.plugin import get_workflow_info

REPOSITORY = Path(__file__).resolve().parents[2]
GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def _git(folder: Path, *args: str) -> None:
    assert GIT is not None
    author = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run([GIT, "-C", str(folder), *author, *args], check=True, capture_output=True)


def _checkout(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    _git(folder, "init", "-q")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "start")
    return folder


@needs_git
def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the commit"):
        build_bundle(tmp_path)


@needs_git
def test_another_project(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no template\.yaml"):
        build_bundle(_checkout(tmp_path, {"README.md": "other"}))


@needs_git
def test_a_file_that_the_manifest_names_is_not_committed(tmp_path: Path) -> None:
    manifest = yaml.safe_dump(get_workflow_info(), allow_unicode=True)
    names = ["README.md", "CHANGELOG.md", "LICENSE", *manifest_paths(get_workflow_info())]
    files = {name: "text" for name in names if not name.endswith((".whl", "icon-512.png"))}
    checkout = _checkout(tmp_path, {**files, "template.yaml": manifest})
    (checkout / "listing" / "assets").mkdir(exist_ok=True)
    (checkout / "listing" / "assets" / "icon-512.png").write_bytes(b"not committed")
    with pytest.raises(InputError, match=r"the commit lacks listing/assets/icon-512\.png"):
        build_bundle(checkout)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle of the checked-out commit."""
    return build_bundle(REPOSITORY, tmp_path_factory.mktemp("bundle") / "deep" / "slotwise.zip")


@pytest.mark.bundle
def test_the_same_commit_gives_the_same_bytes(bundle: Bundle, tmp_path: Path) -> None:
    again = build_bundle(REPOSITORY, tmp_path / "again.zip")
    assert again.path.read_bytes() == bundle.path.read_bytes()


@pytest.mark.bundle
def test_a_bundle_is_whole_and_holds_what_its_manifest_names(bundle: Bundle) -> None:
    assert verify_bundle(bundle.path).files == bundle.files
    with zipfile.ZipFile(bundle.path) as archive:
        names = archive.namelist()
        manifest = yaml.safe_load(archive.read("template.yaml"))
    assert names == sorted(names)
    assert set(manifest_paths(manifest)) <= set(names)
    assert manifest["metadata"]["version"] == bundle.version
    assert [name for name in names if name.endswith((".py", ".pyc")) or "/." in name] == []


@pytest.mark.bundle
def test_the_readme_leads_nowhere_outside_the_bundle(bundle: Bundle) -> None:
    with zipfile.ZipFile(bundle.path) as archive:
        names = set(archive.namelist())
        readme = archive.read("README.md").decode()
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", readme)]
    assert [target for target in targets if target and target not in names] == []


@pytest.mark.bundle
def test_the_wheel_holds_the_same_manifest_and_no_stray_file(
    bundle: Bundle, tmp_path: Path
) -> None:
    with zipfile.ZipFile(bundle.path) as archive:
        manifest = archive.read("template.yaml")
        definition = archive.read("workflows/diagnose.yaml")
        wheel = archive.extract(yaml.safe_load(manifest)["runtime"]["wheel"], tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("slotwise_workflows/data/template.yaml") == manifest
        assert archive.read("slotwise_workflows/data/workflows/diagnose.yaml") == definition
        tops = {name.split("/")[0] for name in archive.namelist()}
    packages = {"slotwise_cli", "slotwise_listing", "slotwise_sim", "slotwise_workflows"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages


@pytest.mark.bundle
def test_a_buyer_installs_it_and_it_runs(bundle: Bundle, tmp_path: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    with zipfile.ZipFile(bundle.path) as archive:
        archive.extractall(tmp_path / "bundle")
    wheel = tmp_path / "bundle" / get_workflow_info()["runtime"]["wheel"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept.pop("VIRTUAL_ENV", None)
    environment = {
        **kept,
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
    }

    def run(program: str | None, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert program is not None
        done = subprocess.run(
            [program, *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done

    lock = str(tmp_path / "bundle" / "requirements.lock")
    run(uv, "tool", "install", "--constraints", lock, str(wheel))
    slotwise = shutil.which("slotwise", path=str(tmp_path / "bin"))
    assert bundle.version in run(slotwise, "--version").stdout
    result = json.loads(run(slotwise, "demo", "--json").stdout)
    assert (result["verdict"], result["control"]["verdict"]) == ("adopt", "no_gain")
    tool = tmp_path / "tools" / "slotwise"
    python = shutil.which("python", path=f"{tool / 'bin'}{os.pathsep}{tool / 'Scripts'}")
    program = (
        "from importlib.metadata import entry_points as e; import json;"
        "(p,) = e(group='servicedock.workflows'); print(json.dumps(p.load()()))"
    )
    assert json.loads(run(python, "-c", program).stdout) == get_workflow_info()
