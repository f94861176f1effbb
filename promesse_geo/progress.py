"""Progress bars that leave no thread behind."""

from collections.abc import Iterable

from tqdm import tqdm


class _Bar(tqdm):
    """A bar without tqdm's monitor thread, which would outlive the work and be lost in a fork."""

    monitor_interval = 0


def progress_bar(
    items: Iterable | None = None, *, label: str, unit: str, total: int | None = None, hidden: bool = False
) -> tqdm:
    """Return a progress bar on standard error that appears after a second, and only in a terminal.

    Parameters
    ----------
    items : iterable, optional
        What the bar counts when it is iterated; otherwise call its `update`.
    label, unit : str
        What is done, and to what (in the plural).
    total : int, optional
        Number of units.
    hidden : bool
        Whether to show nothing at all.
    """
    return _Bar(items, desc=label, unit=f" {unit}", total=total, delay=1, disable=True if hidden else None)
