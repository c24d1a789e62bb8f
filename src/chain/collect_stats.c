/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the account of the memory server. */
#include "chain/collect_stats.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/num.h"
#include "verbs/verbs.h"

/* Counters of the software NIC's port and ring: the numbers of every port, under other names. */
static const struct pl_stat port_rows[] = {
#define PL_STAT(kind, member, key, family, unit, help)                                             \
	PL_STAT_ROW(struct pl_port_stats, kind, member, key, "pathline_rdma_port_" key, unit, help)
#include "netio/port_stats.def"
#undef PL_STAT
};
static const struct pl_stats port_list = { port_rows, sizeof(port_rows) / sizeof(port_rows[0]) };

static void put_responder(const struct pl_account *a, const struct pl_responder_counters *n)
{
	pl_account_stats(a, &pl_responder_stats_list, n);
	PL_SPLIT(a, "rdma_", "causes", "RoCE packets by result: ok, or the cause of refusal.");
	for (int i = 0; n != NULL && i < PL_RDMA_CAUSE_MAX; i++)
		pl_account_part(a, "cause", pl_rdma_cause_name((enum pl_rdma_cause)i),
			pl_counter_read(&n->causes[i]));
	pl_account_split_end(a);
}

static void put_list(const struct pl_account *a, const char *key, const struct pl_stats *list,
	const void *object)
{
	pl_account_object(a, key);
	pl_account_stats(a, list, object);
	pl_account_object_end(a);
}

static void put_port(const struct pl_account *a, const struct pl_collector_stats *s)
{
	pl_account_object(a, "port");
	pl_account_stats(a, &port_list, &s->port);
	pl_account_stats(a, &pl_nic_stats_list, s->nic);
	pl_account_object_end(a);
}

static void put_peers(struct pl_json *json, const struct pl_collector_stats *s,
	const struct pl_collector_options *options)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_json_key(json, "peers");
	pl_json_array(json);
	for (uint32_t i = 0; i < s->n_accounts; i++) {
		const struct pl_collector_account *a = &s->accounts[i];

		pl_format_addr(text, &a->peer);
		pl_json_object(json);
		pl_json_text(json, "peer", text);
		pl_json_text(json, "store", options->stores[a->store].name);
		pl_json_number(json, "connected", a->connected);
		pl_json_number(json, "tcp", a->tcp);
		pl_json_number(json, "cm", a->cm);
		pl_json_number(json, "packets", a->packets);
		pl_json_number(json, "refused", a->refused);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

static void put_suspects(struct pl_json *json, const struct pl_collector_stats *s)
{
	static const char *const kinds[PL_RDMA_GUESSES] = { "unknown_qp", "peer", "key", "number" };
	char text[PL_ADDR_TEXT_MAX];

	pl_json_key(json, "suspects");
	pl_json_array(json);
	for (uint32_t i = 0; i < s->n_suspects; i++) {
		const struct pl_rdma_suspect *who = &s->suspects[i];

		pl_format_addr(text, &who->addr);
		pl_json_object(json);
		pl_json_text(json, "address", text);
		pl_json_key(json, "now");
		pl_json_bool(json, who->now);
		pl_json_number(json, "guesses", who->guesses);
		for (int k = 0; k < PL_RDMA_GUESSES; k++)
			pl_json_number(json, kinds[k], who->kinds[k]);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

#if PL_HAVE_VERBS
static void tell_number(void *account, const char *name, uint64_t n)
{
	pl_account_part(account, "counter", name, n);
}

/* Adds the counters of the NIC's driver, and those of the NIC. */
static void put_nic(
	const struct pl_account *a, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	pl_account_object(a, "nic");
	pl_account_stats(a, &pl_verbs_stats_list, v != NULL ? pl_verbs_counters(v) : NULL);
	pl_account_stats(a, &pl_collector_device_list, v != NULL ? s : NULL);
	pl_account_object_end(a);
	PL_SPLIT(a, "rdma_", "hardware", "Counters of the RDMA NIC, by the names of its driver.");
	if (v != NULL)
		pl_verbs_hw_counters(v, tell_number, (void *)(uintptr_t)a);
	pl_account_split_end(a);
}

static void tell_nic(
	struct pl_buf *out, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	const struct pl_verbs_counters *n = pl_verbs_counters(v);

	pl_buf_printf(out,
		"%" PRIu64 " queue pairs, %" PRIu64 " of them failed, %" PRIu64
		" lost with the device; %" PRIu64 " signals",
		pl_counter_read(&n->qps), pl_counter_read(&n->broken), s->lost, s->signals);
}
#else
static void put_nic(
	const struct pl_account *a, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	(void)a;
	(void)v;
	(void)s;
}

static void tell_nic(
	struct pl_buf *out, const struct pl_verbs *v, const struct pl_collector_stats *s)
{
	(void)out;
	(void)v;
	(void)s;
}
#endif

void pl_collect_account(const struct pl_account *a, struct pl_collector *c,
	const struct pl_collector_options *options)
{
	struct pl_collector_stats *s = malloc(sizeof(*s));

	if (s == NULL)
		return;
	pl_collector_get_stats(c, s);
	if (s->responder != NULL)
		put_responder(a, s->responder);
	if (s->verbs != NULL)
		put_nic(a, s->verbs, s);
	pl_account_stats(a, &pl_collector_stats_list, s);
	/* Values by address are too many for metric families. */
	if (a->json != NULL)
		put_peers(a->json, s, options);
	if (a->json != NULL && s->responder != NULL)
		put_suspects(a->json, s);
	if (s->exchange != NULL)
		put_list(a, "control", &pl_exchange_server_stats_list, s->exchange);
	if (s->cm != NULL)
		put_list(a, "cm", &pl_connector_stats_list, s->cm);
	if (s->nic != NULL)
		put_port(a, s);
	free(s);
}

void pl_collect_describe(const struct pl_account *a)
{
	put_responder(a, NULL);
	put_nic(a, NULL, NULL);
	pl_account_stats(a, &pl_collector_stats_list, NULL);
	pl_account_stats(a, &pl_exchange_server_stats_list, NULL);
	pl_account_stats(a, &pl_connector_stats_list, NULL);
	pl_account_stats(a, &port_list, NULL);
	pl_account_stats(a, &pl_nic_stats_list, NULL);
}

void pl_collect_tell(struct pl_collector *c, struct pl_buf *out)
{
	struct pl_collector_stats *s = malloc(sizeof(*s));

	if (s == NULL)
		return;
	pl_collector_get_stats(c, s);
	if (s->verbs != NULL) {
		tell_nic(out, s->verbs, s);
		free(s);
		return;
	}
	pl_buf_printf(out,
		"%" PRIu64 " packets: %" PRIu64 " writes, %" PRIu64 " atomics, %" PRIu64
		" reads, %" PRIu64 " sends",
		pl_counter_read(&s->responder->packets), pl_counter_read(&s->responder->writes),
		pl_counter_read(&s->responder->adds) + pl_counter_read(&s->responder->swaps),
		pl_counter_read(&s->responder->reads), pl_counter_read(&s->responder->sends));
	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++) {
		const uint64_t n = pl_counter_read(&s->responder->causes[i]);

		if (i != PL_RDMA_C_OK && n > 0)
			pl_buf_printf(out, ", %" PRIu64 " %s", n,
				pl_rdma_cause_name((enum pl_rdma_cause)i));
	}
	if (s->port.kernel_drops > 0)
		pl_buf_printf(out, "; %" PRIu64 " dropped by the kernel", s->port.kernel_drops);
	free(s);
}
