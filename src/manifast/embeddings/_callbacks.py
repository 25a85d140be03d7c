"""Fits that scikit-learn's callbacks can follow (`sklearn.callback`, from 1.9 on): progress bars, early stopping."""

from __future__ import annotations

from typing import Any

from manifast._progress import following

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an older scikit-learn: `set_callbacks` does not exist there

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's."""

    def with_callbacks(method: Any) -> Any:
        return method


class FollowedFit(CallbackSupportMixin):  # type: ignore[misc]
    """Mixin: `fit` tells callbacks set by `set_callbacks` of the steps of its outermost loops.

    The tasks are "fit", below it each loop, below that its steps. A callback that returns True at the end of a step
    ends the loop; the fit goes on with what has been found.
    """

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Any:
        """Embed the rows of X by their labels y, and learn the map for new rows."""
        followed = hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")
        if not followed:
            return super().fit(X, y)
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        with following(_Tasks(self, context)):
            super().fit(X, y)
        context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes=dict)
        return self


class _Tasks:
    """Loops and their steps as tasks of scikit-learn's callbacks."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator, self._context = estimator, context
        self._loop: Any = None
        self._step: Any = None
        self._left = 0

    def begin(self, name: str, total: int) -> None:
        self._left = total
        self._loop = self._context.subcontext(task_name=name, max_subtasks=total)
        self._loop.call_on_fit_task_begin(estimator=self._estimator)
        self._open()

    def step(self) -> bool:
        stop = bool(self._step.call_on_fit_task_end(estimator=self._estimator))
        self._left -= 1
        self._step = None
        self._open()
        return stop

    def end(self) -> None:
        if self._step is not None:  # the step that was begun when the loop ended
            self._step.call_on_fit_task_end(estimator=self._estimator)
        self._loop.call_on_fit_task_end(estimator=self._estimator)
        self._loop = self._step = None

    def _open(self) -> None:
        if self._left > 0:
            self._step = self._loop.subcontext(task_name="step")
            self._step.call_on_fit_task_begin(estimator=self._estimator)
