"""Shows programs in Model Explorer. `graphs` reads them; `main` is the adapter, a name that the explorer prescribes."""
