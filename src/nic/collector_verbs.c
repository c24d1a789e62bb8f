/* SPDX-License-Identifier: BSD-2-Clause */
/* A collector's card in hardware, or in the kernel (soft-RoCE): verbs/verbs.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "nic/collector_card.h"
#include "verbs/verbs.h"

/* News that wait until the collector asks for their kind. */
#define WAITING_MAX 256

struct collector_card {
	struct pl_verbs *verbs;
	struct pl_verbs_self self;
	char name[PL_VERBS_NAME_MAX + sizeof("verbs:")];
	uint32_t broken[WAITING_MAX];
	unsigned int n_broken;
	bool have_event; /* the next connection's, which was met while others were looked for */
	struct pl_verbs_news event;
	uint8_t port_state; /* PL_VERBS_PORT_UP, _DOWN: not told yet */
	bool addresses;     /* that they changed: likewise */
	bool gone, listens;
};

static void card_close(struct collector_card *card)
{
	pl_verbs_close(card->verbs);
	free(card);
}

static int card_open(struct collector_card **ret, const struct pl_collector_options *wanted,
	uint32_t max_qps, struct pl_diag *diag)
{
	struct collector_card *card = calloc(1, sizeof(*card));
	struct pl_verbs_options options;
	int r;

	if (card == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	r = pl_verbs_parse(&options, wanted->uri + strlen(PL_COLLECTOR_VERBS), diag);
	options.max_qps = max_qps;
	options.receives = COLLECTOR_RECEIVES;
	if (r == 0)
		r = pl_verbs_open(&card->verbs, &options, diag);
	if (r < 0) {
		free(card);
		return r;
	}
	pl_verbs_self(card->verbs, &card->self);
	snprintf(card->name, sizeof(card->name), "%s%s", PL_COLLECTOR_VERBS, card->self.device);
	*ret = card;
	return 0;
}

static const char *card_name(const struct collector_card *card)
{
	return card->name;
}

static const uint8_t *card_mac(const struct collector_card *card)
{
	return card->self.mac;
}

static uint16_t card_mtu(const struct collector_card *card)
{
	return card->self.mtu;
}

static int card_fd(const struct collector_card *card)
{
	return pl_verbs_fd(card->verbs);
}

static int card_region_add(struct collector_card *card, const struct pl_rdma_region *region,
	uint32_t *ret_key, struct pl_diag *diag)
{
	return pl_verbs_region_add(card->verbs, region, ret_key, diag);
}

/* The kernel finds the way. Our address may be another one than before, or in another place. */
static int card_path(
	struct collector_card *card, const struct pl_addr *peer, struct pl_roce_path *ret)
{
	int r = pl_verbs_address(card->verbs, NULL);

	pl_verbs_self(card->verbs, &card->self);
	if (r < 0)
		return r;
	*ret = (struct pl_roce_path){ .src = card->self.gid, .dst = *peer };
	return pl_addr_is_v4(peer) == pl_addr_is_v4(&card->self.gid) ? 0 : -ENETUNREACH;
}

static int card_qp_add(struct collector_card *card, const struct pl_rdma_qp *qp,
	const uint32_t *connection, uint32_t *ret_qpn)
{
	if (connection != NULL)
		return pl_verbs_connection_qp(card->verbs, *connection, qp, ret_qpn, NULL);
	return pl_verbs_qp_add(card->verbs, qp, ret_qpn, NULL);
}

static void card_qp_remove(struct collector_card *card, uint32_t qpn)
{
	(void)pl_verbs_qp_remove(card->verbs, qpn);
}

static int card_qp_status(
	const struct collector_card *card, uint32_t qpn, struct pl_rdma_qp_status *ret)
{
	(void)card;
	(void)qpn;
	*ret = (struct pl_rdma_qp_status){ .packets = 0 };
	return 0;
}

/* ---- what happens ---- */

/* Sorts news by who asks for them, up to the next connection's. */
static void sort_news(struct collector_card *card)
{
	struct pl_verbs_news news;

	while (!card->have_event && card->n_broken < WAITING_MAX &&
		pl_verbs_news(card->verbs, &news)) {
		switch (news.kind) {
		case PL_VERBS_BROKEN:
			card->broken[card->n_broken++] = news.qpn;
			break;
		case PL_VERBS_CONNECTION:
			card->event = news;
			card->have_event = true;
			break;
		case PL_VERBS_GONE:
			card->gone = true;
			break;
		case PL_VERBS_ADDRESSES:
			card->addresses = true;
			break;
		default:
			card->port_state = news.kind;
			break;
		}
	}
}

static uint32_t card_completions(
	struct collector_card *card, struct pl_rdma_completion *ret, uint32_t max)
{
	uint32_t n = pl_verbs_completions(card->verbs, ret, max);

	sort_news(card);
	/* What a queue pair brought comes before its end. */
	while (n < max && card->n_broken > 0)
		ret[n++] = (struct pl_rdma_completion){ .qpn = card->broken[--card->n_broken],
			.kind = PL_RDMA_DONE_ERROR };
	return n;
}

static int card_listen(struct collector_card *card, uint16_t port, uint64_t silent_ns,
	struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag)
{
	(void)silent_ns; /* librdmacm sends no REP twice */
	*ret_own = malloc(sizeof(**ret_own));
	if (*ret_own == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	card->listens = true;
	**ret_own = card->self.gid;
	*ret_n = 1;
	return pl_verbs_listen(card->verbs, port, diag);
}

static bool card_event(struct collector_card *card, struct pl_connection_event *ret)
{
	sort_news(card);
	if (!card->have_event)
		return false;
	card->have_event = false;
	*ret = card->event.connection;
	return true;
}

static int card_accept(
	struct collector_card *card, uint32_t id, const struct pl_connection_terms *terms)
{
	return pl_verbs_accept(card->verbs, id, terms, NULL);
}

/* librdmacm has one reason of its own; ours goes with it, as text would. */
static void card_reject(struct collector_card *card, uint32_t id, uint16_t reason)
{
	const uint8_t told[2] = { (uint8_t)(reason >> 8), (uint8_t)reason };

	(void)pl_verbs_reject(card->verbs, id, told, sizeof(told));
}

static void card_disconnect(struct collector_card *card, uint32_t id)
{
	(void)pl_verbs_disconnect(card->verbs, id);
}

/* -EAGAIN with diag. */
static int tell_addresses(const struct collector_card *card, struct pl_diag *diag)
{
	char text[PL_ADDR_TEXT_MAX];

	if (pl_addr_is_unspecified(&card->self.gid)) {
		pl_diag_set(diag, "%s has no address any more: no peer can connect", card->name);
		return -EAGAIN;
	}
	pl_format_addr(text, &card->self.gid);
	pl_diag_set(diag, "the addresses of %s changed: peers connect to %s%s", card->name, text,
		card->listens && !card->self.listening ? ", for now not by RDMA-CM" : "");
	return -EAGAIN;
}

static int card_step(struct collector_card *card, uint64_t now_ns, struct pl_diag *diag)
{
	uint8_t state;

	(void)now_ns;
	pl_verbs_step(card->verbs);
	sort_news(card);
	if (card->gone) {
		pl_diag_set(diag, "%s failed, or was taken away", card->name);
		return -ENODEV;
	}
	if (card->addresses) {
		/* What the port did is told in the next turn. */
		card->addresses = false;
		pl_verbs_self(card->verbs, &card->self);
		return tell_addresses(card, diag);
	}
	state = card->port_state;
	card->port_state = 0;
	switch (state) {
	case PL_VERBS_PORT_DOWN:
		pl_diag_set(diag, "the port of %s is down", card->name);
		return -ENETDOWN;
	case PL_VERBS_PORT_UP:
		pl_diag_set(diag, "the port of %s is up", card->name);
		return -EAGAIN;
	default:
		return 0;
	}
}

static void card_leave(struct collector_card *card)
{
	pl_verbs_leave(card->verbs);
	card->n_broken = 0;
	card->port_state = 0;
	card->have_event = card->addresses = card->gone = false;
}

static int card_again(struct collector_card *card, struct pl_diag *diag)
{
	int r = pl_verbs_again(card->verbs, diag);

	pl_verbs_self(card->verbs, &card->self);
	return r;
}

static void card_flush(struct collector_card *card)
{
	(void)card;
}

static uint64_t card_next_ns(const struct collector_card *card)
{
	(void)card;
	return UINT64_MAX;
}

static void card_stats(struct collector_card *card, struct pl_collector_stats *ret)
{
	ret->verbs = card->verbs;
}

const struct collector_card_ops collector_verbs = {
	.open = card_open,
	.close = card_close,
	.name = card_name,
	.mac = card_mac,
	.mtu = card_mtu,
	.fd = card_fd,
	.memory_check = pl_verbs_memory_check,
	.region_add = card_region_add,
	.path = card_path,
	.qp_add = card_qp_add,
	.qp_remove = card_qp_remove,
	.qp_status = card_qp_status,
	.completions = card_completions,
	.listen = card_listen,
	.event = card_event,
	.accept = card_accept,
	.reject = card_reject,
	.disconnect = card_disconnect,
	.step = card_step,
	.leave = card_leave,
	.again = card_again,
	.flush = card_flush,
	.next_ns = card_next_ns,
	.stats = card_stats,
};
