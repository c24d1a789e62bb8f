/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of string.h that the compiler itself provides, for kernel programs: headers that are
 * shared with user space include <string.h>, and the C library's does not compile for this
 * target. */
#pragma once

#define memcpy  __builtin_memcpy
#define memset  __builtin_memset
#define memcmp  __builtin_memcmp
#define memmove __builtin_memmove
