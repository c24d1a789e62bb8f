/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fuzz targets share. A target is one file defining LLVMFuzzerTestOneInput and one name in
 * meson.build; it checks an invariant beyond "did not crash" with `must`, which, unlike assert,
 * is there in every build.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #cond);      \
			abort();                                                                   \
		}                                                                                  \
	} while (0)
