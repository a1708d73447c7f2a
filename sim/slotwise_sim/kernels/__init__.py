"""The compiled loops, one module a way of filling slots; `simulation` chooses among them.

- ``slots``: a request's time in its slot is fixed; slots fall free one by one.
- ``iterations``: the whole server works in iterations, and slots are refilled between them.
- ``batches``: a batch starts together and its slots are given back together.

Beside them ``records`` is how requests are handed over, ``control`` how a loop is stopped, and
``heap`` what two of the loops keep the next end in.
"""
