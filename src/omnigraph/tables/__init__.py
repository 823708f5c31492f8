"""What the graph is stored in: Lance tables. The only room that imports `lance`."""
