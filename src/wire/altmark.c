/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the AltMark option. */
#include "wire/altmark.h"

#define PAD1 0

enum pl_altmark_found pl_altmark_find(struct pl_altmark *ret, struct pl_cursor options)
{
	while (pl_cursor_left(&options) > 0) {
		const uint8_t type = pl_get_u8(&options);
		const uint8_t *head, *body;
		uint32_t word;

		if (type == PAD1)
			continue;
		head = pl_cursor_take(&options, 1);
		body = head != NULL ? pl_cursor_take(&options, head[0]) : NULL;
		if (body == NULL || (type == PL_ALTMARK_TYPE && head[0] != 4))
			return PL_ALTMARK_BROKEN;
		if (type != PL_ALTMARK_TYPE)
			continue;
		word = pl_be32(body);
		*ret = (struct pl_altmark){ .flow_id = word >> 12,
			.loss = (word >> 11 & 1) != 0,
			.delay = (word >> 10 & 1) != 0 };
		return PL_ALTMARK_FOUND;
	}
	return PL_ALTMARK_NONE;
}
