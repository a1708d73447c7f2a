"""Every sentence a recommendation can need: its code and the numbers the sentence names.

The report's catalogues hold one sentence a code and language; a test holds the two lists together.
Numbers are plain: shares are fractions of one, times seconds, lengths tokens, rates per second.
"""

from __future__ import annotations

from collections.abc import Mapping

# Why the verdict is what it is. The first reason decides; `variation` stands second in all that
# were measured.
REASONS: Mapping[str, tuple[str, ...]] = {
    "too_few_requests": ("requests", "needed"),
    "managed_api": (),
    "batches_continuously": ("idle_saved", "slots"),
    "slower": ("gain_high",),
    "low_load": ("shared", "load"),
    "one_caller": (),
    "one_slot": (),
    "waiting_only": ("gain", "waiting", "waiting_low", "waiting_high"),
    "even_lengths": ("gain_high",),
    "neighbours_alike": ("gain_high", "gain_bound"),
    "cost_takes_it": ("gain_high", "by_lengths"),
    "unless_already": ("gain", "servers"),
    "gain_offline": ("gain", "low", "high"),
    "gain_lengths_only": ("gain", "low", "high"),
    "gain_at_cost": ("gain", "low", "high"),
    "gain_overload": ("gain", "low", "high", "utilisation"),
    "gain_objective": ("gain", "low", "high", "p95", "objective"),
    "gain_objective_ttft": ("gain", "low", "high", "p95", "objective"),
    "gain_waiting": ("gain", "low", "high", "waiting", "waiting_low", "waiting_high"),
    "from_load": ("gain", "load", "rate"),
    "objective_out_of_reach": ("replicas", "servers", "p95", "objective"),
    "interval_wide": ("low", "high", "more_requests"),
    "slots_decide": ("gain_few", "slots_few", "gain_many", "slots_many"),
    "marginal": ("gain", "low", "high"),
    "variation": ("mean", "cv", "max_over_mean", "slots"),
    "models_apart": ("models", "pooled_gain", "gain"),
    "seen_joining": ("joined", "met"),
    "seen_waiting": ("held", "tried"),
    "seen_together": ("tied", "apart", "by_chance"),
    "seen_one_by_one": ("alone", "waited"),
}

# What keeps the confidence down, and risks.
LIMITS: Mapping[str, tuple[str, ...]] = {
    "replay_contradicted": ("measured", "simulated"),
    "batching_unknown": (),
    "batching_several": ("servers",),
    "probe_doubtful": (),
    "slots_differ": ("slots", "probed"),
    "short_window": ("hours",),
    "slots_assumed": ("low", "high"),
    "time_per_token_assumed": ("low", "high"),
    "replicas_unknown": (),
    "replicas_assumed": (),
    "arrivals_unknown": (),
    "closed_loop": ("in_flight",),
    "truncated": ("share",),
    "lengths_drift": ("gain_bound", "gain"),
    "biased_missing": (),
    "bench_load": (),
    "clock_coarse": (),
    "serving_unknown": (),
    "reader_unverified": (),
    "overload_ratio": (),
    "constant_time_per_token": (),
    "prefill_not_counted": ("ratio",),
    "cost_of_preset": ("name",),
    "cost_calibrated": ("off", "held_out"),
    "cost_unreliable": ("off", "held_out"),
    "cost_extrapolated": ("slots", "low", "high"),
    "cost_unchecked": (),
    "prompts_unknown": ("share",),
    "caps_exceeded": ("requests",),
    "batches_exceed_memory": ("slots", "needed", "held"),
    "padding_not_counted": ("padded",),
    "padding_counted": ("unpadded",),
    "few_requests": ("requests",),
}

# What to do. The first is the next action.
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "collect_requests": ("more_requests",),
    "pilot": ("replicas", "slots"),
    "probe_endpoint": (),
    "probe_again": (),
    "give_slots": (),
    "give_replicas": (),
    "keep_server": (),
    "more_slots": (),
    "set_max_delay": (),
    "watch_load": ("rate",),
    "tune_engine": (),
    "use_provider_levers": (),
    "measure_after": ("low", "high"),
}

# Where to look instead, from the same log.
ALTERNATIVES: Mapping[str, tuple[str, ...]] = {
    "prefix_sharing": ("share",),
    "prefix_sharing_unknown": (),
    "prompt_heavy": ("ratio",),
    "output_heavy": ("ratio",),
    "truncated_outputs": ("share",),
    "route_apart": ("segment", "value", "share"),
    "sort_by_length": ("perfect", "guessed", "off", "refilled"),
    "kv_memory": (),
    "quantisation": (),
    "speculative_decoding": (),
    "batch_api": (),
    "prompt_caching": (),
    "cap_max_tokens": (),
    "limit_concurrency": (),
}

# The values at which the verdict changes.
FLIPS: Mapping[str, tuple[str, ...]] = {
    "flip_load": ("rate", "times"),
    "flip_cv": ("cv",),
}

# What a figure was read off: `Fact.basis`.
BASES: tuple[str, ...] = (
    "given",
    "default",
    "assumed_range",
    "latency_envelope",
    "decode_time",
    "in_flight",
    "decoding_at_once",
    "log_format",
    "model_name",
    "provider",
    "engine_signature",
    "arrival_pattern",
    "busiest_hour",
    "waiting_gap",
    "log_timings",
    "single_server_described",
    "preset",
    "calibration",
    "unknown",
)

# `Fact.name`.
FACTS: tuple[str, ...] = (
    "serving",
    "batches_already",
    "mode",
    "loop",
    "replicas",
    "slots",
    "ms_per_token",
    "cost",
    "memory",
    "padding",
    "max_delay_ms",
    "busiest_rate_per_s",
    "offered_load",
)
