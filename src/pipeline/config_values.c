/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks values that keys of several sections have, and compares sections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "pipeline/config_words.h"
#include "record/pack.h"

int pl_config_check_prefix(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;
	unsigned int bits;

	if (pl_parse_prefix(value, &addr, &bits) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\" is neither an address nor a prefix such as 10.0.0.0/8", value);
}

/* Parses "0x17" (the whole field) or "0x20/0x20" (value and mask). */
int pl_config_parse_dscp(const char *text, uint8_t *ret_value, uint8_t *ret_mask)
{
	char value[16];
	const char *slash = strchr(text, '/');
	size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
	uint64_t v, m = 0x3f;

	if (n >= sizeof(value))
		return -EINVAL;
	memcpy(value, text, n);
	value[n] = '\0';
	if (pl_parse_u64(value, &v) < 0 || (slash != NULL && pl_parse_u64(slash + 1, &m) < 0))
		return -EINVAL;
	if (v > 0x3f || m > 0x3f || m == 0 || (v & ~m) != 0)
		return -EINVAL;
	*ret_value = (uint8_t)v;
	*ret_mask = (uint8_t)m;
	return 0;
}

/* Returns the bit of a flag by its name; -1: unknown. */
int pl_config_flag_bit(const char *name)
{
	for (unsigned int bit = 0; bit < 16; bit++) {
		const char *known = pl_path_flag_name(bit);

		if (known != NULL && strcmp(known, name) == 0)
			return (int)bit;
	}
	return -1;
}

int pl_config_check_number(const char *value, struct pl_diag *diag)
{
	uint64_t v;

	if (pl_parse_u64(value, &v) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "\"%s\" is not a 64-bit number", value);
}

int pl_config_check_port(const char *value, struct pl_diag *diag)
{
	const char *bad;
	uint64_t ports;

	if (pl_vxlan_ports_parse(&ports, &value, 1, &bad) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "\"%s\" is not a port from 1 to 65535", value);
}

bool pl_config_same(const struct pl_config *a, const struct pl_config *b,
	void (*dump_one)(const struct pl_config *c, struct pl_buf *out))
{
	struct pl_buf of_a, of_b;
	bool same;

	pl_buf_init(&of_a);
	pl_buf_init(&of_b);
	dump_one(a, &of_a);
	dump_one(b, &of_b);
	same = !of_a.failed && !of_b.failed && of_a.len == of_b.len &&
	       (of_a.len == 0 || memcmp(of_a.data, of_b.data, of_a.len) == 0);
	pl_buf_done(&of_a);
	pl_buf_done(&of_b);
	return same;
}
