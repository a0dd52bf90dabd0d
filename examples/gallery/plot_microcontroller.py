"""
A model in the loop of a microcontroller
========================================

**Question:** can a model run on a device that has no Python?

:func:`boostbp.to_c` writes a model as one C99 file without dependencies. Here a small model turns the voltages of three
cheap gas sensors into a concentration. We compile it with the loop of a device, which reads one sample at a time, and
compare what the device says with ``predict``.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import boostbp
from boostbp import BoostBPRegressor


def sensors(concentration, temperature, rng):
    """Return three voltages that depend on concentration and temperature, with noise."""
    drift = np.exp(-0.03 * (temperature - 20))
    volts = [
        np.log1p(concentration) * drift,
        concentration / (5 + concentration) + 0.02 * temperature,
        temperature / 40,
    ]
    return np.column_stack(volts) + 0.01 * rng.normal(size=(len(concentration), 3))


rng = np.random.default_rng(0)
concentration, temperature = rng.uniform(0, 20, 2000), rng.uniform(5, 40, 2000)
X = sensors(concentration, temperature, rng)
model = BoostBPRegressor(hidden_layer_sizes=(), n_estimators=40, max_depth=3, random_state=0).fit(X, concentration)

# %%
# The program of the device
# -------------------------
# ``boostbp_predict(rows, n, out)`` takes rows of doubles. The loop passes it one row. Standard input stands for the
# analogue-to-digital converter, and standard output for the display.

LOOP = """
#include <stdio.h>
#include "model.c"

int main(void) {
    double volts[3], ppm;
    while (scanf("%lf %lf %lf", volts, volts + 1, volts + 2) == 3) {  /* a timer would set the pace */
        if (boostbp_predict(volts, 1, &ppm) != 0) return 1;
        printf("%.17g\\n", ppm);
    }
    return 0;
}
"""


def run_device(samples):
    """Compile model and loop, feed the samples, and return what the device prints."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.c").write_text(boostbp.to_c(model), encoding="utf-8")
        Path(folder, "loop.c").write_text(LOOP, encoding="utf-8")
        command = [compiler, "-std=c99", "-Os", "-ffp-contract=off", "-o", "device", "loop.c", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        lines = "\n".join(" ".join(map(repr, row)) for row in samples.tolist())
        device = subprocess.run([Path(folder, "device")], input=lines, capture_output=True, text=True, check=True)
        print(f"program with model: {Path(folder, 'device').stat().st_size / 1024:.0f} kB")
    return np.array(device.stdout.split(), float)


# %%
# An hour on the device
# ---------------------
# The concentration rises and falls while the room gets warmer.

minutes = np.linspace(0, 60, 240)
true = 9 + 7 * np.sin(minutes / 7) + 2 * np.sin(minutes / 2)
samples = sensors(true, 12 + minutes / 3, rng)
shown = run_device(samples)
print(f"largest difference from predict: {np.abs(shown - model.predict(samples)).max():g}")

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.plot(minutes, true, color="black", linestyle=":", label="true concentration")
ax.plot(minutes, shown, color="tab:blue", label="shown by the device")
ax.set(xlabel="time (minutes)", ylabel="concentration (ppm)")
ax.legend(loc="upper right", ncols=2)
ax.set_ylim(top=1.2 * true.max())
plt.show()
