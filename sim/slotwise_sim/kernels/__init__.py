"""The compiled loops, one module a way of filling slots; `apart` chooses among them.

- ``slots``: a request's time in its slot is fixed; slots fall free one by one.
- ``iterations``: the whole server works in iterations, and slots are refilled between them.
- ``batches``: a batch starts together and its slots are given back together.
- ``coupled``: several servers of one of these ways on one clock, where requests hang on others.

Beside them ``records`` is how requests are handed over, ``server`` what a server is that works in
iterations, ``traffic`` how requests come to servers on one clock, ``control`` how a loop is
stopped, and ``heap`` what loops keep the next event in.
"""
