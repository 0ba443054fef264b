// Time since power-on, from the board's own counters. Under QEMU's -icount it is a count of instructions.

#include "py/mphal.h"
#include "py/runtime.h"

#define CLK100HZ (*(volatile uint32_t *)0x40028014)
#define COUNTER (*(volatile uint32_t *)0x40028018) // unless a program changes its prescaler, at:
#define CLOCK_HZ 25000000

// Cycles since the last step of the slow counter. The fast one alone would wrap after 171 s.
static uint32_t cycles_after(uint32_t hundredths) {
    return COUNTER - hundredths * (CLOCK_HZ / 100);
}

mp_uint_t mp_hal_ticks_cpu(void) {
    return COUNTER;
}

mp_uint_t mp_hal_ticks_us(void) {
    uint32_t hundredths = CLK100HZ;
    return hundredths * 10000 + cycles_after(hundredths) / (CLOCK_HZ / 1000000);
}

mp_uint_t mp_hal_ticks_ms(void) {
    uint32_t hundredths = CLK100HZ;
    return hundredths * 10 + cycles_after(hundredths) / (CLOCK_HZ / 1000);
}

uint64_t mp_hal_time_ns(void) {
    uint32_t hundredths = CLK100HZ;
    return hundredths * 10000000ull + cycles_after(hundredths) * (1000000000 / CLOCK_HZ);
}

void mp_hal_delay_us(mp_uint_t us) {
    for (uint32_t start = mp_hal_ticks_us(); mp_hal_ticks_us() - start < us;) {
        mp_handle_pending(true);
    }
}

void mp_hal_delay_ms(mp_uint_t ms) {
    while (ms--) {
        mp_hal_delay_us(1000);
    }
}
