"""What is true: the chain of manifest versions of each branch, its head, publication, lineage.

Knows a store and values; knows neither Lance nor what a graph is for.
"""
