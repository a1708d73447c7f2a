"""What a host finds under the entry-point group `servicedock.workflows`.

The group's name and the manifest are this project's open proposal of how a marketplace could
discover a workflow; they are not an interface that ServiceDock has published.
"""

from __future__ import annotations

from typing import Any

from slotwise_workflows.resources import MANIFEST, load_yaml


def get_workflow_info() -> dict[str, Any]:
    """The manifest, `template.yaml`, as plain data.

    Cheap by contract: it imports PyYAML and nothing heavier, and reads one packaged file.
    """
    return load_yaml(MANIFEST)
