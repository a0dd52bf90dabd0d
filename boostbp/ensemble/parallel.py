"""Parallel tasks, each after the one that it needs, and what is there of them after an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition, Event
from typing import Any, Generic, TypeVar

from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget
from boostbp.trees import interrupts

__all__ = ["Task", "n_parallel", "run_tasks"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """Some work with a result that depends on at most one other.

    Attributes
    ----------
    name : str
    work : callable
        ``work(needed) -> result``, or None for no result.
    needs : str or None
        Name of the task whose result, `needed`, the work begins from. Without that result it is left out.
    """

    name: str
    work: Callable[[T | None], T | None]
    needs: str | None = None


def n_parallel(n_rows: int, n_threads: int) -> int:
    """Return how many candidates are best trained at a time."""
    return min(n_threads, constants.MAX_PARALLEL) if n_rows < constants.MAX_PARALLEL_ROWS else 1


def run_tasks(
    tasks: Sequence[Task[T]],
    n_at_once: int,
    budget: Budget,
    results: dict[str, T],
    *,
    interrupt_of: Callable[[T], KeyboardInterrupt | None] = lambda result: None,
) -> KeyboardInterrupt | None:
    """Run tasks, so many at a time, in their order; the first one in the thread that calls this.

    Parameters
    ----------
    tasks : sequence of Task
        None depends on another but through the result that it needs.
    n_at_once : int
        The caller is one of the threads.
    budget : Budget
        Ended for all of them where one fails or is interrupted.
    results : dict
        Results by name: tasks may need those that are there, and each adds its own, also before an interrupt.
    interrupt_of : callable
        What ended the work of a result before its time.

    Returns
    -------
    KeyboardInterrupt or None
        What ended the tasks, if that is Ctrl-C.

    Raises
    ------
    BaseException
        What the first one of those that failed raised.
    """
    queue = _Queue(tasks, results)
    came: list[KeyboardInterrupt] = []
    failed: dict[int, BaseException] = {}

    def work(take_first: Callable[[], Task[T] | None]) -> None:
        """Do tasks until nothing is left to begin."""
        task = None
        try:
            task = take_first()
            while task is not None:
                result = task.work(results.get(task.needs) if task.needs else None)
                queue.done(task, result)
                interrupt = None if result is None else interrupt_of(result)
                if interrupt is not None:
                    raise interrupt
                interrupts.check()
                task = queue.take()
        except interrupts.Stopped:
            pass
        except KeyboardInterrupt as interrupt:
            came.append(interrupt)
            stop()
        except BaseException as error:
            failed[len(tasks) if task is None else tasks.index(task)] = error
            stop()

    def stop() -> None:
        queue.stop()
        budget.end()

    try:
        with interrupts.deferred(), ThreadPoolExecutor(max(1, n_at_once - 1)) as others:
            try:
                first = queue.take()
                other = interrupts.stoppable(work, queue.stopped)
                working = [others.submit(other, queue.take) for _ in range(n_at_once - 1)]
                work(lambda: first)
                for each in working:
                    interrupts.result_of(each)
            except BaseException:  # of a signal's handler, while the caller waits for the others
                stop()
                raise
    except KeyboardInterrupt as interrupt:
        came.append(interrupt)
    if failed:
        raise failed[min(failed)]
    return came[0] if came else None


class _Queue:
    """Tasks that nobody has begun, and the results of those that are done."""

    def __init__(self, tasks: Sequence[Task[Any]], results: dict[str, Any]) -> None:
        self.waiting, self.results = list(tasks), results
        self.running: set[str] = set()
        self.stopped, self.changed = Event(), Condition()

    def take(self) -> Task[Any] | None:
        """Begin the first task that has what it needs, once there is one; None if there will be none."""
        while not self.stopped.is_set():
            with self.changed:
                ready = [task for task in self.waiting if task.needs is None or task.needs in self.results]
                if ready:
                    self.waiting.remove(ready[0])
                    self.running.add(ready[0].name)
                    return ready[0]
                if not any(task.needs in self.running for task in self.waiting):
                    return None
                self.changed.wait(interrupts.POLL)
            interrupts.check()
        return None

    def done(self, task: Task[Any], result: Any) -> None:
        """Keep the result of a task, if there is one."""
        with self.changed:
            self.running.discard(task.name)
            if result is not None:
                self.results[task.name] = result
            self.changed.notify_all()

    def stop(self) -> None:
        """Begin nothing more."""
        self.stopped.set()
        with self.changed:
            self.changed.notify_all()
