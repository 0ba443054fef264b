// What this build of MicroPython can do: what its QEMU port can, and what a board with a flash and a clock can besides.
// The interpreter itself is left as it is, so an instruction costs here what it costs there.

#include "ports/qemu/mpconfigport.h"

#define MICROPY_HW_BOARD_NAME "mps2-an385"
#define MICROPY_HW_MCU_NAME "Cortex-M3"

#define MICROPY_HEAP_SIZE (256 * 1024)
#define MICROPY_STACK_SIZE (16 * 1024) // as RP2040 and STM32 boards have it

#undef MICROPY_PY_TIME
#define MICROPY_PY_TIME (1)
#undef MICROPY_PY_SELECT
#define MICROPY_PY_SELECT (1)
#undef MICROPY_PY_SYS_STDIO_BUFFER
#define MICROPY_PY_SYS_STDIO_BUFFER (1)
#undef MICROPY_PY_MACHINE_INCLUDEFILE
#define MICROPY_PY_MACHINE_INCLUDEFILE "ports/jointbench/modmachine.c"
#define MICROPY_PY_MACHINE_DISABLE_IRQ_ENABLE_IRQ (1)

#define MICROPY_ENABLE_FINALISER (1) // open files

// The console's interrupt schedules a KeyboardInterrupt.
static inline uint32_t irq_disable(void) {
    uint32_t masked;
    __asm volatile ("mrs %0, primask\n cpsid i" : "=r" (masked) :: "memory");
    return masked;
}
static inline void irq_restore(uint32_t masked) {
    __asm volatile ("msr primask, %0" :: "r" (masked) : "memory");
}
#define MICROPY_BEGIN_ATOMIC_SECTION() irq_disable()
#define MICROPY_END_ATOMIC_SECTION(masked) irq_restore(masked)

#define MICROPY_EVENT_POLL_HOOK mp_handle_pending(true);
