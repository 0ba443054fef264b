// A word of the mailbox (hil_tests/virtual_bench/mailbox.py) says who has the console. The bench lets no tick pass while
// the REPL is at work, so what is typed there takes none of the board's time.

#include <stdint.h>

#define PHASE (*(volatile uint32_t *)0x2100000C)

enum { PROGRAM = 1, PROMPT, BUSY }; // boot.py or main.py; the REPL waiting for input; the REPL at work
