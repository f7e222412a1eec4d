/* Support functions have the names and signatures that LLVM's code generator calls when a machine lacks an instruction.
 * They may not use the operation they stand for, nor call anything but each other. */
#ifndef VMPK_KERNELS_SUPPORT_H
#define VMPK_KERNELS_SUPPORT_H

#include "math.h"

/* ARM's run-time ABI passes floats in integer registers, whatever else the code does. */
#ifdef __arm__
#define VMPK_AEABI __attribute__((pcs("aapcs")))
#endif

/* Declares a function and begins its definition: nobody includes a header for these. */
#define VMPK_SUPPORT(type, name, ...)                                                                                  \
  type name(__VA_ARGS__);                                                                                              \
  type name(__VA_ARGS__)

#endif /* VMPK_KERNELS_SUPPORT_H */
