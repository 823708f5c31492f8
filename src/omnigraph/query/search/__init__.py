"""Search: which nodes hold words, how near their vectors are, and the order that follows (languages.md 12)."""
