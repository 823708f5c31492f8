"""What an object store really said: the one reading of the storage client's errors.

The client (obstore 0.12 over object_store) gives an exception whose text ends in a debug tree. Two facts are taken
from it, the HTTP status of the last answer and the kind of a transport error; nothing else is believed, and text that
can't be read counts as no answer at all. So a change of that format turns definite answers into doubt and never doubt
into a definite answer; the table of cases in the tests would show it.

An S3 error body and an object's key appear in the text too, so that a store or a proxy could write a tree of its own
into it. The real tree comes last and has every text in it quoted: what is quoted is never read as structure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from omnigraph.errors import StorageClass

_TREE_MARK = "\nDebug source:\n"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_STATUS = re.compile(r"\binner: Status \{\s*status: (\d{3}),\s*body: (?:None|Some\(\s*(\"\"|\"\d+\"),?\s*\)),\s*\}")
_TRANSPORT = re.compile(r"\binner: Http\(\s*HttpError \{\s*kind: (\w+),")
_HALF_ANSWER = re.compile(r"\bsource: HttpError \{\s*kind: (\w+),")
_ERROR_IN_A_GOOD_ANSWER = re.compile(r'\binner: Response \{\s*status: 2\d\d,\s*body: "(\d+)"')
_ONE_OF_MANY_DELETES = re.compile(r'\bDeleteFailed \{\s*path: "\d+",\s*code: "(\d+)"')
_S3_CODE = re.compile(r"<Code>\s*([A-Za-z0-9.]+)\s*</Code>")

_REFUSED_STATUS = {
    400: StorageClass.UNSUPPORTED,
    401: StorageClass.DENIED,
    403: StorageClass.DENIED,
    404: StorageClass.NOT_FOUND,
    405: StorageClass.UNSUPPORTED,
    411: StorageClass.UNSUPPORTED,
    413: StorageClass.UNSUPPORTED,
    414: StorageClass.UNSUPPORTED,
    501: StorageClass.UNSUPPORTED,
}
_DOUBTFUL_STATUS = {408: StorageClass.TIMEOUT, 429: StorageClass.THROTTLED, 503: StorageClass.THROTTLED}
_TRANSPORT_CLASS = {
    "Timeout": StorageClass.TIMEOUT,
    "Interrupted": StorageClass.CONNECTION,
    "Request": StorageClass.CONNECTION,
}
_CODE_CLASS = {"AccessDenied": StorageClass.DENIED, "SlowDown": StorageClass.THROTTLED}
_CONDITION_FAILED = {409, 412}


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known of a request that did not succeed.

    `definite`: nothing was stored by it. `sent`: False if it never left. `condition_failed`: the store answered 409 or
    412. `code`: S3's own word from the error body ("NoSuchKey"), if there was one. `half_answer`: an answer began and
    broke off, which the client does not always repeat by itself.
    """

    cls: StorageClass
    definite: bool = False
    sent: bool = True
    condition_failed: bool = False
    code: str | None = None
    half_answer: bool = False


UNREADABLE = Failure(StorageClass.SERVER_ERROR)
"""No answer, or one that says nothing: it may have been stored."""


def classify(error: Exception) -> Failure:
    """Reads an exception of the storage client. What can't be read is `UNREADABLE`."""
    head, mark, tree = str(error).rpartition(_TREE_MARK)
    if not mark or not head:
        return UNREADABLE
    quoted: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f'"{len(quoted) - 1}"'

    structure = _QUOTED.sub(numbered, tree)
    match (_STATUS.findall(structure), _TRANSPORT.findall(structure)):
        case ([(status, body)], []):
            return _answered(int(status), quoted[int(body[1:-1])] if body else "")
        case ([], ["Connect"]):
            return Failure(StorageClass.CONNECTION, definite=True, sent=False)
        case ([], [kind]):
            return Failure(_TRANSPORT_CLASS.get(kind, StorageClass.SERVER_ERROR))
        case ([], []):
            return _after_an_answer(structure, quoted)
        case _:
            return UNREADABLE


def _after_an_answer(structure: str, quoted: list[str]) -> Failure:
    """Failures of what follows a good status: never definite, whatever they are."""
    halves, deletes = _HALF_ANSWER.findall(structure), _ONE_OF_MANY_DELETES.findall(structure)
    match (halves, deletes, _ERROR_IN_A_GOOD_ANSWER.findall(structure)):
        case ([kind], [], []):
            return Failure(_TRANSPORT_CLASS.get(kind, StorageClass.SERVER_ERROR), half_answer=True)
        case ([], [index], []):
            return Failure(_CODE_CLASS.get(quoted[int(index)], StorageClass.SERVER_ERROR))
        case ([], [], [index]):
            code = _code(quoted[int(index)])
            return Failure(_CODE_CLASS.get(code or "", StorageClass.SERVER_ERROR), code=code)
        case _:
            return UNREADABLE


def _answered(status: int, body: str) -> Failure:
    code = _code(body)
    if status in _CONDITION_FAILED:
        return Failure(StorageClass.SERVER_ERROR, condition_failed=True, code=code)
    if status in _REFUSED_STATUS:
        return Failure(_REFUSED_STATUS[status], definite=True, code=code)
    return Failure(_DOUBTFUL_STATUS.get(status, StorageClass.SERVER_ERROR), code=code)


def _code(body: str) -> str | None:
    found = _S3_CODE.search(body)
    return found[1] if found else None


def class_of_read(failure: Failure, *, has_body: bool) -> StorageClass:
    """The class of a failed read, listing, fresh put or delete.

    `NOT_FOUND` is an answer that others build on, so the store itself must have given it: a 404 that carries no S3
    error (a proxy's page, say) proves nothing, and a missing bucket is no missing object. An answer to HEAD has no
    body (`has_body=False`), so its status must do.
    """
    if failure.cls is not StorageClass.NOT_FOUND or not has_body:
        return failure.cls
    match failure.code:
        case None:
            return StorageClass.SERVER_ERROR
        case "NoSuchBucket":
            return StorageClass.DENIED
        case _:
            return StorageClass.NOT_FOUND
