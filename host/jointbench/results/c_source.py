"""The C of `c_header`: what is the same for every robot; $name stands for the robot's."""

HEAD = """\
/* Inverse dynamics of $name: $origin.
 *
$about * Joints: $joints.
 * Motors: $motors.
 * Units: position q [$unit], velocity dq [$unit/s], acceleration ddq [$unit/s^2], torque tau [$torque_unit], all at
 * the joints; current [A], at the motors.
 *
 *     #include "this file"
 *     double q[$n_joints], dq[$n_joints], ddq[$n_joints], tau[$n_joints], current[$n_motors];
 *     ${name}_inverse_dynamics(q, dq, ddq, tau);           torque of a state, the sensors' offsets included
 *     ${name}_feedforward(q, dq, ddq, ${NAME}_FRICTION_WIDTH, current);    motor current of a planned state
 *     ${name}_limit_current(current);                      no more than the motors may have
 *
$remembers * Written by Jointbench. Newton-Euler recursion over $n_links links (Luh, Walker & Paul 1980), springs, rotor
 * inertia and friction of the drives; the base at rest. Of $n_parameters parameters of the links $zeros are zero. C99,
 * and C++; nothing allocated, no loop whose length depends on data: about 180 multiplications, a sine and a cosine a
 * link, and 27 numbers of it on the stack.
 * Define before including:
 *   ${NAME}_FLOAT       for float instead of double
 *   ${NAME}_SIGN(v)     for another sign of Coulomb friction in inverse_dynamics, such as one that is smooth near rest
 *   ${NAME}_SELF_TEST   for a main() that compares with $name's torques as the host computes them; 0 when they agree
 */
#ifndef ${NAME}_DYNAMICS_H
#define ${NAME}_DYNAMICS_H

#include <math.h>

#define ${NAME}_JOINTS $n_joints
#define ${NAME}_LINKS $n_links
#define ${NAME}_MOTORS $n_motors

/* Usual width over which friction changes its sign in a feed-forward [rad/s or m/s]. */
#ifndef ${NAME}_FRICTION_WIDTH
#define ${NAME}_FRICTION_WIDTH $friction_width
#endif

#ifdef ${NAME}_FLOAT
typedef float ${name}_real;
#define ${NAME}_SIN sinf
#define ${NAME}_COS cosf
#define ${NAME}_EXP expf
#define ${NAME}_TANH tanhf
#else
typedef double ${name}_real;
#define ${NAME}_SIN sin
#define ${NAME}_COS cos
#define ${NAME}_EXP exp
#define ${NAME}_TANH tanh
#endif

#ifndef ${NAME}_SIGN
#define ${NAME}_SIGN(v) (${name}_real)(((v) > 0) - ((v) < 0))
#endif
"""

TABLES = """\
/* Joint i carries link i: link that carries it (-1: base); position = factor * q[coordinate] + offset; its rotation in
 * its parent P0 + cos P1 + sin P2; its origin there, and how that slides; its axis, turning and sliding; its parameters
 * m, mc, Ixx, Ixy, Ixz, Iyy, Iyz, Izz about its origin; SI. */"""

FUNCTIONS = """\

/* Sign of the velocity of what rubs: tanh(v / width), and hard for a width of 0. */
static inline ${name}_real ${name}_sign(${name}_real v, ${name}_real width)
{
    return width > 0 ? ${NAME}_TANH(v / width) : (${name}_real)${NAME}_SIGN(v);
}

/* out += a x b */
static inline void ${name}_add_cross(const ${name}_real a[3], const ${name}_real b[3], ${name}_real out[3])
{
    out[0] += a[1] * b[2] - a[2] * b[1];
    out[1] += a[2] * b[0] - a[0] * b[2];
    out[2] += a[0] * b[1] - a[1] * b[0];
}

/* out += m v, or m transposed */
static inline void ${name}_add_turned(const ${name}_real m[9], int transposed, const ${name}_real v[3],
                                      ${name}_real out[3])
{
    const int row = transposed ? 1 : 3, column = transposed ? 3 : 1;
    int i;
    for (i = 0; i < 3; i++)
        out[i] += m[i * row] * v[0] + m[i * row + column] * v[1] + m[i * row + 2 * column] * v[2];
}

/* What moves link i feels: force and moment about its origin. */
static inline void ${name}_load(int i, const ${name}_real omega[3], const ${name}_real alpha[3],
                                const ${name}_real felt[3], ${name}_real force[3], ${name}_real moment[3])
{
    const ${name}_real *p = ${name}_link[i];
    const ${name}_real first[3] = {p[1], p[2], p[3]};
    const ${name}_real inertia[9] = {p[4], p[5], p[6], p[5], p[7], p[8], p[6], p[8], p[9]};
    ${name}_real swirl[3] = {0, 0, 0}, spin[3] = {0, 0, 0};
    int k;
    for (k = 0; k < 3; k++) {
        force[k] = p[0] * felt[k];
        moment[k] = 0;
    }
    ${name}_add_cross(omega, first, swirl);
    ${name}_add_cross(alpha, first, force);
    ${name}_add_cross(omega, swirl, force);
    ${name}_add_turned(inertia, 0, omega, spin);
    ${name}_add_cross(first, felt, moment);
    ${name}_add_turned(inertia, 0, alpha, moment);
    ${name}_add_cross(omega, spin, moment);
}

#if ${NAME}_LAWS > 0
/* Torque of friction laws, added to tau, which is their load; a width replaces their step at rest by a smooth one. */
static inline void ${name}_add_laws(const ${name}_real dq[$n_joints], ${name}_real width, ${name}_real tau[$n_joints])
{
    ${name}_real load[$n_joints];
    int i;
    for (i = 0; i < $n_joints; i++)
        load[i] = tau[i] < 0 ? -tau[i] : tau[i];
    for (i = 0; i < ${NAME}_LAWS; i++) {
        const int joint = ${name}_law_kind[i][0], form = ${name}_law_kind[i][1], direction = ${name}_law_kind[i][2];
        const ${name}_real v = dq[joint], s = ${name}_law[i][1];
        const ${name}_real hard = (${name}_real)${NAME}_SIGN(v), change = ${name}_sign(v, width) - hard;
        ${name}_real torque, step = 0;
        if (form == 0) {
            torque = hard;
            step = 1;
        } else if (form == 1) {
            torque = v;
        } else if (form == 2) {
            torque = hard * ${NAME}_EXP(-(v / s) * (v / s));
            step = 1;
        } else if (form == 3) {
            torque = ${NAME}_TANH(s * v);
        } else {
            torque = hard * load[joint];
            step = load[joint];
        }
        if (direction * v < 0)
            torque = 0;
        if (direction != 0)
            step /= 2;
        tau[joint] += ${name}_law[i][0] * (torque + step * change);
    }
}
#endif

#if ${NAME}_AXES > 0
/* State of a motion that has not begun. */
static inline void ${name}_begin(${name}_friction *state)
{
    int i;
    state->begun = 0;
    for (i = 0; i < $n_joints; i++)
        state->position[i] = 0;
    for (i = 0; i < $n_stops; i++)
        state->stop[i] = 0;
}

/* Let each stop go with its axis, and clip it; a fresh state is that of a motion that had gone on for long. */
static inline void ${name}_remember(${name}_friction *state, const ${name}_real q[$n_joints],
                                    const ${name}_real dq[$n_joints])
{
    int i, j;
#if ${NAME}_STOPS > 0
    for (i = 0; i < ${NAME}_STOPS; i++) {
        const ${name}_real *shares = ${name}_axis_shares[${name}_stop_axis[i]];
        ${name}_real moved = 0, stop;
        for (j = 0; j < $n_joints; j++)
            moved += shares[j] * (state->begun ? q[j] - state->position[j] : dq[j]);
        stop = state->begun ? state->stop[i] + moved / ${name}_threshold[i] : (${name}_real)((moved > 0) - (moved < 0));
        state->stop[i] = stop > 1 ? 1 : stop < -1 ? -1 : stop;
    }
#endif
    for (j = 0; j < $n_joints; j++)
        state->position[j] = q[j];
    (void)i;
    (void)dq;
    state->begun = 1;
}

/* Torque of friction with memory, added to tau; load is tau before friction. */
static inline void ${name}_add_memory(const ${name}_friction *state, const ${name}_real dq[$n_joints],
                                      const ${name}_real load[$n_joints], ${name}_real tau[$n_joints])
{
    int i, j;
    for (i = 0; i < ${NAME}_TERMS; i++) {
        const int axis = ${name}_term_kind[i][0], stop = ${name}_term_kind[i][1], by = ${name}_term_kind[i][2];
        const int joint = ${name}_axis_joint[axis];
        const ${name}_real *term = ${name}_term[i];
        ${name}_real v = 0, torque;
        for (j = 0; j < $n_joints; j++)
            v += ${name}_axis_shares[axis][j] * dq[j];
        torque = term[2] * (stop < 0 ? ${NAME}_TANH(v / term[0]) : state->stop[stop]);
        if (by == 1)
            torque *= joint < 0 ? 0 : load[joint] < 0 ? -load[joint] : load[joint];
        else if (by == 2)
            torque *= ${NAME}_EXP(-(v / term[1]) * (v / term[1]));
        for (j = 0; j < $n_joints; j++)
            tau[j] += ${name}_axis_shares[axis][j] * torque;
    }
}
#endif

/* Torque of rotor inertia and friction, added to tau. */
static inline void ${name}_add_drives(${given}const ${name}_real dq[$n_joints], const ${name}_real ddq[$n_joints],
                                      ${name}_real width, ${name}_real tau[$n_joints])
{
    int j, k;
#if ${NAME}_AXES > 0
    ${name}_real load[$n_joints];
#endif
    for (j = 0; j < $n_joints; j++) {
        const ${name}_real *d = ${name}_drive[j];
        tau[j] += d[0];
        for (k = 0; k < $n_joints; k++)
            tau[j] += d[1 + k] * ddq[k];
    }
#if ${NAME}_AXES > 0
    for (j = 0; j < $n_joints; j++)
        load[j] = tau[j];
    ${name}_add_memory(state, dq, load, tau);
#endif
#if ${NAME}_LAWS > 0
    ${name}_add_laws(dq, width, tau);
#endif
    for (j = 0; j < $n_joints; j++)
        for (k = 0; k < $n_joints; k++)
            tau[j] += ${name}_drive[j][1 + $n_joints + k] * dq[k];
#if ${NAME}_RUBBING > 0
    for (j = 0; j < ${NAME}_RUBBING; j++) {
        ${name}_real speed = 0;
        for (k = 0; k < $n_joints; k++)
            speed += ${name}_speed[j][k] * dq[k];
        tau[${name}_rubs_at[j]] += ${name}_coulomb[j] * ${name}_sign(speed, width);
    }
#endif
    (void)width;
}

/* Torque of a state, friction with a sign as wide as told; 0: hard. */
static inline void ${name}_torque(${given_state}const ${name}_real q[$n_joints], const ${name}_real dq[$n_joints],
                                  const ${name}_real ddq[$n_joints], ${name}_real width, ${name}_real tau[$n_joints])
{
    static const ${name}_real still[3] = {0, 0, 0};
    const ${name}_real up[3] = {-${name}_gravity[0], -${name}_gravity[1], -${name}_gravity[2]};
    ${name}_real turn[$n_links][9], arm[$n_links][3];
    ${name}_real omega[$n_links][3], alpha[$n_links][3], felt[$n_links][3], force[$n_links][3], moment[$n_links][3];
    int i, k;

    for (i = 0; i < $n_links; i++) {
        const int parent = ${name}_parent[i], c = ${name}_coordinate[i];
        const ${name}_real position = ${name}_factor[i] * q[c] + ${name}_offset[i];
        const ${name}_real velocity = ${name}_factor[i] * dq[c], acceleration = ${name}_factor[i] * ddq[c];
        const ${name}_real cosine = ${NAME}_COS(position), sine = ${NAME}_SIN(position);
        const ${name}_real *fixed = ${name}_rotation[i], *axis = ${name}_axis[i];
        const ${name}_real *w = parent < 0 ? still : omega[parent], *a = parent < 0 ? still : alpha[parent];
        ${name}_real swirl[3] = {0, 0, 0}, there[3], spin[3], twice[3];

        for (k = 0; k < 9; k++)
            turn[i][k] = fixed[k] + cosine * fixed[9 + k] + sine * fixed[18 + k];
        for (k = 0; k < 3; k++) {
            arm[i][k] = ${name}_origin[i][k] + position * ${name}_slide[i][k];
            there[k] = parent < 0 ? up[k] : felt[parent][k];
            omega[i][k] = 0;
            alpha[i][k] = acceleration * axis[k];
            felt[i][k] = acceleration * axis[3 + k];
            spin[k] = velocity * axis[k];
            twice[k] = 2 * velocity * axis[3 + k];
        }
        ${name}_add_cross(w, arm[i], swirl);
        ${name}_add_cross(a, arm[i], there);
        ${name}_add_cross(w, swirl, there);
        ${name}_add_turned(turn[i], 1, w, omega[i]);
        ${name}_add_turned(turn[i], 1, a, alpha[i]);
        ${name}_add_turned(turn[i], 1, there, felt[i]);
        ${name}_add_cross(omega[i], spin, alpha[i]);
        ${name}_add_cross(omega[i], twice, felt[i]);
        for (k = 0; k < 3; k++)
            omega[i][k] += spin[k];
        ${name}_load(i, omega[i], alpha[i], felt[i], force[i], moment[i]);
    }
    for (i = 0; i < $n_joints; i++)
        tau[i] = 0;
    for (i = $n_links - 1; i >= 0; i--) {
        const int parent = ${name}_parent[i];
        const ${name}_real *axis = ${name}_axis[i];
        ${name}_real along = 0, carried[3] = {0, 0, 0};
        for (k = 0; k < 3; k++)
            along += axis[k] * moment[i][k] + axis[3 + k] * force[i][k];
        tau[${name}_coordinate[i]] += ${name}_factor[i] * along;
        if (parent < 0)
            continue;
        ${name}_add_turned(turn[i], 0, force[i], carried);
        ${name}_add_turned(turn[i], 0, moment[i], moment[parent]);
        ${name}_add_cross(arm[i], carried, moment[parent]);
        for (k = 0; k < 3; k++)
            force[parent][k] += carried[k];
    }
$compensations$remembering    ${name}_add_drives(${passed}dq, ddq, width, tau);
$passive}

/* Motor current [A] of torque at the joints [$torque_unit], through gears and couplings, by the torque constants. */
static inline void ${name}_motor_current(const ${name}_real tau[$n_joints], ${name}_real current[$n_motors])
{
    int j, k;
    for (k = 0; k < $n_motors; k++) {
        current[k] = 0;
        for (j = 0; j < $n_joints; j++)
            current[k] += ${name}_current_per_torque[k][j] * tau[j];
    }
}

/* Clip currents to the motors' limits [A]; what is not a number becomes 0. Returns how many were changed. */
static inline int ${name}_limit_current(${name}_real current[$n_motors])
{
    int k, changed = 0;
    for (k = 0; k < $n_motors; k++) {
        const ${name}_real limit = ${name}_current_limit[k];
        if (current[k] >= -limit && current[k] <= limit)
            continue;
        current[k] = current[k] > limit ? limit : current[k] < -limit ? -limit : 0;
        changed++;
    }
    return changed;
}
$functions"""

WITHOUT_MEMORY = """
/* Torque of a state by inverse dynamics [$torque_unit]: all that the model has, the drives' offsets included. */
static inline void ${name}_inverse_dynamics(const ${name}_real q[$n_joints], const ${name}_real dq[$n_joints],
                                            const ${name}_real ddq[$n_joints], ${name}_real tau[$n_joints])
{
    ${name}_torque(q, dq, ddq, 0, tau);
}

/* Torque that a planned state asks for [$torque_unit], without the constants that are mostly what sensors read at rest;
 * friction changes its sign over a width [rad/s or m/s] of planned velocity. */
static inline void ${name}_feedforward_torque(const ${name}_real q[$n_joints], const ${name}_real dq[$n_joints],
                                              const ${name}_real ddq[$n_joints], ${name}_real width,
                                              ${name}_real tau[$n_joints])
{
    int j;
    ${name}_torque(q, dq, ddq, width, tau);
    for (j = 0; j < $n_joints; j++)
        tau[j] -= ${name}_sensor_offset[j];
}

/* The same as motor current [A]. */
static inline void ${name}_feedforward(const ${name}_real q[$n_joints], const ${name}_real dq[$n_joints],
                                       const ${name}_real ddq[$n_joints], ${name}_real width,
                                       ${name}_real current[$n_motors])
{
    ${name}_real tau[$n_joints];
    ${name}_feedforward_torque(q, dq, ddq, width, tau);
    ${name}_motor_current(tau, current);
}
"""

WITH_MEMORY = """
/* Torque of a motion by inverse dynamics [$torque_unit], sample after sample; the state is zero before the first. */
static inline void ${name}_inverse_dynamics_from(${name}_friction *state, const ${name}_real q[$n_joints],
                                                 const ${name}_real dq[$n_joints], const ${name}_real ddq[$n_joints],
                                                 ${name}_real tau[$n_joints])
{
    ${name}_torque(state, q, dq, ddq, 0, tau);
}

/* A sample by itself, with the friction of steady velocity. */
static inline void ${name}_inverse_dynamics(const ${name}_real q[$n_joints], const ${name}_real dq[$n_joints],
                                            const ${name}_real ddq[$n_joints], ${name}_real tau[$n_joints])
{
    ${name}_friction state;
    ${name}_begin(&state);
    ${name}_inverse_dynamics_from(&state, q, dq, ddq, tau);
}

/* Torque that a planned motion asks for [$torque_unit], sample after sample, without the constants that are
 * mostly what sensors read at rest. Friction with memory turns by itself, so that the width does nothing here. */
static inline void ${name}_feedforward_torque_from(${name}_friction *state, const ${name}_real q[$n_joints],
                                                   const ${name}_real dq[$n_joints], const ${name}_real ddq[$n_joints],
                                                   ${name}_real width, ${name}_real tau[$n_joints])
{
    int j;
    (void)width;
    ${name}_torque(state, q, dq, ddq, 0, tau);
    for (j = 0; j < $n_joints; j++)
        tau[j] -= ${name}_sensor_offset[j];
}

/* The same as motor current [A]. */
static inline void ${name}_feedforward_from(${name}_friction *state, const ${name}_real q[$n_joints],
                                            const ${name}_real dq[$n_joints], const ${name}_real ddq[$n_joints],
                                            ${name}_real width, ${name}_real current[$n_motors])
{
    ${name}_real tau[$n_joints];
    ${name}_feedforward_torque_from(state, q, dq, ddq, width, tau);
    ${name}_motor_current(tau, current);
}

/* A planned sample by itself, with the friction of steady velocity. */
static inline void ${name}_feedforward(const ${name}_real q[$n_joints], const ${name}_real dq[$n_joints],
                                       const ${name}_real ddq[$n_joints], ${name}_real width,
                                       ${name}_real current[$n_motors])
{
    ${name}_friction state;
    ${name}_begin(&state);
    ${name}_feedforward_from(&state, q, dq, ddq, width, current);
}
"""

REMEMBERS = """\
 * Friction remembers where each joint turned over; in a control loop keep its state, zero before the first sample:
 *
 *     static ${name}_friction state;
 *     ${name}_inverse_dynamics_from(&state, q, dq, ddq, tau);
 *     ${name}_feedforward_from(&state, q, dq, ddq, 0, current);
 *
 * one of them once a sample; two motions at a time have a state each.
 *
"""

SELF_TEST = """\
#ifdef ${NAME}_SELF_TEST
#include <stdio.h>

/* Samples of q, dq, ddq and the host's tau. */
static const double ${name}_checked[$n_checked][${n_joints} * 4] = $checked;

int main(void)
{
    /* Rounding of some hundred operations, as a share of the largest torque. */
    const double allowed = sizeof(${name}_real) == sizeof(double) ? 1e-12 : 1e-4;
    double worst = 0, largest = 0;
    int i, j;
$declared$begun    for (i = 0; i < $n_checked; i++) {
        ${name}_real motion[3][$n_joints], tau[$n_joints];
        const double *row = ${name}_checked[i];
        for (j = 0; j < 3 * $n_joints; j++)
            motion[j / $n_joints][j % $n_joints] = (${name}_real)row[j];
        ${name}_inverse_dynamics$kept(${tested}motion[0], motion[1], motion[2], tau);
        for (j = 0; j < $n_joints; j++) {
            const double wanted = row[3 * $n_joints + j], error = fabs((double)tau[j] - wanted);
            worst = error > worst || error != error ? error : worst; /* also what is not a number, which stays */
            largest = fabs(wanted) > largest ? fabs(wanted) : largest;
        }
    }
    printf("$name: largest torque %.6g, largest difference to the host %.3g, allowed %.3g\\n", largest, worst,
           allowed * largest);
    return worst <= allowed * largest ? 0 : 1;
}
#endif

#endif
"""
