// The life of the interpreter: mount the flash, run boot.py and main.py, offer the REPL; the same after a soft reset.

#include "py/compile.h"
#include "py/gc.h"
#include "py/mphal.h"
#include "py/runtime.h"
#include "py/stackctrl.h"
#include "extmod/vfs.h"
#include "extmod/vfs_lfs.h"
#include "shared/readline/readline.h"
#include "shared/runtime/gchelper.h"
#include "shared/runtime/pyexec.h"
#include "flash.h"
#include "phase.h"

void reset_cause_init(void);

static uint32_t heap[MICROPY_HEAP_SIZE / sizeof(uint32_t)];

// Mounts the flash at /, formatted first when blank. One that holds anything else is left for its owner to look at.
static void mount_flash(void) {
    nlr_buf_t nlr;
    if (nlr_push(&nlr) == 0) {
        mp_obj_t lfs2 = MP_OBJ_FROM_PTR(&mp_type_vfs_lfs2);
        // No times in the files: the same writes leave the same bytes.
        mp_obj_t args[] = {MP_OBJ_FROM_PTR(&flash_obj), MP_OBJ_NEW_QSTR(MP_QSTR_mtime), mp_const_false};
        if (flash_is_blank()) {
            mp_call_function_1(mp_load_attr(lfs2, MP_QSTR_mkfs), args[0]);
        }
        mp_obj_t mount[] = {mp_call_function_n_kw(lfs2, 1, 1, args), MP_OBJ_NEW_QSTR(MP_QSTR__slash_)};
        mp_vfs_mount(2, mount, (mp_map_t *)&mp_const_empty_map);
        mp_vfs_chdir(mount[1]);
        nlr_pop();
    } else {
        mp_printf(&mp_plat_print, "the flash holds no file system that can be mounted; it is left as it is: ");
        mp_obj_print_exception(&mp_plat_print, MP_OBJ_FROM_PTR(nlr.ret_val));
    }
}

// Runs boot.py and main.py as every port does: main.py only if boot.py did not fail and no raw REPL is asked for.
// Returns false when one of them asks for a soft reset.
static bool run_files(void) {
    int ended = pyexec_file_if_exists("boot.py");
    if (!(ended & PYEXEC_FORCED_EXIT) && ended && pyexec_mode_kind == PYEXEC_MODE_FRIENDLY_REPL) {
        ended = pyexec_file_if_exists("main.py");
    }
    return !(ended & PYEXEC_FORCED_EXIT);
}

int main(void) {
    console_init();
    for (;;) {
        mp_stack_ctrl_init();
        mp_stack_set_limit(MICROPY_STACK_SIZE);
        gc_init(heap, (char *)heap + sizeof(heap));
        mp_init();
        readline_init0();
        reset_cause_init();
        PHASE = PROGRAM;
        mount_flash();
        if (run_files()) {
            PHASE = BUSY;
            while ((pyexec_mode_kind == PYEXEC_MODE_RAW_REPL ? pyexec_raw_repl() : pyexec_friendly_repl()) == 0) {
            }
        }
        mp_printf(&mp_plat_print, "MPY: soft reboot\n");
        gc_sweep_all();
        mp_deinit();
    }
}

void gc_collect(void) {
    gc_collect_start();
    gc_helper_collect_regs_and_stack();
    gc_collect_end();
}

// An exception that nothing catches: unreachable, as every entry into Python has its catcher.
void nlr_jump_fail(void *exception) {
    mp_printf(&mp_plat_print, "uncaught exception\n");
    for (;;) {
    }
}
