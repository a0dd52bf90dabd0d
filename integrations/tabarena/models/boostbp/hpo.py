"""Search space of BoostBP: that of the package, without the numbers of rounds and epochs.

Those are chosen by the validation rows in every configuration, below a bound that is not searched.
"""

from __future__ import annotations

from autogluon.common.space import Categorical, Int, Real

from tabarena.models.boostbp.model.model import BoostBPModel
from tabarena.utils.config_utils import ConfigGenerator

_SEARCH_SPACE = {
    "hidden_layer_sizes": Categorical([8], [16], [32], [64], [8, 8], [16, 16], [32, 32], [64, 64]),
    "hidden__n_estimators": Categorical(0, 5, 20, 60),  # trees of each hidden unit; 0: regressions alone
    "hidden__max_depth": Int(1, 5),
    "hidden__reg_lambda": Real(0.1, 100.0, log=True),
    "output__max_depth": Int(2, 6),
    "output__reg_lambda": Real(1.0, 100.0, log=True),
    "min_samples_leaf": Int(5, 50),
    "hidden__basis": Categorical("linear", "quadratic"),  # of the regressions in leaves
    "output__basis": Categorical("linear", "quadratic"),
    "hidden__base_lambda": Categorical(None, 1.0),
    "hidden__multi_strategy": Categorical("one_output_per_tree", "multi_output_tree"),
    "backprop__structure_epochs": Categorical(1, "auto"),
    "backprop__structure_samples": Categorical(None, 0.5),
    "backprop__skip": Categorical(False, True),
    "backprop__start": Categorical("projection", "principal", "identity", "noise"),
    "backprop__step_size": Real(0.3, 1.0, log=True),
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
