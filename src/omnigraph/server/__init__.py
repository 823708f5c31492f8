"""HTTP over the engine: decode, one engine call, encode. Work that was admitted belongs to the server until it ends."""
