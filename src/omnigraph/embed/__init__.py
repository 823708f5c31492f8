"""Embedding providers: a text becomes a vector of N numbers. Knows no graph, no query, no table and no array library."""
