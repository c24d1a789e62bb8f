/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the filters of a question to taps in the kernel. */
#include "service/query_push.h"

#include <string.h>

#include "lang/push.h"
#include "netio/port.h"
#include "tap/kernel.h"

static bool all_in_kernel(const char *const *sources, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!pl_tap_kernel_is(sources[i]))
			return false;
	}
	return n > 0;
}

static bool some_short(const char *const *sources, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pl_tap_kernel_is_short(sources[i]))
			return true;
	}
	return false;
}

static bool some_stamped(const char *const *sources, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pl_tap_kernel_stamps(sources[i]))
			return true;
	}
	return false;
}

void pl_query_push_rules(const struct pl_query *query, const char *const *sources, size_t n,
	struct pl_tap_rules *ret)
{
	struct pl_query_push push;

	*ret = (struct pl_tap_rules){ .n = 0 };
	if (!all_in_kernel(sources, n))
		return;
	pl_query_push(query, some_short(sources, n), &push);
	memcpy(ret->rules, push.rules, sizeof(ret->rules));
	ret->n = push.n;
}

bool pl_query_push_plan(const struct pl_query *query, bool first, const char *const *sources,
	size_t n, struct pl_tap_count_plan *ret, const char **ret_why)
{
	const char *why =
		!all_in_kernel(sources, n) && n > 0 ? "a source is no tap in the kernel"
		: first ? "-n takes the first rows, in the order of records"
		: some_stamped(sources, n)
			? "the NIC gives times, by a clock that does not say which window is open"
			: pl_query_push_counts(query, some_short(sources, n), ret);

	if (ret_why != NULL)
		*ret_why = why;
	return why == NULL;
}

/* ---- where it runs ---- */

static bool reads_packets(const struct pl_query *query)
{
	return pl_query_reads(query, PL_FLAT_PKT64) || pl_query_reads(query, PL_FLAT_PKT96);
}

static bool reads_flows(const struct pl_query *query)
{
	return pl_query_reads(query, PL_FLAT_FLOW128) || pl_query_reads(query, PL_FLAT_FLOW288);
}

static bool reads_dns(const struct pl_query *query)
{
	return pl_query_reads(query, PL_FLAT_DNS64);
}

static void put_names(const char *const *sources, size_t n, struct pl_buf *out)
{
	for (size_t i = 0; i < n; i++)
		pl_buf_printf(out, "%s%s", i > 0 ? ", " : "", sources[i]);
}

/* Appends a text on what happens to packets that the rules take. Returns whether they are
 * counted. */
static bool put_counts(const struct pl_query *query, bool first, const char *const *sources,
	size_t n, struct pl_buf *out)
{
	struct pl_tap_count_plan plan;
	const char *why;

	if (!pl_query_push_plan(query, first, sources, n, &plan, &why)) {
		pl_buf_printf(out, "    not counted there by key: %s\n", why);
		return false;
	}
	pl_buf_str(out, "    counted there by ");
	pl_query_push_counts_text(query, out);
	pl_buf_str(out, plan.pane_ns != 0 ? " and window" : "");
	pl_buf_str(out, "; a packet without room for its key becomes a record\n");
	return true;
}

static void put_kernel(const struct pl_query *query, bool push_down, bool first,
	const char *const *sources, size_t n, struct pl_buf *out)
{
	struct pl_query_push push = { .n = 0 };
	struct pl_buf rest, counts;
	bool counted = false;

	pl_buf_init(&counts);
	if (push_down)
		pl_query_push(query, some_short(sources, n), &push);
	if (push_down && reads_packets(query) && !reads_flows(query)) {
		counted = put_counts(query, first, sources, n, &counts);
	}
	pl_buf_str(out, "  in the kernel (");
	if (n > 0)
		put_names(sources, n, out);
	else
		pl_buf_str(out, "with a source xdp:IFACE or tc:IFACE");
	pl_buf_printf(out, "): %s of %s\n", counted ? "counts" : "records",
		push.n > 0           ? "the packets that these rules take"
		: reads_flows(query) ? "all packets, as the flow cache needs them"
				     : "all packets");
	for (uint32_t i = 0; i < push.n; i++) {
		pl_buf_str(out, "    ");
		pl_tap_rule_text(out, &push.rules[i]);
		pl_buf_chr(out, '\n');
	}
	pl_buf_add(out, counts.data, counts.len);
	pl_buf_done(&counts);
	if (push.n == 0 || push.exact)
		return;
	pl_buf_init(&rest);
	pl_query_push_rest(query, some_short(sources, n), &rest);
	if (rest.len > 0) {
		pl_buf_str(out, "  in this process alone, as rules cannot say them whole\n");
		pl_buf_add(out, rest.data, rest.len);
	}
	pl_buf_done(&rest);
}

/* Appends where a source runs: in the kernel, on another host, or in this process. */
static void put_source(const char *source, struct pl_buf *out)
{
	const uint32_t can = pl_port_uri_can(source);

	if (pl_tap_kernel_is(source))
		pl_buf_printf(out, "  in the kernel (%s): records of all packets\n", source);
	else if ((can & PL_PORT_CAN_DATAGRAMS) != 0)
		pl_buf_printf(out, "  elsewhere: the taps that send records to %s\n", source);
	else if ((can & PL_PORT_CAN_INTERFACE) != 0)
		pl_buf_printf(
			out, "  in this process: the tap of %s, records of all packets\n", source);
}

void pl_query_push_explain(const struct pl_query *query, bool push_down, bool first,
	const char *const *sources, size_t n, struct pl_buf *out)
{
	const bool tapped = reads_packets(query) || reads_flows(query);

	if (n == 0 && (!tapped || reads_dns(query)))
		return;
	pl_buf_str(out, "where it runs\n");
	if (tapped && (n == 0 || all_in_kernel(sources, n))) {
		put_kernel(query, push_down, first, sources, n, out);
	} else {
		for (size_t i = 0; i < n; i++)
			put_source(sources[i], out);
	}
	pl_buf_printf(out, "  in this process: %severy step, with its filters\n",
		reads_flows(query) ? "the flow cache, " : "");
}
