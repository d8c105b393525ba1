"""`tt-torch tune-precision` finds the cheapest precision of each layer that keeps an accuracy."""
