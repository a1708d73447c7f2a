"""Sends load of a known shape, and what is made of it: the cost of an iteration, a replay."""
