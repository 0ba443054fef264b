"""Flash one board: ask it, end its program, write the slot that is not kept, start it, and confirm what answers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jointbench.bench.bench_file import BenchFile, BoardEntry
from jointbench.bench.board import Board
from jointbench.bench.connections import Connections
from jointbench.bench.flash.board_files import (
    BOARD_KINDS,
    BoardFiles,
    FolderFiles,
    Interpreter,
    Kind,
    ReplFiles,
    kind_named,
)
from jointbench.bench.flash.image import FIRMWARE, Image, Keys, build_image, package_of, read_key, sources_of
from jointbench.bench.flash.plan import FlashReport, Outcome, StepDone, carry_out, plan_flash
from jointbench.bench.flash.plan import replace as replace_file
from jointbench.bench.flash.slots import given_config, keep, read_config, read_slots
from jointbench.bench.identity import Identity
from jointbench.errors import BoardError, BoardLost, FlashError, JointbenchError
from jointwire import Feature

HELLO_TIMEOUT = 10.0  # [s] of the target's time for a board that starts anew; a real one's port may be gone as long
_FIRST_HELLO = 2.0  # [s] for a board that may just be starting; one at its prompt is waited for in vain
_REOPEN = 0.2  # [s] between looks for a port that has gone with its board's reset
_OUR_KEYS = ("version", "safe_outputs")


@dataclass(frozen=True)
class FlashOptions:
    """Options of flashing.

    Attributes:
        board: kind that a board must be of; None: what it says it is.
        firmware: folder of the sources.
        config: what its config.json shall hold; None: what it holds.
        sim_joint: whether the board shall simulate a joint instead of driving one.
        dry_run: plan and write nothing.
        backups: where copies of boards' own files go.
        key: file of the key that the board has, with which the image is signed.
        new_key: file of the key that it shall have from now on.
    """

    board: str | None = None
    firmware: Path = FIRMWARE
    config: Path | None = None
    sim_joint: bool = False
    dry_run: bool = False
    backups: Path = Path("runs/flash")
    key: Path | None = None
    new_key: Path | None = None

    @property
    def keys(self) -> Keys:
        """The keys in these files.

        Raises:
            FlashError: one cannot be read, or is none.
        """
        present, new = (read_key(path) if path else None for path in (self.key, self.new_key))
        return Keys(present, new)


def ask_boards(file: BenchFile, joints: list[str]) -> dict[str, Identity | None]:
    """Greet boards before any of them is touched.

    Returns:
        What each said of itself, None where it does not answer: it may stand at its prompt.

    Raises:
        FlashError: a board drives its motor.
        BoardLost: a port cannot be opened.
    """
    identities: dict[str, Identity | None] = {}
    connections = Connections(file, whole=False)
    try:
        for joint in joints:
            if joint in connections.unopened:
                raise connections.unopened[joint]
            identities[joint] = _await_hello(connections, connections.boards[joint], _FIRST_HELLO)
        # A board with two motors that has only just started did not hear its first node, and then heard its second.
        for joint in [joint for joint, identity in identities.items() if identity is None]:
            board = connections.boards[joint]
            if any(identities.get(mate) for mate in board.port.joints):
                identities[joint] = _await_hello(connections, board, _FIRST_HELLO)
        for joint in joints:
            board = connections.boards[joint]
            if identities[joint] and board.is_driving:
                state = board.state.name if board.state is not None else "in a state this host does not know"
                raise FlashError(
                    f"{joint} (node {board.node}) is {state} and may move; stop it first. No board was written to"
                )
    finally:
        connections.close()
    return identities


def boards_of(entries: Iterable[BoardEntry], said: Mapping[str, Identity | None]) -> list[tuple[BoardEntry, ...]]:
    """Entries by board: what drives two motors has an entry for each, on one line, with one microcontroller.

    Args:
        entries: of a bench file.
        said: what each answered to `ask_boards`; an emulated board is known by its folder without that.
    """
    boards: dict[tuple[object, ...], list[BoardEntry]] = {}
    for entry in entries:
        identity = said[entry.joint]
        chip = entry.flash or (identity.uid if identity else entry.node)
        boards.setdefault((entry.url, chip), []).append(entry)
    return [tuple(each) for each in boards.values()]


def flash_board(
    file: BenchFile,
    board: Sequence[BoardEntry],
    said: Identity | None,
    options: FlashOptions,
    progress: StepDone | None = None,
) -> FlashReport:
    """Put the firmware onto one board.

    Args:
        file: its bench.
        board: its entries, one for each of its motors.
        said: its answer to `ask_boards`.
        options: how.
        progress: called before each step.

    Raises:
        FlashError: it is of another kind, or its interpreter cannot run the image; nothing was written; or it could not
            be written or verified; says what it runs now; or it cannot be reached, or its configuration is not usable.
    """
    entry, nodes = board[0], tuple(motor.node for motor in board)
    line = _line_of(file, entry)
    try:
        _check_reachable(line, board)
        package_of(options.firmware)  # what was named wrongly ends no program
        if options.config:
            given_config(options.config, *nodes)
        keys = options.keys
        if said and Feature.SIGNED_ONLY.name in said.features and not keys.present:
            raise FlashError("it starts signed images only; give its key with --key FILE. Nothing was written")
        report = _runs_already(line, entry, said, options)
        if report is None:
            if said and not (options.dry_run and entry.flash):
                _end_program(line, entry)
            report = _flash_at_rest(line, entry, nodes, said, options, progress)
        return replace(report, joint=", ".join(motor.joint for motor in board))
    except FlashError as error:
        raise FlashError(f"{entry.joint} (node {entry.node}): {error}") from error


def write_facts(
    file: BenchFile, board: Sequence[BoardEntry], facts: Mapping[int, Mapping[str, int]], backups: Path
) -> Path:
    """Write facts into a board's config.json, the rest of which stays, and start the board anew; its image stays, too.

    Args:
        file: its bench.
        board: its entries, one for each of its motors.
        facts: raw values by node, by the name of the register.
        backups: where copies of the board's own files go before.

    Returns:
        The folder of that copy.

    Raises:
        FlashError: it cannot be reached or its configuration is not usable, and nothing was written; or it does not
            start again.
    """
    entry, nodes = board[0], tuple(motor.node for motor in board)
    line, started = _line_of(file, entry), False
    try:
        _check_reachable(line, board)
        with _connected(line, entry) as (_, own):
            uid = own.greet().uid
            own.leave_for_repl()
        try:
            with _files(entry) as (files, _):
                config = read_config(files, None, *nodes)
                backup = keep(files, backups, uid)
                for motor in (config, config.get("partner", {})):
                    if changed := facts.get(motor.get("node", nodes[0])):
                        motor["facts"] = {**motor.get("facts", {}), **changed}
                carry_out(replace_file("config.json", json.dumps(config, indent=1).encode() + b"\n"), files)
                if isinstance(files, ReplFiles):
                    files.reset()
                    started = True
        except (FlashError, OSError) as error:
            raise FlashError(f"{error}. {_bring_back(line, entry, started)}") from error
        if _start(line, entry, started) is None:
            raise FlashError(f"it does not answer; take its power and give it back. Its files before: {backup}")
    except FlashError as error:
        raise FlashError(f"{entry.joint} (node {entry.node}): {error}") from error
    return backup


def _check_reachable(line: BenchFile, board: Sequence[BoardEntry]) -> None:
    entry = board[0]
    if entry.flash is None and len(line.boards) > len(board):
        raise FlashError(
            "it shares its line, where every interpreter would answer at once; flash it over a port of its own "
            "(`jointbench flash PORT`)"
        )
    if entry.flash is not None and line.control is None:
        raise FlashError(
            "it is emulated and its bench runs by the wall clock, where nobody can start a board again; start the "
            "bench without --realtime"
        )


def _flash_at_rest(
    line: BenchFile,
    entry: BoardEntry,
    nodes: tuple[int, ...],
    said: Identity | None,
    options: FlashOptions,
    progress: StepDone | None,
) -> FlashReport:
    """Flash a board whose program has ended."""
    started = options.dry_run and entry.flash is not None
    taken = said is not None
    try:
        with _files(entry) as (files, interpreter):
            taken = True
            image = _image_for(files, interpreter, said, options)
            config = _config_for(files, nodes, options)
            uid = said.uid if said else interpreter.uid if interpreter else str(config.get("uid", ""))
            plan = plan_flash(files, image, config, options.firmware, options.keys)
            backup = None
            if not options.dry_run:
                backup = keep(files, options.backups, uid)
                carry_out(plan.steps, files, progress)
            if isinstance(files, ReplFiles):
                files.reset()
                started = True
    except (FlashError, OSError) as error:
        if not taken:
            raise FlashError(
                f"no board answers as node {entry.node} at {entry.baud} baud; is that its number and speed (--node and "
                f"--baud, or the bench file)? And {error}"
            ) from error
        now = "" if options.dry_run and entry.flash else f". {_bring_back(line, entry, started)}"
        raise FlashError(f"{error}{now}") from error
    if options.dry_run:
        _start(line, entry, started)
    answer, outcome = (None, "planned") if options.dry_run else _try_out(line, entry, image, started)
    return FlashReport(
        joint=entry.joint, node=entry.node, board=image.board, uid=uid, outcome=outcome, slot=plan.slot.name,
        before=said.image_sha256 if said else "", image=image.sha256, firmware=image.firmware, files=len(image.files),
        size=image.size, interpreter=interpreter.version if interpreter else "", backup=backup,
        steps=tuple(str(step) for step in plan.steps),
        notes=plan.notes + _unknown_keys(config, image, options) + _last_words(entry, outcome, answer),
    )  # fmt: skip


def _runs_already(
    line: BenchFile, entry: BoardEntry, said: Identity | None, options: FlashOptions
) -> FlashReport | None:
    """Report a board that runs the image, and confirm it unless nothing is to be written.

    Returns:
        None when it does not run it, or that cannot be known without a look.
    """
    if not said or said.board not in BOARD_KINDS or options.config or options.sim_joint or options.new_key:
        return None
    kind = _checked_kind(said.board, options)
    if kind.compiles and kind.architecture is None:
        return None
    image = build_image(kind.name, firmware=options.firmware)
    if said.image_sha256 != image.sha256:
        return None
    if not options.dry_run:
        _confirm(line, entry, image)
    return FlashReport(
        joint=entry.joint, node=entry.node, board=image.board, uid=said.uid, outcome="already", slot="",
        before=said.image_sha256, image=image.sha256, firmware=image.firmware, files=len(image.files), size=image.size,
        interpreter="", backup=None, steps=(), notes=(),
    )  # fmt: skip


def _checked_kind(name: str, options: FlashOptions) -> Kind:
    if options.board not in (None, name):
        raise FlashError(f"it is a board of kind {name!r}, not {options.board!r}; nothing was written")
    return kind_named(name)


def _image_for(
    files: BoardFiles, interpreter: Interpreter | None, said: Identity | None, options: FlashOptions
) -> Image:
    """The image for this very board, after all that it says of itself fits together."""
    kept_slot = read_slots(files).kept
    name = said.board if said else kept_slot.board if kept_slot else options.board
    if name is None:
        raise FlashError(
            f"it does not say what kind of board it is; name it with --board, one of {', '.join(BOARD_KINDS)}"
        )
    kind = _checked_kind(name, options)
    if interpreter is None:
        return build_image(kind.name, firmware=options.firmware)
    if interpreter.platform != kind.platform:
        raise FlashError(
            f"its interpreter is that of {interpreter.platform} ({interpreter.machine}), a board of kind {kind.name!r} "
            f"has {kind.platform}; nothing was written"
        )
    if interpreter.architecture is None or kind.architecture not in (None, interpreter.architecture):
        raise FlashError(
            f"its interpreter runs native code of {interpreter.architecture or 'no architecture'}; the firmware needs "
            f"{kind.architecture or 'one'}. docs/flash.md names the interpreter to install; nothing was written"
        )
    image = build_image(kind.name, architecture=interpreter.architecture, firmware=options.firmware)
    if image.mpy is not None and image.mpy != interpreter.mpy:
        needed, has = (".".join(str(number) for number in abi) for abi in (image.mpy, interpreter.mpy))
        raise FlashError(
            f"its MicroPython {interpreter.version} runs .mpy files of version {has}, mpy-cross here makes {needed}; "
            "docs/flash.md names the interpreter to install. Nothing was written"
        )
    return image


def _config_for(files: BoardFiles, nodes: tuple[int, ...], options: FlashOptions) -> Mapping[str, Any]:
    config = read_config(files, options.config, *nodes)
    if options.sim_joint and "sim_joint" not in config:
        config["sim_joint"] = {}
    return config


def _last_words(entry: BoardEntry, outcome: Outcome, said: Identity | None) -> tuple[str, ...]:
    """Reason why a trial ended or never began, as the loader noted it on the board."""
    if outcome != "reverted":
        return ()
    if said and Feature.IMAGE_REFUSED.name in said.features:
        return ("its loader refused the new image for its signature: --key is not the board's key",)
    if entry.flash is None:
        return (
            "trial.log on the board says why, unless the new image hung: `jointbench repl`, then "
            f"`mpremote connect {entry.url} cat :trial.log`",
        )
    words = FolderFiles(entry.flash).read("trial.log")
    return (f"it ended with {words.decode(errors='replace').strip().splitlines()[-1]}" if words else "it hung",)


def _unknown_keys(config: Mapping[str, Any], image: Image, options: FlashOptions) -> tuple[str, ...]:
    """A word on keys of config.json that no file of the firmware names; they stay."""
    code = b"".join(sources_of(image.board, options.firmware).values())
    extra = [key for key in config if key not in _OUR_KEYS and f'"{key}'.encode() not in code]
    return (f"config.json keeps {', '.join(extra)}, which this firmware does not know",) if extra else ()


def _try_out(line: BenchFile, entry: BoardEntry, image: Image, started: bool) -> tuple[Identity | None, Outcome]:
    """Start the board, and confirm the image when it is what answers."""
    identity = _start(line, entry, started)
    if identity is None:
        identity = _start(line, entry, started=False)
        return identity, "reverted" if identity else "silent"
    if identity.image_sha256 != image.sha256:
        return identity, "reverted"
    _confirm(line, entry, image)
    return identity, "updated"


def _bring_back(line: BenchFile, entry: BoardEntry, started: bool) -> str:
    """Start a board whose flashing failed, and say what it runs."""
    try:
        identity = _start(line, entry, started)
    except JointbenchError:
        identity = None
    if identity is None:
        return "It does not answer now; take its power and give it back, and it starts the image it ran before"
    return f"It runs image {identity.image_sha256[:16]} now; the slot of what it ran before was not touched"


def _start(line: BenchFile, entry: BoardEntry, started: bool) -> Identity | None:
    """Start a board anew where that has not been done, and wait for its word; None when it has none to say."""
    if not started and line.control is None:
        try:
            with _files(entry) as (files, _):
                assert isinstance(files, ReplFiles)
                files.reset()
        except FlashError:  # it does not give its prompt: its program runs, or it is gone
            pass
    with _connected(line, entry) as (connections, board):
        if not started and line.control is not None:
            connections.restart(board.node)
        return _await_hello(connections, board, HELLO_TIMEOUT)


def _confirm(line: BenchFile, entry: BoardEntry, image: Image) -> None:
    with _connected(line, entry) as (_, board):
        board.need_our_schema()
        board.client.confirm(bytes.fromhex(image.sha256))


def _end_program(line: BenchFile, entry: BoardEntry) -> None:
    """Have the board leave its port to the interpreter."""
    with _connected(line, entry) as (_, board):
        board.greet()
        board.leave_for_repl()


def _await_hello(connections: Connections, board: Board, seconds: float) -> Identity | None:
    """Greet a board until it answers; None when it does not in this time, or cannot any more."""
    deadline = connections.clock.now_us() + round(1e6 * seconds)
    while True:
        try:
            return board.greet()
        except BoardError:
            if board.why_lost or connections.clock.now_us() >= deadline:
                return None


@contextmanager
def _connected(line: BenchFile, entry: BoardEntry) -> Iterator[tuple[Connections, Board]]:
    """The line of a board, opened; a real board's port may be gone for a moment after its reset."""
    deadline = time.monotonic() + HELLO_TIMEOUT
    while True:
        try:
            connections = Connections(line)
            break
        except BoardLost:
            if line.control is not None or time.monotonic() > deadline:
                raise
            time.sleep(_REOPEN)
    try:
        yield connections, connections.boards[entry.joint]
    finally:
        connections.close()


@contextmanager
def _files(entry: BoardEntry) -> Iterator[tuple[BoardFiles, Interpreter | None]]:
    if entry.flash is not None:
        yield FolderFiles(entry.flash), None
        return
    with ReplFiles(entry.url, entry.baud) as files:
        yield files, files.interpreter


def _line_of(file: BenchFile, entry: BoardEntry) -> BenchFile:
    """The bench file with this board's line only."""
    return replace(file, boards=tuple(board for board in file.boards if board.url == entry.url))
