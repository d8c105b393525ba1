"""Sweeps: many small programs compiled, run and compared with eager PyTorch, one record each.

`engine` runs items in worker processes, `results` keeps their records, `ops` and `models` say what the items are,
`summary` counts. All of it is reached through `tt-torch sweep`.
"""
