"""
Several labels of a row
=======================

**Question:** a document may be about several subjects. Which ones, and from which probability on do I say so?

``y`` is a table with a column of 0 and 1 for each label. One model learns all of them: each label has a probability of
its own, and the trees of a round share their structure.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score, log_loss, precision_recall_curve
from sklearn.multioutput import MultiOutputClassifier

from boostbp import BoostBPClassifier

subjects = ["art", "law", "music", "sport", "travel"]
words, about = make_multilabel_classification(3000, 20, n_classes=5, n_labels=2, length=30, random_state=3)
y = pd.DataFrame(about, columns=subjects)
train, choose, test = slice(0, 1000), slice(1000, 2000), slice(2000, None)

# %%
# ``predict_proba`` returns a column for each label, as scikit-learn's ``MLPClassifier`` and ``OneVsRestClassifier`` do.
# One model is better here than a model of LightGBM for each label.

model = BoostBPClassifier(random_state=0).fit(words[train], y[train])
each = MultiOutputClassifier(LGBMClassifier(n_jobs=1, verbose=-1)).fit(words[train], y[train])
p = model.predict_proba(words)
p_each = np.column_stack([part[:, 1] for part in each.predict_proba(words)])
losses = pd.DataFrame(
    {
        name: [log_loss(about[test, k], probability[test, k]) for k in range(5)]
        for name, probability in (("boostbp", p), ("LightGBM, a model for each", p_each))
    },
    index=model.classes_,
)
print(losses.round(3))

# %%
# ``predict`` says 1 where the probability is above 0.5, which is right if both kinds of errors cost the same. Otherwise
# the threshold is yours. Here each label gets the one with the largest F1 on rows that the model has not seen.

fig, axes = plt.subplots(1, 5, figsize=(9, 2.8), layout="constrained", sharey=True)
thresholds = []
for k, ax in enumerate(axes):
    precision, recall, at = precision_recall_curve(about[choose, k], p[choose, k])
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    thresholds.append(at[np.argmax(f1[:-1])])
    ax.plot(at, precision[:-1], label="precision")
    ax.plot(at, recall[:-1], label="recall")
    ax.plot(at, f1[:-1], color="black", label="F1")
    ax.axvline(thresholds[-1], color="tab:gray", linestyle=":")
    ax.set(title=f"{subjects[k]}: {thresholds[-1]:.2f}", xlabel="threshold")
axes[0].legend(fontsize=8)
plt.show()

# %%
# On the test rows:

for name, limits in (("0.5 for all", 0.5), ("chosen", np.array(thresholds))):
    print(f"thresholds {name}: macro F1 {f1_score(about[test], p[test] > limits, average='macro'):.3f}")
