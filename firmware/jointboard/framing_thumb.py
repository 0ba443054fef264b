"""Kernels of framing.py for ARMv7-M cores, generated from it by python -m tools.kernel_compiler."""

import micropython


@micropython.asm_thumb
def decode(r0, r1, r2):
    data(2, 0xF84D, 0x8D04)  # push.w {r8}
    data(2, 0xE9D0, 0x8700)  # ldrd r8, r7, [r0, #0]
    data(2, 0xE9D0, 0xE502)  # ldrd lr, r5, [r0, #8]
    data(2, 0xE9D0, 0xC404)  # ldrd r12, r4, [r0, #16]
    mov(r3, 0)
    b(L11)
    label(L0)
    cmp(r3, 0)
    bne(L12)
    data(2, 0xF811, 0x6007)  # ldrb.w r6, [r1, r7]
    add(r7, r7, 1)
    data(2, 0xB9A6)  # cbnz r6, L4
    data(2, 0xF1BC, 0x0F00)  # cmp.w r12, #0
    ble(L3)
    str(r4, [r0, 24])
    data(2, 0xF1BE, 0x0F00)  # cmp.w lr, #0
    bgt(L1)
    data(2, 0xF5B4, 0x6F8C)  # cmp.w r4, #1120
    ble(L2)
    label(L1)
    data(2, 0xF04F, 0x33FF)  # mov.w r3, #4294967295
    str(r3, [r0, 24])
    label(L2)
    mov(r3, 1)
    label(L3)
    mov(r5, 0)
    data(2, 0xF04F, 0x0E00)  # mov.w lr, #0
    mov(r4, 0)
    data(2, 0xF04F, 0x0C00)  # mov.w r12, #0
    b(L11)
    label(L4)
    data(2, 0xF10C, 0x0C01)  # add.w r12, r12, #1
    data(2, 0xF1BE, 0x0F00)  # cmp.w lr, #0
    ble(L5)
    data(2, 0xF10E, 0x3EFF)  # add.w lr, lr, #4294967295
    b(L9)
    label(L5)
    data(2, 0xF106, 0x3EFF)  # add.w lr, r6, #4294967295
    data(2, 0xB915)  # cbnz r5, L6
    data(2, 0xF04F, 0x36FF)  # mov.w r6, #4294967295
    b(L7)
    label(L6)
    mov(r6, 0)
    label(L7)
    data(2, 0xF1BE, 0x0FFE)  # cmp.w lr, #254
    bne(L8)
    mov(r5, 0)
    b(L9)
    label(L8)
    mov(r5, 1)
    label(L9)
    cmp(r6, 0)
    blt(L11)
    data(2, 0xF5B4, 0x6F8C)  # cmp.w r4, #1120
    bge(L10)
    data(2, 0xF808, 0x6004)  # strb.w r6, [r8, r4]
    label(L10)
    data(2, 0xF5B4, 0x6F8C)  # cmp.w r4, #1120
    bgt(L11)
    add(r4, r4, 1)
    label(L11)
    cmp(r7, r2)
    blt(L0)
    label(L12)
    data(2, 0xE9C0, 0x7E01)  # strd r7, lr, [r0, #4]
    data(2, 0xE9C0, 0x5C03)  # strd r5, r12, [r0, #12]
    str(r4, [r0, 20])
    mov(r0, r3)
    data(2, 0xF85D, 0x8B04)  # pop.w {r8}


@micropython.asm_thumb
def take_block(r0, r1, r2):
    ldr(r5, [r0, 68])
    data(2, 0xE9D1, 0x43E3)  # ldrd r4, r3, [r1, #908]
    data(2, 0xF8D1, 0x6200)  # ldr.w r6, [r1, #512]
    str(r3, [r5, 12])
    data(2, 0xF8D1, 0x339C)  # ldr.w r3, [r1, #924]
    str(r3, [r5, 16])
    data(2, 0xF8D1, 0x3394)  # ldr.w r3, [r1, #916]
    str(r3, [r5, 20])
    data(2, 0xF8D1, 0x30A0)  # ldr.w r3, [r1, #160]
    data(2, 0xEA43, 0x4202)  # orr.w r2, r3, r2, lsl #16
    str(r2, [r5, 24])
    data(2, 0xF8D1, 0x2214)  # ldr.w r2, [r1, #532]
    data(2, 0xEA44, 0x2202)  # orr.w r2, r4, r2, lsl #8
    strh(r2, [r5, 28])
    str(r5, [r0, 0])
    data(2, 0xF8D1, 0x220C)  # ldr.w r2, [r1, #524]
    sub(r2, r2, r5)
    data(2, 0xF1A2, 0x030C)  # sub.w r3, r2, #12
    mov(r2, 32)
    data(2, 0xE9C0, 0x3201)  # strd r3, r2, [r0, #4]
    ldr(r2, [r1, 0])
    str(r2, [r0, 12])
    ldr(r3, [r6, 4])
    ldr(r2, [r0, 72])
    data(2, 0xE9C0, 0x3204)  # strd r3, r2, [r0, #16]
    data(2, 0xF44F, 0x62AF)  # mov.w r2, #1400
    str(r2, [r0, 24])
    mov(r0, 0)
    data(2, 0xF8C1, 0x038C)  # str.w r0, [r1, #908]
    data(2, 0xF105, 0x001E)  # add.w r0, r5, #30
    data(2, 0xF8C1, 0x020C)  # str.w r0, [r1, #524]
    mov(r0, r4)


@micropython.asm_thumb
def queue(r0):
    data(2, 0xE92D, 0x0F00)  # push.w {r8, r9, r10, r11}
    ldr(r7, [r0, 4])
    data(2, 0xF107, 0x060C)  # add.w r6, r7, #12
    data(2, 0xE9D0, 0x4508)  # ldrd r4, r5, [r0, #32]
    sub(r1, r4, r5)
    data(2, 0xF3C1, 0x020C)  # ubfx r2, r1, #0, #13
    movw(r1, 8191)
    sub(r3, r1, r2)
    data(2, 0xF107, 0x0210)  # add.w r2, r7, #16
    mov(r1, 254)
    udiv(r1, r2, r1)
    add(r1, r2, r1)
    add(r2, r1, 2)
    ldr(r1, [r0, 24])
    add(r1, r2, r1)
    cmp(r3, r1)
    bge(L0)
    ldr(r1, [r0, 52])
    add(r1, r1, 1)
    str(r1, [r0, 52])
    mov(r0, 0)
    b(L16)
    label(L0)
    data(2, 0xF8D0, 0xA000)  # ldr.w r10, [r0, #0]
    ldr(r3, [r0, 76])
    data(2, 0xE9D0, 0x2102)  # ldrd r2, r1, [r0, #8]
    data(2, 0xEA43, 0x2202)  # orr.w r2, r3, r2, lsl #8
    data(2, 0xEA42, 0x4101)  # orr.w r1, r2, r1, lsl #16
    data(2, 0xF8CA, 0x1000)  # str.w r1, [r10, #0]
    ldr(r2, [r0, 28])
    ldr(r1, [r0, 4])
    data(2, 0xEA42, 0x4101)  # orr.w r1, r2, r1, lsl #16
    data(2, 0xF8CA, 0x1004)  # str.w r1, [r10, #4]
    ldr(r1, [r0, 16])
    data(2, 0xF8CA, 0x1008)  # str.w r1, [r10, #8]
    data(2, 0xF8D0, 0xC03C)  # ldr.w r12, [r0, #60]
    data(2, 0xF50C, 0x6980)  # add.w r9, r12, #1024
    data(2, 0xF50C, 0x6800)  # add.w r8, r12, #2048
    data(2, 0xF50C, 0x6E40)  # add.w lr, r12, #3072
    ldr(r1, [r0, 20])
    data(2, 0xF081, 0x37FF)  # eor.w r7, r1, #4294967295
    asr(r3, r6, 2)
    mov(r2, 0)
    b(L2)
    label(L1)
    data(2, 0xF85A, 0x1022)  # ldr.w r1, [r10, r2, lsl #2]
    data(2, 0xEA87, 0x0B01)  # eor.w r11, r7, r1
    add(r2, r2, 1)
    data(2, 0xF3CB, 0x0107)  # ubfx r1, r11, #0, #8
    data(2, 0xF85E, 0x7021)  # ldr.w r7, [lr, r1, lsl #2]
    data(2, 0xF3CB, 0x2107)  # ubfx r1, r11, #8, #8
    data(2, 0xF858, 0x1021)  # ldr.w r1, [r8, r1, lsl #2]
    eor(r7, r1)
    data(2, 0xF3CB, 0x4107)  # ubfx r1, r11, #16, #8
    data(2, 0xF859, 0x1021)  # ldr.w r1, [r9, r1, lsl #2]
    eor(r7, r1)
    data(2, 0xF3CB, 0x6107)  # ubfx r1, r11, #24, #8
    data(2, 0xF85C, 0x1021)  # ldr.w r1, [r12, r1, lsl #2]
    eor(r7, r1)
    label(L2)
    cmp(r2, r3)
    blt(L1)
    data(2, 0xF8D0, 0xE000)  # ldr.w lr, [r0, #0]
    lsl(r3, r3, 2)
    b(L4)
    label(L3)
    data(2, 0xF81E, 0x1003)  # ldrb.w r1, [lr, r3]
    eor(r1, r7)
    data(2, 0xF3C1, 0x0107)  # ubfx r1, r1, #0, #8
    data(2, 0xF85C, 0x2021)  # ldr.w r2, [r12, r1, lsl #2]
    data(2, 0xF3C7, 0x2117)  # ubfx r1, r7, #8, #24
    data(2, 0xEA82, 0x0701)  # eor.w r7, r2, r1
    add(r3, r3, 1)
    label(L4)
    cmp(r3, r6)
    blt(L3)
    data(2, 0xF087, 0x33FF)  # eor.w r3, r7, #4294967295
    data(2, 0xEB0E, 0x0206)  # add.w r2, lr, r6
    strb(r3, [r2, 0])
    asr(r1, r3, 8)
    strb(r1, [r2, 1])
    asr(r1, r3, 16)
    strb(r1, [r2, 2])
    asr(r1, r3, 24)
    strb(r1, [r2, 3])
    data(2, 0xF106, 0x0C04)  # add.w r12, r6, #4
    ldr(r1, [r0, 56])
    add(r3, r1, r4)
    add(r7, r3, 1)
    mov(r1, 0)
    mov(r4, 0)
    b(L10)
    label(L5)
    data(2, 0xF101, 0x06FE)  # add.w r6, r1, #254
    data(2, 0xEBB6, 0x0F0C)  # cmp.w r6, r12
    ble(L7)
    mov(r6, r12)
    b(L7)
    label(L6)
    data(2, 0xF81E, 0x2004)  # ldrb.w r2, [lr, r4]
    data(2, 0xF807, 0x2004)  # strb.w r2, [r7, r4]
    add(r4, r4, 1)
    data(2, 0xB91A)  # cbnz r2, L7
    sub(r2, r4, r1)
    data(2, 0xF803, 0x2001)  # strb.w r2, [r3, r1]
    mov(r1, r4)
    label(L7)
    cmp(r4, r6)
    blt(L6)
    sub(r2, r4, r1)
    cmp(r2, 254)
    bne(L8)
    data(2, 0xEBB4, 0x0F0C)  # cmp.w r4, r12
    bge(L8)
    mov(r2, 255)
    data(2, 0xF803, 0x2001)  # strb.w r2, [r3, r1]
    add(r2, r7, 1)
    mov(r3, r7)
    mov(r1, r4)
    b(L9)
    label(L8)
    mov(r2, r7)
    label(L9)
    mov(r7, r2)
    label(L10)
    data(2, 0xEBB4, 0x0F0C)  # cmp.w r4, r12
    blt(L5)
    sub(r2, r4, r1)
    add(r2, r2, 1)
    data(2, 0xF803, 0x2001)  # strb.w r2, [r3, r1]
    mov(r1, 0)
    data(2, 0xF807, 0x1004)  # strb.w r1, [r7, r4]
    add(r1, r3, r4)
    add(r1, r1, 2)
    ldr(r6, [r0, 56])
    sub(r2, r1, r6)
    data(2, 0xF5B2, 0x5F00)  # cmp.w r2, #8192
    blt(L13)
    data(2, 0xF5A2, 0x5200)  # sub.w r2, r2, #8192
    data(2, 0xF506, 0x5400)  # add.w r4, r6, #8192
    mov(r3, 0)
    b(L12)
    label(L11)
    data(2, 0xF814, 0x1003)  # ldrb.w r1, [r4, r3]
    data(2, 0xF806, 0x1003)  # strb.w r1, [r6, r3]
    add(r3, r3, 1)
    label(L12)
    cmp(r3, r2)
    blt(L11)
    label(L13)
    str(r2, [r0, 32])
    ldr(r1, [r0, 44])
    data(2, 0xB111)  # cbz r1, L14
    ldr(r1, [r0, 8])
    cmp(r1, 36)
    bne(L15)
    label(L14)
    sub(r1, r2, r5)
    data(2, 0xF3C1, 0x010C)  # ubfx r1, r1, #0, #13
    str(r1, [r0, 40])
    label(L15)
    ldr(r1, [r0, 28])
    add(r1, r1, 1)
    data(2, 0xF3C1, 0x010F)  # ubfx r1, r1, #0, #16
    str(r1, [r0, 28])
    ldr(r1, [r0, 48])
    add(r1, r1, 1)
    str(r1, [r0, 48])
    mov(r0, 1)
    label(L16)
    data(2, 0xE8BD, 0x0F00)  # pop.w {r8, r9, r10, r11}


@micropython.asm_thumb
def drain(r0, r1):
    ldr(r2, [r0, 40])
    cmp(r2, r1)
    bgt(L0)
    mov(r1, r2)
    label(L0)
    ldr(r7, [r0, 36])
    ldr(r2, [r0, 56])
    add(r6, r2, r7)
    ldr(r5, [r0, 64])
    data(2, 0xF5C7, 0x5400)  # rsb.w r4, r7, #8192
    cmp(r4, r1)
    ble(L1)
    mov(r4, r1)
    label(L1)
    mov(r3, 0)
    b(L3)
    label(L2)
    data(2, 0xF816, 0x2003)  # ldrb.w r2, [r6, r3]
    data(2, 0xF805, 0x2003)  # strb.w r2, [r5, r3]
    add(r3, r3, 1)
    label(L3)
    cmp(r3, r4)
    blt(L2)
    ldr(r2, [r0, 56])
    add(r2, r2, r7)
    data(2, 0xF5A2, 0x5400)  # sub.w r4, r2, #8192
    b(L5)
    label(L4)
    data(2, 0xF814, 0x2003)  # ldrb.w r2, [r4, r3]
    data(2, 0xF805, 0x2003)  # strb.w r2, [r5, r3]
    add(r3, r3, 1)
    label(L5)
    cmp(r3, r1)
    blt(L4)
    add(r2, r7, r1)
    data(2, 0xF3C2, 0x030C)  # ubfx r3, r2, #0, #13
    ldr(r2, [r0, 40])
    sub(r2, r2, r1)
    data(2, 0xE9C0, 0x3209)  # strd r3, r2, [r0, #36]
    mov(r0, r1)
