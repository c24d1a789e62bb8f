/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of the configuration as more than one file of it reads them: config.c, config_rows.c, config_parts.c. */
#pragma once

#include <stdint.h>

/* "0x17" (the whole field) or "0x20/0x20" (value and mask). -EINVAL */
int pl_config_parse_dscp(const char *text, uint8_t *ret_value, uint8_t *ret_mask);

/* The bit of a flag of reports by its name; -1: there is none. */
int pl_config_flag_bit(const char *name);

/* By enum pl_config_output_type. */
extern const char *const pl_config_output_types[];
