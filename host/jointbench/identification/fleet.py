"""Many runs, each fitted by itself wherever there is a processor, and what differs from unit to unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from jointbench.errors import FitError, JointbenchError
from jointbench.files import keep_earlier
from jointbench.identification.comparison import check_comparable
from jointbench.identification.model import Model
from jointbench.identification.random_effects import Family
from jointbench.model import Robot, as_robot
from jointbench.recording import expand, local_directory, local_run, run_name

MODEL = "model.json"

_LEFT = "not fitted: stopped before its turn"


@dataclass(frozen=True, eq=False)
class FleetMember:
    """One run of a fleet.

    Attributes:
        name: the last part of its URL, with what is before it where two have the same.
        url: where its run is.
        model: None where there is none.
        path: of the model's file.
        failure: why there is no model, or why it does not count: its recording is invalid, or its file not written.
        warnings: what a careful reader must know of its run.
    """

    name: str
    url: str
    model: Model | None = None
    path: Path | None = None
    failure: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Fleet:
    """All runs, in the order they were named.

    Attributes:
        members: one per run.
        interrupted: whether it was stopped before the last one.

    >>> fleet = jb.fit_fleet(["runs/arm", "runs/other", "runs/lost"])
    >>> fleet.families[0].units, fleet.families[0].outliers
    (('arm', 'other'), ())
    >>> fleet.failed[0].failure
    'runs/lost is not a run: there is no such directory; runs are directories that hold a run.toml'
    """

    members: tuple[FleetMember, ...]
    interrupted: bool = False

    @property
    def fitted(self) -> tuple[FleetMember, ...]:
        """Those with a model that counts."""
        return tuple(member for member in self.members if member.model is not None and not member.failure)

    @property
    def failed(self) -> tuple[FleetMember, ...]:
        """Those without."""
        return tuple(member for member in self.members if member.model is None or member.failure)

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Units whose parameters stand for the same, largest family first: only within one are there spreads."""
        groups: list[list[FleetMember]] = []
        for member in self.fitted:
            for group in groups:
                if _alike(group[0], member):
                    group.append(member)
                    break
            else:
                groups.append([member])
        groups.sort(key=len, reverse=True)
        return tuple(
            Family(tuple(member.name for member in group), tuple(_model(member) for member in group))
            for group in groups
        )


def fit_fleet(
    runs: Sequence[str | Path],
    robot: Robot | str | Path | None = None,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    out: str | Path | None = None,
    told: Callable[[FleetMember, int, int], None] | None = None,
    **options: Any,
) -> Fleet:
    """Fit each run by itself; a run that cannot be fitted is named and stops no other.

    A model is written as soon as it is there. Ctrl-C ends the fleet with what has been fitted so far.

    Args:
        runs: folders, .zip files or what else fsspec reads, such as "s3://bucket/arm7"; with wildcards.
        robot: the robot of all runs, or what `load_robot` takes; None: the one each names.
        workers: processes of this machine.
        scheduler: address of a Dask cluster that fits instead, such as "tcp://10.0.0.1:8786"; its workers must have
            jointbench, and see the runs by these names.
        out: folder for the models, one folder of each run's name; None: each in its run's folder. A model that is
            there is kept beside, as "model-1.json".
        told: called with each member as it is done, how many are and how many there are.
        options: as of `fit`.

    Returns:
        The fleet; look at `failed`, and at the spreads of its `families`.

    Raises:
        FitError: there is no run, workers is impossible, or a model has no place to go to; or nobody answers there.
        RunError: a wildcard stands for nothing.
        MissingExtra: a scheduler is given and Dask is not installed, or a kind of storage needs a package.

    >>> fleet = jb.fit_fleet(["runs/arm", "runs/other"], settings={"cutoff_Hz": 30.0})
    >>> [(member.name, member.model.verdict.word, str(member.path)) for member in fleet.fitted]
    [('arm', 'identified', 'runs/arm/model.json'), ('other', 'identified', 'runs/other/model.json')]
    """
    urls = list(dict.fromkeys(url.rstrip("/") for url in expand(runs)))
    if not urls:
        raise FitError("a fleet needs at least one run")
    if workers < 1 or (scheduler is not None and workers > 1):
        raise FitError(
            f"workers = {workers} must be at least 1, and 1 beside a scheduler, which has workers of its own"
        )
    places = _places(urls, out)
    members = [FleetMember(name, url, failure=_LEFT) for name, url in zip(_names(urls), urls, strict=True)]
    one = None if robot is None else as_robot(robot)
    searches = [partial(_fit_one, url, one, options) for url in urls]
    interrupted, done = False, 0
    try:
        for index, (model, failure, warnings) in _results(searches, workers, scheduler):
            member = replace(members[index], model=model, failure=failure, warnings=warnings)
            members[index] = _saved(member, places[index])
            done += 1
            if told is not None:
                told(members[index], done, len(urls))
    except KeyboardInterrupt:
        interrupted = True
    except JointbenchError:
        raise
    except Exception as error:  # workers die for want of memory, or with their machine; what they brought is kept
        lost = f"not fitted: the workers were lost ({type(error).__name__}: {error})"
        members = [replace(each, failure=lost) if each.failure == _LEFT else each for each in members]
    return Fleet(tuple(members), interrupted)


_Result = tuple[Model | None, str, tuple[str, ...]]


def _results(
    fits: Sequence[Callable[[], _Result]], workers: int, scheduler: str | None
) -> Iterator[tuple[int, _Result]]:
    from jointbench.excitation import worker_pool  # the optimiser beside it is slow to import

    with worker_pool(workers, scheduler) as crew:
        searches = [partial(_untold, fit) for fit in fits]
        yield from cast("Iterator[tuple[int, _Result]]", crew(cast(Any, searches), lambda *_: None))


def _untold(fit: Callable[[], _Result], told: object) -> _Result:
    """Callback of a crew: a fit has nothing to tell before its end."""
    return fit()


def _fit_one(url: str, robot: Robot | None, options: Mapping[str, Any]) -> _Result:
    """Model of a run, or why there is none; whatever is wrong with a run is no reason to lose the others."""
    from jointbench.identification.fit import fit
    from jointbench.recording import open_run

    try:
        with local_run(url) as directory:
            run = open_run(directory)
            if local_directory(url) is None:  # where it was fetched to is gone when the model is read
                run = replace(run, path=Path(url))
            model = fit(run, robot, **options)
            invalid = "" if run.is_valid else f"its recording is {run.ledger.verdict if run.ledger else 'invalid'}"
            return model, invalid, run.warnings
    except JointbenchError as error:
        return None, str(error), ()
    except Exception as error:  # a fault of ours: it is told, and the other runs are fitted
        return None, f"unexpected {type(error).__name__}: {error}", ()


def _saved(member: FleetMember, place: Path) -> FleetMember:
    if member.model is None:
        return member
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        keep_earlier(place)
        return replace(member, path=member.model.save(place))
    except OSError as error:
        return replace(member, failure=f"its model cannot be written to {place}: {error.strerror or error}")


def _places(urls: Sequence[str], out: str | Path | None) -> list[Path]:
    """Return the path of each model."""
    if out is not None:
        return [Path(out) / name / MODEL for name in _names(urls)]
    places: list[Path] = []
    for url in urls:
        directory = local_directory(url)
        if directory is None:
            raise FitError(
                f"the model of {url} cannot be put beside its run; name a folder for the models (--out DIR, or out= in "
                f"Python)"
            )
        places.append(directory / MODEL)
    return places


def _names(urls: Sequence[str]) -> list[str]:
    """Short names, longer where two would be the same."""
    names = [run_name(url) for url in urls]
    often = Counter(names)
    return [
        name if often[name] == 1 else f"{Path(url.split('::')[-1]).parent.name or 'run'}-{name}-{k}"
        for k, (name, url) in enumerate(zip(names, urls, strict=True), start=1)
    ]


def _alike(one: FleetMember, other: FleetMember) -> bool:
    try:
        check_comparable(_model(one), _model(other))
    except FitError:
        return False
    return True


def _model(member: FleetMember) -> Model:
    assert member.model is not None
    return member.model
