include("${CMAKE_CURRENT_LIST_DIR}/stand_in.cmake")
