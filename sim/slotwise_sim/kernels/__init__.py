"""The compiled loops, one module a way of filling slots; `simulation` chooses among them.

- ``slots``: a request's time in its slot is fixed; slots fall free one by one.
- ``iterations``: the whole server works in iterations, and slots are refilled between them.
- ``batches``: a batch starts together and its slots are given back together.

All take the requests of one server in order of arrival, as contiguous arrays, and write into arrays
made by the caller with NumPy, which asks the system for large pages.
"""
