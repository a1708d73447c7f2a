"""Files that are whole or not there, one by one and as a set."""

from __future__ import annotations

from pathlib import Path

import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.files import check_output, output_directory, staged, write_file


def content(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "result").write_text("old")
    (tmp_path / "tables" / "a").write_text("old")
    (tmp_path / "notes").write_text("mine")
    return tmp_path


def test_a_set_of_files_takes_its_place_at_once(old: Path) -> None:
    with staged(old) as stage:
        (stage / "tables").mkdir()
        (stage / "tables" / "b").write_text("new")
        (stage / "result").write_text("new")
        assert content(old)["result"] == "old"
    # what belonged to the old set is gone, what is not ours stays
    assert content(old) == {"notes": "mine", "result": "new", "tables/b": "new"}


def written_until(fault: BaseException, directory: Path) -> None:
    with staged(directory) as stage:
        (stage / "result").write_text("new")
        raise fault


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), ValueError(), InputError("no")])
def test_a_set_that_is_not_finished_leaves_the_old_one(old: Path, fault: BaseException) -> None:
    before = content(old)
    with pytest.raises(type(fault)):
        written_until(fault, old)
    assert content(old) == before


def test_a_place_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"), staged(tmp_path / "no"):
        pass


@pytest.mark.parametrize("name", ["", ".", "-"])
def test_what_is_no_name_of_a_file_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="not the name of a file"):
        check_output(Path(name))


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="this system has no /dev/null")
def test_a_device_is_left_alone() -> None:
    with pytest.raises(InputError, match="not the name of a file"):
        write_file(Path("/dev/null"), b"new")
    assert Path("/dev/null").is_char_device()


def test_an_input_is_not_replaced_under_any_name(old: Path) -> None:
    (old / "link").symlink_to(old / "result")
    for name in ("result", "link", "tables/../result"):
        with pytest.raises(InputError, match="one of the inputs"):
            check_output(old / name, [old / "notes", old / "result"])
    check_output(old / "new", [old / "result"])


def test_a_link_stays_a_link(old: Path) -> None:
    (old / "link").symlink_to(old / "result")
    write_file(old / "link", b"new")
    assert (old / "link").is_symlink()
    assert (old / "result").read_text() == "new"


def interrupted(place: Path, *files: str) -> None:
    with output_directory(place) as directory:
        assert directory.is_dir()
        for name in files:
            (directory / name).touch()
        raise KeyboardInterrupt


def test_a_directory_that_got_no_file_is_not_left_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_a_file_stays_and_so_does_one_that_was_there(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "new", "kept")
    assert (tmp_path / "new" / "kept").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "mine")
    assert (tmp_path / "mine").is_dir()
