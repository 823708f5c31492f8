"""`.pg`: schema text -> declarations -> catalog; catalog against catalog -> migration plan."""
