"""The command `omnigraph`: decode arguments, call the engine once, render the answer. Holds no rule about graphs."""
