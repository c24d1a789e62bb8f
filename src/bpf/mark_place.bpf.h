/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Marks of a packet, for mark.bpf.c, which includes the setup: finding, writing and removing them.
 * They are bits of the header, or the option of RFC 9343. */
#pragma once

#include "bpf/mark_maps.bpf.h"
#include "bpf/skb_mac.bpf.h"

/* ---- reading ---- */

static __always_inline bool options(void)
{
	return pl_mark_setup.place != PL_MARK_IN_HEADER;
}

/* Finds the AltMark option of the packet whose IPv6 header is at `network`. Returns its word and,
 * in the upper half, its offset from there, as pl_mark_find_option() has it. dst_opts: offset of
 * Destination Options, 0 without any; hop: 1 when there are Hop-by-Hop Options. */
static __always_inline uint64_t find(
	const uint8_t *p, const uint8_t *end, uint32_t network, uint32_t hop, uint32_t dst_opts)
{
	uint32_t at = 0, word = 0;

	p += network & 31;
	if (hop != 0) {
		at = pl_mark_find_option(p + 40, end, &word);
		at += pl_mark_is_option(at) ? 40 : 0;
	}
	if (at == 0 && dst_opts > 2047) {
		at = PL_MARK_OPTION_UNREAD;
	} else if (at == 0 && dst_opts != 0) {
		PL_FRAME_OPAQUE(dst_opts);
		dst_opts &= 2047;
		at = pl_mark_find_option(p + dst_opts, end, &word);
		at += pl_mark_is_option(at) ? dst_opts : 0;
	}
	return (uint64_t)at << 32 | word;
}

/* Functions of their own, so that the verifier checks them once. */
__attribute__((noinline)) uint64_t pl_mark_do_find(
	struct __sk_buff *skb, uint32_t network, uint32_t hop, uint32_t dst_opts)
{
	return find((void *)(uintptr_t)skb->data, (void *)(uintptr_t)skb->data_end, network, hop,
		dst_opts);
}

__attribute__((noinline)) uint64_t pl_mark_do_find_xdp(
	struct xdp_md *ctx, uint32_t network, uint32_t hop, uint32_t dst_opts)
{
	return find((void *)(uintptr_t)ctx->data, (void *)(uintptr_t)ctx->data_end, network, hop,
		dst_opts);
}

/* Parses the packet; xdp: the context of an XDP program, else skb is set. raw: the packet begins
 * with its IP header. */
static __always_inline uint32_t parse(const void *p, const void *end, struct __sk_buff *skb,
	struct xdp_md *xdp, bool raw, struct pl_mark_packet *s)
{
	uint32_t why = pl_mark_parse(p, end, raw, s);
	const uint32_t hop = s->next == 0;
	uint64_t found;

	if (!options() || why != PL_MARK_PARSED || s->version != 6 || (!hop && s->dst_opts == 0))
		return why;
	found = xdp != NULL ? pl_mark_do_find_xdp(xdp, s->network, hop, s->dst_opts)
			    : pl_mark_do_find(skb, s->network, hop, s->dst_opts);
	if (found >> 32 == PL_MARK_OPTION_BROKEN)
		return PL_MARK_BROKEN;
	if (found >> 32 == PL_MARK_OPTION_UNREAD)
		return PL_MARK_UNSEARCHED;
	s->option = (uint32_t)(found >> 32);
	s->word = (uint32_t)found;
	return why;
}

/* True when the data begins with the IP header. */
static __always_inline bool is_raw(struct __sk_buff *skb, bool leaving)
{
	return pl_mark_setup.raw != 0 || (!leaving && pl_skb_mac_in_front(skb) != 0);
}

static __always_inline uint32_t parse_skb(
	struct __sk_buff *skb, bool leaving, struct pl_mark_packet *s)
{
	return parse((void *)(uintptr_t)skb->data, (void *)(uintptr_t)skb->data_end, skb, NULL,
		is_raw(skb, leaving), s);
}

/* True when the packet's IP version has the bits. */
static __always_inline bool has_place(const struct pl_mark_packet *s)
{
	return (pl_mark_setup.versions & (s->version == 4 ? PL_MARK_IP4 : PL_MARK_IP6)) != 0;
}

/* Bits of the packet, as mark/period.h numbers them. */
static __always_inline unsigned int bits_of(const struct pl_mark_packet *s)
{
	return options() ? pl_mark_word_bits(s->word) : pl_mark_bits_of(&pl_mark_setup, s->marks);
}

/* True when the packet is marked already. */
static __always_inline bool is_marked(const struct pl_mark_packet *s)
{
	return options() ? s->option != 0 : bits_of(s) != 0;
}

/* ---- writing ---- */

enum put {
	PUT_DONE,
	PUT_FAILED, /* marks could not be written */
	PUT_UNFIT,  /* other headers leave no place for the option */
	PUT_LONG,   /* the packet would be longer than the MTU */
};

/* True when the packet, or one of the packets it is cut into, has no room for the option. The
 * kernel cuts UDP into the size set by its sender, TCP into a size that fits. */
static __always_inline bool too_long(struct __sk_buff *skb, const struct pl_mark_packet *s)
{
	uint32_t mtu = 0;

	if (skb->gso_size == 0)
		return bpf_check_mtu(skb, 0, &mtu, PL_MARK_GROWTH, 0) != 0;
	return s->key.proto == 17 && (bpf_check_mtu(skb, 0, &mtu, 0, 0) != 0 ||
					     s->headers + skb->gso_size + PL_MARK_GROWTH > mtu);
}

/* Tells whether the option can be put in. Nothing may stand in front of Hop-by-Hop Options; of two
 * headers of Destination Options meters look into the last one; the length of a payload above 64 KiB is
 * elsewhere. */
static __always_inline enum put fits(
	struct __sk_buff *skb, const struct pl_mark_packet *s, uint32_t len)
{
	const uint32_t kind = pl_mark_setup.place == PL_MARK_IN_HOP ? 0 : 60;

	if (!options() || s->option != 0)
		return PUT_DONE;
	if ((kind != 0 && (s->next == 0 || (s->dst_opts != 0 && s->dst_opts != 40))) ||
		(s->next == kind && s->first[1] == 255) || (s->bytes == 40 && len > 40) ||
		s->bytes + PL_MARK_GROWTH > 65535 + 40)
		return PUT_UNFIT;
	return too_long(skb, s) ? PUT_LONG : PUT_DONE;
}

/* Finds n bytes of the packet's IP header at `network`; NULL when they are not in the linear data.
 * The header is looked up again, because a helper may have moved it. */
static __always_inline uint8_t *header(struct __sk_buff *skb, uint32_t network, uint32_t n)
{
	uint8_t *p = (void *)(uintptr_t)skb->data;

	PL_FRAME_OPAQUE(network);
	p += network & 31;
	return p + n > (uint8_t *)(uintptr_t)skb->data_end ? NULL : p;
}

/* Writes the bits into the header. False when they could not be written. */
static __always_inline bool set_marks(
	struct __sk_buff *skb, const struct pl_mark_packet *s, uint32_t marks, bool leaving)
{
	uint8_t *h, two[2];

	if (s->version == 4) {
		h = header(skb, s->network, 20);
		if (h == NULL)
			return false;
		/* The sum over the header does not change, so a sum that the NIC made over it stays
		 * right too. */
		pl_mark_set_ip4(h, marks);
		return true;
	}
	h = header(skb, s->network, 2);
	if (h == NULL)
		return false;
	if (leaving) {
		pl_mark_set_ip6(h, marks);
		return true;
	}
	memcpy(two, h, 2);
	pl_mark_set_ip6(two, marks);
	return bpf_skb_store_bytes(skb, s->network, two, 2, BPF_F_RECOMPUTE_CSUM) == 0;
}

/* Makes room for the option behind the IPv6 header. Segments of TCP get shorter, also of TCP
 * in a tunnel of UDP; the kernel refuses that for UDP that is cut into datagrams, which keep
 * their size. */
static __always_inline bool grow(struct __sk_buff *skb, const struct pl_mark_packet *s)
{
	return bpf_skb_adjust_room(
		       skb, PL_MARK_GROWTH, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_NO_CSUM_RESET) == 0 ||
	       (s->key.proto == 17 &&
		       bpf_skb_adjust_room(skb, PL_MARK_GROWTH, BPF_ADJ_ROOM_NET,
			       BPF_F_ADJ_ROOM_NO_CSUM_RESET | BPF_F_ADJ_ROOM_FIXED_GSO) == 0);
}

/* Puts the option in behind the IPv6 header: into a header of its own, or in front of the other
 * options of the header there, whose first two bytes become padding. */
static __always_inline enum put put_option(
	struct __sk_buff *skb, const struct pl_mark_packet *s, uint32_t word)
{
	const uint32_t kind = pl_mark_setup.place == PL_MARK_IN_HOP ? 0 : 60;
	const bool more = s->next == kind;
	uint8_t *h;

	if (!grow(skb, s))
		return PUT_UNFIT;
	h = header(skb, s->network, 48);
	if (h == NULL)
		return PUT_FAILED;
	h[4] = (uint8_t)((s->bytes - 40 + PL_MARK_GROWTH) >> 8);
	h[5] = (uint8_t)(s->bytes - 40 + PL_MARK_GROWTH);
	h[6] = (uint8_t)kind;
	if (!more) {
		pl_mark_put_option(h + 40, s->next, 0, word);
		return PUT_DONE;
	}
	pl_mark_put_option(h + 40, s->first[0], (uint8_t)(s->first[1] + 1), word);
	h = header(skb, s->network, 50);
	if (h == NULL)
		return PUT_FAILED;
	h[48] = 1; /* PadN of two bytes */
	h[49] = 0;
	return PUT_DONE;
}

/* Writes the bits, and in an option the FlowMonID. */
static __always_inline enum put put_mark(
	struct __sk_buff *skb, const struct pl_mark_packet *s, uint32_t flow_id, unsigned int bits)
{
	uint8_t word[4];
	uint32_t v;

	if (!options())
		return set_marks(skb, s, pl_mark_marks(&pl_mark_setup, s->marks, bits), true)
			       ? PUT_DONE
			       : PUT_FAILED;
	v = pl_mark_word(flow_id, bits);
	if (s->option == 0)
		return put_option(skb, s, v);
	word[0] = (uint8_t)(v >> 24);
	word[1] = (uint8_t)(v >> 16);
	word[2] = (uint8_t)(v >> 8);
	word[3] = (uint8_t)v;
	return bpf_skb_store_bytes(skb, s->network + s->option + 2, word, 4, 0) == 0 ? PUT_DONE
										     : PUT_FAILED;
}

/* ---- taking out ---- */

static __always_inline bool store(
	struct __sk_buff *skb, uint32_t at, const void *from, uint32_t n, bool leaving)
{
	return bpf_skb_store_bytes(skb, at, from, n, leaving ? 0 : BPF_F_RECOMPUTE_CSUM) == 0;
}

/* Puts padding in place of an option that cannot be taken out. */
static __always_inline bool pad_option(
	struct __sk_buff *skb, const struct pl_mark_packet *s, bool leaving)
{
	static const uint8_t pad[6] = { 1, 4 }; /* PadN */
	uint8_t copy[6];

	memcpy(copy, pad, sizeof(copy));
	return store(skb, s->network + s->option, copy, sizeof(copy), leaving);
}

/* Takes out an option that put_option() put in; an option elsewhere becomes padding. */
static __always_inline bool take_option(
	struct __sk_buff *skb, const struct pl_mark_packet *s, bool leaving)
{
	const uint32_t length = s->bytes - 40 - PL_MARK_GROWTH;
	uint8_t lead[3] = { (uint8_t)(length >> 8), (uint8_t)length, s->next };
	uint8_t two[2], pad[2];

	/* With the MAC header in front of the data the kernel would cut in a wrong place. */
	if (s->option != 42 || s->bytes < 48 || (s->network == 0 && pl_mark_setup.raw == 0))
		return pad_option(skb, s, leaving);
	if (s->first[1] > 0 && (bpf_skb_load_bytes(skb, s->network + 48, pad, 2) < 0 ||
				       pad[0] != 1 || pad[1] != 0))
		return pad_option(skb, s, leaving);
	if (bpf_skb_adjust_room(skb, -(int)PL_MARK_GROWTH, BPF_ADJ_ROOM_NET,
		    BPF_F_ADJ_ROOM_NO_CSUM_RESET | BPF_F_ADJ_ROOM_FIXED_GSO) < 0)
		return pad_option(skb, s, leaving);
	if (s->first[1] == 0) {
		lead[2] = s->first[0];
		return store(skb, s->network + 4, lead, sizeof(lead), leaving);
	}
	two[0] = s->first[0];
	two[1] = (uint8_t)(s->first[1] - 1);
	return store(skb, s->network + 4, lead, sizeof(lead), leaving) &&
	       store(skb, s->network + 40, two, sizeof(two), leaving);
}
