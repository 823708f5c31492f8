"""`.gq`: text -> tokens -> syntax tree -> typed query, each step a pure function whose faults have a place.

- parse.py: text -> QueryFile; lookahead.py names the terminals of gq.lark, build.py makes nodes, hints.py words faults.
- printer.py: tree -> canonical text.
- check.py: tree and catalog -> typed queries; patterns, hops, expressions, results, mutations are its parts.
- availability.py: what this version does not run yet, one line per door.
- params.py: values given -> values bound. operation.py: what a checked query reads, writes and answers.
"""
