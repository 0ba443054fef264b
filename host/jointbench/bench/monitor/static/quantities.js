// What is shown of a board: the names in the feed's lines, and how a person reads them.

export const PLOTTED = [
  { name: "position_rad", title: "Position", unit: "rad" },
  { name: "current_A", title: "Current", unit: "A" },
  { name: "torque_Nm", title: "Torque", unit: "N·m" },
  { name: "force_N", title: "Foot forces", unit: "N", parts: 4 },
];

// Columns of the table after joint, state and fault.
export const COLUMNS = [
  { name: "position_rad", label: "Position", unit: "rad", digits: 4 },
  { name: "velocity_rad_s", label: "Velocity", unit: "rad/s", digits: 3 },
  { name: "current_A", label: "Current", unit: "A", digits: 3 },
  { name: "torque_Nm", label: "Torque", unit: "N·m", digits: 2 },
  { name: "temperature_C", label: "Temperature", unit: "°C", digits: 1 },
  { name: "voltage_V", label: "Voltage", unit: "V", digits: 2 },
];

export const DRIVING = new Set(["ARMED", "RUNNING"]); // states of a board with its motor on

const NONE = "–";

export function number(value, digits) {
  if (!Number.isFinite(value)) return NONE;
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

export function loss(board) {
  if (!Number.isFinite(board.samples)) return NONE; // neither recorded nor watched
  const bad = board.frames_bad ? `, ${board.frames_bad} bad frames` : "";
  return `${board.samples_lost} of ${board.samples}${bad}`;
}

export function clock(board) {
  if (!Number.isFinite(board.clock_offset_us)) return NONE;
  const drift = Number.isFinite(board.clock_drift_ppm) ? `, ${board.clock_drift_ppm.toFixed(1)} ppm` : "";
  return `${board.clock_offset_us.toFixed(0)} µs${drift}`;
}

export function age(seconds) {
  return Number.isFinite(seconds) ? `${seconds.toFixed(seconds < 100 ? 2 : 0)} s` : NONE;
}
