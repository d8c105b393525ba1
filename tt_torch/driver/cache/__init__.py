"""The compile cache: results of compilations on disk, for other processes. docs/compile_cache.md describes it.

`store.py` keeps entries in a folder. `keys.py` makes their keys. `binaries.py` and `graphs.py` say what is kept.
"""
