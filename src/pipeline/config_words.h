/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of the configuration as more than one file of it reads them: config.c, config_rows.c,
 * config_parts.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "pipeline/config.h"

/* "0x17" (the whole field) or "0x20/0x20" (value and mask). -EINVAL */
int pl_config_parse_dscp(const char *text, uint8_t *ret_value, uint8_t *ret_mask);

/* The bit of a flag of reports by its name; -1: there is none. */
int pl_config_flag_bit(const char *name);

/* By enum pl_config_output_type. */
extern const char *const pl_config_output_types[];

/* ---- config_services.c, for the rows of config_services.def ---- */

extern const struct pl_conf_row pl_config_region_rows[];
extern const char *const pl_config_dta_forms[];
extern const char *const pl_config_roce_versions[];
int pl_config_check_prefix(const char *value, struct pl_diag *diag);
int pl_config_check_port(const char *value, struct pl_diag *diag);
int pl_config_check_live(const char *value, struct pl_diag *diag);
int pl_config_check_roce(const char *value, struct pl_diag *diag);
int pl_config_check_control(const char *value, struct pl_diag *diag);
int pl_config_check_store_rate(const char *value, struct pl_diag *diag);
int pl_config_check_above(const char *value, struct pl_diag *diag);
int pl_config_check_gid(const char *value, struct pl_diag *diag);
int pl_config_check_services(const struct pl_config *config, struct pl_diag *diag);
int pl_config_check_number(const char *value, struct pl_diag *diag);
/* Rules on values of regions. -EINVAL with diag, and the key in config->fault. */
int pl_config_check_alerts(struct pl_config *config, struct pl_diag *diag);

/* Whether what `dump` writes of both is the same; false also without memory. */
bool pl_config_same(const struct pl_config *a, const struct pl_config *b,
	void (*dump)(const struct pl_config *c, struct pl_buf *out));

/* ---- config_taps.c, config_queries.c and config_marks.c ---- */

extern const struct pl_conf_row pl_config_tap_rows[];
int pl_config_check_taps(const struct pl_config *config, struct pl_diag *diag);
/* That no interface's XDP program and no UDP address is wanted twice. -EINVAL with diag, -ENOMEM. */
int pl_config_check_interfaces(const struct pl_config *config, struct pl_diag *diag);
extern const struct pl_conf_row pl_config_query_rows[];
int pl_config_check_queries(const struct pl_config *config, struct pl_diag *diag);
extern const struct pl_conf_row pl_config_marks_rows[];
int pl_config_check_marks(const struct pl_config *config, struct pl_diag *diag);
