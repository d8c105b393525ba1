"""Profiling: what each device op takes on the host, and what the cost model says that a chip would take.

`cost_model` knows the chips, `recorder` watches executors, `tables`, `page` write what was seen, and
`tt-torch profile` puts it together.
"""
