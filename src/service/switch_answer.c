/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of the control socket, and their answers (docs/guide/switch.md):
 *
 *   {"do":"change","changes":[{"kind":"add","table":"t","entry":"…"}]}   all or none
 *   {"do":"dump","table":"t"}   {"do":"tables"}   {"do":"ports"}   {"do":"account"}
 *   {"do":"counters"|"meters"|"registers","name":"…"}                    name may be left out
 *
 * An answer is {"ok":true,…} or {"ok":false,"error":"…"}.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "service/switch.h"

#define CHANGES_MAX 10000

struct answer {
	struct pl_switch *s;
	struct pl_json json;
	struct pl_diag diag;
};

static void fail(struct answer *a, const char *member, uint64_t value)
{
	struct pl_buf *buf = a->json.buf;

	pl_buf_reset(buf);
	pl_json_init(&a->json, buf);
	pl_json_object(&a->json);
	pl_json_key(&a->json, "ok");
	pl_json_bool(&a->json, false);
	pl_json_text(&a->json, "error", a->diag.text[0] != '\0' ? a->diag.text : "out of memory");
	if (member != NULL)
		pl_json_number(&a->json, member, value);
	pl_json_object_end(&a->json);
	a->s->refused++;
}

static void begin(struct answer *a)
{
	pl_json_object(&a->json);
	pl_json_key(&a->json, "ok");
	pl_json_bool(&a->json, true);
}

static void end(struct answer *a)
{
	pl_json_object_end(&a->json);
	a->s->requests++;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* ---- changes ---- */

static const char *const kinds[] = { "add", "set", "delete", "clear" };

static int read_change(const json_t *x, struct pl_dp_change *ret, struct pl_diag *diag)
{
	const char *kind = text_of(x, "kind");
	unsigned int k = 0;

	while (k < 4 && (kind == NULL || strcmp(kind, kinds[k]) != 0))
		k++;
	*ret = (struct pl_dp_change){ (enum pl_dp_change_kind)k, text_of(x, "table"),
		text_of(x, "entry") };
	if (k < 4 && ret->table != NULL && (ret->entry != NULL || ret->kind == PL_DP_CLEAR))
		return 0;
	pl_diag_set(diag,
		"a change has a kind (add, set, delete, clear), a table and, unless it is clear, an entry");
	return -EINVAL;
}

static void change(struct answer *a, const json_t *request)
{
	const json_t *list = json_object_get(request, "changes");
	const size_t n = json_array_size(list);
	struct pl_dp_change *changes;
	size_t bad = 0;
	int r = 0;

	if (n == 0 || n > CHANGES_MAX) {
		pl_diag_set(&a->diag, "\"changes\" is a list of 1 to %d changes", CHANGES_MAX);
		fail(a, NULL, 0);
		return;
	}
	changes = calloc(n, sizeof(*changes));
	for (; changes != NULL && r == 0 && bad < n; bad++) {
		r = read_change(json_array_get(list, bad), &changes[bad], &a->diag);
		if (r < 0)
			break;
	}
	if (changes == NULL)
		r = -ENOMEM;
	else if (r == 0)
		r = pl_dp_pipeline_change(a->s->pipeline, changes, n, &bad, &a->diag);
	free(changes);
	if (r < 0) {
		fail(a, "change", bad);
		return;
	}
	begin(a);
	pl_json_number(&a->json, "changes", n);
	end(a);
}

/* ---- reading ---- */

static void put_entry(void *arg, const char *entry, uint64_t packets, uint64_t bytes)
{
	struct answer *a = arg;

	pl_json_object(&a->json);
	pl_json_text(&a->json, "entry", entry);
	pl_json_number(&a->json, "packets", packets);
	pl_json_number(&a->json, "bytes", bytes);
	pl_json_object_end(&a->json);
}

static void dump(struct answer *a, const json_t *request)
{
	const char *table = text_of(request, "table");

	begin(a);
	pl_json_key(&a->json, "entries");
	pl_json_array(&a->json);
	if (pl_dp_pipeline_dump(
		    a->s->pipeline, table != NULL ? table : "", put_entry, a, &a->diag) < 0) {
		fail(a, NULL, 0);
		return;
	}
	pl_json_array_end(&a->json);
	end(a);
}

static void put_table(void *arg, const char *name, enum pl_dp_stage stage, size_t entries,
	uint64_t hits, uint64_t misses)
{
	struct answer *a = arg;

	pl_json_object(&a->json);
	pl_json_text(&a->json, "table", name);
	pl_json_text(&a->json, "stage", stage == PL_DP_INGRESS ? "ingress" : "egress");
	pl_json_number(&a->json, "entries", entries);
	pl_json_number(&a->json, "hits", hits);
	pl_json_number(&a->json, "misses", misses);
	pl_json_object_end(&a->json);
}

static void tables(struct answer *a, const json_t *request)
{
	(void)request;
	begin(a);
	pl_json_key(&a->json, "tables");
	pl_json_array(&a->json);
	pl_dp_pipeline_tables(a->s->pipeline, put_table, a);
	pl_json_array_end(&a->json);
	end(a);
}

/* Cells that were never touched are left out. */
static void put_counter(void *arg, const char *name, uint32_t index, const uint64_t values[3])
{
	struct answer *a = arg;

	if (values[0] == 0)
		return;
	pl_json_object(&a->json);
	pl_json_text(&a->json, "name", name);
	pl_json_number(&a->json, "index", index);
	pl_json_number(&a->json, "packets", values[0]);
	pl_json_number(&a->json, "bytes", values[1]);
	pl_json_object_end(&a->json);
}

static void put_meter(void *arg, const char *name, uint32_t index, const uint64_t values[3])
{
	struct answer *a = arg;

	if (values[0] + values[1] + values[2] == 0)
		return;
	pl_json_object(&a->json);
	pl_json_text(&a->json, "name", name);
	pl_json_number(&a->json, "index", index);
	pl_json_number(&a->json, "green", values[0]);
	pl_json_number(&a->json, "yellow", values[1]);
	pl_json_number(&a->json, "red", values[2]);
	pl_json_object_end(&a->json);
}

static void put_register(void *arg, const char *name, uint32_t index, const uint64_t values[3])
{
	struct answer *a = arg;

	if (values[0] == 0)
		return;
	pl_json_object(&a->json);
	pl_json_text(&a->json, "name", name);
	pl_json_number(&a->json, "index", index);
	pl_json_number(&a->json, "value", values[0]);
	pl_json_object_end(&a->json);
}

static void cells(struct answer *a, const json_t *request, enum pl_dp_cells kind, const char *key)
{
	static void (*const puts[])(void *arg, const char *name, uint32_t index,
		const uint64_t values[3]) = { put_counter, put_meter, put_register };

	begin(a);
	pl_json_key(&a->json, key);
	pl_json_array(&a->json);
	if (pl_dp_pipeline_cells(
		    a->s->pipeline, kind, text_of(request, "name"), puts[kind], a, &a->diag) < 0) {
		fail(a, NULL, 0);
		return;
	}
	pl_json_array_end(&a->json);
	end(a);
}

static void counters(struct answer *a, const json_t *request)
{
	cells(a, request, PL_DP_COUNTERS, "counters");
}

static void meters(struct answer *a, const json_t *request)
{
	cells(a, request, PL_DP_METERS, "meters");
}

static void registers(struct answer *a, const json_t *request)
{
	cells(a, request, PL_DP_REGISTERS, "registers");
}

static void put_port(struct answer *a, const struct pl_switch_port *port)
{
	uint64_t dropped = 0, held = 0;

	for (unsigned int q = 0; q < pl_dp_port_get(port->queues)->n_classes; q++) {
		const struct pl_dp_queue_account *k = pl_dp_port_account(port->queues, q);

		dropped +=
			k->dropped_bytes_limit + k->dropped_packets_limit + k->dropped_port_limit;
		held += k->held_packets;
	}
	pl_json_object(&a->json);
	pl_json_number(&a->json, "port", port->number);
	pl_json_text(&a->json, "name", port->name);
	pl_json_text(&a->json, "uri", port->uri);
	pl_json_key(&a->json, "up");
	pl_json_bool(&a->json, !port->down);
	pl_json_number(&a->json, "received", port->rx_packets);
	pl_json_number(&a->json, "received_bytes", port->rx_bytes);
	pl_json_number(&a->json, "oversize", port->rx_oversize);
	pl_json_number(&a->json, "sent", port->tx_packets);
	pl_json_number(&a->json, "sent_bytes", port->tx_bytes);
	pl_json_number(&a->json, "unsent", port->tx_dropped);
	pl_json_number(&a->json, "queue_dropped", dropped);
	pl_json_number(&a->json, "queued", held);
	pl_json_object_end(&a->json);
}

static void ports(struct answer *a, const json_t *request)
{
	(void)request;
	begin(a);
	pl_json_key(&a->json, "ports");
	pl_json_array(&a->json);
	for (unsigned int i = 0; i < a->s->n_ports; i++)
		put_port(a, &a->s->ports[i]);
	pl_json_array_end(&a->json);
	end(a);
}

static void account(struct answer *a, const json_t *request)
{
	(void)request;
	begin(a);
	pl_json_key(&a->json, "account");
	pl_json_object(&a->json);
	pl_switch_put(a->s, &(struct pl_account){ .json = &a->json });
	pl_json_object_end(&a->json);
	end(a);
}

/* ---- requests ---- */

static const struct {
	const char *name;
	void (*run)(struct answer *a, const json_t *request);
} requests[] = {
	{ "change", change },
	{ "dump", dump },
	{ "tables", tables },
	{ "counters", counters },
	{ "meters", meters },
	{ "registers", registers },
	{ "ports", ports },
	{ "account", account },
};

#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static void unknown(struct answer *a, const char *name)
{
	const char *names[REQUESTS];

	for (size_t i = 0; i < REQUESTS; i++)
		names[i] = requests[i].name;
	name = name != NULL ? name : "";
	pl_diag_set(&a->diag, "unknown request \"%s\" in \"do\"", name);
	pl_diag_nearest(&a->diag, '"', name, names, REQUESTS);
	fail(a, NULL, 0);
}

void pl_switch_answer(struct pl_switch *s, const char *request, size_t len, struct pl_buf *ret)
{
	struct answer a = { .s = s };
	json_error_t error;
	json_t *x = json_loadb(request, len, JSON_REJECT_DUPLICATES, &error);
	const char *name;
	size_t i = 0;

	pl_json_init(&a.json, ret);
	if (!json_is_object(x)) {
		pl_diag_set(
			&a.diag, "not a JSON object: %s", x == NULL ? error.text : "another value");
		fail(&a, NULL, 0);
		json_decref(x);
		return;
	}
	name = text_of(x, "do");
	while (i < REQUESTS && (name == NULL || strcmp(name, requests[i].name) != 0))
		i++;
	if (i < REQUESTS)
		requests[i].run(&a, x);
	else
		unknown(&a, name);
	json_decref(x);
}
