"""What is legal in a query file or schema and probably not meant (languages.md 17): one rule, one function. The rules look
at texts that check and at nothing else; a rule is registered in rules.py.
"""
