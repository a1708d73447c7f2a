"""What several tests of the simulator share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# The first example of a test may compile a loop, and no test may depend on the machine's speed.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The slow second implementation, ``reference.py`` beside this file."""
    return _beside("reference")


@pytest.fixture(scope="session")
def coupled_reference(reference: ModuleType) -> ModuleType:
    """The same for servers whose requests hang on one another, ``coupled_reference.py``."""
    assert reference
    return _beside("coupled_reference")


def _beside(name: str) -> ModuleType:
    """A module of this folder, which is no package; others import it as ``sim_<name>``."""
    spec = importlib.util.spec_from_file_location(
        f"sim_{name}", Path(__file__).with_name(f"{name}.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up while they are made
    spec.loader.exec_module(module)
    return module
