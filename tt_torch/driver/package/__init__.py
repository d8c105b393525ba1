"""A compiled model as one file, which runs without the model and without the compiler.

The file is in the format of safetensors: weights, constants and binaries are its tensors, and a manifest in JSON is its
metadata. `manifest.py` has what the manifest holds, `saving.py` makes the content of a package, `contents.py` writes it
to a file and reads it, and `loading.py` runs it. Nothing in a file is code of Python, and nothing is unpickled or
imported by a name from a file.
"""
