/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of the configuration that several of its files read: config.c, config_rows.c,
 * config_parts.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "pipeline/config.h"

/* ---- config_values.c ---- */

/* Parses "0x17" (the whole field) or "0x20/0x20" (value and mask). Returns -EINVAL. */
int pl_config_parse_dscp(const char *text, uint8_t *ret_value, uint8_t *ret_mask);

/* Returns the bit of a report's flag by its name; -1: unknown. */
int pl_config_flag_bit(const char *name);

int pl_config_check_prefix(const char *value, struct pl_diag *diag);
int pl_config_check_port(const char *value, struct pl_diag *diag);
int pl_config_check_number(const char *value, struct pl_diag *diag);

/* Returns whether `dump` writes the same for both; false also when memory is short. */
bool pl_config_same(const struct pl_config *a, const struct pl_config *b,
	void (*dump)(const struct pl_config *c, struct pl_buf *out));

/* ---- config_rows.c ---- */

/* By enum pl_config_output_type. */
extern const char *const pl_config_output_types[];

/* ---- config_services.c, for the rows of config_services.def ---- */

extern const struct pl_conf_row pl_config_region_rows[];
extern const char *const pl_config_dta_forms[];
extern const char *const pl_config_roce_versions[];
int pl_config_check_live(const char *value, struct pl_diag *diag);
int pl_config_check_roce(const char *value, struct pl_diag *diag);
int pl_config_check_control(const char *value, struct pl_diag *diag);
int pl_config_check_store_rate(const char *value, struct pl_diag *diag);
int pl_config_check_above(const char *value, struct pl_diag *diag);
int pl_config_check_gid(const char *value, struct pl_diag *diag);
int pl_config_check_services(const struct pl_config *config, struct pl_diag *diag);
/* Checks rules on values of regions. Returns -EINVAL with diag, and the key in config->fault. */
int pl_config_check_alerts(struct pl_config *config, struct pl_diag *diag);

/* ---- config_taps.c, config_queries.c and config_marks.c ---- */

extern const struct pl_conf_row pl_config_tap_rows[];
int pl_config_check_taps(const struct pl_config *config, struct pl_diag *diag);
/* Refuses two uses of an XDP program or UDP address. Returns -EINVAL with diag, -ENOMEM. */
int pl_config_check_interfaces(const struct pl_config *config, struct pl_diag *diag);
extern const struct pl_conf_row pl_config_query_rows[];
int pl_config_check_queries(const struct pl_config *config, struct pl_diag *diag);
extern const struct pl_conf_row pl_config_marks_rows[];
int pl_config_check_marks(const struct pl_config *config, struct pl_diag *diag);
