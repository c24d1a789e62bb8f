/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, quantities and addresses as people write them: an address that parses prints and parses
 * back. */
#include "base/num.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), printed[PL_ADDR_TEXT_MAX];
	struct pl_addr addr, again;
	unsigned int bits;
	uint64_t n;
	uint16_t port;
	double x;
	bool b;

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	(void)pl_parse_u64(text, &n);
	(void)pl_parse_size(text, &n);
	(void)pl_parse_duration(text, &n);
	(void)pl_parse_bool(text, &b);
	if (pl_parse_double(text, &x) == 0)
		must(x == x && x - x == 0);
	if (pl_parse_rate(text, &x) == 0)
		must(x == x && x - x == 0);
	if (pl_parse_addr(text, &addr) == 0) {
		must(pl_format_addr(printed, &addr) < PL_ADDR_TEXT_MAX);
		must(pl_parse_addr(printed, &again) == 0);
		must(memcmp(&addr, &again, sizeof(addr)) == 0);
	}
	if (pl_parse_prefix(text, &addr, &bits) == 0)
		must(bits <= 128);
	(void)pl_parse_endpoint(text, &addr, &port);
	free(text);
	return 0;
}
