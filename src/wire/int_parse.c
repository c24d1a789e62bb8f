/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads INT headers. INT v0.5 4.6-4.7, v1.0 4.6-4.7, v2.1 5.6-5.8.
 *
 *   shim over    v0.5  Type:8 R:8 | Length:8 | R:8            Length counts shim … tail
 *   TCP or UDP   v1.0  Type:8 R:8 | Length:8 | DSCP:6 R:2     Length counts shim … stack
 *                v2.x  Type:4 NPT:2 R:2 | Length:8 | union:16 Length counts all behind the shim
 *   metadata     v0.5  Ver:4 Rep:2 C E | R:3 InsCnt:5 | MaxHopCnt | TotalHopCnt | bitmap:16 | R:16
 *   header       v1.0  Ver:4 Rep:2 C E | M R:7 | R:3 HopML:5 | RemainingHopCnt | bitmap:16 | R:16
 *                v2.x  Ver:4 D E M R | R:8 | R:3 HopML:5 | RemainingHopCnt | bitmap:16 |
 *                      DS id:16 | DS bitmap:16 | DS flags:16
 *                MX    Ver:4 D R:3 | R:24 | bitmap:16 | DS id:16 | DS bitmap:16 | DS flags:16
 */
#include "wire/int_lengths.h"

#include "base/clear.h"
#include "wire/layers.h"

#define SHIM_WORDS  1u
#define MD_WORDS_V1 2u /* metadata header of v0.5 and v1.0 */
#define MD_WORDS_V2 3u
#define TAIL_WORDS  1u
#define SHIMS_MAX   4u /* destination-type shims before the hop-by-hop one */

enum shim_type { SHIM_HOP_BY_HOP = 1, SHIM_DESTINATION = 2, SHIM_HOST_INT = 3 };

enum { TYPE_V2_MD = 1, TYPE_V2_DESTINATION = 2, TYPE_V2_MX = 3 };

/* Bits that the version does not assign: a node has to add a word for each, without meaning. */
static uint16_t reserved_bits(enum pl_int_version version)
{
	switch (version) {
	case PL_INT_V05:
		return 0x00ff;
	case PL_INT_V10:
		return 0x00fe;
	default:
		return 0x007e;
	}
}

static const struct pl_int_layout *layout_of(
	struct pl_int *ret, const struct pl_int_hints *hints, struct pl_int_cache *cache)
{
	enum pl_dialect prefer = ret->host_int ? PL_DIALECT_HOST_INT : hints->dialect;
	bool has_ds = ret->ds_id != 0;
	uint64_t key =
		pl_int_layout_key(ret->version, ret->bitmap, ret->hop_words, has_ds, prefer, hints);
	uint32_t slot = pl_int_layout_place(cache->key, key);
	struct pl_int_layout *l = &cache->layout[slot];

	if (__builtin_expect(cache->key[slot] == key, 1))
		return l;
	if (ret->hop_words <= hints->trailing_words ||
		pl_int_layout_find(l, ret->version, ret->bitmap,
			ret->hop_words - hints->trailing_words, has_ds, prefer,
			hints->queue_word) < 0) {
		cache->key[slot] = 0;
		return NULL;
	}
	l->words = (uint8_t)(l->words + hints->trailing_words);
	if (hints->dialect_pinned && l->dialect != prefer) {
		cache->key[slot] = 0;
		return NULL;
	}
	cache->key[slot] = key;
	return l;
}

/* Divides a stack of `words` words into hops and the source's own words. */
static bool divide(struct pl_int *ret, unsigned int words, const struct pl_int_hints *hints)
{
	unsigned int hops;

	if (__builtin_expect(ret->ds_id != 0, 0))
		return pl_int_divide_domain(ret, words, hints);
	hops = words / ret->hop_words;
	ret->announced_hops = (uint8_t)hops;
	return hops * ret->hop_words == words;
}

/* Cuts the stack of `words` words off c and divides it into hops. */
static enum pl_verdict take_stack(struct pl_int *ret, struct pl_cursor *c, unsigned int words,
	const struct pl_int_hints *hints, struct pl_int_cache *cache, bool truncated)
{
	unsigned int there = words;
	enum pl_verdict v = PL_V_OK;

	ret->layout = layout_of(ret, hints, cache);
	if (__builtin_expect(ret->layout == NULL, 0))
		return PL_V_INT_HOP_ML;
	if (__builtin_expect(pl_cursor_left(c) < 4 * (size_t)words, 0)) {
		if (!truncated)
			return PL_V_SHIM_LENGTH_MAX;
		there = (unsigned int)(pl_cursor_left(c) / 4);
		v = PL_V_INT_TRUNCATED;
	}
	if (__builtin_expect(!divide(ret, words, hints), 0))
		return PL_V_INT_STACK_WORDS;
	ret->hops = ret->announced_hops;
	if (there < words) {
		unsigned int hops = there / ret->hop_words;

		if (hops < ret->hops)
			ret->hops = (uint8_t)hops;
		ret->partial = true;
		ret->notes |= PL_NOTE_BIT(PARTIAL);
	}
	ret->stack = pl_cursor_take(c, 4 * (size_t)there);
	if (__builtin_expect(ret->source_words != 0, 0) && there == words &&
		pl_int_is_numbered(ret) && (ret->ds_flags & PL_INT_DS_SAMPLED) == 0) {
		ret->have_flow_seq = true;
		ret->flow_seq = pl_be32(ret->stack + 4 * (size_t)(words - 1));
	}
	if (there < words)
		pl_cursor_skip(c, pl_cursor_left(c));
	if (ret->layout->words > ret->layout->baseline_words + hints->trailing_words)
		ret->notes |= PL_NOTE_BIT(DS_UNKNOWN);
	if ((ret->bitmap & reserved_bits(ret->version)) != 0)
		ret->notes |= PL_NOTE_BIT(RESERVED_BITS);
	if (words == 0)
		ret->notes |= PL_NOTE_BIT(NO_HOPS);
	return v;
}

static void limits(struct pl_int *ret)
{
	if (__builtin_expect(ret->hop_limit | ret->mtu_limit | ret->copy, 0)) {
		if (ret->hop_limit)
			ret->notes |= PL_NOTE_BIT(HOP_LIMIT) | PL_NOTE_BIT(PARTIAL);
		if (ret->mtu_limit)
			ret->notes |= PL_NOTE_BIT(MTU_LIMIT) | PL_NOTE_BIT(PARTIAL);
		if (ret->copy)
			ret->notes |= PL_NOTE_BIT(COPY);
		/* E and M: a hop is missing, so the path is a part of the path. */
		ret->partial |= ret->hop_limit | ret->mtu_limit;
	}
}

/* Parses the v0.5 or v1.0 metadata header and stack; `stack_words` excludes shim, header and
 * tail. */
static enum pl_verdict parse_v1(struct pl_int *ret, struct pl_cursor *c, unsigned int stack_words,
	const struct pl_int_hints *hints, struct pl_int_cache *cache, bool truncated)
{
	const uint8_t *md = pl_cursor_take(c, 4 * MD_WORDS_V1);
	enum pl_verdict v;

	if (md == NULL)
		return truncated ? PL_V_INT_TRUNCATED : PL_V_SHIM_LENGTH_MAX;
	ret->bitmap = pl_be16(md + 4);
	if (hints->dialect == PL_DIALECT_V04 && hints->dialect_pinned) {
		/* v0.4: Ver:2 Rep:2 C:1 E:1 Rsvd:2 */
		if (md[0] >> 6 != 0)
			return PL_V_INT_VERSION;
		ret->version = PL_INT_V05;
		ret->copy = md[0] >> 3 & 1;
		ret->hop_limit = md[0] >> 2 & 1;
	} else {
		if (md[0] >> 4 > 1)
			return md[0] >> 4 == 2 ? PL_V_INT_SHIM_VERSION : PL_V_INT_VERSION;
		ret->version = md[0] >> 4 == 0 ? PL_INT_V05 : PL_INT_V10;
		ret->copy = md[0] >> 1 & 1;
		ret->hop_limit = md[0] & 1;
	}
	if (ret->host_int && ret->version != PL_INT_V05)
		return PL_V_INT_SHIM_VERSION;
	if (ret->version == PL_INT_V10) {
		ret->mtu_limit = md[1] >> 7;
		ret->hop_words = md[2] & 0x1f;
		ret->hops_left = md[3];
		limits(ret);
		v = take_stack(ret, c, stack_words, hints, cache, truncated);
		if ((v == PL_V_OK || v == PL_V_INT_TRUNCATED) &&
			ret->layout->dialect == PL_DIALECT_GEANT) {
			ret->have_flow_seq = true;
			ret->flow_seq = pl_be16(md + 6);
		}
		return v;
	}

	ret->hop_words = md[1] & 0x1f;
	if (ret->hop_words != __builtin_popcount(ret->bitmap))
		return PL_V_INT_INS_COUNT;
	if (md[3] > md[2])
		return PL_V_INT_HOP_COUNT;
	ret->hops_left = (uint8_t)(md[2] - md[3]);
	limits(ret);
	/* InsCnt counts instructions; a vendor's additional words have none. */
	if (ret->hop_words != 0)
		ret->hop_words = (uint8_t)(ret->hop_words + hints->trailing_words);
	if (ret->hop_words == 0) {
		/* Without instructions hops add nothing, so there is nothing to divide. */
		if (stack_words != 0)
			return PL_V_INT_HOP_ML;
		ret->notes |= PL_NOTE_BIT(NO_HOPS);
		return PL_V_OK;
	}
	v = take_stack(ret, c, stack_words, hints, cache, truncated);
	if (v != PL_V_OK && v != PL_V_INT_TRUNCATED)
		return v;
	/* v0.5 4.7: only hops that pushed are counted. */
	if (ret->announced_hops != md[3])
		return PL_V_INT_HOP_COUNT;
	return v;
}

/* Returns true for MD behind the shim type of MX: a byte reserved in MX holds the length of a hop,
 * and the words behind the header are whole hops. */
static bool is_md_in_mx(const struct pl_int *ret, const uint8_t *md, unsigned int words,
	const struct pl_int_hints *hints)
{
	unsigned int hop_words = md[2] & 0x1f;
	struct pl_int_layout l;

	return words != 0 && ret->ds_id == 0 && hop_words != 0 && words % hop_words == 0 &&
	       hop_words > hints->trailing_words &&
	       pl_int_layout_find(&l, PL_INT_V20, ret->bitmap, hop_words - hints->trailing_words,
		       false, PL_DIALECT_SPEC, PL_QUEUE_WORD_AUTO) == 0;
}

/*
 * MX has instructions only; words behind them are the source's, which a domain id makes legal. Some
 * exporters append a node's own baseline metadata there: exactly as many words as the bitmap needs
 * are read as one hop.
 */
static enum pl_verdict parse_mx_words(struct pl_int *ret, struct pl_cursor *c, unsigned int words,
	const struct pl_int_hints *hints, struct pl_int_cache *cache, bool truncated)
{
	struct pl_int_layout l;

	if (pl_cursor_left(c) < 4 * (size_t)words) {
		if (!truncated)
			return PL_V_SHIM_LENGTH_MAX;
		pl_cursor_skip(c, pl_cursor_left(c));
		ret->partial = true;
		return PL_V_INT_TRUNCATED;
	}
	if (ret->ds_id == 0 && words <= PL_INT_HOP_ML_MAX &&
		pl_int_layout_make(&l, PL_INT_V20, ret->bitmap, 0, PL_DIALECT_SPEC) == 0 &&
		l.words + hints->trailing_words == words) {
		ret->hop_words = (uint8_t)words;
		return take_stack(ret, c, words, hints, cache, truncated);
	}
	pl_cursor_skip(c, 4 * (size_t)words);
	ret->notes |= ret->ds_id != 0 ? PL_NOTE_BIT(DS_UNKNOWN) : PL_NOTE_BIT(MX_WORDS);
	return PL_V_OK;
}

/* Parses the v2.x metadata header and stack; `words` counts both. */
static enum pl_verdict parse_v2(struct pl_int *ret, struct pl_cursor *c, unsigned int words,
	const struct pl_int_hints *hints, struct pl_int_cache *cache, bool truncated)
{
	const uint8_t *md = pl_cursor_take(c, 4 * MD_WORDS_V2);

	if (__builtin_expect(md == NULL, 0))
		return truncated ? PL_V_INT_TRUNCATED : PL_V_SHIM_LENGTH_MAX;
	if (__builtin_expect(md[0] >> 4 != 2, 0))
		return md[0] >> 4 < 2 ? PL_V_INT_SHIM_VERSION : PL_V_INT_VERSION;
	ret->version = PL_INT_V20;
	ret->bitmap = pl_be16(md + 4);
	ret->ds_id = pl_be16(md + 6);
	ret->ds_bitmap = pl_be16(md + 8);
	ret->ds_flags = pl_be16(md + 10);
	ret->copy = md[0] >> 3 & 1;
	words -= MD_WORDS_V2;
	if (__builtin_expect(ret->kind == PL_INT_MX, 0) && is_md_in_mx(ret, md, words, hints)) {
		ret->kind = PL_INT_MD;
		ret->notes |= PL_NOTE_BIT(INT_TYPE_LIES);
	}
	if (ret->kind == PL_INT_MD) {
		ret->hop_limit = md[0] >> 2 & 1;
		ret->mtu_limit = md[0] >> 1 & 1;
		ret->hop_words = md[2] & 0x1f;
		ret->hops_left = md[3];
		limits(ret);
		return take_stack(ret, c, words, hints, cache, truncated);
	}

	limits(ret);
	return words == 0 ? PL_V_OK : parse_mx_words(ret, c, words, hints, cache, truncated);
}

/* Parses the end of v0.5 INT over TCP or UDP: with Host-INT a flow sequence number, then the
 * tail. */
static enum pl_verdict parse_tail(struct pl_int *ret, struct pl_cursor *c)
{
	const uint8_t *p;

	if (ret->host_int) {
		p = pl_cursor_take(c, 4);
		if (p == NULL)
			return PL_V_INT_TAIL;
		ret->have_flow_seq = true;
		ret->flow_seq = pl_be32(p);
	}
	p = pl_cursor_take(c, 4);
	/* Proto:8 | OriginalDestPort:16 | OriginalDSCP:8; only TCP, UDP and ICMP are carriers
	 * of this form of INT. */
	if (p == NULL || (p[0] != PL_IP_TCP && p[0] != PL_IP_UDP && p[0] != PL_IP_ICMP &&
				 p[0] != PL_IP_ICMPV6 && p[0] != 0))
		return PL_V_INT_TAIL;
	ret->have_proto = p[0] != 0;
	ret->proto = p[0];
	/* Protocol 0 and port 0 are never on the wire: the source did not fill these fields. */
	ret->dport = pl_be16(p + 1);
	ret->have_dport = ret->dport != 0;
	ret->have_dscp = true;
	ret->dscp = p[3] & 0x3f;
	return PL_V_OK;
}

/*
 * INTCollector's generator leaves the Length of its v0.5 shims 0, but its hop count is right.
 * Returns the Length by the hop count; 0 when this is another header, or no Length can describe it.
 */
static unsigned int length_of_hops(
	struct pl_int *ret, const struct pl_cursor *c, const struct pl_int_hints *hints)
{
	const uint8_t *md = pl_cursor_peek(c, 4 * MD_WORDS_V1);
	unsigned int length;

	if (hints->dialect != PL_DIALECT_INTCOLLECTOR || ret->host_int || md == NULL ||
		md[0] >> 4 != 0)
		return 0;
	length = SHIM_WORDS + MD_WORDS_V1 + TAIL_WORDS + (md[1] & 0x1fu) * md[3];
	if (length > UINT8_MAX)
		return 0;
	ret->notes |= PL_NOTE_BIT(SHIM_LENGTH_ZERO);
	return length;
}

/* Parses a v0.5 or v1.0 shim whose bytes are s; the header behind it has the version. */
static enum pl_verdict parse_shim_v1(struct pl_int *ret, struct pl_cursor *c, const uint8_t *s,
	enum pl_int_carrier carrier, const struct pl_int_hints *hints, struct pl_int_cache *cache,
	bool truncated, const struct pl_int_around *around)
{
	const uint8_t *next = pl_cursor_peek(c, 1);
	unsigned int length = s[2], fixed = SHIM_WORDS + MD_WORDS_V1;
	bool tail = false;
	enum pl_verdict v;

	ret->host_int = s[0] == SHIM_HOST_INT;
	if (__builtin_expect(length == 0, 0) && carrier == PL_INT_OVER_L4)
		length = length_of_hops(ret, c, hints);
	if (length < fixed)
		return PL_V_SHIM_LENGTH_MIN;
	if (next == NULL)
		return truncated ? PL_V_INT_TRUNCATED : PL_V_SHIM_LENGTH_MAX;
	if (carrier == PL_INT_OVER_L4 && (next[0] >> 4 == 0 || (hints->dialect == PL_DIALECT_V04 &&
								       hints->dialect_pinned))) {
		tail = true;
		fixed += TAIL_WORDS + (ret->host_int ? 1 : 0);
		if (length < fixed)
			return PL_V_SHIM_LENGTH_MIN;
	}
	/* The shim's own fields are valid even where the stack is cut. */
	if (carrier == PL_INT_OVER_GPE) {
		ret->next = s[3];
		/* v2.x does not count the shim itself. */
		length = pl_int_believe(around, c, length - SHIM_WORDS, length, PL_INT_NEXT_GPE,
			ret->next, &ret->notes);
		if (length == PL_INT_NO_LENGTH)
			return PL_V_INT_NEXT;
		length += SHIM_WORDS;
	} else if (!tail) {
		ret->have_dscp = true;
		ret->dscp = s[3] >> 2;
	}
	v = parse_v1(ret, c, length - fixed, hints, cache, truncated);
	if (v == PL_V_OK && tail)
		return parse_tail(ret, c);
	return v;
}

static enum pl_verdict parse_shim_v2(struct pl_int *ret, struct pl_cursor *c, const uint8_t *s,
	enum pl_int_carrier carrier, const struct pl_int_hints *hints, struct pl_int_cache *cache,
	bool truncated, const struct pl_int_around *around)
{
	unsigned int length = s[1];
	enum pl_int_next_kind kind = PL_INT_NEXT_ETHERTYPE;

	ret->kind = s[0] >> 4 == TYPE_V2_MX ? PL_INT_MX : PL_INT_MD;
	if (__builtin_expect(length < MD_WORDS_V2, 0))
		return PL_V_SHIM_LENGTH_MIN;
	switch (carrier) {
	case PL_INT_OVER_L4:
		ret->npt = s[0] >> 2 & 3;
		if (ret->npt == 0) {
			ret->have_dscp = true;
			ret->dscp = s[3] >> 2;
		} else if (ret->npt == 1) {
			ret->have_dport = true;
			ret->dport = pl_be16(s + 2);
		} else if (ret->npt == 2) {
			ret->have_proto = true;
			ret->proto = s[3];
		} else {
			return PL_V_SHIM_TYPE;
		}
		break;
	case PL_INT_OVER_GPE:
		ret->gre_added = s[2] >> 7;
		ret->next = s[3];
		break;
	default:
		ret->gre_added = s[0] >> 3 & 1;
		ret->next = pl_be16(s + 2);
		break;
	}
	if (__builtin_expect(carrier != PL_INT_OVER_L4 || ret->npt == 2, 0)) {
		if (carrier == PL_INT_OVER_L4)
			kind = PL_INT_NEXT_ORIGINAL;
		else if (carrier == PL_INT_OVER_GPE)
			kind = PL_INT_NEXT_GPE;
		/* v1.0 counts the shim itself. */
		length = pl_int_believe(around, c, length,
			length > MD_WORDS_V2 ? length - 1 : length, kind,
			kind == PL_INT_NEXT_ORIGINAL ? ret->proto : ret->next, &ret->notes);
		if (length == PL_INT_NO_LENGTH)
			return PL_V_INT_NEXT;
	}
	return parse_v2(ret, c, length, hints, cache, truncated);
}

/* Zeroes what parsing does not always set. */
static inline void clear(struct pl_int *ret, enum pl_int_carrier carrier)
{
	pl_clear(ret, sizeof(*ret));
	ret->version = PL_INT_VERSION_MAX;
	ret->carrier = (uint8_t)carrier;
}

/* Returns true when INT may follow a destination shim: VXLAN-GPE and GRE name the next protocol,
 * over TCP and UDP only the bytes tell. */
static bool int_follows(enum pl_int_carrier carrier, const uint8_t *s, uint16_t *ret_next)
{
	if (carrier == PL_INT_OVER_GPE) {
		*ret_next = s[3];
		return s[3] == PL_GPE_INT_05 || s[3] == PL_GPE_INT_10 || s[3] == PL_GPE_INT_20;
	}
	if (carrier == PL_INT_OVER_GRE) {
		*ret_next = pl_be16(s + 2);
		return pl_link_of_ethertype(*ret_next) == PL_LINK_UNKNOWN;
	}
	return true;
}

/* Returns true when a header that does not parse is nevertheless INT, by its carrier or its
 * bytes. */
static bool is_broken_int(enum pl_int_carrier carrier, enum pl_verdict v, struct pl_cursor shim)
{
	return v != PL_V_SHIM_TYPE && (carrier != PL_INT_OVER_L4 || pl_int_resembles(shim));
}

enum pl_verdict pl_int_parse_around(struct pl_int *ret, struct pl_cursor *c,
	enum pl_int_carrier carrier, const struct pl_int_hints *hints, struct pl_int_cache *cache,
	bool truncated, const struct pl_int_around *around)
{
	struct pl_cursor at = *c;
	enum pl_verdict v = PL_V_SHIM_TYPE;
	uint64_t notes = 0;
	uint16_t next = 0; /* next protocol of the last destination shim */

	for (unsigned int i = 0; i <= SHIMS_MAX; i++) {
		const uint8_t *s = pl_cursor_take(&at, 4);
		size_t skip;

		clear(ret, carrier);
		if (s == NULL) {
			v = truncated ? PL_V_INT_TRUNCATED : PL_V_SHORT;
			break;
		}
		if (s[0] == SHIM_HOP_BY_HOP || s[0] == SHIM_HOST_INT) {
			if (carrier == PL_INT_OVER_GRE)
				v = PL_V_SHIM_TYPE; /* GRE came with v2.0 */
			else
				v = parse_shim_v1(
					ret, &at, s, carrier, hints, cache, truncated, around);
			break;
		}
		if (s[0] >> 4 == TYPE_V2_MD || s[0] >> 4 == TYPE_V2_MX) {
			v = parse_shim_v2(ret, &at, s, carrier, hints, cache, truncated, around);
			break;
		}
		if (s[0] == SHIM_DESTINATION) {
			if (s[2] < SHIM_WORDS) {
				v = PL_V_SHIM_LENGTH_MIN;
				break;
			}
			skip = 4 * (size_t)(s[2] - SHIM_WORDS);
		} else if (s[0] >> 4 == TYPE_V2_DESTINATION) {
			/* A destination shim without content has no use; a v2.x metadata header
			 * begins so. */
			if (s[1] == 0) {
				v = PL_V_SHIM_LENGTH_MIN;
				break;
			}
			skip = 4 * (size_t)s[1];
		} else {
			v = PL_V_SHIM_TYPE;
			break;
		}
		/* The content of a destination shim is not for the path: skip it. */
		if (pl_cursor_take(&at, skip) == NULL) {
			v = truncated ? PL_V_INT_TRUNCATED : PL_V_SHIM_LENGTH_MAX;
			break;
		}
		notes |= PL_NOTE_BIT(DESTINATION_SHIM);
		*c = at;
		if (!int_follows(carrier, s, &next)) {
			v = PL_V_SHIM_TYPE;
			break;
		}
	}
	if (v != PL_V_OK && v != PL_V_INT_TRUNCATED && notes != 0 &&
		!is_broken_int(carrier, v, *c)) {
		/* Destination shims, then the original payload without INT. */
		clear(ret, carrier);
		ret->kind = PL_INT_DESTINATION;
		ret->next = next;
		at = *c;
		v = PL_V_OK;
	}
	ret->notes |= notes;
	if (v == PL_V_OK || v == PL_V_INT_TRUNCATED) {
		ret->partial |= v == PL_V_INT_TRUNCATED;
		*c = at;
		ret->rest = at;
	}
	return v;
}

enum pl_verdict pl_int_parse(struct pl_int *ret, struct pl_cursor *c, enum pl_int_carrier carrier,
	const struct pl_int_hints *hints, struct pl_int_cache *cache, bool truncated)
{
	return pl_int_parse_around(ret, c, carrier, hints, cache, truncated, NULL);
}

enum pl_verdict pl_int_parse_geneve(struct pl_int *ret, struct pl_cursor body, uint8_t type,
	const struct pl_int_hints *hints, struct pl_int_cache *cache)
{
	unsigned int words = (unsigned int)(pl_cursor_left(&body) / 4);
	const uint8_t *md = pl_cursor_peek(&body, 1);

	clear(ret, PL_INT_OVER_GENEVE);
	/* The option type is the INT type: 1 hop-by-hop (MD), 2 destination, 3 MX. */
	if (type == TYPE_V2_DESTINATION) {
		ret->kind = PL_INT_DESTINATION;
		ret->notes |= PL_NOTE_BIT(DESTINATION_SHIM);
		return PL_V_OK;
	}
	if (type != TYPE_V2_MD && type != TYPE_V2_MX)
		return PL_V_SHIM_TYPE;
	if (md == NULL)
		return PL_V_INT_GENEVE_OPTION;
	if (md[0] >> 4 == 2) {
		if (words < MD_WORDS_V2)
			return PL_V_INT_GENEVE_OPTION;
		ret->kind = type == TYPE_V2_MX ? PL_INT_MX : PL_INT_MD;
		return parse_v2(ret, &body, words, hints, cache, false);
	}
	if (type == TYPE_V2_MX)
		return md[0] >> 4 < 2 ? PL_V_INT_SHIM_VERSION : PL_V_INT_VERSION;
	if (words < MD_WORDS_V1)
		return PL_V_INT_GENEVE_OPTION;
	return parse_v1(ret, &body, words - MD_WORDS_V1, hints, cache, false);
}
