"""Fixtures that all tests share: instruction sets, the image sets, and code that needs a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

# Before the libraries start their threads: those that wait shall not spin, which takes processor time from the others
# on a busy machine.
WAITING = {"OMP_WAIT_POLICY": "passive", "OPENBLAS_THREAD_TIMEOUT": "4"}
os.environ.update(WAITING)

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from manifast._core import dispatch  # noqa: E402

SANITIZED = bool(os.environ.get("MANIFAST_SANITIZED"))


def pytest_addoption(parser):
    parser.addoption("--heavy", action="store_true", help="also run the tests marked heavy: minutes or gigabytes")
    parser.addoption("--note-skipped", metavar="FILE", help="write the names of tests that were skipped to a file")


def pytest_configure(config):
    if path := config.getoption("--note-skipped"):
        config.pluginmanager.register(Skipped(Path(path)))


class Skipped:
    """Writes down what was skipped, so that another environment can run just that."""

    def __init__(self, path):
        self.path = path
        path.write_text("")

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            with self.path.open("a") as file:
                file.write(f"{report.nodeid}\n")

    pytest_collectreport = pytest_runtest_logreport  # of whole files


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--heavy"):
        heavy = [item for item in items if item.get_closest_marker("heavy")]
        items[:] = [item for item in items if item not in set(heavy)]
        config.hook.pytest_deselected(items=heavy)
    if not SANITIZED:
        return
    skip = pytest.mark.skip(reason="under the sanitizers: forks, measures memory, or needs a plain interpreter")
    for item in items:
        if item.get_closest_marker("process"):
            item.add_marker(skip)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def digits():
    from sklearn.datasets import load_digits

    return load_digits().data


@pytest.fixture(params=dispatch.levels_built())
def level(request):
    """Runs the test once per instruction set built in, where this machine has it."""
    why_not = dispatch.levels_built()[request.param]
    if why_not is not None:
        pytest.skip(f"{request.param}: {why_not}")
    dispatch.use(request.param)
    yield request.param
    dispatch.use(os.environ.get("MANIFAST_ISA") or "auto")


@pytest.fixture
def on_every_level():
    """Calls a function once per instruction set and returns what it gave."""
    chosen = dispatch.level()

    def call(function):
        results = []
        for name in dispatch.levels():
            dispatch.use(name)
            results.append(function())
        return results

    yield call
    dispatch.use(chosen)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Where the image sets for experiments are: MANIFAST_DATA, or shared/data beside the source tree."""
    folder = Path(os.environ.get("MANIFAST_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no image sets in {folder}; set MANIFAST_DATA to run this")
    return folder


@pytest.fixture(scope="session")
def small_images(data_dir):
    """Loads an image set as rows, averaged over the areas of a 25 × 25 grid, and its labels."""

    def load(name: str, unit: bool = False):
        data = np.load(data_dir / f"{name}.npz")
        images = data["images"] / 255.0
        old, edges = np.arange(images.shape[1]), np.linspace(0, images.shape[1], 26)
        overlap = np.minimum(edges[1:, None], old + 1) - np.maximum(edges[:-1, None], old)
        weights = np.clip(overlap, 0, None) / edges[1]
        X = (weights @ images @ weights.T).reshape(len(images), -1)
        return X / np.linalg.norm(X, axis=1, keepdims=True) if unit else X, data["labels"]

    return load


@pytest.fixture
def run_python(tmp_path):
    """Runs code in a fresh interpreter, away from the source tree, and returns what it prints."""

    def run(code: str, timeout: float = 120, **env: str) -> str:
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, cwd=tmp_path, env=clean_env(**env)
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def processor_seconds(pid: int) -> float:
    """What a running process has used so far, all its threads; minus infinity where nobody says."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ended_children() -> float:
    """Processor seconds of all children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.fixture
def seconds_to_interrupt(tmp_path):
    """Runs code that prints "ready" before a long call and the time after its KeyboardInterrupt; how long that took."""
    if sys.platform == "win32":
        pytest.skip("no SIGINT for one child on Windows")

    def interrupt(code: str, wait: float = 0.3) -> float:
        before = ended_children()
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=clean_env(),
        )  # fmt: skip
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(wait)
            sent, used = time.time(), processor_seconds(child.pid)
            child.send_signal(signal.SIGINT)
            output, errors = child.communicate(timeout=30)
        finally:
            child.kill()
            child.wait()
        assert child.returncode == 0, errors
        # On a busy machine the child waits for a processor: then what it has used since the signal counts.
        return min(float(output) - sent, ended_children() - before - used)

    return interrupt


@pytest.fixture
def grown_memory(run_python):
    """Megabytes by which the peak of a fresh interpreter grows from one piece of code to the next."""
    if not Path("/proc/self/status").exists():
        pytest.skip("reads the peak from /proc")
    # Not ru_maxrss, which a child inherits from its parent.
    peak = "int(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"

    def grown(prepare: str, work: str) -> float:
        return int(run_python(f"{prepare}\nbefore = {peak}\n{work}\nprint({peak} - before)")) / 1024

    return grown


def clean_env(**env: str) -> dict[str, str]:
    """The environment without what would decide threads or the instruction set."""
    decided = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_", "MANIFAST_ISA")
    return {name: value for name, value in os.environ.items() if not name.startswith(decided)} | WAITING | env
