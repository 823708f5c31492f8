"""Parts that tests share: servers that misbehave on purpose, a real object store, a counting proxy."""
