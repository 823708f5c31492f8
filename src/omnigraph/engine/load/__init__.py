"""Loads: records read into columns (`records`), and what becomes of them on a branch."""
