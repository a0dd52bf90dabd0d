"""Search space of BoostBP: that of the package, without the number of rounds.

The validation rows choose it in every configuration, below a bound that is not searched.
"""

from __future__ import annotations

from autogluon.common.space import Categorical, Int, Real

from tabarena.models.boostbp.model import BoostBPModel
from tabarena.utils.config_utils import ConfigGenerator

_SEARCH_SPACE = {
    "learning_rate": Real(0.03, 0.2, log=True),
    "max_depth": Int(1, 6),
    "min_samples_leaf": Int(5, 100),
    "output__reg_lambda": Real(0.1, 100.0, log=True),
    "output__basis": Categorical("constant", "linear", "quadratic"),  # of the regressions in leaves
    "output__base": Categorical("ridge", "additive", "zero"),
    "output__extra_trees": Categorical("auto", False),
}

gen_boostbp = ConfigGenerator(
    model_cls=BoostBPModel,
    manual_configs=[{}],
    search_space=_SEARCH_SPACE,
)


if __name__ == "__main__":
    from tabarena.benchmark.experiment import YamlExperimentSerializer

    print(
        YamlExperimentSerializer.to_yaml_str(
            experiments=gen_boostbp.generate_all_bag_experiments(num_random_configs=0),
        ),
    )
