"""A grid of servers, loads and lengths under every policy: on one machine or on Ray."""
