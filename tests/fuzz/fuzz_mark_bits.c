/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places of marks and packets of any bytes. The first byte chooses the form of the frame, the second
 * the places; the rest is the frame. Bits that are read are those of the method; the option that is
 * read is, written again, the same; an even second byte instead reads the rest as the text of a
 * place, which is refused with words or reads a packet.
 */
#include "fuzz.h"
#include "mark/bits.h"
#include "mark/packet.h"
#include "record/packet.h"
#include "wire/build.h"

static void check_option(const struct pl_altmark *found)
{
	const uint32_t word =
		found->flow_id << 12 | (uint32_t)found->loss << 11 | (uint32_t)found->delay << 10;
	const uint8_t option[PL_ALTMARK_BYTES] = { PL_ALTMARK_TYPE, 4, (uint8_t)(word >> 24),
		(uint8_t)(word >> 16), (uint8_t)(word >> 8) };
	struct pl_altmark again;

	must(found->flow_id <= PL_ALTMARK_FLOW_ID_MAX);
	must(pl_altmark_find(&again, pl_cursor(option, sizeof(option))) == PL_ALTMARK_FOUND);
	must(again.flow_id == found->flow_id && again.loss == found->loss &&
		again.delay == found->delay);
}

/* Bits that are written are read again, and nothing else of the header changes but its checksum. */
static void write_bits(const struct pl_mark_where *where, const struct pl_layers *layers,
	const uint8_t *end, bool two)
{
	const size_t n = layers->ip_version == 4 ? 20 : 40;
	struct pl_layers over = *layers;
	struct pl_altmark option;
	uint8_t header[40];
	unsigned int got = 99;

	must((size_t)(end - layers->network) >= n);
	memcpy(header, layers->network, n);
	over.network = header;
	for (unsigned int bits = 0; bits < (two ? 4 : 2); bits++) {
		must(pl_mark_write(where, header, bits));
		must(pl_mark_read(where, &over, &got, &option) == PL_MARK_READ_OK && got == bits);
	}
	(void)pl_mark_read(where, layers, &got, &option);
	must(pl_mark_write(where, header, got));
	/* A checksum that was 0xffff comes back as 0, its other form. */
	must(memcmp(header, layers->network, n == 20 ? 10 : n) == 0);
	must(n == 40 || memcmp(header + 12, layers->network + 12, 8) == 0);
}

/* The kernel's programs read the same flow, where they read one. */
static void read_as_kernel(const uint8_t *data, size_t size, const struct pl_layers *layers)
{
	const struct pl_addr dst = (layers->flags & PL_LAYERS_ROUTED) != 0
					   ? pl_addr_v6(layers->last_segment)
					   : layers->flow.dst;
	struct pl_mark_packet s = { .network = 0 };
	const uint32_t why = pl_mark_parse(data, data + size, false, &s);

	/* They pass by fewer extension headers, and leave a packet that is cut alone. */
	if (why != PL_MARK_PARSED || s.network + s.bytes > size ||
		pl_mark_is_extension(s.key.proto) || s.key.proto == PL_IP_AH)
		return;
	must(layers->network == data + s.network && layers->ip_version == s.version);
	must(s.later == ((layers->flags & PL_LAYERS_FRAGMENT) != 0));
	must(memcmp(s.key.src, layers->flow.src.b, 16) == 0);
	must(memcmp(s.key.dst, dst.b, 16) == 0);
	must(s.key.proto == layers->flow.proto);
	if (s.key.proto != PL_IP_TCP && s.key.proto != PL_IP_UDP && s.key.proto != PL_IP_SCTP)
		return;
	if ((layers->flow.have & PL_FLOW_PORTS) != 0)
		must(s.key.sport == layers->flow.sport && s.key.dport == layers->flow.dport);
}

static void read_frame(
	const uint8_t *data, size_t size, uint8_t form, const struct pl_mark_where *where, bool two)
{
	struct pl_layers layers;
	struct pl_altmark option;
	unsigned int bits = 99;

	if (pl_layers_walk(&layers, pl_cursor(data, size), (enum pl_link)(form % PL_LINK_UDP),
		    true) != PL_V_OK)
		return;
	if (form % PL_LINK_UDP == PL_LINK_ETHERNET)
		read_as_kernel(data, size, &layers);
	if (pl_mark_read(where, &layers, &bits, &option) != PL_MARK_READ_OK)
		return;
	must(bits <= (two || where->colour.carrier == PL_MARK_AT_OPTION ? 3 : 1));
	if (where->colour.carrier == PL_MARK_AT_OPTION) {
		must(bits == ((unsigned int)option.loss | (unsigned int)option.delay << 1));
		check_option(&option);
	} else {
		write_bits(where, &layers, data + size, two);
	}
}

static void read_text(const uint8_t *data, size_t size, struct pl_mark_where *ret)
{
	struct pl_diag diag = { .text = "" };
	char *text = malloc(size + 1);
	const char *texts[] = { text };

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (pl_mark_where_parse(ret, PL_MARK_STEP, texts, 1, &diag) < 0)
		must(diag.text[0] != '\0');
	else
		must(ret->colour.carrier != 0 && (ret->colour.ipv4 || ret->colour.ipv6));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const places[][2] = { { "altmark", NULL }, { "dscp:0", "dscp:5" },
		{ "tclass:2", NULL }, { "ipv4-reserved", NULL }, { "ecn:0", "dscp:1" },
		{ "tos:7", "ipv4-reserved" } };
	const char *const *texts;
	struct pl_mark_where where;
	uint8_t *copy;
	size_t n;

	if (size < 2 || size > 65536)
		return 0;
	if ((data[1] & 1) == 0) {
		read_text(data + 2, size - 2, &where);
		return 0;
	}
	texts = places[data[1] / 2 % 6];
	n = texts[1] != NULL ? 2 : 1;
	must(pl_mark_where_parse(&where, n == 2 ? PL_MARK_DOUBLE : PL_MARK_STEP, texts, n, NULL) ==
		0);
	copy = malloc(size - 2 + 1);
	must(copy != NULL);
	memcpy(copy, data + 2, size - 2);
	read_frame(copy, size - 2, data[0], &where, n == 2);
	free(copy);
	return 0;
}
