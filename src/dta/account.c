/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins the accounts of a chain's parts. */
#include "dta/account.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

/* Reads a member that is a number; anything else sets *ret_good to false. */
static uint64_t member(const json_t *o, const char *name, bool *ret_good)
{
	const json_t *v = json_object_get(o, name);

	if (!json_is_integer(v) || json_integer_value(v) < 0) {
		*ret_good = false;
		return 0;
	}
	return (uint64_t)json_integer_value(v);
}

static uint64_t sum_of(const json_t *o)
{
	const char *name;
	json_t *v;
	uint64_t sum = 0;

	json_object_foreach((json_t *)(uintptr_t)o, name, v) sum += (uint64_t)json_integer_value(v);
	return sum;
}

static json_t *parse(const char *text, struct pl_diag *diag)
{
	json_t *root = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (!json_is_object(root)) {
		json_decref(root);
		pl_diag_set(diag, "a process printed no account");
		return NULL;
	}
	return root;
}

static int end(json_t *root, bool good, struct pl_diag *diag)
{
	json_decref(root);
	if (good)
		return 0;
	pl_diag_set(diag, "the account of a process lacks a number");
	return -EBADMSG;
}

int pl_dta_account_translator(struct pl_dta_account *a, const char *json, struct pl_diag *diag)
{
	json_t *root = parse(json, diag);
	const json_t *out = json_object_get(root, "out"), *list;
	bool good = json_is_object(out);

	if (root == NULL)
		return -EBADMSG;
	a->datagrams += member(root, "packets", &good);
	a->kernel_drops += member(root, "kernel_drops", &good);
	a->not_udp += member(root, "not_udp", &good);
	a->reports += member(root, "reports", &good);
	a->accepted += member(root, "accepted", &good);
	a->duplicates += member(root, "duplicates", &good);
	a->unreadable += sum_of(json_object_get(root, "unreadable"));
	a->refused += sum_of(json_object_get(root, "refused"));
	a->held += member(root, "held", &good);
	a->operations += member(root, "writes", &good) + member(root, "adds", &good);
	a->done += member(out, "writes", &good) + member(out, "adds", &good);
	a->lost += member(out, "lost", &good);
	a->full += member(out, "full", &good);
	a->down += member(out, "down", &good);
	a->outside += member(out, "outside", &good);
	a->repeated += member(out, "repeated", &good);
	list = json_object_get(out, "collectors");
	for (size_t i = 0; i < json_array_size(list); i++)
		a->connections += member(json_array_get(list, i), "connections", &good);
	return end(root, good, diag);
}

int pl_dta_account_collector(struct pl_dta_account *a, const char *json, struct pl_diag *diag)
{
	json_t *root = parse(json, diag);
	const json_t *port = json_object_get(root, "port");
	bool good = true;

	if (root == NULL)
		return -EBADMSG;
	a->executed += member(root, "writes", &good) + member(root, "adds", &good);
	if (port != NULL) /* an RDMA NIC has no port counters */
		a->collector_drops += member(port, "kernel_drops", &good);
	return end(root, good, diag);
}

void pl_dta_account_generator(struct pl_dta_account *a, const char *line, uint64_t *ret_made)
{
	*ret_made = 0;
	if (sscanf(line, "%" SCNu64 " packets (", ret_made) == 1) {
		a->have_generated = true;
		a->generated += *ret_made;
	}
}

static uint64_t known(const struct pl_dta_account *a)
{
	return a->lost + a->full + a->down + a->outside;
}

void pl_dta_account_close(struct pl_dta_account *a)
{
	a->closed = (!a->have_generated || a->generated == a->datagrams + a->kernel_drops) &&
		    a->reports == a->accepted + a->duplicates + a->unreadable + a->refused &&
		    a->operations == a->done + known(a) && a->held == 0 &&
		    a->executed <= a->done + a->lost;
}

static uint64_t wire_losses(const struct pl_dta_account *a)
{
	return a->done > a->executed ? a->done - a->executed : 0;
}

void pl_dta_account_text(const struct pl_dta_account *a, struct pl_buf *out)
{
	if (a->have_generated)
		pl_buf_printf(out,
			"generated  %10" PRIu64 " = received %" PRIu64
			" + dropped by the kernel %" PRIu64 "\n",
			a->generated, a->datagrams, a->kernel_drops);
	pl_buf_printf(out,
		"reports    %10" PRIu64 " = accepted %" PRIu64 " + duplicates %" PRIu64
		" + unreadable %" PRIu64 " + refused %" PRIu64 "\n",
		a->reports, a->accepted, a->duplicates, a->unreadable, a->refused);
	pl_buf_printf(out,
		"operations %10" PRIu64 " = done %" PRIu64 " + lost with a connection %" PRIu64
		" + no room %" PRIu64 " + no connection %" PRIu64 "\n",
		a->operations, a->done, a->lost, a->full + a->outside, a->down);
	pl_buf_printf(out,
		"executed   %10" PRIu64 ", lost on the wire %" PRIu64
		"; packets sent again %" PRIu64 ", connections %" PRIu64 "\n",
		a->executed, wire_losses(a), a->repeated, a->connections);
	if (a->collector_drops > 0)
		pl_buf_printf(out,
			"no room    %10" PRIu64
			" frames dropped by the kernel before collectors read them; included in lost on the wire\n",
			a->collector_drops);
	pl_buf_printf(out, "accounts   %s\n", a->closed ? "close" : "DO NOT CLOSE");
}

void pl_dta_account_json(const struct pl_dta_account *a, struct pl_json *json)
{
	const struct {
		const char *name;
		uint64_t n;
	} rows[] = { { "generated", a->generated }, { "received", a->datagrams },
		{ "kernel_drops", a->kernel_drops }, { "reports", a->reports },
		{ "accepted", a->accepted }, { "duplicates", a->duplicates },
		{ "unreadable", a->unreadable }, { "refused", a->refused },
		{ "operations", a->operations }, { "done", a->done }, { "lost", a->lost },
		{ "full", a->full }, { "down", a->down }, { "outside", a->outside },
		{ "executed", a->executed }, { "collector_drops", a->collector_drops },
		{ "lost_on_the_wire", wire_losses(a) }, { "repeated", a->repeated },
		{ "connections", a->connections } };

	pl_json_object(json);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pl_json_key(json, rows[i].name);
		pl_json_u64(json, rows[i].n);
	}
	pl_json_key(json, "closed");
	pl_json_bool(json, a->closed);
	pl_json_object_end(json);
}
