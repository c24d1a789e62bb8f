/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of tmpkt/1 datagrams: a socket for each lane, so that each has a source port of its
 * own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "netio/port.h"
#include "netio/uri.h"
#include "tap/sender.h"
#include "tapout/tap_out.h"

#define WAIT_NS       UINT64_C(20000000)   /* longest wait of a record for a full datagram */
#define QUIET_NS      UINT64_C(200000000)  /* from the last records to an empty datagram */
#define IDLE_NS       UINT64_C(2000000000) /* from one empty datagram to the next */
#define FRAME_BYTES   1312                 /* of a datagram: 13 records of 96 bytes, 20 of 64 */
#define LANES_DEFAULT 8

struct udp_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/tap_udp_stats.def"
#undef PL_STAT
};

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct udp_stats, __VA_ARGS__)
#include "tapout/tap_udp_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

struct udp_out {
	struct pl_tap_out out; /* first */
	struct pl_tmpkt_sender *sender;
	struct pl_port *ports[PL_TMPKT_LANES_MAX];
	uint32_t lanes;
	uint64_t flush_ns; /* when waiting records are sent; 0: none wait */
	uint64_t empty_ns; /* when an empty datagram is sent; 0: at the first turn */
	bool sent;         /* records, since the last turn */
	struct udp_stats stats;
};

static const char *const keys[] = { "records", "kind", "lanes", "sndbuf", "clock", NULL };

static void send_datagram(
	void *arg, uint32_t lane, const void *datagram, uint32_t len, uint32_t records)
{
	struct udp_out *self = arg;
	static _Thread_local struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = datagram, .len = len, .wire_len = len, .link = PL_LINK_UDP
	};
	if (pl_port_send(self->ports[lane], &batch, NULL) == 1) {
		self->stats.datagrams++;
		self->stats.empty += records == 0;
		self->stats.sent += records;
		self->sent = self->sent || records > 0;
	} else {
		self->stats.failed += records;
	}
}

/* Makes the URI of a lane's socket. */
static void lane_uri(const struct pl_uri *uri, char *dst, size_t cap)
{
	const char *sndbuf = pl_uri_get(uri, "sndbuf");

	snprintf(dst, cap, "udp:%s%s%s", uri->target, sndbuf != NULL ? "?sndbuf=" : "",
		sndbuf != NULL ? sndbuf : "");
}

static int open_lanes(struct udp_out *self, const struct pl_uri *uri, struct pl_diag *diag)
{
	char text[PL_URI_TEXT_MAX];
	int r = 0;

	lane_uri(uri, text, sizeof(text));
	for (uint32_t i = 0; r == 0 && i < self->lanes; i++)
		r = pl_port_open(&self->ports[i], text, PL_PORT_SEND, NULL, diag);
	return r;
}

static void udp_close(struct pl_tap_out *out)
{
	struct udp_out *self = (struct udp_out *)out;

	for (uint32_t i = 0; i < self->lanes; i++)
		(void)pl_port_close(self->ports[i]);
	pl_tmpkt_sender_free(self->sender);
}

static int configure(struct pl_tmpkt_sender_config *ret, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	const char *kind = pl_uri_get(uri, "kind");
	uint64_t lanes = LANES_DEFAULT, records;
	int r = pl_tap_out_kind(kind, settings, &ret->kind, diag);

	if (r < 0)
		return r;
	/* By default packets are sent whole: their second part has the weight of samples and the
	 * TCP timestamps. */
	if (kind == NULL && settings->kind == PL_FLAT_PKT96)
		ret->kind = PL_FLAT_PKT96;
	records = pl_tmpkt_fits(ret->kind, FRAME_BYTES);
	r = pl_uri_get_size(uri, "records", 1, pl_tmpkt_fits(ret->kind, PL_TMPKT_DATAGRAM_BYTES),
		&records, diag);
	if (r == 0)
		r = pl_uri_get_size(uri, "lanes", 1, PL_TMPKT_LANES_MAX, &lanes, diag);
	if (r == 0)
		r = pl_uri_get_bool(uri, "clock", &ret->tells_clock, diag);
	ret->records = (uint32_t)records;
	ret->lanes = (uint32_t)lanes;
	return r;
}

static int udp_check(
	const struct pl_uri *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_tmpkt_sender_config config = { .arg = NULL };
	char text[PL_URI_TEXT_MAX];
	int r = configure(&config, uri, settings, diag);

	if (r < 0)
		return r;
	lane_uri(uri, text, sizeof(text));
	return pl_port_uri_sockets(text, diag) < 0 ? -EINVAL : 0;
}

static int udp_open(struct pl_tap_out *out, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct udp_out *self = (struct udp_out *)out;
	struct pl_tmpkt_sender_config config = {
		.exporter = settings->exporter, .send = send_datagram, .arg = self
	};
	int r = configure(&config, uri, settings, diag);

	if (r < 0)
		return r;
	/* From 0 on, the first datagrams of a tap that is started again, or of another output with
	 * this exporter number, would be taken for repeated ones, and left out. */
	config.first = (uint32_t)pl_hash_mix(pl_hash_seed(), (uintptr_t)self);
	self->lanes = config.lanes;
	r = pl_tmpkt_sender_new(&self->sender, &config);
	return r < 0 ? r : open_lanes(self, uri, diag);
}

static void udp_clock(struct pl_tap_out *out, enum pl_clock_kind clock)
{
	pl_tmpkt_sender_clock(((struct udp_out *)out)->sender, clock);
}

static void udp_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct udp_out *self = (struct udp_out *)out;

	self->stats.records += n;
	pl_tmpkt_sender_put(self->sender, records, n);
}

static uint64_t udp_turn(struct pl_tap_out *out, uint64_t now_ns)
{
	struct udp_out *self = (struct udp_out *)out;
	const struct udp_stats *s = &self->stats;

	if (self->flush_ns != 0 && now_ns >= self->flush_ns) {
		pl_tmpkt_sender_flush(self->sender);
		self->flush_ns = 0;
	}
	if (self->flush_ns == 0 && s->records != s->sent + s->failed)
		self->flush_ns = now_ns + WAIT_NS;
	/* An empty datagram proves this exporter to a receiver before there are records, and tells it
	 * soon whether the last ones arrived. */
	if (self->sent)
		self->empty_ns = now_ns + QUIET_NS;
	self->sent = false;
	if (now_ns >= self->empty_ns) {
		pl_tmpkt_sender_empty(self->sender);
		self->empty_ns = now_ns + IDLE_NS;
	}
	return self->flush_ns == 0 || self->empty_ns < self->flush_ns ? self->empty_ns
								      : self->flush_ns;
}

static void udp_finish(struct pl_tap_out *out)
{
	struct udp_out *self = (struct udp_out *)out;

	pl_tmpkt_sender_flush(self->sender);
	pl_tmpkt_sender_empty(self->sender);
}

static uint64_t udp_lost(const struct pl_tap_out *out)
{
	return ((const struct udp_out *)out)->stats.failed;
}

static const void *udp_counters(const struct pl_tap_out *out)
{
	return &((const struct udp_out *)out)->stats;
}

const struct pl_tap_out_driver pl_tap_out_udp = {
	.scheme = "udp",
	.size = sizeof(struct udp_out),
	.keys = keys,
	.check = udp_check,
	.open = udp_open,
	.clock = udp_clock,
	.put = udp_put,
	.turn = udp_turn,
	.finish = udp_finish,
	.lost = udp_lost,
	.numbers = { { &stats_list, udp_counters } },
	.close = udp_close,
};
