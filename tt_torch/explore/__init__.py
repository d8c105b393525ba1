"""Programs in Model Explorer: `graphs` reads them, `main` is the adapter, by the name that the explorer asks for."""
