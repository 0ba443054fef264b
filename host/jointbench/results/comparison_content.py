"""What a report on two models says, as the template reads it."""

from dataclasses import dataclass

from jointbench.results.content import Fact, Panel


@dataclass(frozen=True)
class ParameterPair:
    """One parameter in both models; `told` is "differs", "alike" or "not told by both"."""

    name: str
    unit: str
    a: str
    b: str
    difference: str
    in_sigma: str
    told: str


@dataclass(frozen=True)
class TorquePair:
    """One joint: rms error of each fit, and how far its torques differ; each difference beside what chance makes."""

    name: str
    fits: tuple[str, str]
    torque: str
    differences: tuple[str, ...]
    at_most: str


@dataclass(frozen=True)
class SideRow:
    """One thing that can be said of both models."""

    name: str
    a: str
    b: str

    @property
    def same(self) -> bool:
        """Whether both say the same."""
        return self.a == self.b


@dataclass(frozen=True)
class ComparisonContent:
    """Everything a report on two models shows, in the order it shows it.

    Attributes:
        robot: its name.
        answer: same, different or cannot tell.
        mark: what the answer looks like: yes, no or weak.
        sentence: the answer in one sentence.
        a, b: where the models are.
        warnings: what a careful reader must know.
        facts: numbers worth seeing first.
        torque_note: on what motion torques were compared.
        torque_unit: of the table of torques.
        torques: the table, one row a joint.
        traces: panels of torque over time; none where there is no motion.
        different: the parameters that differ, the surest first.
        groups: owner and rows of all parameters.
        bars: panels of the differences in σ.
        sides: what else can be said of both.
        command: what to type to get this report again.
    """

    robot: str
    answer: str
    mark: str
    sentence: str
    a: str
    b: str
    warnings: tuple[str, ...]
    facts: tuple[Fact, ...]
    torque_note: str
    torque_unit: str
    torques: tuple[TorquePair, ...]
    traces: tuple[Panel, ...]
    different: tuple[ParameterPair, ...]
    groups: tuple[tuple[str, tuple[ParameterPair, ...]], ...]
    bars: tuple[Panel, ...]
    sides: tuple[SideRow, ...]
    command: str
