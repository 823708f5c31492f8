"""boto3 ships no usable types: whatever it returns is seen as Any. Names used in annotations stand here."""

from typing import Any

def __getattr__(name: str) -> Any: ...
