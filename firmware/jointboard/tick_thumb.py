"""Kernels of tick.py for ARMv7-M cores, generated from it by python -m tools.kernel_compiler."""

import micropython


@micropython.asm_thumb
def tick(r0):
    data(2, 0xE92D, 0x0F00)  # push.w {r8, r9, r10, r11}
    data(2, 0xB095)  # sub sp, #84
    data(2, 0xF8D0, 0x9200)  # ldr.w r9, [r0, #512]
    data(2, 0xF8D9, 0x2000)  # ldr.w r2, [r9, #0]
    data(2, 0xF8D0, 0x1210)  # ldr.w r1, [r0, #528]
    sub(r1, r2, r1)
    cmp(r1, 1)
    beq(L0)
    mov(r0, 1)
    data(2, 0xF000, 0xBD0A)  # b.w L102
    label(L0)
    data(2, 0xF8D9, 0x2008)  # ldr.w r2, [r9, #8]
    data(2, 0xF8D0, 0x121C)  # ldr.w r1, [r0, #540]
    cmp(r2, r1)
    beq(L1)
    data(2, 0xF8C0, 0x221C)  # str.w r2, [r0, #540]
    mov(r2, 32)
    b(L2)
    label(L1)
    mov(r2, 0)
    label(L2)
    data(2, 0xF8D9, 0x1000)  # ldr.w r1, [r9, #0]
    data(2, 0xF8C0, 0x1210)  # str.w r1, [r0, #528]
    data(2, 0xE9D9, 0x3108)  # ldrd r3, r1, [r9, #32]
    add(r4, r3, r1)
    data(2, 0xE9D9, 0x310A)  # ldrd r3, r1, [r9, #40]
    add(r3, r4, r3)
    add(r5, r3, r1)
    data(2, 0xE9D9, 0x310C)  # ldrd r3, r1, [r9, #48]
    add(r4, r3, r1)
    data(2, 0xE9D9, 0x310E)  # ldrd r3, r1, [r9, #56]
    add(r3, r4, r3)
    add(r6, r3, r1)
    add(r1, r5, r6)
    data(2, 0xF3C1, 0x050F)  # ubfx r5, r1, #0, #16
    asr(r4, r1, 16)
    add(r1, r5, r4)
    data(2, 0xF5A1, 0x4100)  # sub.w r1, r1, #32768
    data(2, 0x910D)  # str r1, [sp, #52]
    ldr(r1, [r0, 64])
    cmp(r1, 2)
    bne(L3)
    data(2, 0xE9D9, 0xC709)  # ldrd r12, r7, [r9, #36]
    data(2, 0xE9D9, 0x310E)  # ldrd r3, r1, [r9, #56]
    add(r3, r7, r3)
    data(2, 0xEB0C, 0x0743)  # add.w r7, r12, r3, lsl #1
    data(2, 0xF8D9, 0x302C)  # ldr.w r3, [r9, #44]
    add(r1, r3, r1)
    data(2, 0xEB01, 0x0141)  # add.w r1, r1, r1, lsl #1
    add(r3, r7, r1)
    data(2, 0xF8D9, 0x1034)  # ldr.w r1, [r9, #52]
    add(r1, r3, r1)
    data(2, 0xF3C1, 0x030F)  # ubfx r3, r1, #0, #16
    data(2, 0xF3C1, 0x410F)  # ubfx r1, r1, #16, #16
    add(r3, r3, r1)
    data(2, 0xF3C6, 0x010F)  # ubfx r1, r6, #0, #16
    data(2, 0xEB01, 0x4126)  # add.w r1, r1, r6, asr #16
    data(2, 0xEB03, 0x0181)  # add.w r1, r3, r1, lsl #2
    data(2, 0xEB05, 0x0141)  # add.w r1, r5, r1, lsl #1
    data(2, 0xEB01, 0x0544)  # add.w r5, r1, r4, lsl #1
    data(2, 0xE9D0, 0x13C1)  # ldrd r1, r3, [r0, #772]
    sub(r4, r1, r5)
    data(2, 0x990D)  # ldr r1, [sp, #52]
    data(2, 0xEB04, 0x1101)  # add.w r1, r4, r1, lsl #4
    add(r3, r1, r3)
    data(2, 0xF3C3, 0x0103)  # ubfx r1, r3, #0, #4
    data(2, 0xE9C0, 0x51C1)  # strd r5, r1, [r0, #772]
    data(2, 0xEA4F, 0x1823)  # asr.w r8, r3, #4
    b(L4)
    label(L3)
    data(2, 0xF8DD, 0x8034)  # ldr.w r8, [sp, #52]
    label(L4)
    data(2, 0xE9D9, 0x3110)  # ldrd r3, r1, [r9, #64]
    add(r4, r3, r1)
    data(2, 0xE9D9, 0x3112)  # ldrd r3, r1, [r9, #72]
    add(r3, r4, r3)
    add(r5, r3, r1)
    data(2, 0xE9D9, 0x3114)  # ldrd r3, r1, [r9, #80]
    add(r4, r3, r1)
    data(2, 0xE9D9, 0x3116)  # ldrd r3, r1, [r9, #88]
    add(r3, r4, r3)
    add(r6, r3, r1)
    add(r1, r5, r6)
    data(2, 0xF3C1, 0x050F)  # ubfx r5, r1, #0, #16
    asr(r4, r1, 16)
    add(r1, r5, r4)
    data(2, 0xF5A1, 0x4E00)  # sub.w lr, r1, #32768
    ldr(r1, [r0, 64])
    cmp(r1, 2)
    bne(L5)
    data(2, 0xE9D9, 0xC711)  # ldrd r12, r7, [r9, #68]
    data(2, 0xE9D9, 0x3116)  # ldrd r3, r1, [r9, #88]
    add(r3, r7, r3)
    data(2, 0xEB0C, 0x0743)  # add.w r7, r12, r3, lsl #1
    data(2, 0xF8D9, 0x304C)  # ldr.w r3, [r9, #76]
    add(r1, r3, r1)
    data(2, 0xEB01, 0x0141)  # add.w r1, r1, r1, lsl #1
    add(r3, r7, r1)
    data(2, 0xF8D9, 0x1054)  # ldr.w r1, [r9, #84]
    add(r1, r3, r1)
    data(2, 0xF3C1, 0x030F)  # ubfx r3, r1, #0, #16
    data(2, 0xF3C1, 0x410F)  # ubfx r1, r1, #16, #16
    add(r3, r3, r1)
    data(2, 0xF3C6, 0x010F)  # ubfx r1, r6, #0, #16
    data(2, 0xEB01, 0x4126)  # add.w r1, r1, r6, asr #16
    data(2, 0xEB03, 0x0181)  # add.w r1, r3, r1, lsl #2
    data(2, 0xEB05, 0x0141)  # add.w r1, r5, r1, lsl #1
    data(2, 0xEB01, 0x0444)  # add.w r4, r1, r4, lsl #1
    data(2, 0xE9D0, 0x31A1)  # ldrd r3, r1, [r0, #644]
    sub(r3, r3, r4)
    data(2, 0xEB03, 0x130E)  # add.w r3, r3, lr, lsl #4
    add(r3, r3, r1)
    data(2, 0xF3C3, 0x0103)  # ubfx r1, r3, #0, #4
    data(2, 0xE9C0, 0x41A1)  # strd r4, r1, [r0, #644]
    data(2, 0xEA4F, 0x1E23)  # asr.w lr, r3, #4
    label(L5)
    data(2, 0xE9D0, 0xC3C3)  # ldrd r12, r3, [r0, #780]
    data(2, 0xE9D0, 0x76C5)  # ldrd r7, r6, [r0, #788]
    data(2, 0xE9D0, 0x51C7)  # ldrd r5, r1, [r0, #796]
    data(2, 0x910B)  # str r1, [sp, #44]
    data(2, 0xF8D0, 0x4324)  # ldr.w r4, [r0, #804]
    data(2, 0xE9D0, 0xA1AD)  # ldrd r10, r1, [r0, #692]
    data(2, 0xFB0A, 0xFA08)  # mul.w r10, r10, r8
    data(2, 0xFB01, 0xAB0C)  # mla r11, r1, r12, r10
    data(2, 0xE9D0, 0xA1AF)  # ldrd r10, r1, [r0, #700]
    data(2, 0xFB0A, 0xBA03)  # mla r10, r10, r3, r11
    data(2, 0xFB01, 0xAB17)  # mls r11, r1, r7, r10
    data(2, 0xE9D0, 0x1AB1)  # ldrd r1, r10, [r0, #708]
    data(2, 0xFB01, 0xB116)  # mls r1, r1, r6, r11
    data(2, 0x9109)  # str r1, [sp, #36]
    data(2, 0xFB0A, 0xFB08)  # mul.w r11, r10, r8
    data(2, 0xE9D0, 0xA1B3)  # ldrd r10, r1, [r0, #716]
    data(2, 0xFB0A, 0xBA0C)  # mla r10, r10, r12, r11
    data(2, 0xFB01, 0xAA03)  # mla r10, r1, r3, r10
    data(2, 0xE9D0, 0x31B5)  # ldrd r3, r1, [r0, #724]
    data(2, 0xFB03, 0xA317)  # mls r3, r3, r7, r10
    data(2, 0xFB01, 0x3116)  # mls r1, r1, r6, r3
    data(2, 0xF501, 0x5A80)  # add.w r10, r1, #4096
    data(2, 0xE9D0, 0x13B0)  # ldrd r1, r3, [r0, #704]
    data(2, 0xFB01, 0xFB04)  # mul.w r11, r1, r4
    data(2, 0xF8D0, 0x1328)  # ldr.w r1, [r0, #808]
    data(2, 0xFB03, 0xB101)  # mla r1, r3, r1, r11
    data(2, 0xEBAA, 0x0361)  # sub.w r3, r10, r1, asr #1
    data(2, 0x9909)  # ldr r1, [sp, #36]
    data(2, 0xEB01, 0x3163)  # add.w r1, r1, r3, asr #13
    data(2, 0xF501, 0x5300)  # add.w r3, r1, #8192
    data(2, 0xF341, 0x010D)  # sbfx r1, r1, #0, #14
    data(2, 0xE9C0, 0x14C9)  # strd r1, r4, [r0, #804]
    asr(r1, r3, 14)
    data(2, 0xF301, 0x040F)  # ssat r4, #16, r1
    data(2, 0xF8D0, 0x332C)  # ldr.w r3, [r0, #812]
    data(2, 0xE9D0, 0xA1B7)  # ldrd r10, r1, [r0, #732]
    data(2, 0xFB0A, 0xFA04)  # mul.w r10, r10, r4
    data(2, 0xFB01, 0xAB07)  # mla r11, r1, r7, r10
    data(2, 0xE9D0, 0xA1B9)  # ldrd r10, r1, [r0, #740]
    data(2, 0xFB0A, 0xBA06)  # mla r10, r10, r6, r11
    data(2, 0xFB01, 0xA115)  # mls r1, r1, r5, r10
    data(2, 0x9111)  # str r1, [sp, #68]
    data(2, 0xE9D0, 0xA1BB)  # ldrd r10, r1, [r0, #748]
    data(2, 0x9114)  # str r1, [sp, #80]
    data(2, 0xF8CD, 0xA04C)  # str.w r10, [sp, #76]
    data(2, 0xF8DD, 0xB02C)  # ldr.w r11, [sp, #44]
    data(2, 0xF8DD, 0xA044)  # ldr.w r10, [sp, #68]
    data(2, 0x9913)  # ldr r1, [sp, #76]
    data(2, 0xFB01, 0xA11B)  # mls r1, r1, r11, r10
    data(2, 0x9108)  # str r1, [sp, #32]
    data(2, 0x9914)  # ldr r1, [sp, #80]
    data(2, 0xFB01, 0xFB04)  # mul.w r11, r1, r4
    data(2, 0xE9D0, 0xA1BD)  # ldrd r10, r1, [r0, #756]
    data(2, 0xFB0A, 0xBA07)  # mla r10, r10, r7, r11
    data(2, 0xFB01, 0xAA06)  # mla r10, r1, r6, r10
    data(2, 0xE9D0, 0x16BF)  # ldrd r1, r6, [r0, #764]
    data(2, 0xFB01, 0xAA15)  # mls r10, r1, r5, r10
    data(2, 0x990B)  # ldr r1, [sp, #44]
    data(2, 0xFB06, 0xA111)  # mls r1, r6, r1, r10
    data(2, 0xF501, 0x5A80)  # add.w r10, r1, #4096
    data(2, 0xE9D0, 0x16BA)  # ldrd r1, r6, [r0, #744]
    data(2, 0xFB01, 0xFB03)  # mul.w r11, r1, r3
    data(2, 0xF8D0, 0x1330)  # ldr.w r1, [r0, #816]
    data(2, 0xFB06, 0xB101)  # mla r1, r6, r1, r11
    data(2, 0xEBAA, 0x0661)  # sub.w r6, r10, r1, asr #1
    data(2, 0x9908)  # ldr r1, [sp, #32]
    data(2, 0xEB01, 0x3166)  # add.w r1, r1, r6, asr #13
    data(2, 0xF501, 0x5600)  # add.w r6, r1, #8192
    data(2, 0xF341, 0x010D)  # sbfx r1, r1, #0, #14
    data(2, 0xE9C0, 0x13CB)  # strd r1, r3, [r0, #812]
    asr(r1, r6, 14)
    data(2, 0xF301, 0x010F)  # ssat r1, #16, r1
    data(2, 0x910F)  # str r1, [sp, #60]
    data(2, 0xE9C0, 0x8CC3)  # strd r8, r12, [r0, #780]
    data(2, 0xE9C0, 0x47C5)  # strd r4, r7, [r0, #788]
    data(2, 0x990F)  # ldr r1, [sp, #60]
    data(2, 0xE9C0, 0x15C7)  # strd r1, r5, [r0, #796]
    data(2, 0xE9D0, 0x5AA3)  # ldrd r5, r10, [r0, #652]
    data(2, 0xE9D0, 0x48A5)  # ldrd r4, r8, [r0, #660]
    data(2, 0xE9D0, 0x36A7)  # ldrd r3, r6, [r0, #668]
    data(2, 0xF8D0, 0xC2A4)  # ldr.w r12, [r0, #676]
    data(2, 0xE9D0, 0x71AD)  # ldrd r7, r1, [r0, #692]
    data(2, 0xFB07, 0xF70E)  # mul.w r7, r7, lr
    data(2, 0xFB01, 0x7B05)  # mla r11, r1, r5, r7
    data(2, 0xE9D0, 0x71AF)  # ldrd r7, r1, [r0, #700]
    data(2, 0xFB07, 0xB70A)  # mla r7, r7, r10, r11
    data(2, 0xFB01, 0x7B14)  # mls r11, r1, r4, r7
    data(2, 0xE9D0, 0x17B1)  # ldrd r1, r7, [r0, #708]
    data(2, 0xFB01, 0xB118)  # mls r1, r1, r8, r11
    data(2, 0x9107)  # str r1, [sp, #28]
    data(2, 0xFB07, 0xFB0E)  # mul.w r11, r7, lr
    data(2, 0xE9D0, 0x71B3)  # ldrd r7, r1, [r0, #716]
    data(2, 0xFB07, 0xB705)  # mla r7, r7, r5, r11
    data(2, 0xFB01, 0x7A0A)  # mla r10, r1, r10, r7
    data(2, 0xE9D0, 0x71B5)  # ldrd r7, r1, [r0, #724]
    data(2, 0xFB07, 0xA714)  # mls r7, r7, r4, r10
    data(2, 0xFB01, 0x7118)  # mls r1, r1, r8, r7
    data(2, 0xF501, 0x5A80)  # add.w r10, r1, #4096
    data(2, 0xE9D0, 0x17B0)  # ldrd r1, r7, [r0, #704]
    data(2, 0xFB01, 0xFB0C)  # mul.w r11, r1, r12
    data(2, 0xF8D0, 0x12A8)  # ldr.w r1, [r0, #680]
    data(2, 0xFB07, 0xB101)  # mla r1, r7, r1, r11
    data(2, 0xEBAA, 0x0761)  # sub.w r7, r10, r1, asr #1
    data(2, 0x9907)  # ldr r1, [sp, #28]
    data(2, 0xEB01, 0x3167)  # add.w r1, r1, r7, asr #13
    data(2, 0xF501, 0x5700)  # add.w r7, r1, #8192
    data(2, 0xF341, 0x010D)  # sbfx r1, r1, #0, #14
    data(2, 0xE9C0, 0x1CA9)  # strd r1, r12, [r0, #676]
    asr(r1, r7, 14)
    data(2, 0xF301, 0x070F)  # ssat r7, #16, r1
    data(2, 0xF8D0, 0xC2AC)  # ldr.w r12, [r0, #684]
    data(2, 0xE9D0, 0xA1B7)  # ldrd r10, r1, [r0, #732]
    data(2, 0xFB0A, 0xFA07)  # mul.w r10, r10, r7
    data(2, 0xFB01, 0xAB04)  # mla r11, r1, r4, r10
    data(2, 0xE9D0, 0xA1B9)  # ldrd r10, r1, [r0, #740]
    data(2, 0xFB0A, 0xBA08)  # mla r10, r10, r8, r11
    data(2, 0xFB01, 0xAB13)  # mls r11, r1, r3, r10
    data(2, 0xE9D0, 0x1ABB)  # ldrd r1, r10, [r0, #748]
    data(2, 0xFB01, 0xB116)  # mls r1, r1, r6, r11
    data(2, 0x9102)  # str r1, [sp, #8]
    data(2, 0xFB0A, 0xFB07)  # mul.w r11, r10, r7
    data(2, 0xE9D0, 0xA1BD)  # ldrd r10, r1, [r0, #756]
    data(2, 0xFB0A, 0xBA04)  # mla r10, r10, r4, r11
    data(2, 0xFB01, 0xAA08)  # mla r10, r1, r8, r10
    data(2, 0xE9D0, 0x81BF)  # ldrd r8, r1, [r0, #764]
    data(2, 0xFB08, 0xA813)  # mls r8, r8, r3, r10
    data(2, 0xFB01, 0x8116)  # mls r1, r1, r6, r8
    data(2, 0xF501, 0x5A80)  # add.w r10, r1, #4096
    data(2, 0xE9D0, 0x16BA)  # ldrd r1, r6, [r0, #744]
    data(2, 0xFB01, 0xF80C)  # mul.w r8, r1, r12
    data(2, 0xF8D0, 0x12B0)  # ldr.w r1, [r0, #688]
    data(2, 0xFB06, 0x8101)  # mla r1, r6, r1, r8
    data(2, 0xEBAA, 0x0661)  # sub.w r6, r10, r1, asr #1
    data(2, 0x9902)  # ldr r1, [sp, #8]
    data(2, 0xEB01, 0x3166)  # add.w r1, r1, r6, asr #13
    data(2, 0xF501, 0x5600)  # add.w r6, r1, #8192
    data(2, 0xF341, 0x010D)  # sbfx r1, r1, #0, #14
    data(2, 0xE9C0, 0x1CAB)  # strd r1, r12, [r0, #684]
    asr(r1, r6, 14)
    data(2, 0xF301, 0x010F)  # ssat r1, #16, r1
    data(2, 0x910E)  # str r1, [sp, #56]
    data(2, 0xE9C0, 0xE5A3)  # strd lr, r5, [r0, #652]
    data(2, 0xE9C0, 0x74A5)  # strd r7, r4, [r0, #660]
    data(2, 0x990E)  # ldr r1, [sp, #56]
    data(2, 0xE9C0, 0x13A7)  # strd r1, r3, [r0, #668]
    data(2, 0xF8D9, 0x4010)  # ldr.w r4, [r9, #16]
    data(2, 0xE9D0, 0x31CD)  # ldrd r3, r1, [r0, #820]
    sub(r3, r4, r3)
    data(2, 0xF343, 0x060F)  # sbfx r6, r3, #0, #16
    add(r1, r1, r6)
    data(2, 0x9101)  # str r1, [sp, #4]
    data(2, 0xE9C0, 0x41CD)  # strd r4, r1, [r0, #820]
    data(2, 0xF8D9, 0x4014)  # ldr.w r4, [r9, #20]
    data(2, 0xF8D0, 0x133C)  # ldr.w r1, [r0, #828]
    sub(r3, r4, r1)
    data(2, 0xF8D0, 0x1344)  # ldr.w r1, [r0, #836]
    cmp(r3, r1)
    ble(L6)
    ldr(r1, [r0, 36])
    sub(r3, r3, r1)
    b(L7)
    label(L6)
    neg(r1, r1)
    cmp(r3, r1)
    bge(L7)
    ldr(r1, [r0, 36])
    add(r3, r3, r1)
    label(L7)
    data(2, 0xF8D0, 0x1340)  # ldr.w r1, [r0, #832]
    add(r1, r1, r3)
    data(2, 0x910C)  # str r1, [sp, #48]
    data(2, 0xE9C0, 0x41CF)  # strd r4, r1, [r0, #828]
    data(2, 0xF8D0, 0x5348)  # ldr.w r5, [r0, #840]
    ldr(r1, [r0, 68])
    data(2, 0xB9F1)  # cbnz r1, L10
    data(2, 0xF8D0, 0x134C)  # ldr.w r1, [r0, #844]
    data(2, 0xEB01, 0x2106)  # add.w r1, r1, r6, lsl #8
    data(2, 0xEBA1, 0x1425)  # sub.w r4, r1, r5, asr #4
    data(2, 0xF5B4, 0x1F80)  # cmp.w r4, #1048576
    ble(L8)
    data(2, 0xF44F, 0x1480)  # mov.w r4, #1048576
    label(L8)
    data(2, 0xF514, 0x1F80)  # cmn.w r4, #1048576
    bge(L9)
    movw(r4, 0)
    movt(r4, 65520)
    label(L9)
    data(2, 0xE9D0, 0x1312)  # ldrd r1, r3, [r0, #72]
    mul(r3, r4)
    data(2, 0xEB05, 0x2323)  # add.w r3, r5, r3, asr #8
    mul(r1, r4)
    data(2, 0xEBA4, 0x2121)  # sub.w r1, r4, r1, asr #8
    data(2, 0xE9C0, 0x31D2)  # strd r3, r1, [r0, #840]
    data(2, 0xEA4F, 0x1823)  # asr.w r8, r3, #4
    b(L22)
    label(L10)
    asr(r1, r5, 4)
    cmp(r6, 0)
    beq(L18)
    data(2, 0xF8D9, 0x3070)  # ldr.w r3, [r9, #112]
    data(2, 0xE9D0, 0x14D4)  # ldrd r1, r4, [r0, #848]
    sub(r5, r3, r1)
    data(2, 0xF04F, 0x0100)  # mov.w r1, #0
    data(2, 0xE9C0, 0x31D4)  # strd r3, r1, [r0, #848]
    bne(L11)
    mov(r5, 1)
    label(L11)
    cmp(r6, 0)
    bge(L12)
    neg(r1, r6)
    b(L13)
    label(L12)
    mov(r1, r6)
    label(L13)
    data(2, 0xF8D0, 0x335C)  # ldr.w r3, [r0, #860]
    cmp(r1, r3)
    bgt(L14)
    mov(r3, r1)
    label(L14)
    cmp(r5, 0)
    ble(L16)
    data(2, 0xF5B5, 0x0F80)  # cmp.w r5, #4194304
    bgt(L16)
    movw(r1, 257)
    cmp(r4, r1)
    bge(L16)
    data(2, 0xF8D0, 0x1358)  # ldr.w r1, [r0, #856]
    mul(r1, r3)
    udiv(r3, r1, r5)
    data(2, 0xFB03, 0x1415)  # mls r4, r3, r5, r1
    movw(r1, 32767)
    cmp(r3, r1)
    ble(L15)
    movw(r3, 32767)
    label(L15)
    lsl(r1, r4, 8)
    udiv(r1, r1, r5)
    data(2, 0xEB01, 0x2803)  # add.w r8, r1, r3, lsl #8
    b(L17)
    label(L16)
    data(2, 0xF04F, 0x0800)  # mov.w r8, #0
    label(L17)
    cmp(r6, 0)
    bge(L21)
    data(2, 0xF1C8, 0x0800)  # rsb.w r8, r8, #0
    b(L21)
    label(L18)
    data(2, 0xF8D0, 0x3354)  # ldr.w r3, [r0, #852]
    add(r4, r3, 1)
    movw(r3, 257)
    cmp(r4, r3)
    ble(L19)
    movw(r4, 257)
    label(L19)
    data(2, 0xF8C0, 0x4354)  # str.w r4, [r0, #852]
    data(2, 0xF44F, 0x7380)  # mov.w r3, #256
    udiv(r3, r3, r4)
    cmp(r1, r3)
    ble(L20)
    mov(r1, r3)
    label(L20)
    data(2, 0xF1C3, 0x0800)  # rsb.w r8, r3, #0
    data(2, 0xEBB1, 0x0F08)  # cmp.w r1, r8
    blt(L21)
    mov(r8, r1)
    label(L21)
    data(2, 0xEA4F, 0x1108)  # lsl.w r1, r8, #4
    data(2, 0xF8C0, 0x1348)  # str.w r1, [r0, #840]
    label(L22)
    data(2, 0xF8D0, 0x1214)  # ldr.w r1, [r0, #532]
    cmp(r1, 3)
    beq(L23)
    cmp(r1, 4)
    bne(L24)
    label(L23)
    data(2, 0xF04F, 0x0E01)  # mov.w lr, #1
    b(L25)
    label(L24)
    data(2, 0xF04F, 0x0E00)  # mov.w lr, #0
    label(L25)
    cmp(r1, 4)
    bne_w(L33)
    data(2, 0xF8D0, 0x1370)  # ldr.w r1, [r0, #880]
    cmp(r1, 0)
    ble(L27)
    data(2, 0xF8D0, 0x1370)  # ldr.w r1, [r0, #880]
    data(2, 0xF111, 0x31FF)  # adds.w r1, r1, #4294967295
    data(2, 0xF8C0, 0x1370)  # str.w r1, [r0, #880]
    bne(L26)
    data(2, 0xF042, 0x0202)  # orr.w r2, r2, #2
    label(L26)
    mov(r3, lr)
    data(2, 0xF04F, 0x3CFF)  # mov.w r12, #4294967295
    b(L34)
    label(L27)
    data(2, 0xF8D0, 0x1380)  # ldr.w r1, [r0, #896]
    data(2, 0xB951)  # cbnz r1, L28
    mov(r1, 5)
    data(2, 0xF8C0, 0x1214)  # str.w r1, [r0, #532]
    data(2, 0xF042, 0x0210)  # orr.w r2, r2, #16
    data(2, 0xF04F, 0x0E00)  # mov.w lr, #0
    mov(r3, 0)
    data(2, 0xF04F, 0x3CFF)  # mov.w r12, #4294967295
    b(L34)
    label(L28)
    data(2, 0xF8D0, 0x5208)  # ldr.w r5, [r0, #520]
    data(2, 0xF8D0, 0xA374)  # ldr.w r10, [r0, #884]
    data(2, 0xF1CA, 0x0C20)  # rsb.w r12, r10, #32
    data(2, 0xE9D5, 0x7400)  # ldrd r7, r4, [r5, #0]
    data(2, 0xE9D5, 0x1302)  # ldrd r1, r3, [r5, #8]
    sub(r5, r1, r7)
    data(2, 0xFB05, 0xF10A)  # mul.w r1, r5, r10
    data(2, 0xFB01, 0xFB0A)  # mul.w r11, r1, r10
    data(2, 0xF1CA, 0x0130)  # rsb.w r1, r10, #48
    data(2, 0xFB0B, 0xF101)  # mul.w r1, r11, r1
    asr(r1, r1, 2)
    data(2, 0x910A)  # str r1, [sp, #40]
    data(2, 0xFB0A, 0xF10C)  # mul.w r1, r10, r12
    data(2, 0x9106)  # str r1, [sp, #24]
    asr(r1, r4, 3)
    data(2, 0xFB01, 0xFB0C)  # mul.w r11, r1, r12
    asr(r1, r3, 3)
    data(2, 0xFB01, 0xBB1A)  # mls r11, r1, r10, r11
    data(2, 0x9906)  # ldr r1, [sp, #24]
    data(2, 0xFB01, 0xFB0B)  # mul.w r11, r1, r11
    data(2, 0x990A)  # ldr r1, [sp, #40]
    data(2, 0xEB01, 0x01EB)  # add.w r1, r1, r11, asr #3
    data(2, 0xF501, 0x6100)  # add.w r1, r1, #2048
    data(2, 0xEB07, 0x3121)  # add.w r1, r7, r1, asr #12
    data(2, 0xF8C0, 0x1368)  # str.w r1, [r0, #872]
    data(2, 0xEB05, 0x0145)  # add.w r1, r5, r5, lsl #1
    data(2, 0xFB01, 0xF10A)  # mul.w r1, r1, r10
    data(2, 0xFB01, 0xF10C)  # mul.w r1, r1, r12
    asr(r5, r1, 6)
    data(2, 0xFB04, 0xF40C)  # mul.w r4, r4, r12
    data(2, 0xEB0A, 0x074A)  # add.w r7, r10, r10, lsl #1
    data(2, 0xF1C7, 0x0120)  # rsb.w r1, r7, #32
    mul(r4, r1)
    data(2, 0xFB03, 0xF30A)  # mul.w r3, r3, r10
    data(2, 0xF1A7, 0x0140)  # sub.w r1, r7, #64
    data(2, 0xFB03, 0x4101)  # mla r1, r3, r1, r4
    data(2, 0xEB05, 0x21A1)  # add.w r1, r5, r1, asr #10
    data(2, 0xF5B1, 0x1F80)  # cmp.w r1, #1048576
    ble(L29)
    data(2, 0xF44F, 0x1180)  # mov.w r1, #1048576
    label(L29)
    data(2, 0xF511, 0x1F80)  # cmn.w r1, #1048576
    bge(L30)
    movw(r1, 0)
    movt(r1, 65520)
    label(L30)
    data(2, 0xF8C0, 0x136C)  # str.w r1, [r0, #876]
    data(2, 0xF8D0, 0xC388)  # ldr.w r12, [r0, #904]
    data(2, 0xF10C, 0x0101)  # add.w r1, r12, #1
    data(2, 0xF8C0, 0x1388)  # str.w r1, [r0, #904]
    data(2, 0xF10A, 0x0101)  # add.w r1, r10, #1
    cmp(r1, 32)
    bne(L32)
    data(2, 0xF8D0, 0x1208)  # ldr.w r1, [r0, #520]
    data(2, 0xF101, 0x0408)  # add.w r4, r1, #8
    data(2, 0xF8C0, 0x4208)  # str.w r4, [r0, #520]
    data(2, 0xF8D0, 0x1378)  # ldr.w r1, [r0, #888]
    data(2, 0xF111, 0x31FF)  # adds.w r1, r1, #4294967295
    bne(L31)
    data(2, 0xE9D0, 0x13DF)  # ldrd r1, r3, [r0, #892]
    data(2, 0xEBA4, 0x04C1)  # sub.w r4, r4, r1, lsl #3
    data(2, 0xF8C0, 0x4208)  # str.w r4, [r0, #520]
    data(2, 0xF113, 0x33FF)  # adds.w r3, r3, #4294967295
    data(2, 0xF8C0, 0x3380)  # str.w r3, [r0, #896]
    bne(L31)
    data(2, 0xF042, 0x0202)  # orr.w r2, r2, #2
    label(L31)
    data(2, 0xF8C0, 0x1378)  # str.w r1, [r0, #888]
    mov(r1, 0)
    label(L32)
    data(2, 0xF8C0, 0x1374)  # str.w r1, [r0, #884]
    mov(r3, lr)
    b(L34)
    label(L33)
    mov(r3, lr)
    data(2, 0xF04F, 0x3CFF)  # mov.w r12, #4294967295
    label(L34)
    data(2, 0xF8C0, 0xC384)  # str.w r12, [r0, #900]
    data(2, 0xF8D0, 0x7268)  # ldr.w r7, [r0, #616]
    data(2, 0xF8D0, 0x1238)  # ldr.w r1, [r0, #568]
    data(2, 0x9103)  # str r1, [sp, #12]
    cmp(r7, r1)
    bge(L35)
    add(r7, r7, 1)
    data(2, 0xF8C0, 0x7268)  # str.w r7, [r0, #616]
    label(L35)
    ldr(r4, [r0, 20])
    data(2, 0x990D)  # ldr r1, [sp, #52]
    sub(r4, r1, r4)
    bpl(L36)
    neg(r4, r4)
    label(L36)
    data(2, 0xF8D0, 0x524C)  # ldr.w r5, [r0, #588]
    cmp(r4, r5)
    bgt(L37)
    mov(r5, r4)
    label(L37)
    data(2, 0xF8D0, 0x1250)  # ldr.w r1, [r0, #592]
    mul(r1, r5)
    data(2, 0xEA4F, 0x3A21)  # asr.w r10, r1, #12
    data(2, 0xE9D0, 0x1598)  # ldrd r1, r5, [r0, #608]
    data(2, 0xFB0A, 0x110A)  # mla r1, r10, r10, r1
    data(2, 0xF115, 0x35FF)  # adds.w r5, r5, #4294967295
    bne(L38)
    data(2, 0xF8D0, 0xA25C)  # ldr.w r10, [r0, #604]
    data(2, 0xEBA1, 0x010A)  # sub.w r1, r1, r10
    asr(r5, r1, 15)
    data(2, 0xF8D0, 0x1254)  # ldr.w r1, [r0, #596]
    data(2, 0xFB05, 0xA101)  # mla r1, r5, r1, r10
    data(2, 0xF8C0, 0x125C)  # str.w r1, [r0, #604]
    mov(r5, 64)
    mov(r1, 0)
    label(L38)
    data(2, 0xE9C0, 0x1598)  # strd r1, r5, [r0, #608]
    data(2, 0xF8D0, 0x5274)  # ldr.w r5, [r0, #628]
    cmp(r5, 0)
    bge(L39)
    neg(r5, r5)
    label(L39)
    data(2, 0xB946)  # cbnz r6, L40
    data(2, 0xF8D0, 0x1230)  # ldr.w r1, [r0, #560]
    cmp(r5, r1)
    blt(L40)
    data(2, 0xF8D0, 0x1270)  # ldr.w r1, [r0, #624]
    add(r1, r1, 1)
    data(2, 0x9100)  # str r1, [sp, #0]
    b(L41)
    label(L40)
    mov(r1, 0)
    data(2, 0x9100)  # str r1, [sp, #0]
    label(L41)
    data(2, 0xF8D0, 0xA26C)  # ldr.w r10, [r0, #620]
    mov(r5, 0)
    data(2, 0x9900)  # ldr r1, [sp, #0]
    data(2, 0xE9C0, 0x519B)  # strd r5, r1, [r0, #620]
    cmp(r3, 0)
    beq_w(L83)
    data(2, 0xF8D0, 0x5368)  # ldr.w r5, [r0, #872]
    data(2, 0x9901)  # ldr r1, [sp, #4]
    sub(r5, r5, r1)
    cmp(r6, 0)
    bge(L42)
    neg(r1, r6)
    data(2, 0x9112)  # str r1, [sp, #72]
    b(L43)
    label(L42)
    data(2, 0x9612)  # str r6, [sp, #72]
    label(L43)
    data(2, 0xF8D0, 0xB220)  # ldr.w r11, [r0, #544]
    data(2, 0xEBB4, 0x0F0B)  # cmp.w r4, r11
    ble(L44)
    mov(r1, 1)
    b(L68)
    label(L44)
    data(2, 0xE9D0, 0x1B96)  # ldrd r1, r11, [r0, #600]
    data(2, 0x9110)  # str r1, [sp, #64]
    data(2, 0xF8CD, 0xB014)  # str.w r11, [sp, #20]
    data(2, 0x9910)  # ldr r1, [sp, #64]
    data(2, 0xEBBB, 0x0F01)  # cmp.w r11, r1
    ble(L45)
    data(2, 0xE9D0, 0xBA96)  # ldrd r11, r10, [r0, #600]
    mov(r1, 7)
    b(L67)
    label(L45)
    data(2, 0xF8D0, 0x10F4)  # ldr.w r1, [r0, #244]
    data(2, 0xEBBA, 0x0F01)  # cmp.w r10, r1
    ble(L46)
    data(2, 0xF8D0, 0xB0F4)  # ldr.w r11, [r0, #244]
    mov(r1, 12)
    b(L67)
    label(L46)
    data(2, 0xF8D0, 0x1224)  # ldr.w r1, [r0, #548]
    data(2, 0x9104)  # str r1, [sp, #16]
    data(2, 0xF10A, 0x0A01)  # add.w r10, r10, #1
    data(2, 0x9904)  # ldr r1, [sp, #16]
    data(2, 0xFB01, 0xFA0A)  # mul.w r10, r1, r10
    data(2, 0x9912)  # ldr r1, [sp, #72]
    data(2, 0xEBB1, 0x0F0A)  # cmp.w r1, r10
    ble(L47)
    data(2, 0xF8D0, 0xB224)  # ldr.w r11, [r0, #548]
    mov(r1, 8)
    b(L66)
    label(L47)
    data(2, 0xF8D0, 0x6234)  # ldr.w r6, [r0, #564]
    data(2, 0x9900)  # ldr r1, [sp, #0]
    cmp(r1, r6)
    blt(L48)
    data(2, 0xF8D0, 0xB234)  # ldr.w r11, [r0, #564]
    mov(r1, 9)
    b(L65)
    label(L48)
    data(2, 0xF8D0, 0x6084)  # ldr.w r6, [r0, #132]
    data(2, 0x9901)  # ldr r1, [sp, #4]
    cmp(r1, r6)
    bge(L49)
    data(2, 0xF8D0, 0xB084)  # ldr.w r11, [r0, #132]
    data(2, 0x9C01)  # ldr r4, [sp, #4]
    mov(r1, 2)
    b(L64)
    label(L49)
    data(2, 0xF8D0, 0xA088)  # ldr.w r10, [r0, #136]
    data(2, 0x9901)  # ldr r1, [sp, #4]
    data(2, 0xEBB1, 0x0F0A)  # cmp.w r1, r10
    ble(L50)
    data(2, 0xF8D0, 0xB088)  # ldr.w r11, [r0, #136]
    data(2, 0x9C01)  # ldr r4, [sp, #4]
    mov(r1, 2)
    b(L64)
    label(L50)
    data(2, 0xF8D0, 0x1228)  # ldr.w r1, [r0, #552]
    data(2, 0xEBB8, 0x0F01)  # cmp.w r8, r1
    bgt(L51)
    neg(r1, r1)
    data(2, 0xEBB8, 0x0F01)  # cmp.w r8, r1
    bge(L52)
    label(L51)
    data(2, 0xF8D0, 0xB228)  # ldr.w r11, [r0, #552]
    mov(r4, r8)
    mov(r1, 3)
    b(L64)
    label(L52)
    data(2, 0x9903)  # ldr r1, [sp, #12]
    cmp(r7, r1)
    blt(L53)
    data(2, 0xF8DD, 0xB00C)  # ldr.w r11, [sp, #12]
    mov(r4, r7)
    mov(r1, 5)
    b(L64)
    label(L53)
    data(2, 0xF8D9, 0xB018)  # ldr.w r11, [r9, #24]
    data(2, 0xF8D0, 0x1240)  # ldr.w r1, [r0, #576]
    data(2, 0xEBBB, 0x0F01)  # cmp.w r11, r1
    bge(L54)
    data(2, 0xF8D9, 0x4018)  # ldr.w r4, [r9, #24]
    data(2, 0xF8D0, 0xB240)  # ldr.w r11, [r0, #576]
    mov(r1, 10)
    b(L64)
    label(L54)
    data(2, 0xF8D0, 0x1244)  # ldr.w r1, [r0, #580]
    data(2, 0xEBBB, 0x0F01)  # cmp.w r11, r1
    ble(L55)
    data(2, 0xF8D9, 0x4018)  # ldr.w r4, [r9, #24]
    data(2, 0xF8D0, 0xB244)  # ldr.w r11, [r0, #580]
    mov(r1, 10)
    b(L64)
    label(L55)
    data(2, 0xF8D9, 0xB01C)  # ldr.w r11, [r9, #28]
    data(2, 0xF8D0, 0x1248)  # ldr.w r1, [r0, #584]
    data(2, 0xEBBB, 0x0F01)  # cmp.w r11, r1
    ble(L56)
    data(2, 0xF8D9, 0x401C)  # ldr.w r4, [r9, #28]
    data(2, 0xF8D0, 0xB248)  # ldr.w r11, [r0, #584]
    mov(r1, 11)
    b(L64)
    label(L56)
    data(2, 0xF8D0, 0x1368)  # ldr.w r1, [r0, #872]
    cmp(r1, r6)
    bge(L57)
    data(2, 0xF8D0, 0x4368)  # ldr.w r4, [r0, #872]
    data(2, 0xF8D0, 0xB084)  # ldr.w r11, [r0, #132]
    mov(r1, 13)
    b(L64)
    label(L57)
    data(2, 0xEBB1, 0x0F0A)  # cmp.w r1, r10
    ble(L58)
    data(2, 0xF8D0, 0x4368)  # ldr.w r4, [r0, #872]
    data(2, 0xF8D0, 0xB088)  # ldr.w r11, [r0, #136]
    mov(r1, 13)
    b(L64)
    label(L58)
    data(2, 0xF8D0, 0xB090)  # ldr.w r11, [r0, #144]
    data(2, 0xEBB5, 0x0F0B)  # cmp.w r5, r11
    bgt(L59)
    data(2, 0xF1CB, 0x0100)  # rsb.w r1, r11, #0
    cmp(r5, r1)
    bge(L63)
    label(L59)
    data(2, 0xF8D0, 0x123C)  # ldr.w r1, [r0, #572]
    cmp(r7, r1)
    ble(L62)
    cmp(r5, 0)
    ble(L60)
    mov(r5, r11)
    b(L61)
    label(L60)
    data(2, 0xF1CB, 0x0500)  # rsb.w r5, r11, #0
    label(L61)
    mov(r1, 0)
    b(L64)
    label(L62)
    mov(r4, r5)
    mov(r1, 4)
    b(L64)
    label(L63)
    mov(r1, 0)
    label(L64)
    data(2, 0x9400)  # str r4, [sp, #0]
    label(L65)
    data(2, 0x9E00)  # ldr r6, [sp, #0]
    label(L66)
    mov(r10, r6)
    label(L67)
    mov(r4, r10)
    label(L68)
    data(2, 0xB159)  # cbz r1, L69
    data(2, 0xE9C0, 0x149E)  # strd r1, r4, [r0, #632]
    data(2, 0xF8C0, 0xB280)  # str.w r11, [r0, #640]
    mov(r1, 6)
    data(2, 0xF8C0, 0x1214)  # str.w r1, [r0, #532]
    data(2, 0xF042, 0x0208)  # orr.w r2, r2, #8
    mov(r3, 0)
    mov(r4, 0)
    b(L84)
    label(L69)
    data(2, 0xF8D0, 0x136C)  # ldr.w r1, [r0, #876]
    data(2, 0xEBA1, 0x0A08)  # sub.w r10, r1, r8
    data(2, 0xF5BA, 0x3F80)  # cmp.w r10, #65536
    ble(L70)
    data(2, 0xF44F, 0x3A80)  # mov.w r10, #65536
    label(L70)
    data(2, 0xF51A, 0x3F80)  # cmn.w r10, #65536
    bge(L71)
    movw(r10, 0)
    movt(r10, 65535)
    label(L71)
    data(2, 0xE9D0, 0x6418)  # ldrd r6, r4, [r0, #96]
    mul(r6, r5)
    asr(r6, r6, 8)
    data(2, 0xFB0A, 0xF404)  # mul.w r4, r10, r4
    data(2, 0xEB06, 0x3A24)  # add.w r10, r6, r4, asr #12
    asr(r6, r1, 4)
    ldr(r4, [r0, 104])
    mul(r4, r6)
    data(2, 0xEB0A, 0x2624)  # add.w r6, r10, r4, asr #8
    data(2, 0xF8D0, 0x40D0)  # ldr.w r4, [r0, #208]
    cmp(r1, r4)
    ble(L72)
    mov(r1, r4)
    label(L72)
    neg(r4, r4)
    cmp(r1, r4)
    blt(L73)
    mov(r4, r1)
    label(L73)
    data(2, 0xE9D0, 0xA1D8)  # ldrd r10, r1, [r0, #864]
    mul(r1, r4)
    data(2, 0xEB06, 0x3121)  # add.w r1, r6, r1, asr #12
    data(2, 0xEB01, 0x34AA)  # add.w r4, r1, r10, asr #14
    data(2, 0xF8D0, 0x622C)  # ldr.w r6, [r0, #556]
    ldr(r1, [r0, 80])
    mul(r1, r5)
    asr(r1, r1, 2)
    cmp(r4, r6)
    ble(L75)
    cmp(r1, 0)
    ble(L74)
    mov(r1, 0)
    label(L74)
    mov(r4, r6)
    label(L75)
    neg(r5, r6)
    cmp(r4, r5)
    bge(L77)
    cmp(r1, 0)
    bge(L76)
    mov(r1, 0)
    label(L76)
    mov(r4, r5)
    label(L77)
    data(2, 0xF8D0, 0x523C)  # ldr.w r5, [r0, #572]
    cmp(r7, r5)
    ble(L80)
    data(2, 0x9903)  # ldr r1, [sp, #12]
    sub(r5, r1, r5)
    cmp(r4, 0)
    bge(L78)
    neg(r4, r4)
    data(2, 0x9903)  # ldr r1, [sp, #12]
    sub(r1, r1, r7)
    mul(r1, r4)
    udiv(r1, r1, r5)
    neg(r4, r1)
    b(L79)
    label(L78)
    data(2, 0x9903)  # ldr r1, [sp, #12]
    sub(r1, r1, r7)
    mul(r1, r4)
    udiv(r4, r1, r5)
    label(L79)
    mov(r1, 0)
    label(L80)
    data(2, 0xEB0A, 0x0501)  # add.w r5, r10, r1
    lsl(r1, r6, 14)
    cmp(r5, r1)
    ble(L81)
    mov(r5, r1)
    label(L81)
    neg(r1, r1)
    cmp(r5, r1)
    blt(L82)
    mov(r1, r5)
    label(L82)
    data(2, 0xF8C0, 0x1360)  # str.w r1, [r0, #864]
    b(L84)
    label(L83)
    mov(r4, 0)
    label(L84)
    data(2, 0xF8C0, 0x4274)  # str.w r4, [r0, #628]
    data(2, 0xF8D0, 0x5204)  # ldr.w r5, [r0, #516]
    data(2, 0xF8D9, 0x1000)  # ldr.w r1, [r9, #0]
    data(2, 0xE9C5, 0x1300)  # strd r1, r3, [r5, #0]
    str(r4, [r5, 8])
    data(2, 0xF1BE, 0x0F00)  # cmp.w lr, #0
    bne(L85)
    data(2, 0xF8D0, 0x10A8)  # ldr.w r1, [r0, #168]
    cmp(r1, 0)
    beq_w(L100)
    label(L85)
    data(2, 0xF8D0, 0x138C)  # ldr.w r1, [r0, #908]
    data(2, 0xB919)  # cbnz r1, L86
    data(2, 0xF8D9, 0x1000)  # ldr.w r1, [r9, #0]
    data(2, 0xE9C0, 0x1CE4)  # strd r1, r12, [r0, #912]
    label(L86)
    data(2, 0xF8D9, 0x1000)  # ldr.w r1, [r9, #0]
    data(2, 0xF3C1, 0x0105)  # ubfx r1, r1, #0, #6
    data(2, 0xEB00, 0x0181)  # add.w r1, r0, r1, lsl #2
    data(2, 0xF8D1, 0x63A0)  # ldr.w r6, [r1, #928]
    data(2, 0xF8D0, 0x520C)  # ldr.w r5, [r0, #524]
    data(2, 0xF016, 0x0F01)  # tst.w r6, #1
    beq(L87)
    data(2, 0x990F)  # ldr r1, [sp, #60]
    strh(r1, [r5, 0])
    mov(r3, 1)
    b(L88)
    label(L87)
    mov(r3, 0)
    label(L88)
    data(2, 0xF016, 0x0F02)  # tst.w r6, #2
    beq(L89)
    data(2, 0xEB05, 0x0743)  # add.w r7, r5, r3, lsl #1
    data(2, 0x9901)  # ldr r1, [sp, #4]
    strh(r1, [r7, 0])
    asr(r1, r1, 16)
    strh(r1, [r7, 2])
    add(r3, r3, 2)
    label(L89)
    data(2, 0xF016, 0x0F04)  # tst.w r6, #4
    beq(L90)
    data(2, 0xEB05, 0x0743)  # add.w r7, r5, r3, lsl #1
    data(2, 0x990C)  # ldr r1, [sp, #48]
    strh(r1, [r7, 0])
    asr(r1, r1, 16)
    strh(r1, [r7, 2])
    add(r3, r3, 2)
    label(L90)
    data(2, 0xF016, 0x0F08)  # tst.w r6, #8
    beq(L91)
    data(2, 0x990E)  # ldr r1, [sp, #56]
    data(2, 0xF825, 0x1013)  # strh.w r1, [r5, r3, lsl #1]
    add(r3, r3, 1)
    label(L91)
    data(2, 0xF016, 0x0F10)  # tst.w r6, #16
    beq(L92)
    data(2, 0xF825, 0x4013)  # strh.w r4, [r5, r3, lsl #1]
    add(r3, r3, 1)
    label(L92)
    data(2, 0xF416, 0x6F7E)  # tst.w r6, #4064
    beq(L99)
    data(2, 0xF016, 0x0F20)  # tst.w r6, #32
    beq(L93)
    data(2, 0xF8D9, 0x1018)  # ldr.w r1, [r9, #24]
    data(2, 0xF825, 0x1013)  # strh.w r1, [r5, r3, lsl #1]
    add(r3, r3, 1)
    label(L93)
    data(2, 0xF016, 0x0F40)  # tst.w r6, #64
    beq(L94)
    data(2, 0xF8D9, 0x101C)  # ldr.w r1, [r9, #28]
    data(2, 0xF825, 0x1013)  # strh.w r1, [r5, r3, lsl #1]
    add(r3, r3, 1)
    label(L94)
    data(2, 0xF016, 0x0F80)  # tst.w r6, #128
    beq(L95)
    data(2, 0xF8D9, 0x1060)  # ldr.w r1, [r9, #96]
    data(2, 0xF825, 0x1013)  # strh.w r1, [r5, r3, lsl #1]
    add(r3, r3, 1)
    label(L95)
    data(2, 0xF416, 0x7F80)  # tst.w r6, #256
    beq(L96)
    data(2, 0xF8D9, 0x1064)  # ldr.w r1, [r9, #100]
    data(2, 0xF825, 0x1013)  # strh.w r1, [r5, r3, lsl #1]
    add(r3, r3, 1)
    label(L96)
    data(2, 0xF416, 0x7F00)  # tst.w r6, #512
    beq(L97)
    data(2, 0xF8D9, 0x1068)  # ldr.w r1, [r9, #104]
    data(2, 0xF825, 0x1013)  # strh.w r1, [r5, r3, lsl #1]
    add(r3, r3, 1)
    label(L97)
    data(2, 0xF416, 0x6F80)  # tst.w r6, #1024
    beq(L98)
    data(2, 0xF8D9, 0x106C)  # ldr.w r1, [r9, #108]
    data(2, 0xF825, 0x1013)  # strh.w r1, [r5, r3, lsl #1]
    add(r3, r3, 1)
    label(L98)
    data(2, 0xF416, 0x6F00)  # tst.w r6, #2048
    beq(L99)
    data(2, 0xEB05, 0x0443)  # add.w r4, r5, r3, lsl #1
    data(2, 0xF8A4, 0x8000)  # strh.w r8, [r4, #0]
    data(2, 0xEA4F, 0x4128)  # asr.w r1, r8, #16
    strh(r1, [r4, 2])
    add(r3, r3, 2)
    label(L99)
    data(2, 0xF8D0, 0x120C)  # ldr.w r1, [r0, #524]
    data(2, 0xEB01, 0x0143)  # add.w r1, r1, r3, lsl #1
    data(2, 0xF8C0, 0x120C)  # str.w r1, [r0, #524]
    data(2, 0xF8D0, 0x138C)  # ldr.w r1, [r0, #908]
    add(r3, r1, 1)
    data(2, 0xF8C0, 0x338C)  # str.w r3, [r0, #908]
    data(2, 0xF8D0, 0x1398)  # ldr.w r1, [r0, #920]
    cmp(r3, r1)
    bne(L100)
    data(2, 0xF042, 0x0202)  # orr.w r2, r2, #2
    label(L100)
    data(2, 0xF8D0, 0x1218)  # ldr.w r1, [r0, #536]
    data(2, 0xF111, 0x31FF)  # adds.w r1, r1, #4294967295
    bne(L101)
    data(2, 0xF042, 0x0204)  # orr.w r2, r2, #4
    data(2, 0xF44F, 0x717A)  # mov.w r1, #1000
    label(L101)
    data(2, 0xF8C0, 0x1218)  # str.w r1, [r0, #536]
    mov(r0, r2)
    label(L102)
    data(2, 0xB015)  # add sp, #84
    data(2, 0xE8BD, 0x0F00)  # pop.w {r8, r9, r10, r11}
