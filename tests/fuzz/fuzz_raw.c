/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as they arrived, as they come from a topic or a spool: any bytes are entries up to the first
 * that is none. An entry's packet lies within the bytes and is made of fields that a decoder may use,
 * and an entry that is made of it is the same, byte by byte, up to the zeros behind it.
 */
#include "fuzz.h"
#include "raw/message.h"

static void write_anew(const uint8_t *entry, const struct pl_packet *p)
{
	struct pl_raw_head made;
	struct pl_raw_head was;

	memcpy(&was, entry, sizeof(was));
	pl_raw_head_make(&made, p);
	if (p->link != PL_LINK_UDP) { /* a frame has its addresses in it */
		memset(was.src, 0, sizeof(was.src));
		memset(was.dst, 0, sizeof(was.dst));
	}
	must(memcmp(&made, &was, sizeof(was)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of its own size, so that reading behind it is seen. */
	uint8_t *value = malloc(size > 0 ? size : 1);
	size_t at = 0, from = 0;
	struct pl_packet p;
	uint32_t n = 0;
	int r;

	must(value != NULL);
	memcpy(value, data, size);
	while ((r = pl_raw_next(value, size, &at, &p)) == 1) {
		must(at > from && at <= size && at - from == pl_raw_entry_size(p.len));
		must(p.data == value + from + sizeof(struct pl_raw_head));
		must(p.len <= PL_RAW_LEN_MAX && p.link < PL_LINK_MAX && p.clock < PL_STAMP_KINDS);
		must(p.out <= 1 && p.gso <= PL_GSO_OTHER);
		write_anew(value + from, &p);
		(void)pl_raw_hash(&p);
		from = at;
		n++;
	}
	must(n <= size / sizeof(struct pl_raw_head));
	must(r == 0 ? at == size : at == from); /* an entry that is none is not passed over */
	free(value);
	return 0;
}
