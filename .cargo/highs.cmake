# HiGHS in a few large units instead of 144 small ones: its headers are read less often.
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
