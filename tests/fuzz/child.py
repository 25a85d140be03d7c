"""Runs calls one after another and judges them. The number of the call is in shared memory before it begins, so that
the parent knows which one ended the process."""

from __future__ import annotations

import faulthandler
import json
import mmap
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from tests.fuzz.arrays import Draw
from tests.fuzz.entries import ENTRIES, Trial
from tests.fuzz.judge import Failure

NAMES = list(ENTRIES)
WEIGHTS = np.array([weight for weight, _ in ENTRIES.values()])
CHANCES = np.cumsum(WEIGHTS / WEIGHTS.sum())


def one(seed: int) -> Trial:
    """The call of this number; raises Failure."""
    rng = np.random.default_rng(seed)
    name = NAMES[min(int(np.searchsorted(CHANCES, rng.random())), len(NAMES) - 1)]
    trial = Trial(Draw(rng), name)
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("ignore")
        try:
            ENTRIES[name][1](trial)
        except Failure as failure:
            failure.trial = trial  # type: ignore[attr-defined]
            raise
        except Exception as error:  # in a second call that should have given the same
            failure = Failure(f"then {type(error).__name__}: {str(error)[:200]}")
            failure.trial = trial  # type: ignore[attr-defined]
            raise failure from error
    return trial


def main(first: int, calls: int, seconds: float, gigabytes: float, progress: str, interrupts: bool) -> None:
    """Writes one line per failure, and what was called."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 2**30),) * 2)
    if interrupts:  # at random moments, 0.1 to 60 ms after the beginning of a call
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, _as_ctrl_c)
    called, returned, interrupted = Counter[str](), Counter[str](), 0
    with Path(progress).open("r+b") as file:
        place = mmap.mmap(file.fileno(), 16)
        end = time.monotonic() + seconds
        for seed in range(first, first + calls):
            place[:8] = seed.to_bytes(8, "little")
            if seed % 64 == 0 and time.monotonic() > end:
                place[8:16] = (seed - first).to_bytes(8, "little")
                break
            delay = 10.0 ** np.random.default_rng([seed, 1]).uniform(-4, -1.2) if interrupts else 0.0
            try:  # the one signal may also come between the end of the call and the end of the clock
                try:
                    _clock(delay)
                    trial = one(seed)
                except Failure as failure:
                    _clock(0)  # a line is written whole or not at all
                    if interrupts and _by_signal(failure.__cause__):
                        raise KeyboardInterrupt from failure
                    said = {"seed": seed, "entry": failure.trial.name, "failure": str(failure)}  # type: ignore[attr-defined]
                    trial = failure.trial  # type: ignore[attr-defined]
                    print(json.dumps(said), flush=True)
                finally:
                    _clock(0)
            except KeyboardInterrupt:
                interrupted += 1
                continue
            called[trial.name] += 1
            returned[trial.name] += trial.returned
            if called.total() == 1000:  # what is told is not lost with the process
                _tell(called, returned, interrupted)
                interrupted = 0
        else:
            place[8:16] = calls.to_bytes(8, "little")
    _tell(called, returned, interrupted)


def _tell(called: Counter[str], returned: Counter[str], interrupted: int) -> None:
    print(json.dumps({"called": called, "returned": returned, "interrupted": interrupted}), flush=True)
    called.clear()
    returned.clear()


_armed = False


def _clock(delay: float) -> None:
    """One signal after so many seconds, none for 0: also of one that another thread received before that."""
    global _armed
    _armed = delay > 0
    signal.setitimer(signal.ITIMER_REAL, delay)


def _as_ctrl_c(*_: object) -> None:
    if _armed:
        raise KeyboardInterrupt


def _by_signal(error: BaseException | None) -> bool:
    """Whether an exception came of a signal that NumPy made another one of."""
    return error is not None and (
        isinstance(error, KeyboardInterrupt) or _by_signal(error.__cause__) or _by_signal(error.__context__)
    )


def repeat(seed: int) -> int:
    """One call again, with all that is known about it."""
    faulthandler.enable()
    try:
        trial = one(seed)
    except Failure as failure:
        print(failure.trial.name)  # type: ignore[attr-defined]
        print(failure.trial.shown)  # type: ignore[attr-defined]
        traceback.print_exception(failure)
        return 1
    print(f"{trial.name}: {'returned' if trial.returned else 'refused'}; nothing is wrong")
    return 0


if __name__ == "__main__":
    first, calls, seconds, gigabytes, progress, interrupts = sys.argv[1:]
    main(int(first), int(calls), float(seconds), float(gigabytes), progress, interrupts == "1")
