/* SPDX-License-Identifier: BSD-2-Clause */
#include "dta/limits.h"

#include "base/test.h"

static void test_rates(void)
{
	static const char *const wrong[] = { "", "0", "=5", "5=", "x=5", "5=x", "-1", "1=0",
		"256=5", "99999999999999999999999=5", "1=2=3" };
	uint32_t store;
	double rate;

	eq(pl_dta_rate_parse("100k", &store, &rate), 0);
	ok(store == PL_DTA_EVERY_STORE && rate == 100000, "of every store");
	eq(pl_dta_rate_parse("7=2.5", &store, &rate), 0);
	ok(store == 7 && rate == 2.5, "of one store");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(pl_dta_rate_parse(wrong[i], &store, &rate) < 0, "\"%s\" is refused", wrong[i]);
}

static void test_above(void)
{
	static const char *const wrong[] = { "", "5", "1=", "=5", "1=x", "1=5@", "1=5@4", "1=5@4+0",
		"1=5@4+9", "1=5@65536+4", "1=5@+4", "1=5@4+", "1=-5", "9999=5",
		"1=000000000000000000000000000000000000000000000000000000000000000000000005" };
	struct pl_dta_filter f;
	uint32_t store;

	eq(pl_dta_above_parse("3=1000", &store, &f), 0);
	ok(store == 3 && f.on && f.above == 1000 && f.width == 0 && f.offset == 0, "all bytes");
	eq(pl_dta_above_parse("0=0x10@12+4", &store, &f), 0);
	ok(store == 0 && f.above == 16 && f.width == 4 && f.offset == 12, "some bytes");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(pl_dta_above_parse(wrong[i], &store, &f) < 0, "\"%s\" is refused", wrong[i]);
}

int main(void)
{
	test_rates();
	test_above();
	return pl_test_done();
}
