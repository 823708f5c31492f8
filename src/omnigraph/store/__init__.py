"""Bytes and requests: the four verbs over a folder, S3 or memory. The only room that imports a storage client."""
