/* SPDX-License-Identifier: BSD-2-Clause */
/* The services of telemetry memory by their configuration (`dta`, `rdma` and `regions`), for the
 * process that runs all and for the commands that run one. */
#pragma once

#include "chain/memory_server.h"
#include "chain/translator.h"
#include "pipeline/config.h"

/* Options and the memory that they point to, apart from the configuration, which stays. */
struct pl_translate_configured {
	struct pl_translate_options options;
	const char *names[PL_CONFIG_REGIONS_MAX], *paths[PL_CONFIG_REGIONS_MAX];
	struct pl_prefix allow[PL_CONFIG_ACCESS_MAX];
};

struct pl_memory_configured {
	struct pl_memory_server_options options;
	struct pl_collector_store stores[PL_CONFIG_REGIONS_MAX];
	struct pl_prefix allow[PL_CONFIG_PREFIXES_MAX], readers[PL_CONFIG_PREFIXES_MAX],
		proxies[PL_CONFIG_PREFIXES_MAX];
	struct pl_collector_switch peer_switch;
};

/* Fills in options from a checked configuration. The callbacks (`written`), `keys`, `count`,
 * `workers` and the printing are left to the caller. */
void pl_translate_configure(struct pl_translate_configured *ret, const struct pl_config *c);
void pl_memory_configure(struct pl_memory_configured *ret, const struct pl_config *c);

/* Lists names and paths of a writer's regions. Returns their number. Names may be NULL. */
unsigned int pl_list_regions(const struct pl_config *c, enum pl_config_writer writer,
	const char **names, const char **paths);
