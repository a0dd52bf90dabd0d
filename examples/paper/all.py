"""All experiments of the paper, one table and one sheet of pictures; an interrupted run goes on where it was.

python -m examples.paper.all --data-dir FOLDER [--quick] [--recorded] [--jobs 2] [--out paper-results]

Six hours with --jobs 2 on two cores, a short look with --quick. What the data are not there for is
left out, and the table says so.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from boostbp.runtime.versions import versions
from examples.paper import circle, classification, curve, depth, fragile, mixtures, random_network, tsne
from examples.paper.common import Experiment, Options, complaints, made, markdown, parser, run

EXPERIMENTS: list[Experiment] = [
    module.EXPERIMENT for module in (circle, curve, random_network, classification, depth, mixtures, tsne, fragile)
]


def table(parts: list[str], options: Options, found: list[tuple[dict, dict]]) -> str:
    """The page: tables with dates, versions and how to get them again."""
    used = ", ".join(f"{name} {value}" for name, value in versions().items())
    again = f"python -m examples.paper.all --data-dir FOLDER --backend {options.backend}"
    for name in ("folds", "seeds"):
        again += f" --{name} {getattr(options, name)}" if getattr(options, name) else ""
    again += "".join(f" --{name}" for name in ("quick", "recorded") if getattr(options, name))
    of = made(found)
    days = " to ".join(dict.fromkeys([of["date"][0], of["date"][-1]])) if of["date"] else "no date on record"
    head = [
        "# The experiments of the paper",
        f"Backend {options.backend}; cells of {days}, by {len(of['source'])} versions of the code; table of "
        f"{dt.date.today().isoformat()}: {used}. Mean ± standard deviation (number of folds or seeds), seconds of "
        f"one thread for each. Again: `{again}`.",
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
    parts: list[str] = []
    pictures: list[Path] = []
    every: list[tuple[dict, dict]] = []
    for experiment in EXPERIMENTS:
        found = run(experiment, options)
        every += found
        parts.append("\n\n".join([f"## {experiment.title}", markdown(experiment.rows(found)), *complaints(found)]))
        pictures.append(options.result(experiment.name, "png"))
        options.result("table", "md").write_text(table(parts, options, every), encoding="utf-8")
    sheet(pictures, options.result("sheet", "png"))
    print("\n\n".join(parts))
    print(f"\nTable and pictures: {options.result('table', 'md')}, {options.result('sheet', 'png')}")


if __name__ == "__main__":
    main()
