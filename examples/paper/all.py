"""All experiments of the paper, one table and one sheet of pictures; an interrupted run goes on where it was.

python examples/paper/all.py --data-dir FOLDER [--quick] [--recorded] [--jobs 2] [--out paper-results]

About 5 hours with --jobs 2 on two cores, a quarter of an hour with --quick. What the data are not there for is left
out, and the table says so.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import circle
import classification
import curve
import depth
import fragile
import mixtures
import random_network
import tsne
from common import Experiment, Options, complaints, markdown, parser, run

from boostbp.report.machine import machine

EXPERIMENTS: list[Experiment] = [
    module.EXPERIMENT for module in (circle, curve, random_network, classification, depth, mixtures, tsne, fragile)
]


def table(parts: list[str], options: Options) -> str:
    """The page: tables with date, versions and how to get them again."""
    versions = ", ".join(f"{name} {value}" for name, value in machine().items())
    again = f"python examples/paper/all.py --data-dir FOLDER --backend {options.backend}"
    again += " --quick" if options.quick else ""
    head = [
        "# The experiments of the paper",
        f"{dt.date.today().isoformat()}, backend {options.backend}; {versions}. Mean ± standard deviation "
        f"(number of folds or seeds). Again: `{again}`.",
    ]
    return "\n\n".join([*head, *parts]) + "\n"


def sheet(pictures: list[Path], path: Path) -> None:
    """All pictures under each other."""
    from matplotlib.figure import Figure
    from matplotlib.image import imread

    images = [imread(picture) for picture in pictures]
    width = 14.0
    heights = [width * image.shape[0] / image.shape[1] for image in images]
    figure = Figure(figsize=(width, sum(heights)))
    bottom = 1.0
    for image, height in zip(images, heights, strict=True):
        bottom -= height / sum(heights)
        ax = figure.add_axes((0, bottom, 1, height / sum(heights)))
        ax.set_axis_off()
        ax.imshow(image)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run what is not done yet."""
    options = Options(**vars(parser(__doc__).parse_args()))
    parts, pictures = [], []
    for experiment in EXPERIMENTS:
        found = run(experiment, options)
        parts.append("\n\n".join([f"## {experiment.title}", markdown(experiment.rows(found)), *complaints(found)]))
        pictures.append(options.out / f"{experiment.name}.png")
        (options.out / "table.md").write_text(table(parts, options), encoding="utf-8")
    sheet(pictures, options.out / "sheet.png")
    print("\n\n".join(parts))
    print(f"\nTable and pictures: {options.out / 'table.md'}, sheet.png")


if __name__ == "__main__":
    main()
