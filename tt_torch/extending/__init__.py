"""Ops of the user on the device: as TTIR ops (`register_lowering`) or with a kernel (`kernel`). docs/extending.md."""
