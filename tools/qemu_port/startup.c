// From reset to main(), and where interrupts go.

#include <stdint.h>

#include "mphalport.h"

#define ICER ((volatile uint32_t *)0xE000E180) // interrupts of the NVIC to mask, one bit each
#define IRQS 32

extern uint32_t _estack, _sidata, _sdata, _edata, _sbss, _ebss;

int main(void);
void NMI_Handler(void);
void HardFault_Handler(void);
void MemManage_Handler(void);
void BusFault_Handler(void);
void UsageFault_Handler(void);
void SVC_Handler(void);
void DebugMon_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);

__attribute__((naked)) void Reset_Handler(void) {
    __asm volatile ("ldr r0, =_estack\n mov sp, r0\n b start");
}

__attribute__((used)) void start(void) {
    for (uint32_t *from = &_sidata, *to = &_sdata; to < &_edata;) {
        *to++ = *from++;
    }
    for (uint32_t *to = &_sbss; to < &_ebss;) {
        *to++ = 0;
    }
    main();
}

// An interrupt that a program let through is masked, and so comes once: programs wait with wfi and poll.
static void mask_interrupt(void) {
    uint32_t number;
    __asm volatile ("mrs %0, ipsr" : "=r" (number));
    *ICER = 1u << (number - 16);
}

__attribute__((section(".isr_vector"), used)) static const void *const vectors[16 + IRQS] = {
    &_estack,
    Reset_Handler,
    NMI_Handler,
    HardFault_Handler,
    MemManage_Handler,
    BusFault_Handler,
    UsageFault_Handler,
    [11] = SVC_Handler,
    DebugMon_Handler,
    [14] = PendSV_Handler,
    SysTick_Handler,
    [16] = console_interrupt, // UART 0 has received
    [17 ... 16 + IRQS - 1] = mask_interrupt,
};
