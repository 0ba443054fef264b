"""decode, encode of framing.py for ARMv7-M cores; generated from it by python -m tools.kernel_compiler."""

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
def encode(r0, r1, r2, r3):
    add(r4, r3, 1)
    data(2, 0xF3C4, 0x040C)  # ubfx r4, r4, #0, #13
    mov(r5, 1)
    mov(r7, 0)
    b(L3)
    label(L0)
    data(2, 0xF810, 0x6007)  # ldrb.w r6, [r0, r7]
    add(r7, r7, 1)
    data(2, 0xB12E)  # cbz r6, L1
    data(2, 0xF802, 0x6004)  # strb.w r6, [r2, r4]
    add(r4, r4, 1)
    data(2, 0xF3C4, 0x040C)  # ubfx r4, r4, #0, #13
    add(r5, r5, 1)
    label(L1)
    data(2, 0xB11E)  # cbz r6, L2
    cmp(r5, 255)
    bne(L3)
    cmp(r7, r1)
    bge(L3)
    label(L2)
    data(2, 0xF802, 0x5003)  # strb.w r5, [r2, r3]
    add(r3, r4, 1)
    data(2, 0xF3C3, 0x060C)  # ubfx r6, r3, #0, #13
    mov(r3, r4)
    mov(r5, 1)
    mov(r4, r6)
    label(L3)
    cmp(r7, r1)
    blt(L0)
    data(2, 0xF802, 0x5003)  # strb.w r5, [r2, r3]
    mov(r0, 0)
    data(2, 0xF802, 0x0004)  # strb.w r0, [r2, r4]
    add(r0, r4, 1)
    data(2, 0xF3C0, 0x000C)  # ubfx r0, r0, #0, #13
