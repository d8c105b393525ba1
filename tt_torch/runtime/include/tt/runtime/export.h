#pragma once

#if defined(TT_RUNTIME_BUILD)
#define TT_RUNTIME_API __attribute__((visibility("default")))
#else
#define TT_RUNTIME_API
#endif
