"""Brings up a model: finds which of its ops compile, run and agree, and where a program departs from PyTorch.

`op_by_op` cuts a graph into its unique ops and runs each in a worker process; `bisect` shrinks a failing model;
`intermediates` compares a running program with the graph that it came from.
"""
