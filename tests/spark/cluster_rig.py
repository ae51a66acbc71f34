"""Starts other Spark deployments: a standalone cluster, Spark Connect.

Everything listens on loopback only, on ports that were free, and ends with the test run. What Spark
Connect needs beyond PySpark (pandas, gRPC) is kept in a folder of its own that only these processes
look into: with pandas on the path every import of pyarrow.dataset, hence of lance, takes twice as
long.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

from omnigraph.spark.session import find_java
from tests.rig.server_process import Program, free_ports, listens, start

CHECKOUT = Path(__file__).parent.parent.parent
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
PATIENCE = 600.0  # seconds: a JVM starts in five, unless everybody else is busy
# What a JVM saves that ends before its better compiler has paid off.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Spark to run against: its address, and the environment of its clients."""

    kind: str
    master: str
    environment: Mapping[str, str]
    programs: tuple[Program, ...] = ()


def spark_home() -> Path:
    """The Spark distribution inside PySpark."""
    import pyspark

    return Path(str(pyspark.__file__)).parent


def environment(*folders: Path) -> dict[str, str]:
    """What processes of Spark need to find Java, this Python, and the package of this checkout."""
    java = find_java(os.environ, Path(sys.prefix))
    assert java is not None
    return {
        "JAVA_HOME": str(java.parent.parent),
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), *map(str, folders)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
    }


@contextmanager
def cluster(kind: str, folder: Path) -> Iterator[Cluster]:
    """A Spark of some kind."""
    if kind == "local-cluster":
        work = {"SPARK_WORKER_DIR": str(folder / "work")}
        yield Cluster(kind, LOCAL_CLUSTER, {**environment(), **work})
    elif kind in ("standalone", "limited"):
        with standalone(folder, (512 if kind == "limited" else None, None)) as made:
            yield made
    else:
        with connect(folder) as made:
            yield made


@contextmanager
def standalone(folder: Path, limits: tuple[int | None, ...] = (None, None)) -> Iterator[Cluster]:
    """A master and workers of one core and one gigabyte each.

    A worker with a limit, in kilobytes, writes no file that is longer: neither its executors nor
    their Python processes do (RLIMIT_FSIZE). They are told "File too large" where a full disk says
    "No space left on device".
    """
    settings = environment()
    (port, *others) = free_ports(1 + len(limits))
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        deploy = "org.apache.spark.deploy"
        programs = [run(stack, folder / "master", settings, f"{deploy}.master.Master", "--port", str(port))]
        programs[0].wait_until(lambda: listens(port), PATIENCE)
        for at, (other, limit) in enumerate(zip(others, limits, strict=True)):
            home = folder / f"worker-{at}"
            words = ("-c", "1", "-m", "1g", "--port", str(other), "-d", str(home), master)
            name = f"{deploy}.worker.Worker"
            programs.append(run(stack, home, settings, name, *words, limit=limit))
        for program, other in zip(programs[1:], others, strict=True):
            program.wait_until(lambda other=other: listens(other), PATIENCE)  # type: ignore[misc]
        yield Cluster("standalone", master, settings, tuple(programs))


def run(
    stack: ExitStack, home: Path, settings: Mapping[str, str], name: str, *words: str, limit: int | None = None
) -> Program:
    """A daemon of Spark, without a page of its own to look at."""
    home.mkdir(parents=True, exist_ok=True)
    command = [str(spark_home() / "bin" / "spark-class"), name, "-h", "127.0.0.1"]
    if limit is not None:
        command = ["/bin/bash", "-c", f'ulimit -f {limit}; exec "$@"', "bash", *command]
    program = launched([*command, "--webui-port", "0", *words], home, settings)
    stack.callback(program.stop)
    return program


def launched(command: list[str], home: Path, settings: Mapping[str, str]) -> Program:
    """A program of Spark with an environment of its own."""
    pairs = [f"{name}={value}" for name, value in settings.items()]
    return start(["/usr/bin/env", *pairs, *command], home)


@contextmanager
def connect(folder: Path) -> Iterator[Cluster]:
    """A server of Spark Connect, which tries a task up to four times."""
    settings = environment(*connect_packages())
    home = folder / "connect"
    home.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    told = {
        "spark.master": "local[2,4]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
    }
    words = [word for name, value in told.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = [str(spark_home() / "bin" / "spark-submit"), "--class", server, *words]
    program = launched(submit, home, settings)
    try:
        program.wait_until(lambda: listens(port), PATIENCE)
        yield Cluster("connect", f"sc://127.0.0.1:{port}", settings, (program,))
    finally:
        program.stop()


def connect_packages() -> list[Path]:
    """The folder with the packages of Spark Connect, filled once; none when they are installed."""
    if find_spec("grpc") and find_spec("pandas"):
        return []
    folder = Path(sys.prefix) / "connect"
    if not (folder / "grpc").exists() or not (folder / "pandas").exists():
        asked = [one for one in requires("pyspark") or () if 'extra == "connect"' in one]
        names = [re.split(r"[<>=!; ]", one)[0] for one in asked]
        missing = [one for one in names if find_spec(one) is None]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        limits = ["-c", str(CHECKOUT / "constraints.txt"), "--target", str(folder)]
        subprocess.run([*pip, *limits, *missing], check=True)
    return [folder]
