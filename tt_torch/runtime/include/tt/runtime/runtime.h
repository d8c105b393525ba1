// Includes everything that a C++ program needs to run TTNN binaries and packages.
#pragma once

#include "tt/runtime/binary.h"
#include "tt/runtime/block_float.h"
#include "tt/runtime/custom_op.h"
#include "tt/runtime/device.h"
#include "tt/runtime/error.h"
#include "tt/runtime/executable.h"
#include "tt/runtime/fingerprint.h"
#include "tt/runtime/package.h"
#include "tt/runtime/tensor.h"
#include "tt/runtime/types.h"
