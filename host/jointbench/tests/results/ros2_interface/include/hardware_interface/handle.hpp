#include "ros2_control_interface.hpp"
