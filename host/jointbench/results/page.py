"""A model's report: one HTML file that needs nothing else."""

from jointbench.results.clock_table import clock_table
from jointbench.results.content import Content
from jointbench.results.evidence import Evidence
from jointbench.results.fit_facts import fit_facts
from jointbench.results.friction_curves import friction_curves
from jointbench.results.friction_panels import friction_panels
from jointbench.results.joint_panels import excitation_panels, residual_panels, torque_panels
from jointbench.results.ledger_table import ledger_table
from jointbench.results.notes import excitation_note, friction_note, torque_note
from jointbench.results.parameter_table import parameter_groups, parameter_note
from jointbench.results.provenance_table import provenance_rows, reproduce_commands
from jointbench.results.render import render
from jointbench.results.spectrum_panels import spectrum_panels
from jointbench.results.summary import facts, joint_rows, sentence
from jointbench.results.units import torque_units


def report_html(evidence: Evidence, commands: tuple[str, ...] = ()) -> str:
    """Return the report as HTML text that refers to nothing outside itself."""
    return render("report.html", report_content(evidence, commands))


def report_content(evidence: Evidence, commands: tuple[str, ...] = ()) -> Content:
    """Return everything the report says, in words, finished numbers and pictures."""
    model, validation, excitation = evidence.model, evidence.validation, evidence.excitation
    curves = friction_curves(model, evidence.verification_run)
    return Content(
        robot=model.robot.name,
        answer=evidence.answer,
        sentence=sentence(evidence),
        warnings=evidence.warnings,
        facts=facts(evidence),
        torque_unit=torque_units(model.robot),
        joints=joint_rows(model, validation),
        torque_note=torque_note(evidence),
        torques=torque_panels(model, validation),
        residuals=residual_panels(model, validation),
        spectra=spectrum_panels(model, validation),
        fit=fit_facts(evidence),
        parameter_note=parameter_note(model),
        parameters=parameter_groups(model),
        friction_note=friction_note(evidence, curves),
        friction=friction_panels(model, curves),
        ledgers=tuple(ledger_table(name, run.ledger) for name, run in evidence.runs),
        clocks=tuple(clock_table(name, run) for name, run in evidence.runs if run.clocks),
        excitation_note=excitation_note(evidence),
        excitation=excitation_panels(model.robot, excitation) if excitation else (),
        provenance=provenance_rows(evidence),
        commands=commands or reproduce_commands(evidence),
    )
