"""A process of a sweep: reads points, a line of JSON each, and answers each with a line.

A point is ``{"text": scenario, "folder": where}``, an answer ``[error, number]``: why the point
cannot be run, and the system's number of what went wrong; ``["", 0]`` where results are there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Final

from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.sim.errors import ResultsError, SimulationError
from gossamer.sim.results.results import write_results
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.scenarios import read_scenario, study_of

# Where in the folder of a point its results are.
RESULTS: Final = "results"


def run_apart(text: str, folder: Path) -> Path:
    """Run a scenario within ``folder``, on one thread and without plots; its result folder.

    Raises:
        SimulationError, ProtocolError: the scenario cannot be run.
    """
    file, out = folder / "scenario.toml", folder / RESULTS
    try:
        file.write_text(text, encoding="utf-8")
        scenario, kept = read_scenario(file, {})
        study = study_of(scenario)
        study.check(scenario)
        write_results(study.run(scenario, kept, Execution(workers=1)), out, pictures=False)
    except OSError as error:
        reason = f"could not be written ({error.strerror or error})"
        raise ResultsError(out, reason) from error
    except MemoryError as error:
        raise SimulationError("the memory of this machine does not suffice") from error
    return out


def run(text: str, folder: Path) -> tuple[str, int]:
    """Run a point; why it failed in words and as a number of the system, if it did."""
    try:
        run_apart(text, folder)
    except (SimulationError, ProtocolError) as error:
        return str(error), system_number(error)
    return "", 0


def system_number(error: BaseException) -> int:
    """The system's number of what an error came from; 0 if it did not come from the system."""
    cause = error.__cause__
    return cause.errno or 0 if isinstance(cause, OSError) else 0


def main() -> None:
    """Run points until nobody sends any more."""
    # Ctrl-C reaches every process of a terminal; whoever sends points says what became of them.
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(1))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a protocol prints is no answer
    for line in sys.stdin:
        point = json.loads(line)
        answers.write(json.dumps(run(point["text"], Path(point["folder"]))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
