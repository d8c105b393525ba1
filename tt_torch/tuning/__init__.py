"""`tt-torch tune-precision`: the cheapest precision of each layer that keeps an accuracy."""
