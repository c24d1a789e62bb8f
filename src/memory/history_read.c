/* SPDX-License-Identifier: BSD-2-Clause */
/* A history read: records in their order, and by key. */
#include <errno.h>
#include <string.h>

#include "memory/history_internal.h"

/* ---- keys ---- */

struct pl_key pl_history_flow_key(const struct pl_history *h, const struct pl_path *flow)
{
	uint8_t key[37];

	memcpy(key, &flow->src, 16);
	memcpy(key + 16, &flow->dst, 16);
	memcpy(key + 32, &flow->sport, 2);
	memcpy(key + 34, &flow->dport, 2);
	key[36] = flow->proto;
	return pl_key_write_key(&h->flows, key, sizeof(key));
}

struct pl_key pl_history_queue_key(
	const struct pl_history *h, uint64_t node, uint32_t port, uint32_t queue)
{
	uint16_t low = (uint16_t)queue;
	uint8_t key[14];

	memcpy(key, &node, 8);
	memcpy(key + 8, &port, 4);
	memcpy(key + 12, &low, 2);
	return pl_key_write_key(&h->queues, key, sizeof(key));
}

struct pl_key pl_history_drops_key(const struct pl_history *h, uint64_t node, uint32_t reason)
{
	uint16_t low = (uint16_t)reason;
	uint8_t key[10];

	memcpy(key, &node, 8);
	memcpy(key + 8, &low, 2);
	return pl_counters_key(&h->drops, key, sizeof(key));
}

/* ---- lists ---- */

int pl_history_reader_init(struct pl_history_reader *r, const struct pl_history *h,
	enum pl_history_store store, uint32_t list, uint64_t from)
{
	const struct pl_append *a;
	uint64_t oldest, head;

	if (store > PL_HISTORY_HOPS || h->regions[store] == NULL)
		return -ENOENT;
	a = &h->lists[store];
	if (list >= a->lists)
		return -ERANGE;
	oldest = pl_append_oldest(a, list);
	head = pl_append_head(a, list);
	from = from < oldest ? oldest : from;
	r->h = h;
	r->store = store;
	r->without_hops = 0;
	r->at = r->n = 0;
	pl_append_reader_init(&r->list, a, list, from < head ? from : head);
	return 0;
}

/* Reads all hops of a path, as they were appended with it; none when one of them is gone. */
static unsigned int hops_of(
	const struct pl_history *h, const struct pl_path *path, uint64_t first, struct pl_hop *ret)
{
	struct pl_append_reader hops;
	size_t n = path->hop_count;

	if (n == 0 || h->regions[PL_HISTORY_HOPS] == NULL)
		return 0;
	pl_append_reader_init(&hops, &h->lists[PL_HISTORY_HOPS], 0, first);
	if (first + n > pl_append_head(hops.a, 0) || pl_append_read(&hops, ret, NULL, n) != n ||
		hops.cursor != first + n)
		return 0;
	/* After a power cut, or in an emptied list, the number may be another report's. Reports
	 * are numbered again by each run. */
	for (size_t i = 0; i < n; i++) {
		if (ret[i].report_id != path->report_id || ret[i].ts_ns != path->ts_ns)
			return 0;
	}
	return (unsigned int)n;
}

static bool fill_ahead(struct pl_history_reader *r)
{
	r->at = 0;
	r->n = pl_append_read(&r->list, r->entries, r->numbers, PL_HISTORY_AHEAD);
	return r->n > 0;
}

bool pl_history_next(struct pl_history_reader *r, struct pl_history_record *ret)
{
	const uint8_t *entry;

	if (r->at == r->n && !fill_ahead(r))
		return false;
	entry = r->entries + r->at * r->list.a->entry_bytes;
	ret->number = r->numbers[r->at++];
	ret->first_hop = ret->n_hops = 0;
	switch (r->store) {
	case PL_HISTORY_EVENTS:
		ret->kind = PL_KIND_EVENT;
		memcpy(&ret->event, entry, sizeof(ret->event));
		return true;
	case PL_HISTORY_HOPS:
		ret->kind = PL_KIND_HOP;
		memcpy(&ret->hop, entry, sizeof(ret->hop));
		return true;
	default:
		break;
	}
	ret->kind = PL_KIND_PATH;
	memcpy(&ret->path, entry, sizeof(ret->path));
	if (r->list.a->entry_bytes >= sizeof(struct pl_history_path)) {
		memcpy(&ret->first_hop, entry + sizeof(ret->path), sizeof(ret->first_hop));
		ret->n_hops = hops_of(r->h, &ret->path, ret->first_hop, ret->hops);
	}
	r->without_hops += ret->n_hops < ret->path.hop_count;
	return true;
}

uint64_t pl_history_record_ns(const struct pl_history_record *record)
{
	switch (record->kind) {
	case PL_KIND_EVENT:
		return record->event.ts_ns;
	case PL_KIND_HOP:
		return record->hop.ts_ns;
	default:
		return record->path.ts_ns;
	}
}

/* ---- last values ---- */

void pl_history_flows(const struct pl_history *h, const struct pl_key *keys, unsigned int n,
	struct pl_key_write_result *ret_results, struct pl_history_flow *ret_values)
{
	pl_key_write_get_batch(&h->flows, keys, n, 1, ret_results, ret_values);
}

void pl_history_queues(const struct pl_history *h, const struct pl_key *keys, unsigned int n,
	struct pl_key_write_result *ret_results, struct pl_hop *ret_values)
{
	pl_key_write_get_batch(&h->queues, keys, n, 1, ret_results, ret_values);
}

void pl_history_flow_record(const struct pl_history *h, const struct pl_history_flow *flow,
	struct pl_history_record *ret)
{
	const struct pl_path *path = &flow->last.path;
	unsigned int n = path->hop_count;

	ret->number = 0;
	ret->kind = PL_KIND_PATH;
	ret->path = *path;
	ret->first_hop = flow->last.first_hop;
	if (n > PL_HISTORY_FLOW_HOPS) {
		ret->n_hops = hops_of(h, path, ret->first_hop, ret->hops);
		if (ret->n_hops > 0)
			return;
		n = PL_HISTORY_FLOW_HOPS;
	}
	memcpy(ret->hops, flow->hops, n * sizeof(ret->hops[0]));
	ret->n_hops = n;
}

double pl_history_drops_total(const struct pl_history *h)
{
	return pl_counters_total(&h->drops);
}

struct pl_estimate pl_history_drops(const struct pl_history *h, struct pl_key key, double total)
{
	return pl_counters_estimate(&h->drops, key, total);
}
