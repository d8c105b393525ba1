"""What drives: from a captured graph to a callable, through all stages; devices, host ops, programs from files."""
