"""Where the RP2040 and the RP2350 keep what the drivers reach by address (their data sheets, register lists)."""

import sys

from micropython import const

IS_RP2350 = "RP2350" in sys.implementation._machine

ADC = 0x400A0000 if IS_RP2350 else 0x4004C000
ADC_REQUEST = 48 if IS_RP2350 else 36  # DREQ_ADC
DMA_BUSY = 26 if IS_RP2350 else 24  # bit of CTRL_TRIG
PWM = 0x400A8000 if IS_RP2350 else 0x40050000
WATCHDOG = 0x400D8000 if IS_RP2350 else 0x40058000
TIMER = (0x400B0000 if IS_RP2350 else 0x40054000) + 0x28  # TIMERAWL: microseconds
UART = (0x40070000, 0x40078000) if IS_RP2350 else (0x40034000, 0x40038000)
UART_TX_REQUEST = 28 if IS_RP2350 else 20  # of UART 0; then its RX, and the other UART's
SPI = (0x40080000, 0x40088000) if IS_RP2350 else (0x4003C000, 0x40040000)
I2C = (0x40090000, 0x40098000) if IS_RP2350 else (0x40044000, 0x40048000)
PIN_SET = 0xD0000018 if IS_RP2350 else 0xD0000014  # SIO, of GPIO 0 to 31
PIN_LOOK = 0xD0000004
PIN_CONTROL = 0x40028004 if IS_RP2350 else 0x40014004  # GPIO0_CTRL; of each pin 8 bytes on
INVERTED = 1 << 12 if IS_RP2350 else 1 << 8  # in it: the pin is driven the other way round
PIN_CLEAR = 0xD0000020 if IS_RP2350 else 0xD0000018
PIO = 0x50200000  # of the first one
PIO_STEP = const(0x100000)
PIO_RX_REQUEST = const(4)  # DREQ of the first state machine's RX FIFO
PIO_REQUEST_STEP = const(8)
FREQUENCY_HZ = const(20000)  # of a drive's PWM where config.json has none
WATCHDOG_LOAD = const(4)
WATCHDOG_COUNTS = 1000 if IS_RP2350 else 2000  # of a millisecond; erratum RP2040-E1: it counts twice
CLEAR = const(0x3000)  # a word written here clears its bits in the register
