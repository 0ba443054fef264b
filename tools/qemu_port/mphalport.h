// The hardware as MicroPython's core sees it: console.c and time.c.

#include <stddef.h>
#include "shared/runtime/interrupt_char.h"

void console_init(void);
void console_interrupt(void);
