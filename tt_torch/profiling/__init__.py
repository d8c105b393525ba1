"""Profiling: how long each device op takes on the host, and how long a chip would take by the cost model.

`cost_model` describes the chips, `recorder` watches executors, and `tables` and `page` write the results.
`tt-torch profile` (cli.py) combines them.
"""
