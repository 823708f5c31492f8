"""The routes, one file for each family."""

from omnigraph.server.routes import process, reading, writing

FAMILIES = (process.router, reading.router, writing.router)
