"""Files of reports and pictures; the packages that they need are asked for here."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointbench.errors import FileNotWritten
from jointbench.extras import need
from jointbench.files import write_file

if TYPE_CHECKING:
    from jointbench.arrays import Array
    from jointbench.bench import Trajectory
    from jointbench.excitation import Excitation
    from jointbench.identification import Model, Validation
    from jointbench.identification.proof import Proof
    from jointbench.identification.residual import Mission, Residual
    from jointbench.identification.zero_moment_point.stance import Stance
    from jointbench.recording import Run
    from jointbench.results.evidence import ComparisonEvidence, PressureModel
    from jointbench.results.plan_evidence import PlanEvidence

FORMATS = (".png", ".svg", ".pdf")


def write_report(
    path: str | Path,
    model: Model,
    fit_run: Run,
    validation: Validation,
    verification_run: Run,
    excitation: Excitation | None = None,
    *,
    commands: Sequence[str] = (),
) -> Path:
    """Write one HTML file on a model: verdict, torques, residuals, parameters ± σ, friction, losses and provenance.

    Args:
        path: of the file; an older one is replaced once the new one is whole.
        model: the model.
        fit_run: the run it was fitted to.
        validation: of the model.
        verification_run: the run of the validation.
        excitation: the motion of the fit; None: the one the fit's run names, if any.
        commands: what to type to get all this again, a line each; empty: the report verb on both runs.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib or jinja2 is not installed.
        FileNotWritten: the folder cannot be made; or the file cannot be written; it is as it was.
    """
    _need_extras()
    from jointbench.results.evidence import Evidence
    from jointbench.results.pages import report_html

    evidence = Evidence(model, fit_run, validation, verification_run, excitation or fit_run.excitation)
    return _write(Path(path), report_html(evidence, tuple(commands)).encode("utf-8"))


def write_comparison(path: str | Path, evidence: ComparisonEvidence) -> Path:
    """Write one HTML file on two models: what differs beyond the error bars, by how much torque, and both side by side.

    Args:
        path: of the file; an older one is replaced once the new one is whole.
        evidence: both models and their comparison.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib or jinja2 is not installed.
        FileNotWritten: the folder cannot be made; or the file cannot be written; it is as it was.
    """
    _need_extras()
    from jointbench.results.pages import comparison_html

    return _write(Path(path), comparison_html(evidence).encode("utf-8"))


def write_proof(
    path: str | Path,
    proof: Proof,
    model: Model,
    motion: Trajectory,
    *,
    friction_width: float = 0.01,
    commands: Sequence[str] = (),
) -> Path:
    """Write one HTML file on what a model does for its arm: tracking before and after, and parts of the torque.

    Args:
        path: of the file; an older one is replaced once the new one is whole.
        proof: of the model.
        model: what was proven.
        motion: what was played.
        friction_width: velocity over which friction changed its sign [rad/s; m/s].
        commands: what to type to get all this again, a line each; empty: the page has none.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib or jinja2 is not installed.
        FileNotWritten: the folder cannot be made; or the file cannot be written; it is as it was.
    """
    _need_extras()
    from jointbench.results.proof_page import proof_html

    return _write(Path(path), proof_html(proof, model, motion, friction_width, tuple(commands)).encode("utf-8"))


def write_bring_up(
    path: str | Path,
    bench: str,
    answer: str,
    rank: int,
    sentence: str,
    products: Mapping[str, Mapping[str, Any]],
    *,
    commands: Sequence[str] = (),
) -> Path:
    """Write one HTML file on a bench that was brought up: one verdict, each step's, and where every number came from.

    Args:
        path: of the file; an older one is replaced once the new one is whole.
        bench: its name.
        answer: the verdict.
        rank: of it: 1 good, 2 with care, 3 no.
        sentence: why.
        products: of the steps that were done, by name, as their files have them.
        commands: what to type to get all this again, a line each.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib or jinja2 is not installed.
        FileNotWritten: the folder cannot be made; or the file cannot be written; it is as it was.
    """
    _need_extras()
    from jointbench.results.bring_up_page import bring_up_html

    page = Path(path)
    return _write(page, bring_up_html(page, bench, answer, rank, sentence, products, tuple(commands)).encode("utf-8"))


def key_picture(path: str | Path, model: Model, validation: Validation) -> Path:
    """Write a PNG of measured against predicted torque of every joint, its relative error in its heading.

    Args:
        path: of the file, replaced when it exists.
        model: the model.
        validation: of the model, on motion it was not fitted to.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib or jinja2 is not installed.
        FileNotWritten: the folder cannot be made; or the file cannot be written; it is as it was.
    """
    _need_extras()
    from jointbench.results.pictures import torques_png

    return _write(Path(path), torques_png(model, validation))


def residual_picture(path: str | Path, missions: Sequence[Mission], state: Residual, polynomial: Residual) -> Path:
    """Write a PNG of the torque that a model lacks on each mission, and what two residuals make of it.

    Args:
        path: of the file, replaced when it exists.
        missions: that which the residuals were fitted to first.
        state, polynomial: a residual of the state, and one of time.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib or jinja2 is not installed.
        FileNotWritten: the folder cannot be made; or the file cannot be written; it is as it was.
    """
    _need_extras()
    from jointbench.results.pictures import residual_png

    return _write(Path(path), residual_png(missions, state, polynomial))


def stance_picture(
    path: str | Path, stance: Stance, measured: Array, models: Sequence[PressureModel], reference: PressureModel
) -> Path:
    """Write a PNG of where the ground pressed a foot, and where models of the robot say that it does.

    Args:
        path: of the file, replaced when it exists.
        stance: what the foot felt.
        measured: its zero-moment points, corrected by what is known of the sensors [m], shape (n, 2).
        models: what each says of that stance, the one that counts last.
        reference: whose parameters the others are drawn beside: the true ones, where these are known.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib or jinja2 is not installed.
        FileNotWritten: the folder cannot be made; or the file cannot be written; it is as it was.
    """
    _need_extras()
    from jointbench.results.pictures import stance_png

    return _write(Path(path), stance_png(stance, measured, models, reference))


def _need_extras() -> None:
    need("report", "a report", "matplotlib", "jinja2")


def _write(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all, and the folders it lies in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileNotWritten(f"{path} cannot be written: {error.strerror}; name another file") from error
    return write_file(path, content)


def check_picture(path: str | Path) -> None:
    """Refuse a picture that could not be made, before there is anything to show.

    Raises:
        MissingExtra: matplotlib is not installed.
        FileNotWritten: its name ends in nothing known.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise FileNotWritten(f"picture {path}: its name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    need("report", "a picture", "matplotlib")


def plan_picture(path: str | Path, evidence: PlanEvidence) -> Path:
    """Draw a plan into a file, an older one of this name being replaced.

    Args:
        path: ends in one of FORMATS.
        evidence: the plan.

    Returns:
        The file's path.

    Raises:
        MissingExtra: matplotlib is not installed.
        FileNotWritten: the file's name ends in nothing known; or it cannot be written.
    """
    check_picture(path)
    from jointbench.drawing import house_style
    from jointbench.results.plan_figure import plan_figure

    path, buffer = Path(path), io.BytesIO()
    kind = path.suffix.lower()[1:]
    # Without the day and the name of what drew it, the same plan gives the same bytes.
    nameless = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
    with house_style():
        plan_figure(evidence).savefig(buffer, format=kind, metadata=nameless[kind])
    return write_file(path, buffer.getvalue())
