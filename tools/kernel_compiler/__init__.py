"""Kernels: viper functions of the firmware, compiled to Thumb for MicroPython's inline assembler, and to C as a peer.

The viper source is the one definition of what a board computes. viper itself keeps nearly every local on the stack, so
boards with an ARMv7-M core run what this package makes of the same source:

    source    the file's constants and kernels                        evaluate   runs it in plain Python: the definition
    build     syntax tree -> single-assignment graph (graph)          c_source   the same as portable C
    values    one value computed once, loads kept while no store can have changed them; clamps as one instruction
    select    graph -> Thumb-2 instructions over any number of registers (machine)
    pairs     neighbouring loads and stores become one instruction
    allocate  registers r0..r12 and lr; what does not fit goes to the stack (liveness)
    layout    blocks in a row, branches between them
    encode    instructions to halfwords; thumb: the @micropython.asm_thumb function

`python -m tools.kernel_compiler [--check]` writes the generated files of the firmware, or says which are stale.
"""
