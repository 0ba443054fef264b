// The REPL's console: UART 0. What it receives waits in a ring, so that Ctrl-C is seen while a program runs.
//
// When the ring is full the byte stays in the UART, and QEMU holds back the next: nothing is lost. A program that wants
// the UART for itself masks its interrupt (bit 0 of the NVIC's ICER) or takes the meaning off Ctrl-C: micropython.kbd_intr(-1).

#include "py/mphal.h"
#include "py/ringbuf.h"
#include "py/runtime.h"
#include "py/stream.h"
#include "phase.h"

typedef struct {
    volatile uint32_t DATA, STATE, CTRL, INTCLEAR, BAUDDIV;
} uart_t;

#define UART0 ((uart_t *)0x40004000)
#define TX_FULL (1 << 0) // of STATE
#define RX_FULL (1 << 1)
#define TX_EN (1 << 0) // of CTRL
#define RX_EN (1 << 1)
#define RX_INTEN (1 << 3)
#define RX_INT (1 << 1) // of INTCLEAR
#define ISER ((volatile uint32_t *)0xE000E100)
#define UART0_RX_IRQ (1 << 0)

static uint8_t room[256];
static ringbuf_t received = {room, sizeof(room), 0, 0};

void console_init(void) {
    UART0->BAUDDIV = 16; // the smallest that the UART takes; QEMU moves bytes at once
    UART0->CTRL = TX_EN | RX_EN | RX_INTEN;
    *ISER = UART0_RX_IRQ;
}

// Moves what has arrived into the ring; interrupts are off.
static void receive(void) {
    UART0->CTRL = TX_EN | RX_EN | RX_INTEN;
    while (UART0->STATE & RX_FULL) {
        if (!ringbuf_free(&received)) {
            UART0->CTRL = TX_EN | RX_EN;
            UART0->INTCLEAR = RX_INT;
            return;
        }
        UART0->INTCLEAR = RX_INT; // before the read, which lets the next byte in
        int c = UART0->DATA;
        if (c == mp_interrupt_char) {
            mp_sched_keyboard_interrupt();
        } else {
            ringbuf_put(&received, c);
        }
    }
}

void console_interrupt(void) {
    receive();
}

static int take(void) {
    uint32_t masked = irq_disable();
    int c = ringbuf_get(&received);
    if (c >= 0) {
        receive(); // what waited for room
    }
    irq_restore(masked);
    return c;
}

int mp_hal_stdin_rx_chr(void) {
    for (;;) {
        int c = take();
        if (c >= 0) {
            if (PHASE == PROMPT) {
                PHASE = BUSY;
            }
            return c;
        }
        mp_handle_pending(true);
        uint32_t masked = irq_disable();
        if (!ringbuf_avail(&received)) {
            if (PHASE == BUSY) {
                PHASE = PROMPT;
            }
            __asm volatile ("wfi"); // also wakes up with interrupts masked
        }
        irq_restore(masked);
    }
}

uintptr_t mp_hal_stdio_poll(uintptr_t flags) {
    return (flags & MP_STREAM_POLL_RD && ringbuf_avail(&received) ? MP_STREAM_POLL_RD : 0) | (flags & MP_STREAM_POLL_WR);
}

mp_uint_t mp_hal_stdout_tx_strn(const char *text, size_t length) {
    for (size_t i = 0; i < length; ++i) {
        while (UART0->STATE & TX_FULL) {
        }
        UART0->DATA = text[i];
    }
    return length;
}
