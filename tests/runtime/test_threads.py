"""Threads keep the order of the pieces."""

from __future__ import annotations

import threading
import time

import joblib
import pytest
from limits import HANGS

from boostbp.runtime import threads


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_results_come_in_the_order_of_the_pieces(n_threads):
    def work(piece):
        time.sleep(0.002 * (5 - piece))  # the first piece ends last
        return piece * piece

    assert threads.parallel_map(work, iter(range(5)), n_threads) == [0, 1, 4, 9, 16]


def test_pieces_run_side_by_side():
    meeting = threading.Barrier(2, timeout=HANGS)
    assert len(threads.parallel_map(lambda _: meeting.wait(), range(2), 2)) == 2


@pytest.mark.parametrize("n_threads", [1, 2])
def test_error_of_a_piece_reaches_the_caller(n_threads):
    def work(piece):
        if piece == 3:
            raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match="piece 3"):
        threads.parallel_map(work, range(5), n_threads)


def test_nothing_to_do_is_done():
    assert threads.parallel_map(lambda piece: piece, [], 4) == []


def test_count_reads_n_jobs():
    cores = threads.count(-1)
    assert cores >= 1
    assert threads.count(None) == 1
    assert threads.count(3) == 3
    assert threads.count(-cores) == 1
    assert threads.count(-1000) == 1


@pytest.mark.parametrize("most", ["1", "2", "1000"])
def test_cores_are_counted_as_scikit_learn_counts_them(monkeypatch, most):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", most)
    for n_jobs in (None, 1, 3, -1, -2, -1000):
        assert threads.count(n_jobs) == joblib.effective_n_jobs(n_jobs)


def test_zero_threads_are_refused():
    with pytest.raises(ValueError, match=r"n_jobs=0 .* give 1 or more"):
        threads.count(0)


def test_a_team_keeps_its_threads_from_round_to_round():
    with threads.Team(2) as team:
        meeting = threading.Barrier(2, timeout=HANGS)
        rounds = [team.map(lambda _: (meeting.wait(), threading.get_ident())[1], range(2)) for _ in range(3)]
    assert len({frozenset(idents) for idents in rounds}) == 1
    with threads.Team(1) as alone:
        assert alone.map(lambda _: threading.get_ident(), range(2)) == [threading.get_ident()] * 2
