// The board's flash: a megabyte of the memory that QEMU keeps in a file, so what is written outlives the board.
//
// It behaves as NOR flash does: erasing a block sets every bit, writing only clears them. A write that flash could not
// take therefore shows. Python sees it as machine.flash, a block device for vfs.VfsLfs2.

#include <string.h>

#include "py/mperrno.h"
#include "py/runtime.h"
#include "extmod/vfs.h"
#include "flash.h"

#define FLASH ((uint8_t *)0x21100000)
#define BLOCK_SIZE 4096
#define BLOCKS 256

static uint8_t *place(mp_obj_t block_obj, size_t offset, size_t length) {
    size_t block = mp_obj_get_int(block_obj);
    size_t start = block * BLOCK_SIZE + offset;
    if (block >= BLOCKS || offset >= BLOCKS * BLOCK_SIZE || start + length > BLOCKS * BLOCK_SIZE) {
        mp_raise_OSError(MP_EINVAL);
    }
    return FLASH + start;
}

bool flash_is_blank(void) {
    // LittleFS keeps its superblock in the first two blocks; a new file is all zeros, an erased flash all ones.
    for (size_t i = 1; i < 2 * BLOCK_SIZE; ++i) {
        if (FLASH[i] != FLASH[0]) {
            return false;
        }
    }
    return FLASH[0] == 0 || FLASH[0] == 0xFF;
}

static mp_obj_t flash_readblocks(size_t n_args, const mp_obj_t *args) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(args[2], &buffer, MP_BUFFER_WRITE);
    memcpy(buffer.buf, place(args[1], n_args > 3 ? mp_obj_get_int(args[3]) : 0, buffer.len), buffer.len);
    return MP_OBJ_NEW_SMALL_INT(0);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(flash_readblocks_obj, 3, 4, flash_readblocks);

static mp_obj_t flash_writeblocks(size_t n_args, const mp_obj_t *args) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(args[2], &buffer, MP_BUFFER_READ);
    uint8_t *to = place(args[1], n_args > 3 ? mp_obj_get_int(args[3]) : 0, buffer.len);
    if (n_args == 3) { // whole blocks: the caller expects them to be erased
        memset(to, 0xFF, buffer.len);
    }
    for (size_t i = 0; i < buffer.len; ++i) {
        to[i] &= ((const uint8_t *)buffer.buf)[i];
    }
    return MP_OBJ_NEW_SMALL_INT(0);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(flash_writeblocks_obj, 3, 4, flash_writeblocks);

static mp_obj_t flash_ioctl(mp_obj_t self, mp_obj_t request, mp_obj_t argument) {
    switch (mp_obj_get_int(request)) {
        case MP_BLOCKDEV_IOCTL_INIT:
        case MP_BLOCKDEV_IOCTL_DEINIT:
        case MP_BLOCKDEV_IOCTL_SYNC:
            return MP_OBJ_NEW_SMALL_INT(0);
        case MP_BLOCKDEV_IOCTL_BLOCK_COUNT:
            return MP_OBJ_NEW_SMALL_INT(BLOCKS);
        case MP_BLOCKDEV_IOCTL_BLOCK_SIZE:
            return MP_OBJ_NEW_SMALL_INT(BLOCK_SIZE);
        case MP_BLOCKDEV_IOCTL_BLOCK_ERASE:
            memset(place(argument, 0, BLOCK_SIZE), 0xFF, BLOCK_SIZE);
            return MP_OBJ_NEW_SMALL_INT(0);
        default:
            return mp_const_none;
    }
}
static MP_DEFINE_CONST_FUN_OBJ_3(flash_ioctl_obj, flash_ioctl);

static const mp_rom_map_elem_t flash_locals_table[] = {
    { MP_ROM_QSTR(MP_QSTR_readblocks), MP_ROM_PTR(&flash_readblocks_obj) },
    { MP_ROM_QSTR(MP_QSTR_writeblocks), MP_ROM_PTR(&flash_writeblocks_obj) },
    { MP_ROM_QSTR(MP_QSTR_ioctl), MP_ROM_PTR(&flash_ioctl_obj) },
};
static MP_DEFINE_CONST_DICT(flash_locals, flash_locals_table);

static MP_DEFINE_CONST_OBJ_TYPE(flash_type, MP_QSTR_Flash, MP_TYPE_FLAG_NONE, locals_dict, &flash_locals);

const mp_obj_base_t flash_obj = {&flash_type};
