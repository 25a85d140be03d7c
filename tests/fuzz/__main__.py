"""Random calls of every public entry in children with limits; ends with 1 where a promise was broken.

python -m tests.fuzz --minutes 2               a fresh seed, which is printed
python -m tests.fuzz --calls 100000 --seed 7   these calls
python -m tests.fuzz --repeat 123456           one call again, with its arguments
python -m tests.fuzz --minutes 60 --interrupts signals at random moments
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

LONGEST = 30.0  # processor seconds of one call
ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=10**12, help="at most so many")
    parser.add_argument("--seed", type=int, help="of the first call; a fresh one without it")
    parser.add_argument("--minutes", type=float, default=60.0, help="at most so long")
    parser.add_argument("--gigabytes", type=float, default=6.0, help="address space of a child")
    parser.add_argument("--interrupts", action="store_true", help="signals at random moments")
    parser.add_argument("--repeat", type=int, metavar="SEED", help="one call again")
    options = parser.parse_args()
    if sys.platform != "linux":
        parser.error("limits address space and reads /proc: Linux only")
    if options.repeat is not None:
        from tests.fuzz.child import repeat

        return repeat(options.repeat)
    seed = secrets.randbelow(2**40) if options.seed is None else options.seed
    print(f"fuzz: python -m tests.fuzz --seed {seed}", flush=True)
    return campaign(seed, options.calls, 60 * options.minutes, options.gigabytes, options.interrupts)


def campaign(seed: int, calls: int, seconds: float, gigabytes: float, interrupts: bool) -> int:
    """Children one after another until the calls or the time are used up."""
    begun = time.monotonic()
    end = begun + seconds
    called, returned, failures, interrupted, done, children = Counter[str](), Counter[str](), 0, 0, 0, 0
    while done < calls and time.monotonic() < end:
        lines, last, ended = run_child(seed + done, calls - done, end - time.monotonic(), gigabytes, interrupts)
        children += 1
        for line in lines:
            if "failure" in line:
                failures += 1
            else:
                called.update(line["called"])
                returned.update(line["returned"])
                interrupted += line["interrupted"]
        if ended:  # the child did not live to the end
            failures += 1
            report(last, ended)
            done = last - seed + 1
        else:
            done += last
    rate = done / (time.monotonic() - begun)
    print(f"fuzz: {done} calls in {children} children, {rate:.0f} a second, {sum(returned.values())} returned, "
          f"{failures} failures"
          + (f", {interrupted} ended by a signal" if interrupts else ""))  # fmt: skip
    for name, count in sorted(called.items()):
        print(f"    {count:8d}  {100 * returned[name] / count:3.0f} % returned  {name}")
    return int(failures > 0)


def report(seed: int, what: str) -> None:
    print(f"FAILED {what}\n    python -m tests.fuzz --repeat {seed}", flush=True)


def run_child(
    first: int, calls: int, seconds: float, gigabytes: float, interrupts: bool
) -> tuple[list[dict[str, Any]], int, str]:
    """Lines of one child; how many calls it made, or the one that ended it and how."""
    with tempfile.TemporaryDirectory() as folder:
        progress, out = Path(folder) / "progress", Path(folder) / "out"
        progress.write_bytes(bytes(16))
        arguments = [str(first), str(calls), str(seconds), str(gigabytes), str(progress), str(int(interrupts))]
        environment = os.environ | {"OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1"}
        with out.open("w") as file, (Path(folder) / "err").open("w+") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.child", *arguments],
                stdout=file,
                stderr=errors,
                cwd=ROOT,
                env=environment,
            )
            try:
                ended = watch(child, progress, out)
            finally:  # nobody would end it
                child.kill()
                child.wait()
            errors.seek(0)
            said = errors.read()
        last = progress.read_bytes()
        made = int.from_bytes(last[8:], "little")
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        if not ended and child.returncode:
            crash = said.rfind("Fatal Python error")  # says where it was; the names of all modules come after that
            ended = f"the process ended with {child.returncode}: {said[crash:][:3000] if crash >= 0 else said[-3000:]}"
        return lines, int.from_bytes(last[:8], "little") if ended else made, ended


def watch(child: subprocess.Popen[Any], progress: Path, out: Path) -> str:
    """Waits for the end of a child and tells of failures meanwhile; kills it where one call takes too long."""
    seen, since, told = b"", 0.0, 0
    while True:
        over = child.poll() is not None
        lines = out.read_text().splitlines(keepends=True)
        for text in lines[told:]:
            if text.endswith("\n") and "failure" in (line := json.loads(text)):
                report(line["seed"], f"{line['entry']}: {line['failure']}")
        told = sum(text.endswith("\n") for text in lines)
        if over:
            return ""
        time.sleep(0.5)
        now, used = progress.read_bytes()[:8], processor_seconds(child.pid)
        if now != seen:
            seen, since = now, used
        elif used - since > LONGEST:
            child.kill()
            child.wait()
            return f"a call took more than {LONGEST:.0f} s"


def processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
