/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the types of outputs. */
#include "pipeline/kind.h"

const struct pl_output_kind *const pl_output_kinds[PL_OUTPUT_KIND_MAX] = {
#define PL_OUTPUT_KIND(ID, id) [PL_OUTPUT_##ID] = &pl_output_kind_##id,
#include "pipeline/kinds.def"
#undef PL_OUTPUT_KIND
};
