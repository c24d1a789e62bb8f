/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of standing queries: what each run may take, and that all together have room. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/hash.h"
#include "service/standing.h"
#include "service/standing_query.h"

#define IDLE_NS UINT64_C(1000000000) /* time without a record; then windows close by the clock */

int pl_standing_run_new(struct pl_query_run **ret, const struct pl_query *query,
	const struct pl_config_query *c, uint32_t partitions, struct pl_standing_query *to,
	struct pl_diag *diag)
{
	const struct pl_query_config config = {
		.max_groups = c->reads == PL_QUERY_READS_ROWS ? 1 : (uint32_t)c->groups,
		.lateness_ns = c->lateness_ns,
		.idle_ns = IDLE_NS,
		.ahead_ns = c->ahead_ns + (c->ahead_ns == 0),
		.partitions = partitions,
		.restarts = true,
		.seed = pl_hash_seed()
	};
	struct pl_diag why = { .text = "" };
	const int r = pl_query_run_new(ret, query, &config, pl_standing_take_row, to, &why);

	if (r < 0)
		pl_diag_set(diag, "query %s: %s", c->name, why.text);
	return r;
}

struct sum {
	uint64_t bytes, most;
	const char *name; /* of the query that may take the most */
};

static void add(struct sum *sum, const char *name, const struct pl_query_run *run)
{
	const uint64_t bytes = pl_query_run_bytes(run);

	sum->bytes += bytes;
	if (bytes < sum->most)
		return;
	sum->most = bytes;
	sum->name = name;
}

static int check_sum(const struct sum *sum, struct pl_diag *diag)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || page <= 0 || sum->bytes <= (uint64_t)pages * (uint64_t)page)
		return 0;
	pl_diag_set(diag,
		"the queries together may take %" PRIu64
		" MiB of memory, and this machine has %" PRIu64
		" MiB; the most may take query %s, %" PRIu64 " MiB: lower its key groups",
		sum->bytes >> 20, (uint64_t)pages * (uint64_t)page >> 20, sum->name,
		sum->most >> 20);
	return -EINVAL;
}

int pl_standing_check_memory(
	struct pl_standing_query *const *queries, unsigned int n, struct pl_diag *diag)
{
	struct sum sum = { 0 };

	for (unsigned int i = 0; i < n; i++)
		add(&sum, queries[i]->name, queries[i]->run);
	return check_sum(&sum, diag);
}

int pl_standing_check(const struct pl_config *config, uint64_t *ret_bytes, struct pl_diag *diag)
{
	const struct pl_config_query *c = config->queries.items;
	struct sum sum = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < config->queries.n; i++) {
		struct pl_query_run *run = NULL;
		struct pl_query *query = NULL;

		r = pl_config_query_parse(c[i].query, &query, diag);
		for (size_t k = 0; r == 0 && k < c[i].to.n; k++)
			r = pl_standing_check_out(
				&c[i], query, ((char *const *)c[i].to.items)[k], diag);
		if (r == 0)
			r = pl_standing_run_new(&run, query, &c[i], 1, NULL, diag);
		if (r == 0)
			add(&sum, c[i].name, run);
		pl_query_run_free(run);
		pl_query_free(query);
	}
	*ret_bytes = sum.bytes;
	return r == 0 ? check_sum(&sum, diag) : r;
}
