// machine.reset(), machine.reset_cause() and machine.flash. Included by extmod/modmachine.c.

#include "ports/jointbench/flash.h"

#define AIRCR (*(volatile uint32_t *)0xE000ED0C)
#define SYSRESETREQ 0x05FA0004

// A word of memory that nothing else uses: it is zero at power-on, and a reset leaves it as it is.
#define LAST_WORDS (*(volatile uint32_t *)0x20000000)
#define RUNNING 0x4A420001
#define RESET_ASKED 0x4A420002

enum { PWRON_RESET = 1, HARD_RESET, WDT_RESET, SOFT_RESET = 5 };

#define MICROPY_PY_MACHINE_EXTRA_GLOBALS \
    { MP_ROM_QSTR(MP_QSTR_PWRON_RESET), MP_ROM_INT(PWRON_RESET) }, \
    { MP_ROM_QSTR(MP_QSTR_HARD_RESET), MP_ROM_INT(HARD_RESET) }, \
    { MP_ROM_QSTR(MP_QSTR_WDT_RESET), MP_ROM_INT(WDT_RESET) }, \
    { MP_ROM_QSTR(MP_QSTR_SOFT_RESET), MP_ROM_INT(SOFT_RESET) }, \
    { MP_ROM_QSTR(MP_QSTR_flash), MP_ROM_PTR(&flash_obj) },

static int reset_cause;

// Called before each start of the interpreter.
void reset_cause_init(void) {
    static const int causes[] = {WDT_RESET, HARD_RESET};
    if (reset_cause) {
        reset_cause = SOFT_RESET;
    } else if (LAST_WORDS == RUNNING || LAST_WORDS == RESET_ASKED) {
        reset_cause = causes[LAST_WORDS - RUNNING];
    } else {
        reset_cause = PWRON_RESET;
    }
    LAST_WORDS = RUNNING;
}

static void mp_machine_idle(void) {
    mp_handle_pending(true);
}

NORETURN static void mp_machine_reset(void) {
    LAST_WORDS = RESET_ASKED;
    AIRCR = SYSRESETREQ;
    for (;;) {
    }
}

static mp_int_t mp_machine_reset_cause(void) {
    return reset_cause;
}
