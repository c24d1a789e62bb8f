/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of pathline dta up: what is refused has words; of what is accepted every store can be,
 * names fit into file names and URIs, the generators' words end, and the dump parses to the same
 * dump.
 */
#include "base/buf.h"
#include "chain/dta_check.h"
#include "chain/dta_conf.h"
#include "fuzz.h"

static void look_at_name(const char *name)
{
	must(name != NULL && name[0] != '\0' && strlen(name) <= 24);
	must(strpbrk(name, "/=,?& ") == NULL);
}

static void look_at(const struct pl_dta_conf *c)
{
	const struct pl_dta_conf_store *stores = c->stores.items;
	const struct pl_dta_conf_collector *collectors = c->collectors.items;

	must(c->stores.n >= 1 && c->stores.n <= PL_DTA_CONF_STORES_MAX);
	for (size_t i = 0; i < c->stores.n; i++) {
		struct pl_store_params p;
		const char *argv[24];
		char words[24][24];
		uint64_t bytes;
		size_t n = 0;

		look_at_name(stores[i].name);
		pl_dta_conf_params(c, &stores[i], &p);
		must(pl_store_bytes(&p, &bytes, NULL) == 0 && bytes > 0);
		must(stores[i].reporters >= 1 && stores[i].reporters <= PL_DTA_CONF_REPORTERS_MAX);
		pl_dta_check_stream(&stores[i], (unsigned int)i, "udp://x:1", argv, words);
		while (argv[n] != NULL)
			must(strlen(argv[n]) > 0 && ++n < 24);
		must(strcmp(argv[n - 1], "udp://x:1") == 0);
	}
	for (size_t i = 0; i < c->collectors.n; i++)
		look_at_name(collectors[i].name);
	must(c->lab == (c->collectors.n == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_dta_conf conf = { .folder = NULL }, again = { .folder = NULL };
	struct pl_diag diag = { .text = "" };
	struct pl_buf first, second;

	if (pl_conf_parse(pl_dta_conf_rows, "fuzz", (const char *)data, size, &conf, &diag) < 0) {
		must(diag.text[0] != '\0');
		return 0;
	}
	if (pl_dta_conf_check(&conf, &diag) == 0)
		look_at(&conf);
	else
		must(diag.text[0] != '\0');
	pl_buf_init(&first);
	pl_buf_init(&second);
	pl_conf_dump(pl_dta_conf_rows, &conf, &first);
	must(!first.failed);
	must(pl_conf_parse(pl_dta_conf_rows, "dump", first.data, first.len, &again, &diag) == 0);
	pl_conf_dump(pl_dta_conf_rows, &again, &second);
	must(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	pl_buf_done(&first);
	pl_buf_done(&second);
	pl_conf_done(pl_dta_conf_rows, &conf);
	pl_conf_done(pl_dta_conf_rows, &again);
	return 0;
}
