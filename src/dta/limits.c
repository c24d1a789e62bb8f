/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads limits of stores from text. */
#include "dta/limits.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"

static int parse_store(const char *text, size_t len, uint32_t *ret)
{
	char number[24];
	uint64_t store;

	if (len >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, len);
	number[len] = '\0';
	if (pl_parse_u64(number, &store) < 0 || store >= PL_DTA_STORES_MAX)
		return -EINVAL;
	*ret = (uint32_t)store;
	return 0;
}

int pl_dta_rate_parse(const char *text, uint32_t *store, double *rate)
{
	const char *equals = strchr(text, '=');

	if (pl_parse_rate(equals != NULL ? equals + 1 : text, rate) < 0 || *rate == 0)
		return -EINVAL;
	*store = PL_DTA_EVERY_STORE;
	return equals == NULL ? 0 : parse_store(text, (size_t)(equals - text), store);
}

int pl_dta_above_parse(const char *text, uint32_t *store, struct pl_dta_filter *filter)
{
	const char *equals = strchr(text, '=');
	uint64_t above, offset = 0, width = 0;
	char copy[72], *at, *plus;

	if (equals == NULL || strlen(equals + 1) >= sizeof(copy) ||
		parse_store(text, (size_t)(equals - text), store) < 0)
		return -EINVAL;
	memcpy(copy, equals + 1, strlen(equals + 1) + 1);
	at = strchr(copy, '@');
	if (at != NULL) {
		*at++ = '\0';
		plus = strchr(at, '+');
		if (plus == NULL)
			return -EINVAL;
		*plus++ = '\0';
		if (pl_parse_u64(at, &offset) < 0 || pl_parse_u64(plus, &width) < 0 ||
			offset > UINT16_MAX || width == 0 || width > 8)
			return -EINVAL;
	}
	if (pl_parse_u64(copy, &above) < 0)
		return -EINVAL;
	*filter = (struct pl_dta_filter){
		.on = true, .width = (uint8_t)width, .offset = (uint16_t)offset, .above = above
	};
	return 0;
}
