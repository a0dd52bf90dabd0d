"""Workers that are processes of this machine, started once for many fits."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import zlib
from concurrent.futures import wait

import numpy as np
import pytest
from helpers import few_rounds
from limits import HANGS

from boostbp.backends.lightgbm import LightGBMGrower
from boostbp.backends.xgboost import XGBoostGrower
from boostbp.distributed import fit_worker, tracked
from boostbp.ensemble import constants
from boostbp.network.layers import bound
from boostbp.runtime.group import Group

PATIENCE = HANGS  # seconds that a slow machine may take to start processes


def same_trees(model, other):
    """Whether trees are the same, but that thresholds on hidden units are rounded in float32, from other last bits."""
    return all(
        np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
        if name == "threshold"
        else np.array_equal(a, b, equal_nan=True)
        for ours, theirs in zip(model.network_.layers, other.network_.layers, strict=True)
        for name, a, b in zip(ours.forest.nodes._fields, ours.forest.nodes, theirs.forest.nodes, strict=True)
    )


def ready(seconds):
    """Import everything, and stay for others to start beside this one."""
    time.sleep(seconds)
    return os.getpid()


def start(pool, size):
    """Let all processes of a pool import what they need, before any clock runs."""
    pids = set()
    while len(pids) < size:
        pids |= {future.result(PATIENCE) for future in [pool.submit(ready, 0.2) for _ in range(size)]}
    return pool


def fit_part(model, X, y, weight, address, rank, most=None, many=None, fault=None, gathered=0, **fit):
    """One worker's fit: the model and a digest of its bits; so many rows are gathered, or else stay apart."""
    with few_rounds(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(bound, "GATHERED_ROWS", gathered)
        if most is not None:
            patch.setitem(Group.sample.__kwdefaults__, "most", most)
        for name, value in many_from(many).items() if many is not None else ():
            patch.setattr(constants, name, value)
        if fault is not None:
            for grower in (LightGBMGrower, XGBoostGrower):
                patch.setattr(grower, "grow", broken(grower.grow, fault))
        model = fit_worker(model, X, y, weight, address=address, rank=rank, **fit)
    return model, digest(model)


def many_from(n_rows):
    """Constants by which so many rows are many: the model is chosen on some, and structures are grown on others."""
    half = n_rows // 2
    return {"MANY_ROWS": n_rows, "MANY_ROWS_SAMPLE": half, "MIN_STRUCTURE_ROWS": half, "MIN_STRUCTURE_CLASS": 1}


def broken(grow, fault, at=5):
    """A function that grows rounds, and fails in the fifth one, or another: by an error, or a signal to its process."""
    rounds = []

    def fails(self, *args):
        rounds.append(len(rounds))
        if len(rounds) == at:
            if isinstance(fault, signal.Signals):
                os.kill(os.getpid(), fault)
            else:
                raise fault
        return grow(self, *args)

    return fails


def digest(model):
    """A number for the bits of a network."""
    forests = [layer.forest for layer in model.network_.layers]
    arrays = [array for forest in forests for array in (*forest.nodes, forest.leaves.scaling, forest.leaves.weight)]
    return zlib.crc32(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays))


def submit(pool, model, size, X, y, weight=None, *, timeout=PATIENCE, faults=None, **fit):
    """Futures of the fits of so many workers, by rank; `model` may be one for each."""
    models = model if isinstance(model, list) else [model] * size
    weight = np.ones(len(y)) if weight is None else weight
    ends = [len(y) * k // size for k in range(size + 1)]
    with tracked(size, timeout=timeout) as address:
        futures = [
            pool.submit(
                fit_part,
                models[rank],
                X[ends[rank] : ends[rank + 1]],
                y[ends[rank] : ends[rank + 1]],
                weight[ends[rank] : ends[rank + 1]],
                address,
                rank,
                fault=(faults or {}).get(rank),
                **fit,
            )
            for rank in range(size)
        ]
        wait(futures, PATIENCE)
    return futures


def answer(queue, addresses, rank, *args, **options):
    """Put into the queue that this worker is there, and what it raises with the address that it is then given."""
    queue.put((rank, None))
    address = addresses.get(timeout=PATIENCE)
    try:
        fit_part(*args, address, rank, **options)
    except Exception as error:
        queue.put((rank, f"{type(error).__name__}: {error}"))


def failures(model, X, y, *, timeout, fault):
    """Errors by rank of two workers, of which rank 1 breaks; and seconds until all that can answer have done so."""
    spawn = multiprocessing.get_context("spawn")
    queue, addresses, weight = spawn.Queue(), spawn.Queue(), np.ones(len(y) // 2)
    workers = [
        spawn.Process(
            target=answer,
            args=(queue, addresses, rank, model, X[rank::2], y[rank::2], weight),
            kwargs={"fault": fault if rank == 1 else None},
        )
        for rank in range(2)
    ]
    try:
        for worker in workers:
            worker.start()
        for _ in workers:  # no clock runs before all are there
            queue.get(timeout=PATIENCE)
        with tracked(2, timeout=timeout) as address:
            for _ in workers:
                addresses.put(address)
            begun = time.perf_counter()
            errors = dict([queue.get(timeout=PATIENCE)])
            return errors, time.perf_counter() - begun
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
            worker.close()


def fit_together(pool, model, size, X, y, weight=None, **fit):
    """The model that so many workers end with; all of them with the same bits."""
    models, digests = zip(*[future.result(0) for future in submit(pool, model, size, X, y, weight, **fit)], strict=True)
    assert len(set(digests)) == 1, f"the models of the workers have the digests {digests}"
    return models[0]
