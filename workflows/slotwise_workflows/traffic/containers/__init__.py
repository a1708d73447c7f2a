"""Any file into a stream of rows, told by content and not by name.

`open_container` is the whole interface; `Container` says what the file is, `Row` is one record.
"""

from slotwise_workflows.traffic.containers.opening import open_container
from slotwise_workflows.traffic.containers.rows import RECORD_LIMIT, Container, Row

__all__ = ["RECORD_LIMIT", "Container", "Row", "open_container"]
