"""`.gq`: query text -> syntax tree -> checked, typed form."""
