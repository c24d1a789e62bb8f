/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Genuine traffic: every ICRC is right but the one that is meant to be wrong, every frame encodes
 * to the same bytes, and the responder answers the genuine requests as the genuine responder did.
 */
#include "base/test.h"
#include "capture.h"
#include "genuine.h"
#include "wire/cm.h"

static void frames_of(const char *folder, const char *name, uint32_t want, uint32_t wrong_icrc)
{
	static uint8_t again[PL_ROCE_FRAME_MAX];
	uint32_t whole = 0, same = 0, wrong = 0;

	load(folder, name);
	for (uint32_t i = 0; i < capture.n; i++) {
		const struct pl_packet *pkt = &capture.pkts[i];
		struct pl_build b = pl_build(again, sizeof(again));
		struct pl_roce p;
		enum pl_roce_fault fault =
			pl_roce_parse(&p, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET);

		wrong += fault == PL_ROCE_F_ICRC;
		if (fault != PL_ROCE_F_OK)
			continue;
		whole++;
		pl_roce_put(&b, &p, p.payload.pos, pl_cursor_left(&p.payload));
		same += !b.full && b.len == pkt->len && memcmp(again, pkt->data, b.len) == 0;
	}
	eq(whole, want, "%s: frames that are whole", name);
	eq(same, want, "%s: frames that encode to the same bytes", name);
	eq(wrong, wrong_icrc, "%s: frames with a wrong ICRC", name);
}

/* Packets first to last of the capture that is loaded, between these queue pairs. */
struct talk {
	const char *name;
	uint32_t first, last;
	uint8_t service;
	bool v6, vlan, no_write, no_atomic;
	uint32_t qpn, peer_qpn, psn;
	uint32_t key;
	uint64_t va;
	uint16_t mtu;
	uint32_t receives, receive_bytes; /* posted at the beginning */
	uint32_t post_before;             /* and one before this packet */
	uint64_t word;                    /* what stands at word_at before packet word_before */
	uint32_t word_at, word_before;
	bool words; /* what atomics found there is put there before them */
	uint32_t lost
		[4]; /* which of our answers are not in the capture: the link lost them, on purpose */
	/* this one, the rest of a READ asked for again, begins with First; there with Middle */
	uint32_t middle;
};

static _Alignas(64) uint8_t region[GENUINE_BYTES];
static uint8_t buffers[GENUINE_BYTES];

static struct pl_addr end(const struct talk *t, uint8_t last)
{
	struct pl_addr a = pl_addr_v4((const uint8_t[]){ 10, t->vlan ? 78 : 77, 0, last });

	if (t->v6) {
		memset(&a, 0, sizeof(a));
		memcpy(a.b, "\xfd\0\0\x77", 4);
		a.b[15] = last;
	}
	return a;
}

static struct pl_responder *set_up(const struct talk *t)
{
	const struct pl_addr own = end(t, 2), peer = end(t, 1);
	struct pl_rdma_qp c = { .qpn = t->qpn,
		.service = t->service,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | (t->no_atomic ? 0 : PL_RDMA_ATOMIC),
		.state = PL_RDMA_READY,
		.rnr_timer = 28,
		.depth = 4,
		.mtu = t->mtu,
		.pkey = PL_ROCE_PKEY,
		.psn = t->psn,
		.peer_qpn = t->peer_qpn,
		.receives = 16,
		.path = genuine_path(&own, &peer) };
	const struct pl_rdma_region reg = { .base = region,
		.bytes = sizeof(region),
		.va = t->va,
		.key = t->key,
		.access = PL_RDMA_READ | PL_RDMA_ATOMIC | (t->no_write ? 0 : PL_RDMA_WRITE) };
	struct pl_responder *r;
	uint32_t n;

	c.path.tagged = t->vlan;
	c.path.tci = 5;
	memset(region, 0, sizeof(region));
	if (pl_responder_new(&r, &(struct pl_responder_options){ 0 }) < 0 ||
		pl_responder_region_add(r, &reg, &n) < 0 || pl_responder_qp_add(r, &c, &n) < 0)
		abort();
	for (uint32_t i = 0; i < t->receives; i++)
		pl_responder_post(r, t->qpn, i, buffers, t->receive_bytes);
	return r;
}

/* Answers of a READ carry what the peer's memory held: it is put there before it is asked for. */
static void restore(const struct talk *t, const struct pl_roce *request, uint32_t at)
{
	uint64_t offset = request->va - t->va;

	for (uint32_t i = at + 1; i < t->last; i++) {
		struct pl_roce p;

		if (pl_roce_parse(&p, pl_cursor(capture.pkts[i].data, capture.pkts[i].len),
			    PL_LINK_ETHERNET) != PL_ROCE_F_OK ||
			!is_answer(&p) || pl_cursor_left(&p.payload) == 0)
			return;
		offset = request->va - t->va +
			 (uint64_t)((p.psn - request->psn) & PL_ROCE_PSN_MASK) * t->mtu;
		if (offset + pl_cursor_left(&p.payload) > sizeof(region))
			return;
		memcpy(region + offset, p.payload.pos, pl_cursor_left(&p.payload));
	}
}

/* An atomic's answer carries what was in its cell, likewise. */
static void restore_word(const struct talk *t, const struct pl_roce *request, uint32_t at)
{
	for (uint32_t i = at + 1; i < t->last; i++) {
		struct pl_roce p;

		pl_roce_parse(
			&p, pl_cursor(capture.pkts[i].data, capture.pkts[i].len), PL_LINK_ETHERNET);
		if (p.opcode == PL_ROCE_ATOMIC_ACK && p.psn == request->psn)
			memcpy(region + (request->va - t->va), &p.original, 8);
	}
}

static void middle_of(char *dst, size_t cap, const char *first)
{
	unsigned int psn;
	int rest = 0;

	sscanf(first, "d:%x:%*x:%*x:%n", &psn, &rest);
	snprintf(dst, cap, "e:%x:0:0:%s", psn, first + rest);
}

/* The answers without those that the capture cannot have. */
static void without_lost(const struct talk *t, char *text)
{
	char kept[8192] = "";
	uint32_t i = 0;

	for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
		bool lost = false;

		i++;
		for (size_t k = 0; k < sizeof(t->lost) / sizeof(t->lost[0]); k++)
			lost = lost || t->lost[k] == i;
		if (lost)
			continue;
		if (kept[0] != '\0')
			strcat(kept, " ");
		if (i == t->middle) /* a Middle has no AETH */
			middle_of(kept + strlen(kept), sizeof(kept) - strlen(kept), word);
		else
			snprintf(kept + strlen(kept), sizeof(kept) - strlen(kept), "%s", word);
	}
	memcpy(text, kept, sizeof(kept));
}

static void talk(const struct talk *t)
{
	char ours[8192] = "", genuine[8192] = "";
	struct pl_responder *r = set_up(t);

	for (uint32_t i = t->first - 1; i < t->last; i++) {
		const struct pl_packet *pkt = &capture.pkts[i];
		struct pl_roce p;

		pl_roce_parse(&p, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET);
		if (i + 1 == t->post_before)
			pl_responder_post(r, t->qpn, 99, buffers, t->receive_bytes);
		if (i + 1 == t->word_before)
			memcpy(region + t->word_at, &t->word, 8);
		if (is_answer(&p)) {
			append(genuine, sizeof(genuine), &p);
		} else {
			if (p.opcode == PL_ROCE_READ_REQUEST)
				restore(t, &p, i);
			if (t->words)
				restore_word(t, &p, i);
			ask(r, pkt, ours, sizeof(ours));
		}
	}
	without_lost(t, ours);
	streq(ours, genuine, "%s: answers as the genuine ones", t->name);
	pl_responder_free(r);
}

/* Genuine connection management messages read and write to the same bytes. */
static void messages_of(
	const char *folder, const char *name, const uint8_t *kinds, uint32_t n_kinds)
{
	uint32_t n = 0;

	load(folder, name);
	for (uint32_t i = 0; i < capture.n; i++) {
		uint8_t again[PL_CM_BYTES];
		struct pl_build b = pl_build(again, sizeof(again));
		struct pl_cm_ip ip;
		struct pl_cm cm;
		struct pl_roce p;

		pl_roce_parse(
			&p, pl_cursor(capture.pkts[i].data, capture.pkts[i].len), PL_LINK_ETHERNET);
		if (p.qpn != PL_CM_QPN)
			continue;
		ok(p.qkey == PL_CM_QKEY && pl_cm_parse(&cm, p.payload) == 0 && n < n_kinds &&
				cm.kind == kinds[n],
			"%s: a genuine %s", name,
			pl_cm_kind_name((enum pl_cm_kind)kinds[n % n_kinds]));
		pl_cm_put(&b, &cm, cm.private.pos, pl_cursor_left(&cm.private));
		memeq(again, p.payload.pos, PL_CM_BYTES, "writes to the same bytes");
		if (cm.kind == PL_CM_REQ)
			ok(pl_cm_get_ip(&ip, &cm.private) &&
					memcmp(ip.src.b + 12, "\12\115\0\1", 4) == 0,
				"its addresses");
		if (cm.kind == PL_CM_REJ)
			eq(cm.reason, PL_CM_INVALID_SERVICE_ID);
		n++;
	}
	eq(n, n_kinds);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint32_t whole, wrong_icrc;
	} captures[] = { { "rxe-rc-verbs", 37, 0 }, { "rxe-rc-ipv6", 11, 0 },
		{ "rxe-rc-vlan", 4, 0 }, { "rxe-rc-mtu-256-4096", 16, 0 },
		{ "rxe-rc-stream", 128, 0 }, { "rxe-uc-write", 9, 0 }, { "rxe-rc-loss", 38, 1 },
		{ "rxe-rc-errors", 18, 0 }, { "rxe-cm", 9, 0 }, { "rxe-perftest-write-bw", 15, 0 },
		{ "rxe-perftest-atomic-bw-cm", 86, 0 } };
	static const uint8_t cm[] = { PL_CM_REQ, PL_CM_REP, PL_CM_RTU, PL_CM_DREQ, PL_CM_DREP,
		PL_CM_REQ, PL_CM_REJ };
	/* Two connections; both sides of the second end it at once. */
	static const uint8_t perftest_cm[] = { PL_CM_REQ, PL_CM_REP, PL_CM_RTU, PL_CM_REQ,
		PL_CM_REP, PL_CM_RTU, PL_CM_DREQ, PL_CM_DREQ, PL_CM_DREP, PL_CM_DREP, PL_CM_DREQ,
		PL_CM_DREP };
	static const struct {
		const char *capture;
		struct talk talk;
	} talks[] = {
		{ "rxe-rc-verbs", { "verbs", 1, 37, PL_ROCE_RC, .qpn = 0x11, .peer_qpn = 0x11,
					  .psn = 0xfffffc, .key = 0x25c, .va = 0x7ffff7cce000,
					  .mtu = 1024, .receives = 8, .receive_bytes = 4096,
					  .word = 41, .word_before = 24 } },
		{ "rxe-rc-ipv6",
			{ "IPv6", 1, 11, PL_ROCE_RC, .v6 = true, .qpn = 0x12, .peer_qpn = 0x12,
				.psn = 0xa00, .key = 0x319, .va = 0x7ffff7c2b000, .mtu = 1024,
				.receives = 8, .receive_bytes = 4096 } },
		{ "rxe-rc-vlan",
			{ "VLAN", 1, 4, PL_ROCE_RC, .vlan = true, .qpn = 0x23, .peer_qpn = 0x24,
				.psn = 0xa00, .key = 0x149d, .va = 0x7ffff73e4000, .mtu = 1024 } },
		{ "rxe-rc-mtu-256-4096",
			{ "MTU 256", 1, 8, PL_ROCE_RC, .qpn = 0x13, .peer_qpn = 0x13, .psn = 0xa00,
				.key = 0x491, .va = 0x7ffff7b88000, .mtu = 256 } },
		{ "rxe-rc-mtu-256-4096",
			{ "MTU 4096", 9, 16, PL_ROCE_RC, .qpn = 0x14, .peer_qpn = 0x14,
				.psn = 0xa00, .key = 0x51d, .va = 0x7ffff7ae5000, .mtu = 4096 } },
		{ "rxe-rc-stream",
			{ "stream", 1, 128, PL_ROCE_RC, .qpn = 0x15, .peer_qpn = 0x15, .psn = 0xa00,
				.key = 0x627, .va = 0x7ffff7a42000, .mtu = 1024 } },
		{ "rxe-rc-loss", { "loss", 1, 39, PL_ROCE_RC, .qpn = 0x17, .peer_qpn = 0x17,
					 .psn = 0xa00, .key = 0x82a, .va = 0x7ffff78fc000,
					 .mtu = 1024, .lost = { 3, 8, 13 }, .middle = 15 } },
		{ "rxe-rc-errors",
			{ "wrong key", 1, 2, PL_ROCE_RC, .qpn = 0x18, .peer_qpn = 0x18,
				.psn = 0xa00, .key = 0x93b, .va = 0x7ffff7859000, .mtu = 1024 } },
		{ "rxe-rc-errors",
			{ "past the end", 3, 4, PL_ROCE_RC, .qpn = 0x19, .peer_qpn = 0x19,
				.psn = 0xa00, .key = 0xa35, .va = 0x7ffff77b6000, .mtu = 1024 } },
		{ "rxe-rc-errors",
			{ "READ past the end", 5, 6, PL_ROCE_RC, .qpn = 0x1a, .peer_qpn = 0x1a,
				.psn = 0xa00, .key = 0xbbf, .va = 0x7ffff7713000, .mtu = 1024 } },
		{ "rxe-rc-errors", { "no remote write", 7, 8, PL_ROCE_RC, .no_write = true,
					   .qpn = 0x1b, .peer_qpn = 0x1b, .psn = 0xa00,
					   .key = 0xc65, .va = 0x7ffff7670000, .mtu = 1024 } },
		{ "rxe-rc-errors", { "no atomics", 9, 10, PL_ROCE_RC, .no_atomic = true,
					   .qpn = 0x1c, .peer_qpn = 0x1c, .psn = 0xa00,
					   .key = 0xdee, .va = 0x7ffff75cd000, .mtu = 1024 } },
		{ "rxe-rc-errors",
			{ "SEND too long", 11, 12, PL_ROCE_RC, .qpn = 0x1d, .peer_qpn = 0x1d,
				.psn = 0xa00, .key = 0xe85, .va = 0x7ffff752a000, .mtu = 1024,
				.receives = 1, .receive_bytes = 16 } },
		{ "rxe-rc-errors",
			{ "not ready", 13, 18, PL_ROCE_RC, .qpn = 0x1e, .peer_qpn = 0x1e,
				.psn = 0xa00, .key = 0xf4c, .va = 0x7ffff7487000, .mtu = 1024,
				.post_before = 17, .receive_bytes = 4096 } },
		{ "rxe-perftest-write-bw", { "ib_write_bw", 22, 36, PL_ROCE_RC, .qpn = 0x20,
						   .peer_qpn = 0x21, .psn = 0xcf6269, .key = 0x113d,
						   .va = 0x555555593000, .mtu = 1024 } },
		{ "rxe-perftest-atomic-bw-cm",
			{ "ib_atomic_bw", 43, 52, PL_ROCE_RC, .qpn = 0x22, .peer_qpn = 0x23,
				.psn = 0xe22aa0, .key = 0x1358, .va = 0x555555598000, .mtu = 1024,
				.words = true } },
	};

	if (argc != 2)
		return EXIT_FAILURE;
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++)
		frames_of(argv[1], captures[i].name, captures[i].whole, captures[i].wrong_icrc);
	messages_of(argv[1], "rxe-cm", cm, sizeof(cm));
	messages_of(argv[1], "rxe-perftest-atomic-bw-cm", perftest_cm, sizeof(perftest_cm));
	for (size_t i = 0; i < sizeof(talks) / sizeof(talks[0]); i++) {
		load(argv[1], talks[i].capture);
		talk(&talks[i].talk);
	}
	return pl_test_done();
}
