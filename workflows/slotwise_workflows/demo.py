"""The article's case end to end, and right after it the same requests with equal lengths."""

from __future__ import annotations

import math
from collections.abc import Callable

from slotwise_sim.article import MS_PER_TOKEN, SLOTS, article_workload, control_workload
from slotwise_workflows.diagnose import diagnose
from slotwise_workflows.given import Given
from slotwise_workflows.recommend.thresholds import Thresholds
from slotwise_workflows.result import Provenance, Result
from slotwise_workflows.traffic.model import made_traffic

# The article's server: eight slots that wait until a batch is full.
ARTICLE_SERVER = Given(
    serving="self_hosted",
    mode="online",
    replicas=1,
    slots=SLOTS,
    ms_per_token=MS_PER_TOKEN,
    max_delay_ms=math.inf,
)


def demo(
    *,
    seed: int,
    provenance: Provenance,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Result:
    """Diagnoses the article's 600 requests; the control stands in the result's `control`.

    Args:
        seed: Of every random draw.
        provenance: Kept in both results as it is.
        on_progress: Told how many of the two are done.
    """
    cases = (("article-600", article_workload()), ("article-600-even", control_workload()))
    results = []
    for done, (name, workload) in enumerate(cases):
        on_progress(done, len(cases))
        traffic = made_traffic(workload, format_id="article", origin="zero")
        results.append(
            diagnose(
                traffic,
                ARTICLE_SERVER,
                name=name,
                seed=seed,
                thresholds=Thresholds(),
                provenance=provenance,
            ).result
        )
    on_progress(len(cases), len(cases))
    article, control = results
    return article.model_copy(update={"control": control})
