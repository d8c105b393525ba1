"""Sweeps: many small programs are compiled, run and compared with eager PyTorch; each gives one record.

`ops` and `models` list the items, `compare` runs one of them, `pages` writes docs/ops.md and docs/models.md, and
`compilers` writes docs/compilers.md. The command is `tt-torch sweep`.
"""
