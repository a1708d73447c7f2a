"""A measured run in, a calibrated step cost out.

`file` is the result and its file, `timings` reads the run, `run` fits it.
"""
