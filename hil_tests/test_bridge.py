"""The bridge to the Foxglove app, heard as the app hears it: frames of its web socket, protobuf by the schemas sent."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import struct
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict
from scipy.spatial.transform import Rotation
from tornado.websocket import WebSocketClientConnection, websocket_connect

from hil_tests.feed_helpers import python
from hil_tests.link_helpers import COBOT
from hil_tests.virtual_bench import virtual_bench
from jointbench.errors import FeedError, FitError
from jointbench.identification import Model, fit
from jointbench.model import forward_kinematics, load_robot
from jointbench.results.bridge import BOARDS, JOINT_STATES, LOG, MODEL_TORQUE, STOP, TRANSFORMS, Bridge
from jointbench.tests.identification.synthetic import synthetic_run

ROBOT = load_robot("cobot6:2")
PATIENCE_S = 60.0  # of the wall clock, on a busy machine
ENOUGH = 12  # messages: half a second of them


class App:
    """What the Foxglove app does with a bridge: it reads what is there, subscribes, decodes, and calls services."""

    def __init__(self, connection: WebSocketClientConnection) -> None:
        self._connection = connection
        self.channels: dict[str, dict[str, Any]] = {}
        self.services: dict[str, int] = {}
        self._topics: dict[int, str] = {}

    @classmethod
    async def of(cls, url: str) -> App:
        app = cls(await websocket_connect(url, subprotocols=["foxglove.sdk.v1"]))
        while not (app.channels and app.services):
            line = json.loads(await app._next())
            app.channels |= {channel["topic"]: channel for channel in line.get("channels", ())}
            app.services |= {service["name"]: service["id"] for service in line.get("services", ())}
        return app

    async def messages(self, *topics: str) -> dict[str, list[dict[str, Any]]]:
        """Subscribe to topics, and take ENOUGH messages of the first."""
        await self.subscribe(*topics)
        heard: dict[str, list[dict[str, Any]]] = {topic: [] for topic in topics}
        while len(heard[topics[0]]) < ENOUGH:
            topic, message = await self.message()
            heard[topic].append(message)
        return heard

    async def subscribe(self, *topics: str) -> None:
        if self._topics:
            await self._connection.write_message(json.dumps({"op": "unsubscribe", "subscriptionIds": [*self._topics]}))
        self._topics = dict(enumerate(topics, max(self._topics, default=0) + 1))
        wanted = [{"id": number, "channelId": self.channels[topic]["id"]} for number, topic in self._topics.items()]
        await self._connection.write_message(json.dumps({"op": "subscribe", "subscriptions": wanted}))

    async def message(self) -> tuple[str, dict[str, Any]]:
        """The next one of a topic: 01, number of the subscription, time, payload."""
        while True:
            data = await self._next()
            if isinstance(data, bytes) and data[0] == 1:
                (number,) = struct.unpack_from("<I", data, 1)
                if number in self._topics:  # no longer subscribed to, but on its way
                    topic = self._topics[number]
                    return topic, decoded(self.channels[topic], data[13:])

    async def call(self, service: str) -> dict[str, Any]:
        """Call a service with nothing: 02, service, call, encoding; its answer is 03, or says why not."""
        await self._connection.write_message(
            struct.pack("<BIII", 2, self.services[service], 1, 4) + b"json", binary=True
        )
        while True:
            data = await self._next()
            if isinstance(data, bytes) and data[0] == 3:
                (size,) = struct.unpack_from("<I", data, 9)
                return json.loads(data[13 + size :])
            if isinstance(data, str) and json.loads(data)["op"] == "serviceCallFailure":
                return json.loads(data)

    async def hang_up(self) -> None:
        self._connection.close()
        while await self._connection.read_message() is not None:
            pass

    async def _next(self) -> str | bytes:
        data = await asyncio.wait_for(asyncio.ensure_future(self._connection.read_message()), PATIENCE_S)
        assert data is not None, "the bridge hung up"
        return data


def decoded(channel: dict[str, Any], payload: bytes) -> dict[str, Any]:
    if channel["encoding"] == "json":
        return json.loads(payload)
    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(channel["schema"]))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)  # pyright: ignore[reportDeprecated]
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(channel["schemaName"]))
    return MessageToDict(kind.FromString(payload), always_print_fields_with_no_presence=True)


def as_the_app(bridge: Bridge, act: Callable[[App], Coroutine[Any, Any, Any]]) -> Any:
    async def connected() -> Any:
        app = await App.of(bridge.url)
        try:
            return await act(app)
        finally:
            await app.hang_up()

    return asyncio.run(connected())


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(synthetic_run(ROBOT, motion_seed=1, noise_seed=1, repeats=1), friction="coulomb_viscous")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("r")))
        with virtual_bench(COBOT, "ideal", seed=3, modules=ROBOT.n_joints, out=tmp_path_factory.mktemp("sim")) as path:
            yield path


@pytest.fixture(scope="module")
def bridge(live: Path, model: Model) -> Iterator[Bridge]:
    with Bridge(live, model, port=0) as serving:
        yield serving


@pytest.fixture(scope="module")
def heard(bridge: Bridge) -> dict[str, list[dict[str, Any]]]:
    return as_the_app(bridge, lambda app: app.messages(MODEL_TORQUE, JOINT_STATES, TRANSFORMS, BOARDS))


def test_joint_states_are_what_the_boards_said(heard: dict[str, list[dict[str, Any]]]) -> None:
    said = {board["joint"]: board for board in heard[BOARDS][-1]["boards"]}
    sent = {joint["name"]: joint for joint in heard[JOINT_STATES][-1]["joints"]}
    assert list(sent) == list(ROBOT.joint_names)
    for name, joint in sent.items():
        assert joint["position"] == said[name]["position_rad"]
        assert joint["velocity"] == said[name]["velocity_rad_s"]
        assert joint["effort"] == said[name]["torque_Nm"]


def test_links_are_where_the_joints_put_them(heard: dict[str, list[dict[str, Any]]]) -> None:
    q = np.array([[joint["position"] for joint in heard[JOINT_STATES][-1]["joints"]]])
    rotations, origins = forward_kinematics(ROBOT, q)
    sent = heard[TRANSFORMS][-1]["transforms"]
    assert [pose["childFrameId"] for pose in sent] == [joint.link.name for joint in ROBOT.joints]
    for pose, rotation, origin in zip(sent, rotations[0], origins[0], strict=True):
        assert pose["parentFrameId"] == "base"
        assert np.array([pose["translation"][axis] for axis in "xyz"]) == pytest.approx(origin, abs=1e-12)
        quaternion = Rotation.from_quat([pose["rotation"][axis] for axis in "xyzw"])
        assert quaternion.as_matrix() == pytest.approx(rotation, abs=1e-12)


def test_the_models_torque_is_that_of_the_state(heard: dict[str, list[dict[str, Any]]], model: Model) -> None:
    """At rest: by gravity alone, as of the boards' positions."""
    q = np.array([[joint["position"] for joint in heard[JOINT_STATES][-1]["joints"]]])
    still = np.zeros_like(q)
    sent = np.array([joint["effort"] for joint in heard[MODEL_TORQUE][-1]["joints"]])
    # An encoder's last digit turns to and fro: friction's tanh and an acceleration of one count a state remain.
    friction = np.abs(model.predict(q, still + 1.0, still) - model.predict(q, still, still))[0]
    assert np.all(np.abs(sent - model.predict(q, still, still)[0]) <= friction)


def test_a_stop_switches_off_the_motors_of_a_bench_at_rest(bridge: Bridge) -> None:
    async def stop(app: App) -> tuple[dict[str, Any], str]:
        await app.messages(BOARDS)  # until the bench is held
        await app.subscribe(LOG)
        return await app.call(STOP), (await app.message())[1]["message"]

    answer, words = as_the_app(bridge, stop)
    assert answer == {"asked": True}
    assert words == "stopped: all motors are off"


@pytest.mark.slow  # a program that moves is a process of its own
def test_stop_stops_a_motion(bridge: Bridge, live: Path, tmp_path: Path) -> None:
    async def stop(app: App) -> tuple[dict[str, Any], list[str]]:
        await app.subscribe(BOARDS, LOG)
        answer, words = {}, []
        while not any("motors are off" in text for text in words):
            topic, message = await app.message()
            if topic == LOG:
                words.append(message["message"])
            elif not answer and message["doing"] == "playing" and message["elapsed_s"] > 0.3:
                answer = await app.call(STOP)
        return answer, words

    with python("-m", "hil_tests.player_to_stop", str(live), str(tmp_path / "run"), "200") as player:
        answer, words = as_the_app(bridge, stop)
        words_of_player, _ = player.communicate()
        said = json.loads(words_of_player.splitlines()[-1])
    assert answer == {"asked": True}
    assert "stopped by" in said["error"]
    assert said["valid"]
    assert all(said["was_on"].values())
    assert not any(said["is_on"].values())
    assert any("RUNNING" in text for text in words)


def test_a_model_of_another_robot_is_refused(live: Path) -> None:
    other = fit(
        synthetic_run(load_robot("cobot6:1"), motion_seed=1, noise_seed=1, repeats=1), friction="coulomb_viscous"
    )
    with pytest.raises(FitError, match="the model is of joints j1, the bench has j1, j2"):
        Bridge(live, other, port=0)


def test_a_port_that_cannot_be_had_is_named(bridge: Bridge, live: Path) -> None:
    taken = int(bridge.url.rsplit(":", 1)[1])
    for port in (taken, 99999, -1):
        with pytest.raises(FeedError, match=f"port {port} of 127.0.0.1 cannot be served .*--port"):
            Bridge(live, port=port)


@pytest.mark.slow  # so is the verb
def test_ctrl_c_ends_the_verb_well(live: Path) -> None:
    with python("-m", "jointbench", "bridge", str(live), "--port", "0") as process:
        assert process.stdout is not None
        assert "ws://127.0.0.1:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, rest
    assert "bridge ended" in rest
