// The board's flash as a block device; what it holds is left alone unless it is blank.

#include "py/obj.h"

extern const mp_obj_base_t flash_obj;

bool flash_is_blank(void);
