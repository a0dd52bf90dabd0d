"""Put finished cells on record, so that the tables can be made again without the hours that they took.

python -m examples.paper.record --out paper-results

Cells that the experiments no longer have stay out; of those that hold pictures, which are large, the figures are kept.
`--recorded` of the other scripts begins with what is on record, and runs cells with pictures, some minutes, again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from boostbp.runtime.atomic_write import atomic_write
from examples.paper.all import EXPERIMENTS
from examples.paper.common import RECORDED, Options, plain, read

BACKENDS = ("lightgbm", "xgboost", "sklearn")


def main(argv: Sequence[str] | None = None) -> None:
    """Merge what is on record with what was run now, in the order of the experiments."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path, default=Options().out, metavar="FOLDER", help="where the cells were run")
    asked.add_argument("--record", type=Path, default=RECORDED, metavar="FILE", help="the record")
    options = asked.parse_args(argv)
    found = read(options.record) | read(options.out / "cells.jsonl")
    each = [Options(backend=backend) for backend in BACKENDS]
    keys = dict.fromkeys(cell.key for of in each for experiment in EXPERIMENTS for cell in experiment.cells(of))
    lines = [json.dumps({"cell": key, "outcome": plain(found[key])}) + "\n" for key in keys if key in found]
    with atomic_write(options.record) as part:
        part.write_text("".join(lines), encoding="utf-8")
    print(f"{len(lines)} of {len(keys)} cells on record in {options.record}")


if __name__ == "__main__":
    main()
