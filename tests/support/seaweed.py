"""A real S3 server for tests: SeaweedFS, one for all workers of a test run.

Run as a program it is the guard of the server: it starts it, and stops it and removes its folder when the test run
that asked for it has ended, however it ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ACCESS_KEY, SECRET_KEY, BUCKET, REGION = "k", "s", "tests", "us-east-1"
_START_SECONDS_MAX = 60
_PORTS = ("master", "master_grpc", "volume", "volume_grpc", "filer", "filer_grpc", "s3", "s3_grpc")


@dataclass(frozen=True)
class S3Server:
    """Where the server listens and the environment with which a process reaches it."""

    endpoint: str
    bucket: str = BUCKET

    @property
    def env(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
            "AWS_S3_FORCE_PATH_STYLE": "true",
        }


def shared_server(folder: Path, owner: int) -> S3Server:
    """The server of this test run, started by whichever process comes first. Lives as long as process `owner`."""
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "server.json"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if record.exists():
            return S3Server(**json.loads(record.read_text()))
        server = _started(folder, owner)
        record.write_text(json.dumps(asdict(server)))
        return server


def _started(folder: Path, owner: int) -> S3Server:
    for attempt in range(3):
        data = folder / f"data-{attempt}"
        ports = _free_ports()
        # Not a Popen object: nobody waits for the guard, it outlives the worker that started it.
        guard = os.posix_spawn(
            sys.executable,
            [sys.executable, __file__, str(owner), str(data), json.dumps(ports)],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)],
            setsid=True,
        )
        server = S3Server(f"http://127.0.0.1:{ports['s3']}")
        if _answers(server, guard):
            return server
        with contextlib.suppress(ProcessLookupError):
            os.kill(guard, signal.SIGTERM)
    raise RuntimeError("the S3 server did not start")


def _answers(server: S3Server, guard: int) -> bool:
    """True once a bucket is made and holds an object; False if another process took one of the ports."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
        config=Config(retries={"max_attempts": 1}, connect_timeout=2, read_timeout=10, s3={"addressing_style": "path"}),
    )
    deadline = time.monotonic() + _START_SECONDS_MAX
    while os.waitpid(guard, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
        try:
            client.create_bucket(Bucket=server.bucket)
            client.put_object(Bucket=server.bucket, Key="ready", Body=b"")
        except (BotoCoreError, ClientError):
            time.sleep(0.1)
        else:
            return True
    return False


def _free_ports() -> dict[str, int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in _PORTS]
        return {name: sock.getsockname()[1] for name, sock in zip(_PORTS, sockets, strict=True)}


# --- the guard


def _guard(owner: int, data: Path, ports: dict[str, int]) -> int:
    data.mkdir(parents=True)
    server = subprocess.Popen(_command(data, ports), cwd=data)

    def stop(*_: object) -> None:
        server.kill()

    signal.signal(signal.SIGTERM, stop)
    while server.poll() is None and _alive(owner):
        time.sleep(0.2)
    server.kill()  # its data is thrown away, and an orderly end takes it seconds
    server.wait()
    shutil.rmtree(data, ignore_errors=True)
    for part in ("master", "volume", "filer", "s3"):
        for name in (f"{part}-grpc-{ports[part + '_grpc']}", f"{part}-{ports[part]}"):
            Path(f"/tmp/seaweedfs-{name}.sock").unlink(missing_ok=True)
    return 0


def _command(data: Path, ports: dict[str, int]) -> list[str]:
    identity = {
        "name": "t",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    (data / "s3.json").write_text(json.dumps({"identities": [identity]}))
    program = Path(sys.executable).with_name("weed")
    return [
        str(program) if program.exists() else "weed",
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-volume.max=50",
        "-volume.preStopSeconds=0",
        "-master.volumeSizeLimitMB=256",
        "-master.telemetry=false",
        f"-master.port={ports['master']}",
        f"-master.port.grpc={ports['master_grpc']}",
        f"-volume.port={ports['volume']}",
        f"-volume.port.grpc={ports['volume_grpc']}",
        f"-filer.port={ports['filer']}",
        f"-filer.port.grpc={ports['filer_grpc']}",
        "-s3",
        f"-s3.port={ports['s3']}",
        f"-s3.port.grpc={ports['s3_grpc']}",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.config={data / 's3.json'}",
    ]


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(_guard(int(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])))
