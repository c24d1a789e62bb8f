/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the names of marking bits, and reads and writes the bits. */
#include "mark/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mark/packet.h"
#include "record/packet.h"

#define LABEL_MAX 1048575u /* largest MPLS label: 20 bits */

/* Bit names that end with a number: the least and largest number, and the bit of the byte that
 * stands for 0. */
static const struct {
	const char *name;
	uint8_t first, last, shift;
	bool ipv4, ipv6;
} numbered[] = {
	{ "dscp:", 0, 5, 2, true, true },
	{ "tos:", 2, 7, 0, true, false },
	{ "tclass:", 2, 7, 0, false, true },
	{ "ecn:", 0, 1, 0, true, true },
};

/* Parses "sfl:A/B" or "sfl:A/B/C/D"; the labels must differ. */
static int parse_labels(struct pl_mark_bit *ret, const char *text, struct pl_diag *diag)
{
	const char *at = text + strlen("sfl:");
	bool good = true;

	*ret = (struct pl_mark_bit){ .carrier = PL_MARK_AT_LABEL, .ipv4 = true, .ipv6 = true };
	for (const char *end; good && *at != '\0'; at = *end == '/' ? end + 1 : end) {
		unsigned long label = strtoul(at, (char **)&end, 10);

		good = *at >= '0' && *at <= '9' && label <= LABEL_MAX && ret->n_labels < 4 &&
		       (*end == '\0' || (*end == '/' && end[1] != '\0'));
		for (unsigned int i = 0; good && i < ret->n_labels; i++)
			good = ret->labels[i] != label;
		if (good)
			ret->labels[ret->n_labels++] = (uint32_t)label;
	}
	if (good && (ret->n_labels == 2 || ret->n_labels == 4))
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"bit %.60s: sfl:A/B with different labels from 0 to %u, of colour 0 and 1, or sfl:A/B/C/D with those of the second bit",
		text, LABEL_MAX);
}

int pl_mark_bit_parse(struct pl_mark_bit *ret, const char *text, struct pl_diag *diag)
{
	if (strncmp(text, "sfl:", strlen("sfl:")) == 0)
		return parse_labels(ret, text, diag);
	if (strcmp(text, "ipv4-reserved") == 0) {
		*ret = (struct pl_mark_bit){ .carrier = PL_MARK_AT_RESERVED, .ipv4 = true };
		return 0;
	}
	if (strcmp(text, "altmark") == 0 || strcmp(text, "altmark-dst") == 0) {
		*ret = (struct pl_mark_bit){
			.carrier = PL_MARK_AT_OPTION, .ipv6 = true, .dst = text[7] != '\0'
		};
		return 0;
	}
	if (strncmp(text, "flow-label", strlen("flow-label")) == 0)
		return pl_diag_fail(diag, -EINVAL,
			"bit %s: routers choose among equal ways by the flow label, so that a mark there would move the flow every period (RFC 9343 rejects it); take altmark or tclass:N",
			text);
	for (unsigned int i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++) {
		const size_t n = strlen(numbered[i].name);
		const char digit = strncmp(text, numbered[i].name, n) == 0 ? text[n] : '\0';
		const unsigned int bit = (unsigned int)(digit - '0');

		if (digit == '\0')
			continue;
		if (bit <= 7 && text[n + 1] == '\0' && bit >= numbered[i].first &&
			bit <= numbered[i].last) {
			*ret = (struct pl_mark_bit){ .carrier = PL_MARK_AT_TOS,
				.mask = (uint8_t)(1u << (bit + numbered[i].shift)),
				.ipv4 = numbered[i].ipv4,
				.ipv6 = numbered[i].ipv6 };
			return 0;
		}
		if (bit <= 1 && text[n + 1] == '\0' && numbered[i].first == 2)
			pl_diag_set(diag,
				"bit %s: bits 0 and 1 are ECN, and a mark there looks like congestion; if ECN is known to be unused, give ecn:%c",
				text, digit);
		else
			pl_diag_set(diag, "bit %s: %sN with N from %u to %u", text,
				numbered[i].name, numbered[i].first, numbered[i].last);
		return -EINVAL;
	}
	return pl_diag_fail(diag, -EINVAL,
		"bit %s: dscp:N, tos:N, tclass:N, ecn:N, ipv4-reserved, altmark, altmark-dst or sfl:A/B are known",
		text);
}

int pl_mark_where_parse(struct pl_mark_where *ret, unsigned int method, const char *const *texts,
	size_t n, struct pl_diag *diag)
{
	struct pl_mark_bit bits[2] = { { 0 }, { 0 } };
	const bool two = method == PL_MARK_DOUBLE || method == PL_MARK_CYCLIC;

	for (size_t i = 0; i < n && i < 2; i++) {
		if (pl_mark_bit_parse(&bits[i], texts[i], diag) < 0)
			return -EINVAL;
	}
	*ret = (struct pl_mark_where){ .colour = bits[0], .second = bits[1] };
	if (method == PL_MARK_CYCLIC &&
		(bits[0].carrier == PL_MARK_AT_OPTION || bits[1].carrier == PL_MARK_AT_OPTION))
		return pl_diag_fail(diag, -EINVAL,
			"cyclic marking is in bits of the header: those of altmark have another meaning (RFC 9343)");
	if (n == 1 && bits[0].carrier == PL_MARK_AT_OPTION)
		return 0;
	if (bits[0].carrier == PL_MARK_AT_LABEL || bits[1].carrier == PL_MARK_AT_LABEL) {
		if (n == 1 && bits[0].n_labels == (two ? 4 : 2))
			return 0;
		return pl_diag_fail(diag, -EINVAL,
			"this method has one bit of %s labels, sfl:%s, and no other",
			two ? "four" : "two", two ? "A/B/C/D" : "A/B");
	}
	if (n != (two ? 2u : 1u))
		return pl_diag_fail(diag, -EINVAL,
			method == PL_MARK_CYCLIC
				? "cyclic marking has two bits: those of the block's number modulo 4, the lower one first"
			: two ? "double marking has two bits: the colour and the delay's, or altmark, which has both"
			      : "this method has one bit");
	if (two && (bits[0].carrier == PL_MARK_AT_OPTION || bits[1].carrier == PL_MARK_AT_OPTION))
		return pl_diag_fail(diag, -EINVAL, "altmark has both bits: no other beside it");
	if (two && bits[0].carrier == bits[1].carrier && bits[0].mask == bits[1].mask)
		return pl_diag_fail(diag, -EINVAL, "both bits are the same one");
	if (two && (bits[0].ipv4 != bits[1].ipv4 || bits[0].ipv6 != bits[1].ipv6))
		return pl_diag_fail(
			diag, -EINVAL, "the two bits are of packets of different versions of IP");
	return 0;
}

int pl_mark_where_is_written(const struct pl_mark_where *where, struct pl_diag *diag)
{
	if (where->colour.carrier != PL_MARK_AT_LABEL)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"labels of MPLS (sfl:) are only read, in captures: pathline meter --read");
}

/* Reads a bit of the IP header, of which the walk has seen at least 20 bytes (IPv4) or 40
 * (IPv6). */
static unsigned int bit_of(const struct pl_mark_bit *bit, const struct pl_layers *layers)
{
	const uint8_t *ip = layers->network;
	const uint8_t tos = layers->ip_version == 4 ? ip[1] : (uint8_t)(pl_be16(ip) >> 4);

	if (bit->carrier == PL_MARK_AT_RESERVED)
		return ip[6] >> 7;
	return (tos & bit->mask) != 0;
}

static enum pl_mark_read read_option(
	const struct pl_layers *layers, unsigned int *ret_bits, struct pl_altmark *ret_option)
{
	enum pl_altmark_found found = PL_ALTMARK_NONE;

	if ((layers->flags & PL_LAYERS_HOP_OPTS) != 0)
		found = pl_altmark_find(ret_option, layers->hop_opts);
	if (found == PL_ALTMARK_NONE && (layers->flags & PL_LAYERS_DST_OPTS) != 0)
		found = pl_altmark_find(ret_option, layers->dst_opts);
	if (found != PL_ALTMARK_FOUND)
		return found == PL_ALTMARK_NONE ? PL_MARK_READ_ELSEWHERE : PL_MARK_READ_BROKEN;
	*ret_bits = (unsigned int)ret_option->loss | (unsigned int)ret_option->delay << 1;
	return PL_MARK_READ_OK;
}

/* Looks for one of the bit's labels in the MPLS stack, which ends in front of the IP header. */
static enum pl_mark_read read_label(
	const struct pl_mark_bit *bit, const struct pl_layers *layers, unsigned int *ret_bits)
{
	if ((layers->flags & PL_LAYERS_MPLS) == 0)
		return PL_MARK_READ_ELSEWHERE;
	for (unsigned int i = layers->labels; i > 0; i--) {
		const uint32_t label = pl_be32(layers->network - 4 * (size_t)i) >> 12;

		for (unsigned int bits = 0; bits < bit->n_labels; bits++) {
			if (bit->labels[bits] != label)
				continue;
			*ret_bits = bits;
			return PL_MARK_READ_OK;
		}
	}
	return PL_MARK_READ_ELSEWHERE;
}

enum pl_mark_read pl_mark_read(const struct pl_mark_where *where, const struct pl_layers *layers,
	unsigned int *ret_bits, struct pl_altmark *ret_option)
{
	*ret_option = (struct pl_altmark){ 0 };
	if (layers->network == NULL ||
		!(layers->ip_version == 4 ? where->colour.ipv4 : where->colour.ipv6))
		return PL_MARK_READ_ELSEWHERE;
	if (where->colour.carrier == PL_MARK_AT_OPTION)
		return read_option(layers, ret_bits, ret_option);
	if (where->colour.carrier == PL_MARK_AT_LABEL)
		return read_label(&where->colour, layers, ret_bits);
	*ret_bits = bit_of(&where->colour, layers);
	if (where->second.carrier != 0)
		*ret_bits |= bit_of(&where->second, layers) << 1;
	return PL_MARK_READ_OK;
}

static void write_bit(const struct pl_mark_bit *bit, uint8_t *ip, unsigned int value)
{
	const bool ipv4 = ip[0] >> 4 == 4;
	const uint32_t mask = bit->carrier == PL_MARK_AT_RESERVED ? PL_MARK_RESERVED : bit->mask;
	uint32_t marks = ipv4 ? ip[1] | (ip[6] >> 7 != 0 ? PL_MARK_RESERVED : 0)
			      : (uint8_t)(pl_be16(ip) >> 4);

	marks = (value & 1) != 0 ? marks | mask : marks & ~mask;
	if (ipv4)
		pl_mark_set_ip4(ip, marks);
	else
		pl_mark_set_ip6(ip, marks);
}

bool pl_mark_write(const struct pl_mark_where *where, uint8_t *network, unsigned int bits)
{
	const bool ipv4 = network[0] >> 4 == 4;

	if (where->colour.carrier == PL_MARK_AT_OPTION ||
		where->colour.carrier == PL_MARK_AT_LABEL ||
		!(ipv4 ? where->colour.ipv4 : where->colour.ipv6))
		return false;
	write_bit(&where->colour, network, bits);
	if (where->second.carrier != 0)
		write_bit(&where->second, network, bits >> 1);
	return true;
}
