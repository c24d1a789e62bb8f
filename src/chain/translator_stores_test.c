/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors about a store that is not there say what was meant. */
#include "base/test.h"
#include "chain/translator.h"

static const char *said(const char *rate, const char *above)
{
	static struct pl_diag diag;
	static struct pl_dta_store stores[PL_DTA_STORES_MAX];
	static const struct pl_store_params params[2];
	static const struct pl_translate_out out = { .stores = params, .n_stores = 2 };
	const struct pl_translate_options o = { .dta = { .store_rates = { &rate, rate != NULL },
							.above = { &above, above != NULL } } };

	diag.text[0] = '\0';
	(void)pl_translate_stores(&o, &out, stores, &diag);
	return diag.text;
}

int main(void)
{
	static const char of_rate[] =
		"store rate 9=100: write RATE or STORE=RATE with a rate above 0 and a store from 0 to 1; leave it out for no limit";
	static const char of_above[] =
		"above 7=1: write STORE=VALUE or STORE=VALUE@OFFSET+WIDTH with a store from 0 to 1";
	streq(said("1=100", NULL), "");
	streq(said("9=100", NULL), of_rate);
	streq(said(NULL, "7=1"), of_above);
	return pl_test_done();
}
