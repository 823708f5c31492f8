"""A running graph to play with: an excerpt of WordNet in a cluster on a local folder, behind a server.

python -m examples.demo            what `make demo` does: serves ./demo until Ctrl-C; data stays for the next time
python -m examples.demo --check    `make demo CHECK=1`: the same in a folder of its own; asks the running server for every
                                   known answer, runs the commands it shows, stops the server, exits 0 if all is right
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

import omnigraph
from examples.wordnet.check import SCHEMA, Ask, Rows, answers, load, reported
from omnigraph.cluster.apply import apply

CHECKOUT = Path(__file__).resolve().parents[1]
EXAMPLE = CHECKOUT / "examples" / "wordnet"
GRAPH = "wordnet"
READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 40  # above the server's own grace


CLUSTER = f"""version: 1
metadata: {{ name: demo }}
graphs:
  {GRAPH}: {{ schema: {SCHEMA.name} }}
"""


@dataclass(frozen=True)
class Question:
    """A query, and what its answer holds."""

    title: str
    query: str
    holds: str


QUESTIONS = (
    Question(
        "what a dog can be",
        'query q() { match { $w: Word { lemma: "dog" }  $w sense $s } return { $s.key as key, $s.definition as definition } order { key } }',
        "genus Canis",
    ),
    Question(
        "kinds of dogs",
        'query q() { match { $k hypernym $s  $s: Synset { key: "n02084071" } } '
        "return { $k.key as key, $k.definition as definition } order { key } limit 6 }",
        "n02085374",
    ),
    Question(
        "the biggest subjects",
        "query q() { match { $s: Synset } return { $s.lexname as subject, count($s) as synsets } order { synsets desc } limit 5 }",
        "noun.animal",
    ),
)


def prepare(root: Path) -> None:
    """Make the cluster in `root` and load its graph, unless an earlier demo left it there whole; ask it three questions."""
    root.mkdir(exist_ok=True)
    (root / "cluster.yaml").write_text(CLUSTER)
    shutil.copyfile(SCHEMA, root / SCHEMA.name)
    report = apply(root)
    if report.outcome != "done":
        raise RuntimeError(f"the cluster could not be applied: {report}")
    with omnigraph.open(str(root / "graphs" / f"{GRAPH}.omni")) as graph:
        if not number_of_synsets(graph):
            load(graph, EXAMPLE / "excerpt.jsonl.gz")
        for question in QUESTIONS:
            print(f"\n{question.title}\n{graph.query(question.query)}")


def number_of_synsets(graph: omnigraph.Graph) -> object:
    return graph.query("query q() { match { $s: Synset } return { count($s) as n } }").scalar()


def program(name: str) -> str:
    """A program of this environment."""
    return str(Path(sys.executable).with_name(name))


@contextmanager
def server(root: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The server on a cluster root, ready to answer; stopped in order at the end. RuntimeError if it does not start.

    It has a session of its own, so that Ctrl-C reaches only this program and the server is told to stop exactly once.
    """
    bind = f"127.0.0.1:{port}"
    command = [program("omnigraph-server"), "--cluster", str(root), "--unauthenticated", "--bind", bind]
    process = subprocess.Popen([*command, "--log-level", "warning"], cwd=CHECKOUT, start_new_session=True)
    try:
        wait_until_ready(process, f"http://{bind}")
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            raise


def wait_until_ready(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/readyz", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.1)
    raise RuntimeError("the server did not start; its reason stands above")


def asks(url: str) -> Ask:
    """The door of HTTP."""
    client = httpx.Client(base_url=url, timeout=60)

    def ask(source: str, params: Mapping[str, object]) -> Rows:
        answer = client.post(f"/graphs/{GRAPH}/query", json={"query": source, "params": dict(params)})
        answer.raise_for_status()
        return answer.json()["rows"]

    return ask


@dataclass(frozen=True)
class Suggestion:
    """A command to try, and what its answer holds."""

    title: str
    command: list[str]
    holds: str


def suggestions(url: str, root: Path) -> list[Suggestion]:
    """The questions by curl, if that is there, and one by the command line."""
    form = ["-H", "Content-Type: application/json", "-d"]
    curl = ["curl", "-s", f"{url}/graphs/{GRAPH}/query", *form]
    ask = [os.path.relpath(program("omnigraph"), CHECKOUT), "query", "--query", "examples/wordnet/queries.gq"]
    here = ["--cluster", os.path.relpath(root, CHECKOUT), "--graph", GRAPH]
    return [
        *(
            Suggestion(q.title, [*curl, json.dumps({"query": q.query})], q.holds)
            for q in QUESTIONS
            if shutil.which("curl")
        ),
        Suggestion("words for the same, in the terminal", [*ask, "synonyms", "-p", "lemma=dog", *here], "domestic dog"),
    ]


def introduce(url: str, root: Path, invitation: str) -> None:
    counts = json.loads((EXAMPLE / "facts.json").read_text())["counts"]
    nodes = counts["Synset"] + counts["Word"]
    edges = sum(counts.values()) - nodes
    print(f"\nAn excerpt of WordNet, {nodes:,} nodes and {edges:,} edges, is served at {url}")
    print(f"\n{invitation}\n")
    for each in suggestions(url, root):
        print(f"  # {each.title}\n  {shlex.join(each.command)}\n")


def works(suggestion: Suggestion) -> bool:
    """Run it as a reader would; tell what came if it is not what was promised."""
    done = subprocess.run(suggestion.command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    good = done.returncode == 0 and suggestion.holds in done.stdout
    print(f"  {'ok   ' if good else 'WRONG'} {suggestion.title}")
    if not good:
        print(f"{done.stdout}{done.stderr}")
    return good


def serve(root: Path, port: int) -> int:
    prepare(root)
    with server(root, port) as process:
        try:
            introduce(f"http://127.0.0.1:{port}", root, "Ask it from another terminal, in this folder:")
            print("Ctrl-C ends it; the graph stays in ./demo.", flush=True)
            return process.wait()
        except KeyboardInterrupt:
            print("\nStopping.", flush=True)  # leaving the block tells the server and waits for it
    return process.returncode


def check() -> int:
    """Everything that `serve` does, and questions to the running server. 0 if every answer is right."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-demo-") as folder:
        root, port = Path(folder), free_port()
        url = f"http://127.0.0.1:{port}"
        prepare(root)
        with server(root, port) as process:
            introduce(url, root, "It is asked by these commands, and then stopped and removed:")
            right = reported(answers(asks(url), json.loads((EXAMPLE / "facts.json").read_text())))
            failed = [each.title for each in suggestions(url, root) if not works(each)]
        if process.returncode:
            print(f"the server ended with {process.returncode}")
    return 0 if right and not failed and not process.returncode else 1


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def main() -> int:
    arguments = argparse.ArgumentParser(description="A running graph to play with: an excerpt of WordNet.")
    arguments.add_argument("--check", action="store_true", help="question the running server and leave")
    arguments.add_argument("--port", type=int, default=8080)
    chosen = arguments.parse_args()
    for told_to_end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(told_to_end, signal.default_int_handler)
    try:
        return check() if chosen.check else serve(CHECKOUT / "demo", chosen.port)
    except (RuntimeError, omnigraph.OmnigraphError) as failed:  # such as: another demo holds ./demo
        print(f"demo: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
